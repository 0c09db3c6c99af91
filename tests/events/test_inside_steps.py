"""What happens inside a step: laws that let go and hold again, gaps that close and open, unseen from its ends."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import carom
from fuzz import oracles

TIMES = np.array([9.0])


def spring(q):
    return 2.0 * q[0] ** 2


def drive(t, q, v, p):
    return p["a"] * jnp.cos(p["w"] * t) * jnp.ones(1)


def rubbing(t, q, v, p):
    return p["limit"] * jnp.ones(1)


def slip(q, v):
    return v[:1]


def oscillator(a, w, limit):
    friction = carom.FrictionElements(slip, rubbing)
    return carom.System(1.0, spring, {"drive": drive}, params={"a": a, "w": w, "limit": limit}, friction=friction)


def exact(a, w, limit, x0):
    numbers = {"k": 4.0, "c": 0.0, "a": a, "w": w, "push": 0.0, "u0": 0.0, "b": 0.0, "limit": limit}
    q, v = oracles.dry_friction(numbers, [x0], [0.0], TIMES)
    return np.concatenate([q[0], v[0]])


@pytest.mark.slow
def test_a_motion_that_nothing_begins_but_a_force_that_comes_is_found():
    system = carom.System(1.0, forces={"drive": lambda t, q, v: jnp.sin(t) * jnp.ones(1)})
    sol = carom.simulate(system, carom.State([0.0], [0.0]), carom.EventCapturing(carom.radau_iia(3)), t1=1.0, h=0.05)
    assert sol.q[-1, 0] == pytest.approx(1.0 - np.sin(1.0), abs=1e-9)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_no_slip_of_a_driven_oscillator_with_dry_friction_is_missed(rtol):
    rng = np.random.default_rng(17)
    for _ in range(20):
        a, w, limit, x0 = rng.uniform([0.5, 0.3, 0.2, -1.5], [3.0, 1.8, 2.0, 1.5])
        sol = carom.solve(oscillator(a, w, limit), carom.State([x0], [0.0]), t1=9.0, rtol=rtol, atol=rtol)
        error = np.abs(np.concatenate([sol.q[-1], sol.v[-1]]) - exact(a, w, limit, x0)).max()
        assert error <= 20 * rtol, f"a = {a}, w = {w}, limit = {limit}, x0 = {x0}"


def pushed(t, q, v, p):
    """The block is pushed by what its friction can hold at p["rest"], and ever harder; the first ball is pulled up."""
    return jnp.stack([1.0 + 0.5 * (t - p["rest"]), 1.0 + 0.0 * t, 0.0 * t])


def block_and_balls(rest):
    friction, floor = (
        carom.FrictionElements(lambda q, v: v[:1], limit=1.0),
        carom.Contacts(lambda q: q[1:], restitution=0.8),
    )
    return carom.System(1.0, None, {"push": pushed}, params={"rest": rest}, friction=friction, contacts=floor)


def test_short_rests_and_shallow_hits_are_found_whatever_else_the_step_holds():
    """The block would turn back at a speed of `slow`, one ball go `deep` under the floor; the other ball hits."""
    rng = np.random.default_rng(5)
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-9, 1e-11)
    for k in range(24):
        rest, down, after = rng.uniform([1.0, -1.5, 0.0], [2.5, -0.2, 0.06])
        slow, deep = 10.0 ** rng.uniform(-8.0, -3.0, 2)
        hit = after + (rest if k % 2 else -down - np.sqrt(2 * deep))
        speed, height = 0.25 * rest**2 - slow, 0.5 * down**2 - deep
        start = carom.State([0.0, height, hit], [speed, down, -1.0])
        sol = carom.simulate(block_and_balls(rest), start, method, t1=4.0, stepping=stepping)
        up, flown = 0.8 * np.sqrt(2 * deep), 4.0 + down + np.sqrt(2 * deep)
        truth = [0.25 * (4.0 - rest) ** 2, up + flown, 0.8]
        told = f"rest {rest}, slow {slow}, down {down}, deep {deep}, hit {hit}"
        np.testing.assert_allclose(sol.v[-1], truth, atol=2e-9 / np.sqrt(deep) + 1e-8, rtol=0, err_msg=told)
        assert abs(sol.v[-1, 0] - truth[0]) <= 1e-8, told


def test_friction_that_lets_go_for_less_than_a_constant_step_is_seen_by_its_forces():
    """A pulse exceeds what the block's friction can hold for .875 steps; its motion by quadrature."""

    def excess(t):
        return 1.99103383 * np.exp(-(((t - 0.47367184) / 0.0263659) ** 2)) - 1.0

    pulse = {"push": lambda t, q, v: 1.99103383 * jnp.exp(-(((t - 0.47367184) / 0.0263659) ** 2)) * jnp.ones(1)}
    rubs = carom.FrictionElements(slip, limit=1.0)
    begins = brentq(excess, 0.4, 0.47367184)
    t = np.linspace(begins, 0.7, 200001)
    speed = np.append(0.0, np.cumsum(0.5 * (excess(t)[1:] + excess(t)[:-1]) * np.diff(t)))
    moves = np.cumprod(np.append(1.0, speed[1:] > 0.0))
    far = np.trapezoid(speed * moves, t)
    block, start = carom.System(1.0, None, pulse, friction=rubs), carom.State([0.0], [0.0])
    sol = carom.simulate(block, start, carom.EventCapturing(carom.explicit(5)), t1=1.0, h=0.05)
    assert list(sol.events.kind) == ["slips", "sticks"]
    assert sol.q[-1, 0] == pytest.approx(far, rel=0.01)


