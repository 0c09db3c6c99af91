"""No force that acts for a hundredth of a run, and no barrier that takes as long to pass, is stepped over."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

T = 10.0
WIDTH = T / 100  # at half the peak
SIGMA = WIDTH / np.sqrt(8 * np.log(2))
SHAPES = ("rectangle", "bell", "triangle")
ATOL = 1e-9


def profile(x, kind):
    """Rectangle, bell or triangle (by a weight each) with peak 1, at least 1/2 for |x| < WIDTH / 2."""
    rectangle = jnp.where(jnp.abs(x) < 0.5 * WIDTH, 1.0, 0.0)
    return kind @ jnp.stack([rectangle, jnp.exp(-0.5 * (x / SIGMA) ** 2), jnp.maximum(1 - jnp.abs(x) / WIDTH, 0.0)])


def push(t, q, v, p):
    return p["size"] * profile(t - p["place"], p["kind"]) * jnp.ones_like(q) + 0.0 * v


def hill(q, p):
    return p["size"] * profile((q[0] - p["place"]) / p["speed"], p["kind"])


def parameters(rng, shapes, size, speed):
    kind = np.eye(3)[rng.integers(3 - shapes, 3)]
    return {"size": size, "place": rng.uniform(0.05, 0.95) * T, "kind": kind, "speed": speed}


def pulsed(rng, run):
    """A mass pushed once, from rest or moving: errors of v and q at the end in units of the tolerance."""
    v0 = rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(-2, 2)
    p = parameters(rng, 3, 10.0 ** rng.uniform(-4, 4), 1.0)
    system = carom.System(1.0, forces={"push": push}, params=p)
    rtol = 10.0 ** rng.uniform(-9, -3)
    v, q = run(system, carom.State([0.0], [v0]), rtol)
    area = p["size"] * (p["kind"] @ [WIDTH, SIGMA * np.sqrt(2 * np.pi), WIDTH])
    tolerance = ATOL + rtol * (v0 + area)
    return abs(v - v0 - area) / tolerance, abs(q - v0 * T - area * (T - p["place"])) / (tolerance * T)


def blocked(rng, run):
    """A mass that runs against a hill, higher or lower than its energy: error of q at the end in units of the path."""
    v0, rtol = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-9, -3)
    share = rng.choice([rng.uniform(0.1, 0.9), rng.uniform(1.2, 10.0)])
    p = parameters(rng, 2, share * v0**2 / 2, v0)
    p["place"] *= v0
    system = carom.System(1.0, hill, params=p)
    _, q = run(system, carom.State([0.0], [v0]), rtol)

    def rates(_, y):
        x = (y[0] - p["place"]) / v0
        bell = -x / SIGMA**2 * np.exp(-0.5 * (x / SIGMA) ** 2)
        triangle = -np.sign(x) / WIDTH if abs(x) < WIDTH else 0.0
        return [y[1], -p["size"] / v0 * (p["kind"] @ [0.0, bell, triangle])]

    exact = solve_ivp(rates, (0, T), [0.0, v0], method="DOP853", rtol=1e-12, atol=1e-14, max_step=WIDTH / 20)
    return abs(q - exact.y[0, -1]) / (v0 * T), rtol


def solved(system, state, rtol):
    sol = carom.solve(system, state, T, rtol, ATOL)
    return sol.v[-1, 0], sol.q[-1, 0]


def with_adaptive(system, state, rtol):
    stepping = carom.Adaptive(rtol, ATOL)
    sol = carom.simulate(system, state, carom.ExplicitRK(carom.explicit(4)), t1=T, stepping=stepping)
    return sol.v[-1, 0], sol.q[-1, 0]


FEW_AND_MANY = [(solved, 8), *(pytest.param(run, 200, marks=pytest.mark.slow) for run in (solved, with_adaptive))]


@pytest.mark.parametrize(("run", "count"), FEW_AND_MANY)
def test_no_pulse_is_missed(run, count):
    rng = np.random.default_rng(1)
    errors = np.array([pulsed(rng, run) for _ in range(count)])
    assert errors.max() < 1000, "that much an undeclared jump inside a step may cost; a missed pulse costs far more"


@pytest.mark.slow
@pytest.mark.parametrize(("run", "count"), FEW_AND_MANY)
def test_no_barrier_is_flown_through(run, count):
    rng = np.random.default_rng(2)
    for _ in range(count):
        error, rtol = blocked(rng, run)
        assert error < 1500 * rtol + 1e-6, "that much undeclared jumps may cost; to fly through costs the whole path"


def test_without_a_longest_step_the_same_pulse_is_missed():
    p = {"size": 1.0, "place": 5.3, "kind": np.eye(3)[0], "speed": 1.0}
    system, state = carom.System(1.0, forces={"push": push}, params=p), carom.State([0.0], [0.0])
    method = carom.ExplicitRK(carom.explicit(5))
    kept = carom.simulate(system, state, method, t1=T, stepping=carom.Adaptive())
    missed = carom.simulate(system, state, method, t1=T, stepping=carom.Adaptive(h_max=np.inf))
    assert kept.v[-1, 0] == pytest.approx(WIDTH, rel=1e-4)
    assert missed.v[-1, 0] == 0.0


def test_an_estimate_of_fourth_order_sees_forces_of_time_alone():
    system = carom.System(1.0, forces={"push": lambda t, q, v: jnp.cos(20.0 * t) + 0.0 * q + 0.0 * v})
    method = carom.ExplicitRK(carom.explicit(4))
    sol = carom.simulate(system, carom.State([0.0], [0.0]), method, t1=T, stepping=carom.Adaptive(1e-6, 1e-9))
    assert sol.v[-1, 0] == pytest.approx(np.sin(20.0 * T) / 20.0, abs=1e-5)
