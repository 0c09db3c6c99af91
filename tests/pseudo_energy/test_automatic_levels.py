"""Levels from the stiffness of the interactions: what is found, that it is stable and accurate, what is refused."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest

import carom
from carom.methods.pseudo_energy.local_stiffness import cheapest_rates, local_limits

Asynchronous = carom.AsynchronousPseudoEnergy


def test_levels_of_three_media_are_the_hand_written_ones_moved_out_of_their_resonance():
    n = 100
    string, state = carom.models.layered_string(n, speeds=(1.0, 4.0, 16.0))
    found = Asynchronous.automatic(string, state, h=0.75 / (3 * n))
    by_hand = Asynchronous([("layer 1", "layer 2"), "layer 2"], ratio=(4, 4))
    assert found.ratio == by_hand.ratio
    assert found.fast == (("layer 1", "layer 2", "right end"), ("layer 2", "right end"))
    assert dataclasses.replace(found, shift=0).init(string, state).zones == by_hand.init(string, state).zones
    assert found.shift == 1  # the hand-written levels grow like 1.015^n at this step, unseen in 200 steps
    words = found.explain(string, state)
    assert "level 0: 98 particles and 98 interactions, step h / 1, stable for h < 0.0033" in words
    assert "level 2: 101 particles and 102 interactions, step h / 16" in words


def speed(x):
    return 1.0 + 7.0 / (1.0 + np.exp(-(x - 0.5) / 0.05))


def square(a, b):
    return (b - a) ** 2


def square_to_wall(a):
    return a**2


def graded_string(n):
    """String on (0, 1) whose wave speed rises smoothly from 1 to 8; a pulse starts to the right."""
    weight = 0.5 * (n * speed((np.arange(n) + 0.5) / n)) ** 2
    potential = {
        "bond": carom.Interactions(square, stencil=(0, 1), weight=weight[1:-1], relative=True),
        "left end": carom.Interactions(square_to_wall, stencil=(0,), where=slice(0, 1), weight=weight[0]),
        "right end": carom.Interactions(square_to_wall, stencil=(0,), where=slice(n - 2, n - 1), weight=weight[-1]),
    }
    x = np.arange(1, n) / n
    pulse = np.exp(-(((x - 0.2) / 0.06) ** 2))
    return carom.System(1.0, potential), carom.State(pulse, speed(0.2) * 2 * (x - 0.2) / 0.06**2 * pulse)


def motion_of_the_springs(system, state, t):
    """The exact motion of a system of linear springs with unit masses, by its modes."""
    diagonal, beside = system.neighbour_stiffness(state.q)
    squares, modes = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    omega = np.sqrt(squares)
    q, v = modes.T @ np.asarray(state.q), modes.T @ np.asarray(state.v)
    return modes @ (np.cos(omega * t) * q + np.sin(omega * t) / omega * v)


@pytest.mark.slow
def test_levels_of_a_graded_string_are_stable_and_as_accurate_as_one_small_step():
    n, t1, h = 80, 0.6, 0.5 / 80
    string, state = graded_string(n)
    method = Asynchronous.automatic(string, state, h)
    assert len(method.ratio) >= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", carom.StabilityWarning)
        levels = carom.simulate(string, state, method, t1=t1, h=h, save_every=10**6)
    small = h / np.prod(method.ratio)
    plain = carom.simulate(string, state, carom.PseudoEnergy(), t1=t1, h=small, save_every=10**6)
    wave = motion_of_the_springs(*graded_string(8 * n), t1)[7::8]
    errors = [np.max(np.abs(run.q[-1] - wave)) for run in (levels, plain)]
    assert errors[0] < 1.2 * errors[1]
    assert levels.stats["evaluations"] < 0.7 * plain.stats["evaluations"]


def test_the_smallest_local_limit_bounds_the_stability_limit():
    rng = np.random.default_rng(0)
    system, state = carom.models.granular_chain(rng.uniform(1, 3, 30), stiffness=rng.uniform(1, 50, 29), attachment=0.5)
    system = carom.System(system.mass, system.potential)
    state = carom.State(-0.1 * np.arange(30) * rng.uniform(0.9, 1.1, 30), np.zeros(30))
    limits = local_limits(system, state)
    smallest = min(np.min(limit) for limit in limits.values())
    assert 0.6 < smallest / carom.stability_limit(system, state) <= 1.0
    opened = local_limits(system, carom.State(np.arange(30.0), np.zeros(30)))
    assert np.all(np.isinf(opened["contact"]))


@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_rates_are_the_cheapest_of_all_nested_ones(most, seed):
    needs = np.append(np.random.default_rng(seed).integers(1, 25, 12), 1)

    def cost(rates):
        return sum(min(r for r in rates if r >= need) for need in needs)

    def chains(rate, left):
        yield (rate,)
        if left and rate < needs.max():
            for finer in range(2 * rate, 2 * needs.max(), rate):
                yield from ((rate, *rest) for rest in chains(finer, left - 1))

    valid = [c for c in chains(1, most - 1) if c[-1] >= needs.max()]
    found = cheapest_rates(needs, most)
    assert all(fine % coarse == 0 for coarse, fine in itertools.pairwise(found))
    assert len(found) <= most
    assert cost(found) == min(map(cost, valid))


def test_steps_without_levels_are_refused_with_the_reason():
    wave = carom.models.inhomogeneous_wave(40)
    with pytest.raises(ValueError, match="all interactions are stable with it: use PseudoEnergy"):
        Asynchronous.automatic(*wave, h=1e-4)
    with pytest.raises(ValueError, match=r"no interaction is stable with it: reduce h below 0\.0265"):
        Asynchronous.automatic(*wave, h=0.1)
    stiff = carom.models.layered_string(4, speeds=(1.0, 1e4))
    with pytest.raises(ValueError, match="more than 4096: reduce h"):
        Asynchronous.automatic(*stiff, h=0.09)


def test_fast_interactions_may_be_a_range_of_a_part():
    string = graded_string(20)
    by_range = Asynchronous("bond[9:18]", 3).init(*string).zones
    assert by_range == Asynchronous(slice(10, 19), 3).init(*string).zones
    with pytest.raises(ValueError, match=r"'bond' has 18 interactions, counted from 0"):
        Asynchronous("bond[9:19]", 3).init(*string)