def over_a_shaking_wall(t, q, p):
    return q + p["apart"] - 0.02 * jnp.sin(50.0 * t + p["phase"])


def test_a_wall_that_shakes_several_times_within_a_step_is_not_passed_through():
    """A ball that is pulled away turns just where the wall reaches it; the first hit is found on a fine grid."""
    rng, told = np.random.default_rng(11), 0
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-8, 1e-10, h_max=0.1)
    contact = carom.Contacts(over_a_shaking_wall, restitution=0.8)
    for _ in range(16):
        turn, phase, deep = rng.uniform(0.8, 1.6), rng.uniform(0.0, 6.3), 10.0 ** rng.uniform(-6.0, -3.5)
        t = np.linspace(0.0, 2 * turn, 400001)
        wall = 0.02 * np.sin(50.0 * t + phase)
        apart = deep - np.min(0.5 * (t - turn) ** 2 - wall)
        gap = lambda t: 0.5 * (t - turn) ** 2 + apart - 2 * deep + 0 * t - 0.02 * np.sin(50.0 * t + phase)  # noqa: B023
        below = np.flatnonzero(gap(t) < 0)[0]
        hit = brentq(gap, t[below - 1], t[below], xtol=1e-15)
        before, moves = hit - turn, np.cos(50.0 * hit + phase)
        after = moves - 0.8 * (before - moves)
        later = t[below + 1 :]
        flight = 0.5 * (hit - turn) ** 2 + after * (later - hit) + 0.5 * (later - hit) ** 2
        if np.min(flight + apart - 2 * deep - 0.02 * np.sin(50.0 * later + phase)) < 0.0:
            continue  # it hits again
        told += 1
        numbers = {"apart": apart - 2 * deep, "phase": phase}
        ball = carom.System(1.0, lambda q: -q[0], contacts=contact, params=numbers)
        sol = carom.simulate(ball, carom.State([0.5 * turn**2], [-turn]), method, t1=2 * turn, stepping=stepping)
        assert sol.v[-1, 0] == pytest.approx(after + 2 * turn - hit, abs=1e-4), (
            f"turn {turn}, phase {phase}, deep {deep}"
        )
    assert told >= 8


CAPTURE = carom.EventCapturing(carom.radau_iia(3), projection=True)


def weight(q, p):
    return p["weight"] * q[1]


def above_ground(t, q, p):
    """Height above a floor that drops away for an instant, or that carries a narrow post."""
    floor = -p["drop"] * jnp.exp(-(((t - 1.15) / 0.04) ** 2))
    post = p["post"] * jnp.exp(-(((q[0] - 0.52) / 0.01) ** 2))
    return (q[1] - floor - post)[None]


def ground(restitution, **params):
    return carom.System(1.0, weight, contacts=carom.Contacts(above_ground, restitution=restitution), params=params)


@pytest.mark.slow
def test_a_floor_that_drops_away_and_comes_back_within_a_step_lets_the_mass_fly():
    """The floor falls faster than the mass for a thirtieth of a step of 0.3."""

    start = carom.State([0.0, 0.0], [0.0, 0.0])
    shaken = ground(weight=9.81, drop=2.0, post=0.0, restitution=0.0), start, CAPTURE
    coarse = carom.simulate(*shaken, t1=3.0, stepping=carom.Adaptive(1e-6, 1e-8, h_max=0.1, first=0.1))
    fine = carom.simulate(*shaken, t1=3.0, stepping=carom.Adaptive(1e-9, 1e-11, h_max=1e-3, first=1e-3))
    assert np.count_nonzero(fine.events.kind == "opens") >= 1
    times = np.linspace(1.1, 1.4, 30)
    np.testing.assert_allclose(coarse.at(times)[0], fine.at(times)[0], atol=1e-4)


@pytest.mark.slow
def test_a_narrow_post_is_hit_though_both_ends_of_the_step_are_free():
    post, flight = ground(weight=0.0, drop=0.0, post=1.0, restitution=1.0), carom.State([0.0, 0.5], [1.0, 0.0])
    sol = carom.simulate(post, flight, CAPTURE, t1=1.0, stepping=carom.Adaptive(1e-6, 1e-9, h_max=0.03, first=0.03))
    hit = 0.52 - 0.01 * np.sqrt(np.log(2.0))
    assert sol.events.time[0] == pytest.approx(hit, abs=1e-5)
