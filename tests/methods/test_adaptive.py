"""Step sizes from tolerances: the estimate, proportionality, pieces, dense output, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.running.run import prepare
from carom.tableaux import embedded, trees

FAMILIES = [
    *(carom.explicit(p) for p in range(1, 6)),
    *(carom.tableaux.half_explicit(p) for p in range(1, 5)),
    *(carom.gauss(s) for s in (1, 2, 3)),
    *(carom.radau_iia(s) for s in (1, 2, 3)),
    *(
        getattr(carom, f"lobatto_{letter}")(s)
        for letter in ("iiia", "iiib", "iiic", "iiic_star", "iiid")
        for s in (2, 3, 4)
    ),
]
RTOLS = 10.0 ** -np.arange(3.0, 11.0)
FIFTH = carom.ExplicitRK(carom.explicit(5))


def loss(t, q, v):
    """Van der Pol's damping."""
    del t
    return (1 - q**2) * v


VAN_DER_POL = carom.System(1.0, lambda q: 0.5 * q @ q, {"damping": loss}), carom.State([2.0], [0.0])


def kepler():
    return carom.System(1.0, lambda q: -1 / jnp.sqrt(q @ q)), carom.State([0.5, 0.0], [0.0, 3**0.5])


def end(solution):
    return np.concatenate([solution.q[-1], solution.v[-1]])


def to(rtol):
    return carom.Adaptive(rtol, 1e-3 * rtol, h_max=np.inf)


def relative_errors(system, state, method, t1, reference):
    """Errors at t1 in units of rtol."""
    ends = [end(carom.simulate(system, state, method, t1=t1, stepping=to(r))) for r in RTOLS]
    return np.array([np.abs(y - reference).max() / np.abs(reference).max() for y in ends]) / RTOLS


@pytest.mark.parametrize("tableau", FAMILIES, ids=lambda tableau: tableau.name)
def test_the_embedded_companion_falls_with_the_power_it_says(tableau):
    companion, s = embedded(tableau), tableau.stages
    A = np.zeros((s + 2, s + 2))
    A[1:-1, 1:-1], A[-1, 1:-1] = tableau.A, tableau.b
    b = np.concatenate([[0.0], tableau.b, [0.0]])
    reached = trees.largest_order([A], b + companion.weights, companion.power, 1e-12)
    assert reached >= min(companion.power - 1, tableau.order)
    assert reached < companion.power or not tableau.row_sums_are_c


@pytest.fixture(scope="module")
def oscillator():
    reference = carom.simulate(*VAN_DER_POL, FIFTH, t1=10.0, stepping=to(1e-13))
    runs = [carom.simulate(*VAN_DER_POL, FIFTH, t1=10.0, stepping=to(r)) for r in RTOLS]
    return reference, runs


def test_the_error_of_an_explicit_method_falls_with_rtol(oscillator):
    reference, runs = oscillator
    errors = np.array([np.abs(end(run) - end(reference)).max() for run in runs]) / np.abs(end(reference)).max()
    assert (errors < 30 * RTOLS).all()
    assert (errors > RTOLS / 30).all()


def test_a_new_tolerance_does_not_compile_again(oscillator):
    assert sum(run.stats["traces"] for run in oscillator[1]) == 0


def test_values_between_the_steps_are_as_good_as_those_at_the_steps(oscillator):
    reference, runs = oscillator
    times = np.linspace(0.0, 10.0, 333)
    exact = np.concatenate(reference.at(times), axis=1)
    for rtol, run in zip(RTOLS[3:], runs[3:]):
        at_steps = np.abs(np.concatenate([run.q, run.v], 1) - np.concatenate(reference.at(run.t), 1)).max()
        between = np.abs(np.concatenate(run.at(times), axis=1) - exact).max()
        assert between < 10 * max(at_steps, rtol)


def test_the_first_step_suits_a_start_from_rest(oscillator):
    for run in oscillator[1]:
        assert run.h[1] > 0.02 * np.median(run.h[1:])
        assert run.stats["rejected"] < 0.2 * run.stats["accepted"]


