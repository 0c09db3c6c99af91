"""Contacts with so much friction that rigid bodies have no or several motions (Painleve)."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.state import Status

pytestmark = pytest.mark.filterwarnings("ignore:contact 0 starts with penetration")


def rod_state(angle, rate, t=0.0):
    """On its tip, sliding at 30 m/s, turning with `rate` such that the tip stays on the floor (1 um deep in it)."""
    return carom.State([0.0, np.sin(angle) - 1e-6, angle], [30.0, np.cos(angle) * rate, rate], t)


def indicator(angle, mu=5 / 3):
    return 1 + 3 * np.cos(angle) * (np.cos(angle) - mu * np.sin(angle))


def run(state, **options):
    system, _ = carom.models.painleve_rod()
    method = carom.MoreauMidpoint(carom.SemismoothNewton(**options))
    return carom.simulate(system, state, method, t1=float(state.t) + 0.01, h=1e-4)


def test_ambiguous_start_is_reported_with_its_time():
    assert indicator(np.deg2rad(60)) < 0
    state = rod_state(np.deg2rad(60), 6.0, t=0.25)
    with pytest.raises(carom.SimulationError, match="more than one mode.*t = 0.25") as error:
        run(state)
    assert error.value.status is Status.SEVERAL_CONSISTENT_MODES
    assert error.value.solution.t[-1] == 0.25


def test_same_angle_with_less_friction_is_no_paradox():
    system, _ = carom.models.painleve_rod(friction=0.5)
    sol = carom.simulate(system, rod_state(np.deg2rad(60), 6.0), carom.MoreauMidpoint(), t1=0.01, h=1e-4)
    assert sol.status is Status.OK


@pytest.mark.slow
def test_ambiguity_may_be_left_to_the_solver():
    assert run(rod_state(np.deg2rad(60), 6.0), enumerate_modes=False).status is Status.OK


def test_leines_rod_slides_until_its_contact_force_grows_without_bound_and_lifts_off():
    system, state = carom.models.painleve_rod()
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=1.5, h=1.5 / 4000)
    opens = sol.events.time[sol.events.kind == "opens"][0]
    before = np.searchsorted(sol.t, opens)
    assert 0 < indicator(sol.q[before, 2]) < 0.05
    assert sol.force[before, 0] > 5 * sol.force[2, 0]


def test_jammed_wedge_has_no_consistent_mode():
    """A bead on a rail meets a wall obliquely; the wall drags it in harder than it pushes it out."""
    system = carom.System(
        1.0,
        contacts=carom.Contacts(lambda q: q, slip_velocity=lambda _q, v: 2 * v + 30.0, friction=1.0),
    )
    state = carom.State([0.055], [-1.0])
    with pytest.raises(carom.SimulationError, match="no mode.*t = 0.05") as error:
        carom.simulate(system, state, carom.MoreauMidpoint(), t1=1.0, h=0.01)
    assert len(error.value.solution) == 6  # everything before the wall is kept


@pytest.mark.slow
def test_a_solver_that_does_not_converge_is_an_error():
    system, state = carom.models.painleve_rod()
    method = carom.MoreauMidpoint(carom.PSOR(max_iter=1))
    with pytest.raises(carom.SimulationError, match="contact solver did not converge"):
        carom.simulate(system, state, method, t1=0.1, h=1e-3)


@pytest.mark.slow
def test_enumeration_finds_the_mode_that_newton_finds():
    toy = carom.System(
        [1.0, 1.0, 0.1],
        lambda q: 9.81 * q[1],
        contacts=carom.Contacts(
            lambda q: jnp.stack([q[1] - jnp.sin(q[2]), q[1] + jnp.sin(q[2])]),
            slip=lambda q: jnp.stack([q[0] - jnp.cos(q[2]), q[0] + jnp.cos(q[2])]),
            friction=jnp.array([0.2, 0.2]),
        ),
    )
    from carom.solvers.contact_problem import contact_problem
    from carom.solvers.enumeration import consistent_modes
    from carom.systems.contact_rows import contact_rows

    rows = contact_rows(toy, jnp.zeros(()), jnp.array([0.0, 0.0, 0.0]), jnp.array([0.3, -1.0, 0.4]))
    problem = contact_problem(
        rows.W,
        rows.W.over(toy.mass),
        rows.laws,
        c=rows.gamma,
        active=jnp.ones(2, bool),
        friction=rows.friction,
        limits=rows.limits,
    )
    found = carom.SemismoothNewton(enumerate_modes=False)(problem, jnp.zeros(4))
    tried = consistent_modes(problem, found, jnp.asarray(True))
    assert int(tried.status) == 0
    np.testing.assert_allclose(tried.P, found.P, atol=1e-12)
