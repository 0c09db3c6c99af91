"""Diagrams, basins and draws against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom
from carom.sweeps.tools import attractors, periods

E = 0.8
FOLD = np.pi * (1 - E) / (1 + E)
FLIP = np.sqrt(FOLD**2 + (2 * (1 + E**2) / (1 + E) ** 2) ** 2)
STOPPED = {"amplitude": 0.5, "damping": 0.1, "stop": 1.0}


def one_bounce_per_period(shaking):
    """Height above the table and relative velocity at phase zero; table A sin(2 pi t), gravity 1."""
    A, phase = shaking / (2 * np.pi) ** 2, np.arccos(FOLD / shaking)
    t = phase / (2 * np.pi)
    return A * np.sin(phase) + 0.5 * t - 0.5 * t**2, -0.5 + t - 2 * np.pi * A


def followed_ball(shaking, follow):
    start = one_bounce_per_period(shaking[0] if follow == "up" else shaking[-1])

    def build(shaking):
        return carom.models.shaken_ball(shaking, height=start[0], velocity=start[1])

    method, options = carom.EventCapturing(carom.explicit(4)), {"period": 1.0, "kept": 8, "steps": 20}
    return carom.bifurcation(build, carom.Grid(shaking=shaking), method, **options, transient=120, follow=follow)


@pytest.mark.slow
def test_a_shaken_ball_folds_and_flips_where_theory_says():
    up = followed_ball(shaking := np.linspace(1.0, 1.12, 7), "up")
    stable = shaking < FLIP - 0.02
    exact = np.array([one_bounce_per_period(x) for x in shaking[stable]])
    assert np.abs(up.strobe_q.values[0, stable, -1, 0] - exact[:, 0]).max() < 1e-6
    assert np.abs(up.strobe_v.values[0, stable, -1, 0] - exact[:, 1]).max() < 1e-5
    flipped = shaking[up.period.values[0] == 2]
    assert abs(flipped.min() - FLIP) < 0.02
    assert set(up.period.values[0]) == {1, 2}
    down = followed_ball(shaking := np.linspace(0.336, 0.364, 8), "down")
    bounces = down.strobe_q.values[0].max(axis=(1, 2)) > 1e-3
    assert np.array_equal(bounces, shaking > FOLD)


def swing(frequency):
    """Position and velocity at phase zero without impacts, and the amplitude."""
    response = STOPPED["amplitude"] / (1 - frequency**2 + 1j * STOPPED["damping"] * frequency)
    return response.real, (1j * frequency * response).real, abs(response)


def stopped(frequency):
    position, velocity, _ = swing(1.35)
    return carom.models.driven_oscillator(frequency=frequency, position=position, velocity=velocity, **STOPPED)


def test_a_branch_ends_where_it_grazes_and_the_other_is_followed_beyond():
    frequency = np.linspace(1.15, 1.35, 11)
    period = lambda frequency: 2 * np.pi / frequency
    data = carom.bifurcation(
        stopped, carom.Grid(frequency=frequency), carom.MoreauMidpoint(), period=period, transient=60, kept=6, steps=100
    )
    free, _, amplitude = swing(frequency)
    last = data.strobe_q.isel(coordinate=0, strobe_number=-1)
    on_branch = np.abs(last.sel(direction="down").values - free) < 0.01
    assert np.array_equal(on_branch, amplitude < STOPPED["stop"])
    assert np.abs(last.sel(direction="up").values - free)[frequency > 1.25].min() > 0.05
    figure = carom.plots.bifurcation(data)
    assert len(figure.axes[0].lines) == 2


def test_basins_of_a_bistable_oscillator_are_told_apart():
    def build(position, velocity):
        return carom.models.driven_oscillator(frequency=1.35, position=position, velocity=velocity, **STOPPED)

    starts = carom.Grid(position=np.linspace(-3.0, 1.0, 9), velocity=np.linspace(-3.0, 3.0, 8))
    data = carom.basins(
        build, starts, carom.MoreauMidpoint(), period=2 * np.pi / 1.35, transient=80, kept=6, steps=100, tolerance=0.02
    )
    free = np.abs(data.strobe_q.values[..., -1, 0] - swing(1.35)[0]) < 5e-3
    assert data.fraction.values.sum() == 1.0
    labels = data.label.values
    assert len(set(labels[free])) == 1
    assert not set(labels[free]) & set(labels[~free])
    assert data.fraction.values[labels[free][0]] == free.mean()
    assert 0.05 < free.mean() < 0.95
    beside = labels[1:] != labels[:-1]
    assert data.boundary.values[1:][beside].all()
    assert carom.plots.basins(data).axes


def test_attractors_are_found_by_recurrence():
    rng = np.random.default_rng(0)
    fixed = np.tile([0.1, 0.2], (30, 12, 1)) + 1e-9 * rng.normal(size=(30, 12, 2))
    turns = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    cycle = np.stack([turns[(np.arange(12) + k) % 3] for k in rng.integers(0, 3, 20)])
    chaos = np.empty((10, 400, 2))
    x = rng.uniform(0.2, 0.8, 10)
    for k in range(400):
        x = 3.9 * x * (1 - x)
        chaos[:, k] = np.stack([3 + x, x], axis=1)
    lost = np.full((2, 12, 2), np.nan)
    label = attractors(np.concatenate([cycle, lost, fixed]), 0.01)
    assert label.tolist() == [1] * 20 + [-1] * 2 + [0] * 30
    assert set(attractors(chaos, 0.02)) == {0}
    assert periods(cycle[..., :1], cycle[..., 1:], 1e-3).tolist() == [3] * 20
    assert (periods(chaos[..., :1], chaos[..., 1:], 1e-3) == 0).all()


def test_attractors_are_told_apart_whatever_rests_or_escapes():
    """Of two attractors beside motions that escape, and of one at rest of which only rounding is left."""
    beside = np.array([-1.0, 1.0, 1.0, 1e4, -3e12, 1e40])[:, None, None] * np.ones((6, 4, 2))
    label = attractors(beside, 0.01, np.ones(2))
    assert label[1] == label[2] == 0
    assert sorted(label) == [0, 0, 1, 2, 3, 4]
    beside[0, ::2] = -1.1
    assert periods(beside[..., :1], beside[..., 1:], 1e-4, np.ones(2)).tolist() == [2, 1, 1, 1, 1, 1]
    rest = 1e-26 * np.random.default_rng(0).normal(size=(6, 4, 2))
    assert set(attractors(rest, 0.01, np.ones(2))) == {0}
    assert set(periods(rest[..., :1], rest[..., 1:], 1e-4, 1.0)) == {1}


def test_a_branch_is_followed_through_runs_one_after_the_other_from_any_start():
    def build(push):
        force = {"f": lambda t, q, v, p: q - q**3 - 0.3 * v + p["push"] * jnp.cos(1.2 * t)}
        return carom.System(1.0, None, force, params={"push": push}), carom.State([1.0], [0.0], t=0.3)

    pushes, period, method = [0.2, 0.25, 0.3], 2 * np.pi / 1.2, carom.ExplicitRK(carom.explicit(4))
    options = {"period": period, "transient": 3, "kept": 2, "steps": 40, "follow": "down"}
    data = carom.bifurcation(build, carom.Grid(push=pushes), method, **options)
    _, state = build(0.0)
    for push in pushes[::-1]:
        system, state = build(push)[0], carom.State(state.q, state.v, t=0.3)
        sol = carom.simulate(system, state, method, t1=0.3 + 5 * period, h=period / 40, keep=[carom.keep.final()])
        state = sol.state
        assert np.allclose(data.strobe_q.sel(push=push)[0, -1], state.q, rtol=1e-9)
    assert np.allclose(data.strobe_t[0, 0], 0.3 + period * np.array([4, 5]))


def test_random_draws_give_quantiles_and_an_error_that_tells_the_truth():
    def build(velocity):
        return carom.System(1.0), carom.State([0.0], [velocity])

    draws = carom.Random(4000, velocity=(1.0, 3.0))
    data = carom.monte_carlo(build, draws, carom.ExplicitRK(carom.explicit(4)), t1=1.0, h=0.5, batch=2000)
    assert np.allclose(data.final_q_quantile.sel(coordinate=0), [1.1, 2.0, 2.9], atol=0.05)
    assert float(data.final_q_error[0]) == pytest.approx(2 / np.sqrt(12 * 4000), rel=0.05)
    assert abs(float(data.final_q_mean[0]) - 2.0) < 4 * float(data.final_q_error[0])
    assert draws.values["velocity"].tolist() == carom.Random(4000, velocity=(1.0, 3.0)).values["velocity"].tolist()
    assert len(carom.plots.draws(data, "final_q").axes) == 2


def valve_turns(flow, returns):
    """Maxima of the lift, the minima before them (0 at the seat) and the end of the time, by SciPy, event by event."""

    def rates(t, y):
        del t
        return [y[1], -1.25 * y[1] - y[0] - 10.0 + y[2], 20.0 * (flow - y[0] * np.sqrt(max(y[2], 0.0)))]

    seat, turn = lambda t, y: y[0], lambda t, y: y[1]
    seat.terminal, seat.direction = True, -1
    t, y, tops, lows = 0.0, [0.2, 0.0, 0.0], [], []
    while len(tops) < returns:
        run = solve_ivp(rates, (t, t + 400.0), y, "DOP853", rtol=1e-12, atol=1e-13, events=[seat, turn])
        for when, place in zip(run.t_events[1], run.y_events[1]):
            if when > 1e-9:
                (tops if rates(when, place)[1] < 0 else lows).append(place[0])
        t, y = run.t[-1], [0.0, -0.8 * run.y[1, -1], run.y[2, -1]]
        lows.append(0.0)
    return np.array(tops[:returns]), np.array(lows[: returns - 1]), t


@pytest.mark.slow
def test_the_maxima_and_minima_of_a_relief_valve_are_those_of_a_reference():
    flows = np.array([1.7, 4.46])
    exact = [valve_turns(flow, 30) for flow in flows]
    data = carom.sweep(
        lambda flow: carom.models.relief_valve(flow=flow),
        carom.Grid(flow=flows),
        carom.EventCapturing(carom.explicit(5)),
        t1=max(t for _, _, t in exact) + 1.0,
        stepping=carom.Adaptive(1e-10, 1e-10),
        keep={name: carom.keep.section(lambda q, v: v[0], name, last=200) for name in ("falling", "rising")},
    )
    for turns, wanted in zip((data.falling_q, data.rising_q), zip(*exact)):
        for found, one in zip(turns.values[..., 0], wanted):
            assert np.abs(found[np.isfinite(found)][: len(one)] - one).max() < 1e-7


def pushed(upper_rate, lower_rate, wall, damping, restitution):
    numbers = {"damping": damping, "wall": wall, "restitution": restitution}
    return carom.models.double_pendulum_at_wall(2.0, -2.5, upper_rate, lower_rate, **numbers)


def swung(start, damping, t1):
    """The end of a free double pendulum of two equal rods and masses, by SciPy."""

    def rates(t, y):
        del t
        (a, b, u, w), s, c = y, np.sin(y[0] - y[1]), np.cos(y[0] - y[1])
        elbow = damping * (w - u)
        forces = [-w * w * s - 2 * np.sin(a) - damping * u + elbow, u * u * s - np.sin(b) - elbow]
        return [u, w, *np.linalg.solve([[2.0, c], [c, 1.0]], forces)]

    return solve_ivp(rates, (0.0, t1), start, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]


@pytest.mark.slow
def test_a_double_pendulum_swings_as_scipy_says_and_keeps_its_energy_at_a_wall():
    n = 4
    cells = carom.Cases(
        upper_rate=np.tile([0.5, -1.0, 2.0, -0.3], 2),
        lower_rate=np.tile([1.0, 2.0, -1.0, 0.4], 2),
        wall=np.repeat([9.0, 0.9], n),
        damping=np.repeat([0.2, 0.0], n),
        restitution=1.0,
    )
    method = carom.EventCapturing(carom.explicit(4))
    keep = [carom.keep.final(), carom.keep.count("closes"), carom.keep.peak("impulse")]
    data = carom.sweep(pushed, cells, method, t1=4.0, h=0.005, keep=keep)
    q, v = data.final_q.values, data.final_v.values
    for i in range(n):
        start = [2.0, -2.5, cells.values["upper_rate"][i], cells.values["lower_rate"][i]]
        assert np.allclose([*q[i], *v[i]], swung(start, 0.2, 4.0), atol=1e-8)
    assert (data.peak.values[:n] == 0).all()
    assert (data.peak.values[n:] > 0).any()
    for i in range(n, 2 * n):
        system, state = pushed(**cells.at(i))
        energy = lambda q, v, system=system: system.kinetic_energy(0.0, q, v) + system.potential_energy(0.0, q)
        assert float(energy(q[i], v[i])) == pytest.approx(float(energy(state.q, state.v)), abs=1e-7)
        assert 0.9 - np.sin(q[i]).sum() > -1e-9


@pytest.mark.slow
def test_a_pushed_double_pendulum_rests_after_whole_turns_that_its_basin_tells():
    def build(upper_rate, lower_rate):
        return carom.models.double_pendulum_at_wall(upper_rate=upper_rate, lower_rate=lower_rate)

    pushes = carom.Grid(upper_rate=np.linspace(-4.0, 4.0, 12), lower_rate=np.linspace(-6.0, 6.0, 12))
    data = carom.basins(build, pushes, carom.MoreauMidpoint(), period=2.0, transient=90, kept=3, steps=40)
    turns = data.strobe_q.values[..., -1, :] / (2 * np.pi)
    assert np.abs(turns - np.round(turns)).max() < 0.02
    kinds = {
        (int(label), *map(int, np.round(turn))) for label, turn in zip(data.label.values.flat, turns.reshape(-1, 2))
    }
    assert len(kinds) == len({label for label, *_ in kinds}) > 3


@pytest.mark.slow
def test_a_rubbing_oscillator_swings_as_far_as_den_hartog_says():
    frequency, limits = 0.7, np.array([0.1, 0.3, 0.5])

    def build(limit):
        return carom.models.friction_oscillator(frequency=frequency, limit=limit, damping=0.01)

    keep = [carom.keep.section(lambda q, v: v[0], "falling", last=1)]  # noqa: ARG005
    data = carom.sweep(build, carom.Grid(limit=limits), carom.MoreauMidpoint(), t1=1200.0, h=0.005, keep=keep)
    wide = np.sin(np.pi / frequency) / (frequency * (1 + np.cos(np.pi / frequency)))
    exact = np.sqrt(1 / (1 - frequency**2) ** 2 - (limits * wide) ** 2)
    assert np.allclose(data.section_q.values[:, 0, 0], exact, rtol=0.01)


@pytest.mark.slow
def test_a_duffing_oscillator_hits_its_stop_as_scipy_says():
    def build(cubic):
        return carom.models.driven_oscillator(cubic=cubic, stop=0.2, restitution=0.7)

    cubics = np.array([0.5, 1.5])
    data = carom.sweep(build, carom.Grid(cubic=cubics), carom.EventCapturing(carom.explicit(4)), t1=8.0, h=0.005)
    for cubic, q, v in zip(cubics, data.final_q.values, data.final_v.values):
        rates = lambda t, y, k=cubic: [y[1], np.cos(2.8 * t) - 0.02 * y[1] - y[0] - k * y[0] ** 3]
        stop = lambda t, y: 0.2 - y[0]  # noqa: ARG005
        stop.terminal, stop.direction = True, -1
        t, y, hits = 0.0, [-0.5, 0.0], 0
        while t < 8.0:
            run = solve_ivp(rates, (t, 8.0), y, "DOP853", rtol=1e-11, atol=1e-12, events=stop)
            t, y = run.t[-1], run.y[:, -1]
            if run.status == 1:
                y, hits = [0.2, -0.7 * y[1]], hits + 1
        assert hits > 1
        assert np.allclose([q[0], v[0]], y, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda: carom.bifurcation(stopped, carom.Cases(frequency=[1.0]), None, period=1.0),
            TypeError,
            "of a carom.Grid",
        ),
        (
            lambda: carom.bifurcation(stopped, carom.Grid(frequency=[1.0]), None, period=1.0, follow="left"),
            ValueError,
            "follow must be 'up', 'down' or both",
        ),
        (lambda: carom.monte_carlo(stopped, carom.Grid(frequency=[1.0])), TypeError, "monte_carlo needs carom.Random"),
        (
            lambda: carom.monte_carlo(stopped, carom.Random(3, frequency=(1.0, 2.0)), quantiles=[2.0]),
            ValueError,
            "quantiles must be a list of numbers between 0 and 1",
        ),
        (
            lambda: carom.basins(stopped, carom.Grid(frequency=[1.0]), carom.MoreauMidpoint(), period=-1.0),
            ValueError,
            "period must be positive",
        ),
        (
            lambda: carom.bifurcation(
                lambda direction: stopped(direction), carom.Grid(direction=[1.0]), carom.MoreauMidpoint(), period=1.0
            ),
            ValueError,
            "'direction' is the name of a parameter and of a result",
        ),
        (
            lambda: carom.basins(
                lambda period: stopped(period), carom.Grid(period=[1.0]), carom.MoreauMidpoint(), period=1.0
            ),
            ValueError,
            "'period' is the name of a parameter and of a result",
        ),
    ],
)
def test_tools_refuse_what_they_cannot_do(call, error, told):
    with pytest.raises(error, match=told):
        call()
