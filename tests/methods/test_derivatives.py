"""One step of a method as a function of everything that is a number: its derivative is that of the discrete map."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.capturing.active_set import Coefficients, onto_active, smooth_piece, survey
from carom.methods.capturing.modes import Modes
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.directions import DelassusMap, DenseDirections
from carom.state import Info, Step

_H = 1e-4  # of the differences


def _chain(**options):
    system, state = carom.models.dimer_chain(6, mass_ratio=0.6, **options)
    squeezed = jnp.asarray([0.9, 0.5, 0.4, -0.1, -0.2, -0.9])
    return system, eqx.tree_at(lambda s: (s.q, s.v), state, (squeezed, 0.3 * squeezed[::-1]))


def _pair(h, method, system, state):
    """The numbers of one step, and the map from them to its end."""
    whole = (method, system, state, method.init(system, state), jnp.asarray(h))
    numbers, rest = eqx.partition(whole, eqx.is_inexact_array)

    def end(numbers):
        method, system, state, memory, h = eqx.combine(numbers, rest)
        step = method.step(system, state, memory, h)
        reported = [x for x in (step.info.impulse, step.info.work, step.info.multiplier) if x is not None]
        return jnp.concatenate([step.state.q, step.state.v, *reported]), step.info.mode

    return numbers, end


def _moved(numbers, direction, size):
    return jax.tree.map(lambda x, d: x + size * d, numbers, direction)


def _assert_derivative(h, method, system, state, accuracy=1e-6):
    numbers, end = _pair(h, method, system, state)
    keys = np.random.default_rng(3)
    direction = jax.tree.map(lambda x: keys.normal(size=x.shape) * jnp.where(jnp.isfinite(x), jnp.abs(x), 0.0), numbers)

    @jax.jit
    def both(numbers, w):
        value, push, _ = jax.linearize(end, numbers, has_aux=True)
        (gradient,) = jax.linear_transpose(push, numbers)(w)
        return (
            value,
            push(direction),
            sum(jnp.vdot(*pair) for pair in zip(*map(jax.tree.leaves, (gradient, direction)))),
        )

    plain = jax.jit(end)
    at = {k: np.asarray(plain(_moved(numbers, direction, k * _H))[0]) for k in (-2, -1, 0, 1, 2)}
    differences = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * _H)
    w = jnp.asarray(keys.normal(size=at[0].size))
    value, forward, backward = both(numbers, w)
    np.testing.assert_allclose(value, at[0], rtol=1e-13, atol=1e-13)
    assert np.max(np.abs(differences)) > 0
    assert np.max(np.abs(forward - differences)) <= accuracy * np.max(np.abs(differences))
    assert abs(w @ forward - backward) <= 1e-12 * float(jnp.abs(w) @ jnp.abs(forward))
    return numbers, plain, lambda numbers: both(numbers, w)


_SMOOTH = {
    "gauss": (carom.IRK(carom.gauss(2)), {}),
    "gauss with one Jacobian": (carom.IRK(carom.gauss(2), carom.Newton(strategy="shared")), {"damping": 0.05}),
    "theta": (carom.Theta(0.6), {}),
    "tailored": (carom.TailoredIRK(newton=carom.Newton(strategy="shared")), {"damping": 0.05}),
    "tailored theta": (carom.TailoredTheta(), {"damping": 0.05}),
}


@pytest.mark.parametrize("name", _SMOOTH)
def test_a_step_of_a_chain_has_the_derivative_of_its_stage_equations(name):
    method, options = _SMOOTH[name]
    numbers, _, both = _assert_derivative(0.1, method, *_chain(**options))
    untouched = eqx.tree_at(lambda n: n[2].q, numbers, jnp.zeros(6))
    assert all(np.isfinite(x).all() for x in both(untouched)), "beads that begin to touch have a derivative"


@pytest.mark.parametrize("strategy", ["shared", "full"])
def test_a_step_of_a_constrained_pendulum_has_the_derivative_of_its_equations(strategy):
    method = carom.Spark(2, newton=carom.Newton(1e-15, 60, strategy))
    _assert_derivative(0.05, method, *carom.models.pendulum())


def _energy(q, p):
    x, z, *ring = q
    ring = jnp.stack(ring)
    return p["weight"] * z + p["pull"] * ring @ ring + 0.5 * p["spring"] * jnp.sin(x - ring[0]) ** 2


def _gaps(q, p):
    return jnp.stack([q[1], jnp.sqrt(q[2] ** 2 + q[3] ** 2) - p["radius"]])


def _slips(q, v):
    return jnp.stack([v[0], (q[2] * v[3] - q[3] * v[2]) / jnp.sqrt(q[2] ** 2 + q[3] ** 2)])


def _sticking_and_sliding(**options):
    """A mass that sticks to a floor, on a spring to one that slides around a ring."""
    contacts = carom.Contacts(_gaps, slip_velocity=_slips, friction=[0.5, 0.2], restitution=[0.1, 0.0])
    params = {"weight": 9.81, "pull": 3.0, "spring": 2.0, "radius": 1.0}
    system = carom.System([1.0, 1.2, 0.7, 0.8], _energy, params=params, contacts=contacts, **options)
    return system, carom.State([0.2, -1e-3, 0.5994, 0.7992], [1e-3, -0.01, -0.56, 0.42])


_CONTACT = {
    "midpoint": carom.MoreauMidpoint(carom.SemismoothNewton(fallback=carom.PSOR(), enumerate_modes=False)),
    "theta": carom.MoreauTheta(0.6, solver=carom.PSOR(1e-14)),
}


@pytest.mark.parametrize("name", _CONTACT)
def test_a_step_with_sticking_and_sliding_contacts_has_the_derivative_of_its_laws(name):
    numbers, plain, _ = _assert_derivative(0.01, _CONTACT[name], *_sticking_and_sliding())
    assert plain(numbers)[1].tolist() == [0, 0, 0, 1]


def test_an_extrapolated_step_has_the_derivative_of_its_tableau():
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=3, fixed_order=3)
    system = carom.System(1.5, lambda q, p: p["k"] * jnp.sum(1 - jnp.cos(q)), params={"k": 2.0})
    _assert_derivative(0.1, method, system, carom.State([1.0, -0.4], [0.3, 0.2]))


class _Piece(eqx.Module):
    """One smooth piece of event capturing: the first contact sticks, the second slides."""

    form: str = eqx.field(static=True)

    def init(self, system, state):
        return None

    def step(self, system, state, memory, h):
        at = survey(system, state.t, state.q, state.v)
        modes = Modes.of_numbers(at.laws, jnp.asarray([0, 0, 0, 1]))
        tableau = Coefficients(carom.radau_iia(2))
        piece = smooth_piece(system, tableau, state, at.under(modes), modes, h, self.form)
        gaps = at.gaps_kept(modes.closed)
        q, v = onto_active(system, state.t + h, piece.q, piece.v, modes.held, gaps)
        return Step(state.moved(state.t + h, q, v), None, Info(impulse=piece.impulse, work=piece.work))


@pytest.mark.parametrize("form", ["acceleration", "velocity"])
def test_a_smooth_piece_with_held_modes_has_the_derivative_of_its_equations(form):
    _assert_derivative(0.01, _Piece(form), *_sticking_and_sliding())


def test_a_contact_solver_without_a_matrix_says_that_it_has_no_derivative():
    W = DenseDirections(jnp.eye(2))
    sets = {"active": jnp.ones(2, bool), "friction": jnp.zeros(2), "limits": jnp.zeros((0, 2))}

    def impulses(c):
        problem = ContactProblem(DelassusMap(W, W), jnp.ones(2), c, laws=Laws([(2, 0)]), **sets)
        return carom.PJOR()(problem, jnp.zeros(2)).P

    c = jnp.asarray([-1.0, 2.0])
    assert impulses(c).tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="PJOR has no derivative where no Delassus matrix is formed"):
        jax.jvp(impulses, (c,), (c,))


def test_every_loop_of_unknown_length_in_methods_and_solvers_is_one_that_has_a_derivative():
    package, own = Path(carom.__file__).parent, {"roots.py", "event_capturing.py", "location.py"}
    sources = [path for folder in ("methods", "solvers") for path in (package / folder).rglob("*.py")]
    assert len(sources) > 40
    bare = [path.name for path in sources if path.name not in own and "while_loop" in path.read_text()]
    assert not bare, "use carom.solvers.roots.rooted or repeated"
