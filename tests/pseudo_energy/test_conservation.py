"""The synchronous scheme: order, pseudo-energy, momentum, reversibility, start, mass, applied forces."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import momentum, observed_order
from carom.models.media import oscillatory_energy
from carom.state import lift

EXACT = ["gauss-2", *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("lobatto-3", "lobatto-5"))]


def drift(solution):
    pseudo = solution.account.extra["pseudo_energy"]
    return np.max(np.abs(pseudo - pseudo[0])) / abs(pseudo[0])


# ---- one particle [sec. 3.1] ----------------------------------------------------------------------------------------


def particle_errors(quadrature, counts):
    system, state = carom.models.single_particle(0.5)
    method = carom.PseudoEnergy(quadrature)
    solutions = carom.simulate_batch(system, state, method, t1=[2.5] * len(counts), h=[2.0 / n for n in counts])
    return [np.sum(np.abs(s.q[1:, 0] - 1 - np.sin(s.t[1:]) ** 4)) / n for s, n in zip(solutions, counts)]


@pytest.mark.parametrize(
    ("quadrature", "first"),
    [
        ("midpoint", 5.975960e-5),
        pytest.param("lobatto-3", 5.332815e-5, marks=pytest.mark.slow),
        pytest.param("lobatto-5", None, marks=pytest.mark.slow),
    ],
)
def test_single_particle_converges_with_order_two_and_the_known_error(quadrature, first):
    counts = [200, 400, 800]
    errors = particle_errors(quadrature, counts)
    assert observed_order([1 / n for n in counts], errors) == pytest.approx(2.0, abs=0.05)
    if first is not None:
        assert errors[0] == pytest.approx(first, rel=1e-6)


# ---- Fermi-Pasta-Ulam [sec. 3.2] ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain():
    return carom.models.fermi_pasta_ulam(3, omega=50.0)


@pytest.fixture(scope="module")
def long_run(chain):
    runs = {}

    def of(quadrature):
        if quadrature not in runs:
            runs[quadrature] = carom.simulate(*chain, carom.PseudoEnergy(quadrature), t1=200.0, h=1e-3)
        return runs[quadrature]

    return of


@pytest.mark.parametrize("quadrature", EXACT)
def test_pseudo_energy_is_exact_where_the_quadrature_is(long_run, quadrature):
    solution = long_run(quadrature)
    assert solution.account.extra["pseudo_energy"][0] == pytest.approx(2.00120008, abs=1e-14)
    assert drift(solution) < 1e-12


def test_midpoint_rule_lets_the_pseudo_energy_drift_by_its_quadrature_error(long_run):
    assert drift(long_run("midpoint")) == pytest.approx(6.15e-7, rel=0.05)


def test_oscillatory_energy_stays_near_its_mean(long_run):
    solution = long_run("gauss-2")
    total = oscillatory_energy(50.0, solution.q, solution.v).sum(1)
    assert round(float(total.mean()), 4) == 1.0012
    assert total.min() > 0.93
    assert total.max() < 1.07


def test_velocity_is_the_mean_of_the_half_steps_and_its_energy_exceeds_the_pseudo_energy_by_the_gap(long_run):
    solution = long_run("gauss-2")
    extra, q, v = solution.account.extra, solution.q, solution.v
    half = np.diff(q, axis=0) / 1e-3
    np.testing.assert_allclose(v[1:-1], 0.5 * (half[1:] + half[:-1]), atol=1e-11)
    gap = np.sum(np.diff(half, axis=0) ** 2, axis=1) / 8  # (18), unit masses
    np.testing.assert_allclose(extra["gap"][1:-1], gap, atol=1e-13)
    np.testing.assert_allclose(solution.account.energy, extra["pseudo_energy"] + extra["gap"], rtol=1e-14)


def random_steps(count, low, high):
    return np.random.default_rng(3).uniform(low, high, count)


@pytest.fixture(scope="module")
def uneven():
    steps = random_steps(5000, 5e-4, 1.5e-3)
    return float(steps.sum()) * (1 - 1e-9), carom.Prescribed(steps)


def test_pseudo_energy_stays_exact_for_random_steps(chain, uneven):
    t1, stepping = uneven
    assert drift(carom.simulate(*chain, carom.PseudoEnergy("gauss-2"), t1=t1, stepping=stepping)) < 1e-12


@pytest.mark.slow
def test_stormer_verlet_loses_its_energy_with_random_steps_only(chain, uneven):
    t1, stepping = uneven
    constant = carom.simulate(*chain, carom.StormerVerlet(), t1=t1, h=1e-3).account.energy
    random = carom.simulate(*chain, carom.StormerVerlet(), t1=t1, stepping=stepping).account.energy
    late = [abs(np.mean(e[-500:]) / e[0] - 1) for e in (constant, random)]
    assert late[0] < 1e-6
    assert late[1] > 1e-4


def test_an_energy_torn_from_the_pseudo_energy_by_random_steps_is_reported(chain):
    steps = random_steps(5000, 5e-4, 3e-3)
    t1 = float(steps.sum()) * (1 - 1e-9)
    with pytest.warns(carom.StabilityWarning, match="above the pseudo-energy"):
        carom.simulate(*chain, carom.PseudoEnergy("gauss-2"), t1=t1, stepping=carom.Prescribed(steps))


@pytest.mark.parametrize("quadrature", ["midpoint", pytest.param("lobatto-3", marks=pytest.mark.slow)])
def test_going_back_returns_to_the_start(chain, quadrature):
    system, state = chain
    method = lift(carom.PseudoEnergy(quadrature))
    step = eqx.filter_jit(method.step)
    steps = random_steps(30, 1e-3, 2e-2)
    s, memory = state, method.init(system, state)
    for h in steps:
        s, memory = (r := step(system, s, memory, jnp.asarray(h))).state, r.memory
    assert np.max(np.abs(s.q - state.q)) > 0.1
    for h in steps[::-1]:
        s, memory = (r := step(system, s, memory, jnp.asarray(-h))).state, r.memory
    np.testing.assert_allclose(s.q, state.q, atol=1e-13)
    np.testing.assert_allclose(s.v, state.v, atol=1e-12)
    np.testing.assert_allclose(memory.w, 0.0, atol=1e-12)


def quartic_bond(a, b):
    return (b - a) ** 2 / 2 + (b - a) ** 4 / 4


def test_momentum_of_an_isolated_chain_is_constant():
    rng = np.random.default_rng(0)
    system = carom.System(rng.uniform(1, 2, 6), carom.Interactions(quartic_bond, stencil=(0, 1)))
    state = carom.State(rng.normal(size=6), rng.normal(size=6))
    total = momentum(system, carom.simulate(system, state, carom.PseudoEnergy(), t1=20.0, h=0.05))
    assert np.max(np.abs(total - total[0])) < 1e-13


def test_momentum_is_that_of_the_mass_where_the_coordinates_are():
    system = carom.System(lambda q: 1.0 + q[0] ** 2)
    sol = carom.simulate(system, carom.State([1.0], [0.5]), carom.ExplicitRK(carom.explicit(4)), t1=1.0, h=0.25)
    assert np.allclose(momentum(system, sol), ((1.0 + sol.q**2) * sol.v)[:, 0], rtol=1e-14)


# ---- start and mass -------------------------------------------------------------------------------------------------


def test_one_step_start_makes_the_trapezoidal_rule_the_stormer_verlet_scheme(chain):
    ours = carom.simulate(*chain, carom.PseudoEnergy("lobatto-2", start="one-step"), t1=1.0, h=1e-2)
    verlet = carom.simulate(*chain, carom.StormerVerlet(), t1=1.0, h=1e-2)
    np.testing.assert_allclose(ours.q, verlet.q, atol=1e-12)
    np.testing.assert_allclose(ours.v, verlet.v, atol=1e-10)


@pytest.mark.parametrize("dense", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_coupled_mass_conserves_the_pseudo_energy(dense):
    mass = carom.Tridiagonal.symmetric(jnp.full(5, 2 / 3), jnp.full(4, 1 / 6))
    matrix = np.diag(np.full(5, 2 / 3)) + np.diag(np.full(4, 1 / 6), 1) + np.diag(np.full(4, 1 / 6), -1)
    system = carom.System(matrix if dense else mass, carom.Interactions(quartic_bond, stencil=(0, 1)))
    state = carom.State([0.1, -0.3, 0.2, 0.4, -0.1], [1.0, 0.0, -1.0, 0.5, 0.2])
    solution = carom.simulate(system, state, carom.PseudoEnergy("gauss-2"), t1=20.0, h=0.05)
    assert drift(solution) < 1e-12
    velocity = solution.account.kinetic[-1]
    assert velocity == pytest.approx(0.5 * solution.v[-1] @ matrix @ solution.v[-1], rel=1e-13)


# ---- damping and driving --------------------------------------------------------------------------------------------


def damping_and_driving(t, q, v, p):
    return -p * v + 0.1 * jnp.sin(t) * jnp.cos(q)


@pytest.fixture(scope="module")
def damped():
    potential = carom.models.fermi_pasta_ulam(3, 5.0)[0].potential
    return carom.System(1.0, potential, {"dissipative": damping_and_driving}, params=0.05)


def test_energy_balance_of_a_damped_driven_chain_closes_to_rounding(damped, chain):
    solution = carom.simulate(damped, chain[1], carom.PseudoEnergy("gauss-2"), t1=200.0, h=1e-2)
    extra = solution.account.extra
    assert np.max(np.abs(extra["balance"])) < 1e-12 * extra["pseudo_energy"][0]
    assert extra["pseudo_energy"][-1] < 0.2 * extra["pseudo_energy"][0]
    assert extra["gap"][-1] < extra["gap"].max()


@pytest.mark.slow
def test_applied_forces_are_taken_to_second_order(damped, chain):
    state, method = chain[1], carom.PseudoEnergy("gauss-2")
    counts = [100, 200, 400]
    runs = carom.simulate_batch(damped, state, method, t1=[4.0] * 3, h=[4.0 / n for n in counts])
    exact = carom.simulate(damped, state, carom.ExplicitRK(carom.explicit(4)), t1=4.0, h=1e-3, save_every=4000)
    errors = [np.max(np.abs(r.q[-1] - exact.q[-1])) for r in runs]
    assert observed_order([1 / n for n in counts], errors) == pytest.approx(2.0, abs=0.05)