def test_steps_land_on_jumps_of_the_force_and_on_the_end():
    push = lambda t, q, v: jnp.where(t < 0.3, 1.0, -2.0) * jnp.ones(1)  # noqa: ARG005, E731
    system = carom.System(1.0, forces={"push": push}, jumps=[0.3])
    sol = carom.simulate(system, carom.State([0.0], [0.0]), FIFTH, t1=1.0, stepping=to(1e-6))
    assert 0.3 in sol.t
    assert sol.t[-1] == 1.0
    assert sol.q[-1, 0] == pytest.approx(0.045 + 0.3 * 0.7 - 0.49, abs=1e-14)


def test_an_implicit_method_steps_over_fast_rates_that_have_died_out():
    pull = lambda t, q, v: -1e6 * (v - jnp.cos(t))  # noqa: ARG005, E731
    system = carom.System(1.0, forces={"pull": pull})
    sol = carom.simulate(
        system, carom.State([0.0], [2.0]), carom.IRK(carom.radau_iia(3)), t1=10.0, stepping=carom.Adaptive(1e-6, 1e-9)
    )
    assert sol.stats["accepted"] < 300
    assert sol.q[-1, 0] == pytest.approx(np.sin(10.0) + 1e-6, abs=2e-6)


def test_an_interrupted_run_goes_on_bit_for_bit(oscillator, tmp_path):
    whole = oscillator[1][5]
    run = prepare(*VAN_DER_POL, FIFTH, 10.0, to(RTOLS[5]))
    run.attempts = 20
    run.chunk()
    run.solution().save(tmp_path / "run.nc")
    assert run.reached < 5.0
    resumed = carom.resume(tmp_path / "run.nc", system=VAN_DER_POL[0])
    assert np.array_equal(resumed.q, whole.q)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rtol": 0.0}, "rtol must be positive"),
        ({"rtol": -1e-6}, "rtol must be positive"),
        ({"rtol": 1e-15}, "rounding"),
        ({"atol": 0.0}, "atol must be positive"),
        ({"atol": float("nan")}, "atol must be positive"),
        ({"h_max": -1.0}, "h_max must be positive"),
        ({"first": 0.0}, "first must be positive"),
    ],
)
def test_tolerances_that_cannot_be_kept_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        carom.Adaptive(**given)


def test_a_method_without_an_estimate_is_refused_by_name():
    with pytest.raises(ValueError, match="Adaptive needs 'local error', which StormerVerlet does not give"):
        carom.simulate(*carom.models.single_particle(), carom.StormerVerlet(), t1=1.0, stepping=to(1e-6))


def test_atol_must_fit_the_coordinates():
    with pytest.raises(ValueError, match="2 coordinates"):
        carom.simulate(*kepler(), FIFTH, t1=1.0, stepping=carom.Adaptive(1e-6, [1e-9, 1e-9, 1e-9]))


def smooth_implicit():
    system, state = kepler()
    return system, state, carom.IRK(carom.gauss(3)), 4 * np.pi, np.concatenate([state.q, state.v])


def constrained():
    system, state = carom.models.pendulum()
    exact = carom.simulate(system, state, carom.Spark(4), t1=50.0, stepping=carom.Adaptive(1e-12, 1e-15))
    return system, state, carom.Spark(3), 50.0, end(exact)


def bouncing():
    q, v = carom.models.exact.bouncing_ball(np.array([2.1]))
    return *carom.models.bouncing_ball(), carom.EventCapturing(carom.explicit(5)), 2.1, np.array([q[0], v[0]])


def stopped():
    q, v = carom.models.exact.oscillator_with_stop([10.0])
    method = carom.EventCapturing(carom.radau_iia(3))
    return *carom.models.oscillator_with_stop(), method, 10.0, np.array([q[0], v[0]])


def sticking():
    system, state = carom.models.block_on_belt()
    method = carom.EventCapturing(carom.explicit(5))
    exact = carom.simulate(system, state, method, t1=28.0, stepping=carom.Adaptive(1e-12, 1e-15))
    assert {"sticks", "slips"} <= set(exact.events.kind)
    return system, state, method, 28.0, end(exact)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [smooth_implicit, constrained, bouncing, stopped, sticking])
def test_the_error_falls_with_rtol_through_constraints_impacts_and_friction(problem):
    errors = relative_errors(*problem())
    assert errors.max() < 30
    assert errors.min() > 1 / 30
