"""One step of a method as a function of everything that is a number: its derivative is that of the discrete map."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.capturing.active_set import Coefficients, smooth_piece, survey
from carom.methods.capturing.modes import Modes
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.directions import DelassusMap, DenseDirections
from carom.solvers.newton import AbstractEquations, Settled, by_updates, newton
from carom.state import Info, Step

_SIZE = 1e-4  # of the differences
_IN_A_HURRY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def numbers_of_step(method, system, state, h):
    """The numbers of one step, and the function of them: q, v and what is reported at its end, and the modes."""
    whole = (method, system, state, method.init(system, state), jnp.asarray(h))
    numbers, rest = eqx.partition(whole, eqx.is_inexact_array)
    numbers = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), numbers)  # no weak types: one program

    def end(numbers):
        method, system, state, memory, h = eqx.combine(numbers, rest)
        step = method.step(system, state, memory, h)
        reported = [x for x in (step.info.impulse, step.info.work, step.info.multiplier) if x is not None]
        return jnp.concatenate([step.state.q, step.state.v, *reported]), step.info.mode

    return numbers, end


def derivative_program(end):
    """Values, their derivative along a direction, how much that in reverse differs from it, and the modes."""

    @partial(jax.jit, compiler_options=_IN_A_HURRY)
    def program(numbers, direction):
        value, push, mode = jax.linearize(end, numbers, has_aux=True)
        w = jnp.cos(jnp.arange(value.size))
        (gradient,) = jax.linear_transpose(push, numbers)(w)
        forward = push(direction)
        backward = sum(jnp.vdot(*pair) for pair in zip(*map(jax.tree.leaves, (gradient, direction))))
        return value, forward, w @ forward - backward, mode

    return program


def assert_program(program, numbers):
    """Along a random direction: forward as differences, reverse as forward; returns where, along what, the modes."""
    random = np.random.default_rng(3)
    direction = jax.tree.map(lambda x: random.normal(size=x.shape) * jnp.where(jnp.isfinite(x), abs(x), 0.0), numbers)

    def moved(k):
        return jax.tree.map(lambda x, d: x + k * _SIZE * d, numbers, direction)

    def value(k):
        return np.asarray(program(moved(k), direction)[0])

    differences = (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * _SIZE)
    here = moved(0)  # of the same types, so that nothing is compiled again
    _, forward, unlike, mode = program(here, direction)
    scale = np.max(np.abs(differences))
    assert scale > 0
    assert np.max(np.abs(forward - differences)) <= 1e-6 * scale
    assert abs(unlike) <= 1e-12 * float(jnp.sum(jnp.abs(forward)))
    return here, direction, mode


def _assert_derivative(method, system, state, h):
    """That of a program of one step; returns its numbers, the program along a direction, and the modes."""
    numbers, end = numbers_of_step(method, system, state, h)
    program = derivative_program(end)
    here, direction, mode = assert_program(program, numbers)
    return here, partial(program, direction=direction), mode


def _chain(damping=0.0):
    system, state = carom.models.dimer_chain(6, mass_ratio=0.6, damping=damping)
    squeezed = jnp.asarray([0.9, 0.5, 0.4, -0.1, -0.2, -0.9])
    return system, state.moved(state.t, squeezed, 0.3 * squeezed[::-1])


_OF_CHAINS = {
    "explicit": (carom.ExplicitRK(carom.explicit(4)), {}),
    "gauss": (carom.IRK(carom.gauss(2)), {}),
    "gauss with one Jacobian": (carom.IRK(carom.gauss(2), carom.Newton(strategy="shared")), {"damping": 0.05}),
    "theta": (carom.Theta(0.6), {}),
    "tailored": (carom.TailoredIRK(newton=carom.Newton(strategy="shared")), {"damping": 0.05}),
    "tailored theta": (carom.TailoredTheta(), {"damping": 0.05}),
    "pseudo-energy": (carom.PseudoEnergy("lobatto-3"), {}),
    "asynchronous": (carom.AsynchronousPseudoEnergy("contact[2:4]", ratio=3), {}),
    "composed": (carom.Composed(carom.PseudoEnergy()), {}),
}


_QUICK = ("gauss", "pseudo-energy", "midpoint")  # loops of Newton or of steps of the others are like theirs


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _QUICK else pytest.mark.slow) for name in _OF_CHAINS]
)
def test_a_step_of_a_chain_has_the_derivative_of_its_equations(name):
    method, options = _OF_CHAINS[name]
    numbers, program, _ = _assert_derivative(method, *_chain(**options), 0.1)
    untouched = eqx.tree_at(lambda n: n[2].q, numbers, jnp.zeros(6))
    assert all(np.isfinite(x).all() for x in program(untouched)[:3]), "beads that begin to touch have a derivative"


_OF_PENDULUMS = {
    "spark": carom.Spark(2, newton=carom.Newton(1e-15, 60, "full")),
    "spark with one Jacobian": carom.Spark(2, newton=carom.Newton(1e-15, 60, "shared")),
    "midpoint": carom.MoreauMidpoint(carom.PSOR(1e-15)),
    "theta": carom.MoreauTheta(0.6, solver=carom.PSOR(1e-15)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _QUICK else pytest.mark.slow) for name in _OF_PENDULUMS]
)
def test_a_step_of_a_constrained_pendulum_has_the_derivative_of_its_equations(name):
    _assert_derivative(_OF_PENDULUMS[name], *carom.models.pendulum(), 0.05)


@pytest.mark.slow
def test_an_extrapolated_step_has_the_derivative_of_its_tableau():
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=3, fixed_order=3)
    system = carom.System(1.5, lambda q, p: p["k"] * jnp.sum(1 - jnp.cos(q)), params={"k": 2.0})
    _assert_derivative(method, system, carom.State([1.0, -0.4], [0.3, 0.2]), 0.1)


def _energy(q, p):
    x, z, *ring = q
    ring = jnp.stack(ring)
    return p["weight"] * z + p["pull"] * ring @ ring + 0.5 * p["spring"] * jnp.sin(x - ring[0]) ** 2


def _gaps(q, p):
    return jnp.stack([q[1], jnp.sqrt(q[2] ** 2 + q[3] ** 2) - p["radius"]])


def _slips(q, v):
    return jnp.stack([v[0], (q[2] * v[3] - q[3] * v[2]) / jnp.sqrt(q[2] ** 2 + q[3] ** 2)])


def _sticking_and_sliding():
    """A mass that sticks to a floor, on a spring to one that slides around a ring."""
    contacts = carom.Contacts(_gaps, slip_velocity=_slips, friction=[0.5, 0.2], restitution=[0.1, 0.0])
    params = {"weight": 9.81, "pull": 3.0, "spring": 2.0, "radius": 1.0}
    system = carom.System([1.0, 1.2, 0.7, 0.8], _energy, params=params, contacts=contacts)
    return system, carom.State([0.2, -1e-3, 0.5994, 0.7992], [1e-3, -0.01, -0.56, 0.42])


_WITH_CONTACTS = {
    "midpoint": carom.MoreauMidpoint(carom.SemismoothNewton(fallback=carom.PSOR(), enumerate_modes=False)),
    "theta": carom.MoreauTheta(0.6, solver=carom.PSOR(1e-14)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _WITH_CONTACTS)
def test_a_step_with_sticking_and_sliding_contacts_has_the_derivative_of_its_laws(name):
    _, _, mode = _assert_derivative(_WITH_CONTACTS[name], *_sticking_and_sliding(), 0.01)
    assert mode.tolist() == [0, 0, 0, 1]


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
        return Step(state.moved(state.t + h, piece.q, piece.v), None, Info(impulse=piece.impulse, work=piece.work))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["acceleration", "velocity"])
def test_a_smooth_piece_with_held_modes_has_the_derivative_of_its_equations(form):
    _assert_derivative(_Piece(form), *_sticking_and_sliding(), 0.01)


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
    package, own = Path(carom.__file__).parent, {"roots.py"}
    sources = [path for folder in ("methods", "solvers") for path in (package / folder).rglob("*.py")]
    assert len(sources) > 40
    bare = [path.name for path in sources if path.name not in own and "while_loop" in path.read_text()]
    assert not bare, "use carom.solvers.roots.rooted or repeated"


class Sheared(AbstractEquations):
    """(1 - N) x = b, with directions that do not know N: changes of x grow before they vanish, or for ever."""

    N: jax.Array
    b: jax.Array

    @property
    def exact(self):
        return False

    def residual(self, x):
        return x - self.N @ x - self.b, x

    def direction(self, x, r):
        return r

    def size(self, d, x):
        return jnp.max(jnp.abs(d))


@pytest.mark.parametrize("transposed", [False, True])
def test_a_root_by_rough_directions_has_its_derivative_though_their_changes_grow_at_first(transposed):
    def root(b, N):
        return newton(Sheared(N, b), b, 50, by_updates(Settled(1e-15, 1e-9, 0.1))).x

    N, b = jnp.array([[0.1, 9.0, 3.0], [0.0, 0.1, 8.0], [0.0, 0.0, 0.1]]), jnp.array([1.0, 2.0, 3.0])
    jacobian = (jax.jacrev if transposed else jax.jacfwd)(root)
    assert np.allclose(jacobian(b, N), np.linalg.inv(np.eye(3) - N), rtol=1e-13)
    assert np.isnan(jacobian(b, N.at[0, 0].set(1.5))).any()  # not a number that was not found
