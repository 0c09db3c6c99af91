"""Several rates in one step: conservation, accuracy, counts, levels, and the search for resonances."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.models.media import inhomogeneous_wave_exact, layered_string_exact

Asynchronous = carom.AsynchronousPseudoEnergy


def drift(solution):
    pseudo = solution.account.extra["pseudo_energy"]
    return np.max(np.abs(pseudo - pseudo[0])) / abs(pseudo[0])


# ---- the chain [sec. 4.3.1] -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain():
    return carom.models.slow_fast_chain(3, omega=10**0.5)


def test_pseudo_energy_is_exact_at_the_slow_nodes(chain):
    solution = carom.simulate(*chain, Asynchronous("stiff", 50, "lobatto-5"), t1=100.0, h=0.01)
    assert drift(solution) < 1e-12


@pytest.fixture(scope="module")
def pairs(chain):
    """Asynchronous and synchronous runs of the fast step, ratio 25."""
    steps = [0.1, 0.05, 0.025]
    slow = carom.simulate_batch(*chain, Asynchronous("stiff", 25, "lobatto-5"), t1=[1.0] * 3, h=steps)
    fine = carom.simulate_batch(*chain, carom.PseudoEnergy("lobatto-5"), t1=[1.0] * 3, h=[h / 25 for h in steps])
    return list(zip(slow, fine))


@pytest.mark.slow
def test_asynchronous_chain_converges_to_the_synchronous_one_with_order_two(pairs):
    errors = [np.max(np.abs(a.q - b.q[::25])) for a, b in pairs]
    np.testing.assert_allclose(errors, [4.058200e-3, 1.004876e-3, 2.506169e-4], rtol=1e-5)


@pytest.mark.slow
def test_evaluations_are_those_of_the_paper_s_formula(pairs):
    slow, fine = pairs[0]
    m, points, T, K = 3, 4, 1.0, 25
    assert fine.stats["evaluations"] == round(points * T * (2 * m + 1) / 0.004)
    assert slow.stats["evaluations"] == round(points * T * ((m + 1) / 0.004 + m / 0.1))
    ratio = slow.stats["evaluations"] / fine.stats["evaluations"]
    assert ratio == pytest.approx((1 + m / ((m + 1) * K)) / (1 + m / (m + 1)), rel=1e-12)


@pytest.mark.parametrize("fast", [range(2), [0, 1], np.array([1, 0]), slice(0, 2), ("stiff", "stiff end")])
def test_all_ways_to_name_the_fast_part_mean_the_same(chain, fast):
    named = Asynchronous("stiff", 4).init(*chain).zones
    assert Asynchronous(fast, 4).init(*chain).zones == named


def bond(a, b, k):
    return 0.5 * k * (b - a) ** 2 + 0.25 * (b - a) ** 4


@pytest.mark.slow
def test_a_set_by_gather_and_scatter_moves_like_a_range():
    stiffness = np.array([9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0])
    rows = np.stack([np.arange(7), np.arange(1, 8)], 1)
    state = carom.State(np.linspace(-0.4, 0.5, 8) ** 2, np.linspace(1, -1, 8))
    by_stencil = carom.System(1.0, carom.Interactions(bond, stencil=(0, 1), data=stiffness))
    by_index = carom.System(1.0, carom.Interactions(bond, indices=rows, data=stiffness))
    method = Asynchronous(slice(0, 3), 5, "gauss-2")
    a, b = (carom.simulate(s, state, method, t1=10.0, h=0.1) for s in (by_stencil, by_index))
    np.testing.assert_allclose(a.q, b.q, atol=1e-12)
    assert drift(b) < 1e-12
    assert a.stats["evaluations"] == b.stats["evaluations"] == 100 * 2 * (5 * 4 + 3)


@pytest.mark.slow
def test_scattered_fast_particles_conserve_the_pseudo_energy_and_the_momentum():
    rng = np.random.default_rng(1)
    system = carom.System(rng.uniform(1, 2, 12), carom.Interactions(bond, stencil=(0, 1), data=rng.uniform(1, 5, 11)))
    state = carom.State(0.3 * rng.normal(size=12), rng.normal(size=12))
    solution = carom.simulate(system, state, Asynchronous([2, 7, 8], 4, "gauss-2"), t1=20.0, h=0.1)
    total = carom.measures.momentum(system, solution)
    assert drift(solution) < 1e-12
    assert np.max(np.abs(total - total[0])) < 1e-13


@pytest.mark.slow
def test_one_fast_step_per_slow_step_is_the_synchronous_scheme(chain):
    once = carom.simulate(*chain, Asynchronous("stiff", 1), t1=5.0, h=0.05)
    plain = carom.simulate(*chain, carom.PseudoEnergy(), t1=5.0, h=0.05)
    np.testing.assert_allclose(once.q, plain.q, atol=1e-13)
    assert once.stats["evaluations"] == plain.stats["evaluations"]


# ---- the wave [sec. 4.3.2] ------------------------------------------------------------------------------------------

N = 2000


@pytest.fixture(scope="module")
def wave():
    return carom.models.inhomogeneous_wave(N)


def wave_error(wave, method, h):
    solution = carom.simulate(*wave, method, t1=0.5, h=h, save_every=10**6)
    exact = inhomogeneous_wave_exact(np.arange(1, N) / N, 0.5)
    return np.max(np.abs(solution.q[-1] - exact)), solution.stats["evaluations"]


@pytest.mark.slow
def test_asynchronous_wave_beats_the_synchronous_one_with_half_the_evaluations(wave):
    with warnings.catch_warnings():
        warnings.simplefilter("error", carom.StabilityWarning)
        error, count = wave_error(wave, Asynchronous("layer 0", 10), 0.5 / N)
        fine_error, fine_count = wave_error(wave, carom.PseudoEnergy(), 0.05 / N)
    assert error == pytest.approx(2.161596e-3, rel=1e-4)
    assert fine_error == pytest.approx(2.779755e-3, rel=1e-4)
    assert (count, fine_count) == (22018000, 40000000)


def test_the_paper_s_own_steps_are_reported_as_a_resonance_before_the_run(wave):
    with pytest.warns(carom.StabilityWarning) as caught:
        Asynchronous("layer 0", 10).caution(*wave, longest=1 / N, span=0.5)
    words = [str(w.message) for w in caught]
    assert any("at the stability limit" in w for w in words)
    resonance = next(w for w in words if w.startswith("resonance"))
    assert "shift=1" in resonance
    assert "Reduce h, change the ratio" in resonance


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::carom.StabilityWarning")
def test_moving_the_mixed_node_into_the_slow_medium_cures_the_resonance(wave):
    method = Asynchronous("layer 0", 10, shift=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method.caution(*wave, longest=1 / N, span=0.5)
    assert not any("resonance" in str(w.message) for w in caught)
    assert wave_error(wave, method, 1 / N)[0] == pytest.approx(4.1e-5, rel=0.02)


# ---- three levels ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_three_levels_are_as_accurate_as_the_synchronous_run_at_the_smallest_step():
    n, t1 = 100, 0.5
    string, state = carom.models.layered_string(n, speeds=(1.0, 4.0, 16.0))
    h = 0.75 / (3 * n)
    exact = layered_string_exact(t1, n)
    nested = Asynchronous([("layer 1", "layer 2"), "layer 2"], ratio=(4, 4))
    ours = carom.simulate(string, state, nested, t1=t1, h=h, save_every=10**6)
    plain = carom.simulate(string, state, carom.PseudoEnergy(), t1=t1, h=h / 16, save_every=10**6)
    errors = [np.max(np.abs(s.q[-1] - exact)) for s in (ours, plain)]
    assert errors[0] <= 1.2 * errors[1]
    # by hand, per slow step: layer 0 has n - 1 springs of its own (the last touches a mixed node), layer 1 n - 1 and
    # the mixed spring of layer 0, layer 2 n and the mixed spring of layer 1
    assert ours.stats["evaluations"] == 200 * ((n - 1) + 4 * ((n - 1) + 1) + 16 * (n + 1))
    assert plain.stats["evaluations"] == 200 * 16 * 3 * n


@pytest.mark.slow
def test_three_levels_conserve_the_pseudo_energy_of_a_nonlinear_chain():
    data = np.repeat([1.0, 16.0, 256.0], [5, 5, 5])
    system = carom.System(1.0, carom.Interactions(bond, stencil=(0, 1), data=data))
    state = carom.State(0.1 * np.sin(np.arange(16.0)), np.cos(np.arange(16.0)))
    method = Asynchronous([slice(6, 16), slice(11, 16)], (4, 3), "lobatto-3")
    assert drift(carom.simulate(system, state, method, t1=10.0, h=0.05)) < 1e-12


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0, -2, 2.0, 2.5, True, "4"])
def test_ratio_must_be_a_whole_number_of_at_least_one(ratio):
    with pytest.raises((ValueError, TypeError), match="ratio"):
        Asynchronous("stiff", ratio)


def test_fast_sets_that_leave_no_slow_part_are_refused(chain):
    with pytest.raises(ValueError, match="no slow particle is left"):
        carom.simulate(*chain, Asynchronous(slice(0, 6), 2), t1=1.0, h=0.01)


def test_a_chain_in_which_all_interact_has_no_split():
    pairs = np.array([(i, j) for i in range(4) for j in range(i)])
    system = carom.System(1.0, carom.Interactions(bond, indices=pairs, data=np.ones(6)))
    state = carom.State(np.arange(4.0), np.zeros(4))
    with pytest.raises(ValueError, match="no slow particle is left"):
        carom.simulate(system, state, Asynchronous([0], 2), t1=1.0, h=0.01)


def test_a_potential_given_as_a_function_is_refused():
    system = carom.System(1.0, lambda q: jnp.sum(q**2))
    with pytest.raises(ValueError, match="needs a potential given as carom.Interactions"):
        carom.simulate(system, carom.State([1.0, 0.0], [0.0, 0.0]), Asynchronous([0], 2), t1=1.0, h=0.01)


def test_unknown_parts_and_particles_are_named(chain):
    with pytest.raises(ValueError, match="'stiff', 'stiff end', 'soft', 'soft end'"):
        carom.simulate(*chain, Asynchronous("hard", 2), t1=1.0, h=0.01)
    with pytest.raises(ValueError, match="particle 8 does not exist"):
        carom.simulate(*chain, Asynchronous([8], 2), t1=1.0, h=0.01)


def test_levels_must_be_nested(chain):
    with pytest.raises(ValueError, match="level 2 must lie inside level 1"):
        carom.simulate(*chain, Asynchronous(["stiff end", "stiff"], (2, 2)), t1=1.0, h=0.01)


@pytest.mark.parametrize("matrix", [np.eye(6) + 0.1])
def test_a_coupled_mass_is_refused(chain, matrix):
    system = carom.System(matrix, chain[0].potential)
    with pytest.raises(ValueError, match="does not handle 'mass matrix'"):
        carom.simulate(system, chain[1], Asynchronous("stiff", 2), t1=1.0, h=0.01)
