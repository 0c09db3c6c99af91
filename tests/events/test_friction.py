"""Event capturing with Coulomb friction: stick, slip, reversal, impacts; against closed forms and other methods."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom
from carom.measures import observed_order
from carom.papers.woodpecker_cycle import limit_cycle
from carom.state import Status
from tests.lanes import one_by_one

RADAU = carom.EventCapturing(carom.radau_iia(3))
EXPLICIT = carom.EventCapturing(carom.explicit(5))


# ---- oscillators and belts: friction elements ----------------------------------------------------------------------

BELT_STEPS = (0.1, 0.05, 0.025, 0.0125)


def oscillator_data():
    """Twenty dry-friction oscillators: a block on a belt that stands still, with constant friction."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        mass, stiffness, limit = rng.uniform(0.5, 2.0, 3)
        reach = limit / stiffness
        yield dict(
            mass=mass, stiffness=stiffness, limit=limit, position=reach * rng.uniform(1.5, 9.5), belt=0.0, delta=0.0
        )


OSCILLATORS = list(oscillator_data())


@pytest.fixture(scope="module")
def blocks():
    """Oscillators, then a block on a moving belt for several steps."""
    data = [*OSCILLATORS, *({} for _ in BELT_STEPS)]
    systems, states = zip(*(carom.models.block_on_belt(**d) for d in data))
    periods = [2 * np.pi * np.sqrt(d["mass"] / d["stiffness"]) for d in OSCILLATORS]
    runs = one_by_one(
        systems,
        states,
        RADAU,
        t1=[*(3 * p for p in periods), *(30.0 for _ in BELT_STEPS)],
        h=[*(p / 211 for p in periods), *BELT_STEPS],
    )
    return runs[:20], runs[20:]


@pytest.mark.slow
def test_dry_friction_oscillators_stop_where_the_closed_form_says(blocks):
    for run, d in zip(blocks[0], OSCILLATORS):
        reach = d["limit"] / d["stiffness"]
        turns = int(np.ceil((d["position"] / reach - 1) / 2))
        stop = (-1) ** turns * (d["position"] - 2 * turns * reach)
        assert abs(run.q[-1, 0] - stop) < 1e-9
        assert abs(run.v[-1, 0]) < 1e-15
        half = np.pi * np.sqrt(d["mass"] / d["stiffness"])
        assert list(run.events.kind) == ["reverses"] * (turns - 1) + ["sticks"]
        np.testing.assert_allclose(run.events.time, half * np.arange(1, turns + 1), atol=1e-8)


def belt_times(count, belt=0.2, delta=3.0):
    """Instants at which the block sticks and slips in turn, by SciPy between the events (stiffness, mass, limit 1)."""
    t, x, v, times = 0.0, 0.62, 0.0, []

    def sliding(_, y):
        return [y[1], -y[0] + 1 / (1 + delta * (belt - y[1]))]

    def caught(_, y):
        return y[1] - belt

    caught.terminal, caught.direction = True, 1.0
    while len(times) < count:
        flight = solve_ivp(sliding, (t, t + 50), [x, v], "DOP853", events=caught, rtol=1e-13, atol=1e-14)
        t, x = flight.t[-1], flight.y[0, -1]
        times += [t, t + (1.0 - x) / belt]
        t, x, v = times[-1], 1.0, belt
    return np.array(times[:count])


@pytest.mark.slow
def test_stick_slip_times_of_the_block_on_a_belt_converge(blocks):
    exact = belt_times(5)
    assert all(list(run.events.kind) == ["sticks", "slips", "sticks", "slips", "sticks"] for run in blocks[1])
    errors = [np.abs(run.events.time - exact).max() for run in blocks[1]]
    assert errors[-1] < 1e-8
    assert observed_order(BELT_STEPS, errors, floor=1e-12) >= 4


@pytest.mark.slow
def test_a_sticking_block_moves_exactly_with_the_belt(blocks):
    for run in blocks[1]:
        sticks = np.flatnonzero(run.mode[1:, 0] == 0) + 1
        assert sticks.size > 10
        assert np.abs(run.v[sticks] - 0.2).max() < 1e-15
        assert (np.abs(run.force[sticks]) <= 1 + 1e-11).all()


@pytest.mark.slow
def test_the_work_of_friction_is_the_energy_lost(blocks):
    for run in blocks[0]:
        lost = run.account.energy[0] - run.account.energy[-1]
        assert -run.work.sum() == pytest.approx(lost, rel=1e-9)


# ---- friction in a plane -------------------------------------------------------------------------------------------


def pull(t, q, v, p):
    del q, v
    return jnp.where(t < p["until"], p["force"] + t * p["growth"], 0.0)


def both(q, v):
    del q
    return v[None, :]


def table(force, growth, until):
    """A mass of 1 kg on a table that resists with 2 N, pulled until an instant [Studer2008 sec. 10.2]."""
    params = {"force": np.array(force), "growth": np.array(growth), "until": until}
    friction = carom.FrictionElements(both, 2.0)
    return carom.System(1.0, forces={"pull": pull}, params=params, friction=friction, jumps=[until])


@pytest.fixture(scope="module")
def masses():
    """Studer's sliding mass, and a mass at rest that a growing force sets free at t = 1 along (3, 4) / 5."""
    systems = [table([-2.5, -0.25], [0.0, 0.0], 3.0), table([0.0, 0.0], [1.2, 1.6], 2.0)]
    states = [carom.State([0.0, 0.0], [2.0, -0.2]), carom.State([0.0, 0.0], [0.0, 0.0])]
    return one_by_one(systems, states, RADAU, t1=[4.5, 4.0], h=[1 / 1024, 0.01])


def sliding_reference():
    """Studer's mass by SciPy until the force ends, then a straight line to its stop."""

    def field(_, y):
        speed = np.hypot(y[2], y[3])
        return [y[2], y[3], -2.5 - 2 * y[2] / speed, -0.25 - 2 * y[3] / speed]

    y = solve_ivp(field, (0, 3), [0, 0, 2, -0.2], "DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
    speed = np.hypot(*y[2:])
    return y[2:], y[:2] + y[2:] * speed / 4, 3 + speed / 2


@pytest.mark.slow
def test_studers_sliding_mass_to_1e_10(masses):
    v_3, stop, when = sliding_reference()
    run = masses[0]
    np.testing.assert_allclose(run.v[run.t == 3.0][-1], v_3, atol=1e-10, rtol=0)
    np.testing.assert_allclose(run.q[-1], stop, atol=1e-10, rtol=0)
    assert [(e.contact, e.kind) for e in run.events] == [(0, "sticks")]
    assert run.events.time[0] == pytest.approx(when, abs=1e-9)


@pytest.mark.slow
def test_a_growing_force_sets_a_mass_free_in_its_own_direction(masses):
    run = masses[1]
    assert list(run.events.kind) == ["slips", "sticks"]
    assert run.events.time[0] == pytest.approx(1.0, abs=1e-8)
    assert np.abs(run.q[:, 0] * 4 - run.q[:, 1] * 3).max() < 1e-12
    assert np.hypot(*run.v[run.t == 2.0][-1]) == pytest.approx(1.0, abs=1e-8)  # integral of 2 t - 2 from 1 to 2
    assert np.hypot(*run.q[-1]) == pytest.approx(1 / 3 + 1 / 4, abs=1e-8)


# ---- a ball between a floor and a ceiling, and a mass on an incline: one program -----------------------------------


def weight(q, p):
    return p["gravity"] * (p["down"] * q[0] + p["onto"] * q[1])


def floor_and_ceiling(q, p):
    return jnp.stack([q[1] - p["radius"], p["ceiling"] - q[1] - p["radius"]])


def rim(q, v, p):
    del q
    turn = p["radius"] * v[2]
    return jnp.stack([v[0] + turn + p["skew"] * v[1] + p["belt"], v[0] - turn])


def rough(gravity=9.81, angle=0.0, radius=0.0, inertia=1.0, ceiling=1e3, skew=0.0, belt=0.0, **laws):
    """A ball of radius R, coordinates along and across the floor, and its angle; of radius zero it is a point mass."""
    params = {"gravity": gravity, "down": np.sin(angle), "onto": np.cos(angle), "radius": radius}
    params |= {"ceiling": ceiling, "skew": skew, "belt": belt}
    laws = {"tangential_restitution": 0.0} | laws
    contacts = carom.Contacts(floor_and_ceiling, slip_velocity=rim, **laws)
    return carom.System(np.array([1.0, 1.0, inertia]), weight, contacts=contacts, params=params)


BALLS = [
    dict(tangential_restitution=1.0, friction=1.0, restitution=1.0),
    dict(tangential_restitution=0.0, friction=1.0, restitution=1.0),
    dict(tangential_restitution=0.5, friction=0.02, restitution=0.8),
    dict(tangential_restitution=1.0, friction=0.3, restitution=0.7),
]


def bouncing(t_end, tangential_restitution, restitution, friction, R=0.1, J=0.004, g=10.0):
    """The super ball event by event: position and velocity at t_end."""
    q, v, t = np.array([0.0, 0.9, 0.0]), np.array([1.0, -1.0, 0.0]), 0.0
    while True:
        down = (v[1] + np.sqrt(v[1] ** 2 + 2 * g * (q[1] - R))) / g
        inside = v[1] ** 2 - 2 * g * (0.9 - q[1])
        up = (v[1] - np.sqrt(inside)) / g if v[1] > 0 and inside > 0 else np.inf
        dt = min(down, up, t_end - t)
        q, v, t = q + dt * v - [0, g * dt**2 / 2, 0], v - [0, g * dt, 0], t + dt
        if t >= t_end:
            return q, v
        side = 1.0 if down < up else -1.0  # floor or ceiling
        normal = (1 + restitution) * abs(v[1])
        stick = -(1 + tangential_restitution) * (v[0] + side * R * v[2]) / (1 + R**2 / J)
        tangential = np.clip(stick, -friction * normal, friction * normal)
        v = np.array([v[0] + tangential, -restitution * v[1], v[2] + side * R * tangential / J])


@pytest.mark.slow
def test_super_balls_and_oblique_impacts_follow_their_closed_form():
    systems = [rough(10.0, radius=0.1, inertia=0.004, ceiling=1.0, **data) for data in BALLS]
    runs = one_by_one(systems, carom.State([0.0, 0.9, 0.0], [1.0, -1.0, 0.0]), EXPLICIT, t1=1.2, h=0.01)
    for run, data in zip(runs, BALLS):
        q, v = bouncing(1.2, **data)
        np.testing.assert_allclose(run.q[-1], q, atol=1e-10, rtol=0)
        np.testing.assert_allclose(run.v[-1], v, atol=1e-10, rtol=0)
    assert np.ptp(runs[0].account.energy) < 1e-10


@pytest.mark.slow
def test_the_super_ball_of_the_models_follows_its_closed_form():
    run = carom.simulate(*carom.models.super_ball(), EXPLICIT, t1=1.2, h=0.01)
    q, v = bouncing(1.2, **BALLS[0])
    np.testing.assert_allclose(np.append(run.q[-1], run.v[-1]), np.append(q, v), atol=1e-10, rtol=0)


def incline(angle, friction, skew=0.0, belt=0.0):
    return rough(angle=angle, friction=friction, restitution=0.3, skew=skew, belt=belt)


INCLINES = [(0.3, 0.5), (0.6, 0.5), (0.3, 0.25)]  # tan = 0.309, 0.684: the first holds


@pytest.fixture(scope="module")
def inclines():
    """Thrown up at 2 m/s, at rest across."""
    state = carom.State([0.0, 0.0, 0.0], [2.0, 0.0, 0.0])
    return one_by_one([incline(*data) for data in INCLINES], state, EXPLICIT, t1=1.0, h=0.05)


def test_a_mass_thrown_up_an_incline_sticks_or_slides_back(inclines):
    for run, (angle, mu) in zip(inclines, INCLINES):
        brake, pull = 9.81 * (np.sin(angle) + mu * np.cos(angle)), 9.81 * (np.sin(angle) - mu * np.cos(angle))
        top, rest = 2.0 / brake, 1.0 - 2.0 / brake
        assert [e.kind for e in run.events] == ["sticks" if pull < 0 else "reverses"]
        assert run.events.time[0] == pytest.approx(top, abs=1e-7)
        assert run.q[-1, 0] == pytest.approx(top - max(pull, 0.0) * rest**2 / 2, abs=1e-10)


def test_friction_stays_in_its_cone(inclines):
    for run, (_, mu) in zip(inclines, INCLINES):
        assert (np.abs(run.impulse[:, 2]) <= mu * run.impulse[:, 0] * (1 + 1e-12)).all()
        assert run.impulse[1:, 0].min() > 0


@pytest.mark.slow
def test_friction_without_a_consistent_mode_is_an_error_that_names_time_and_contact():
    """The floor drags a sliding mass in harder than it pushes it out (Painleve)."""
    state = carom.State([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], t=0.25)
    with pytest.raises(carom.SimulationError, match=r"no mode.*t = 0\.25.*Contact 0 with friction 1") as error:
        carom.simulate(incline(0.0, 1.0, 2.0, 30.0), state, EXPLICIT, t1=1.0, h=0.05)
    assert error.value.status is Status.NO_CONSISTENT_MODE
    assert error.value.solution.t[-1] == 0.25


def test_too_many_events_are_an_error_that_names_the_limit():
    method = carom.EventCapturing(carom.explicit(5), most_events=4)
    with pytest.raises(carom.SimulationError, match="more than most_events = 4") as error:
        carom.simulate(incline(0.0, 0.5), carom.State([0.0, 1.0, 0.0], [0.0, 0.0, 0.0]), method, t1=2.0, h=0.1)
    assert error.value.status is Status.TOO_MANY_EVENTS
    assert 0.6 < error.value.solution.t[-1] < 0.9


def test_an_explicit_tableau_is_refused_for_friction_in_a_plane():
    with pytest.raises(ValueError, match="friction in a plane needs an implicit tableau"):
        carom.simulate(*carom.models.sliding_mass(), EXPLICIT, t1=1.0, h=0.01)


# ---- the woodpecker ------------------------------------------------------------------------------------------------

WOODPECKER = [
    (1, "sticks"),
    (1, "slips"),
    (1, "opens"),
    (0, "bounces"),
    (2, "closes"),
    (2, "opens"),
    (1, "closes"),
]


def peck(state, t1, h=2.5e-4):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return carom.simulate(carom.models.woodpecker()[0], state, EXPLICIT, t1=t1, h=h)


@pytest.fixture(scope="module")
def toy():
    return peck(carom.models.woodpecker()[1], 0.15)


@pytest.mark.slow
def test_angle_of_the_bird_after_150_ms_to_1e_8(toy):
    assert toy.q[-1, 2] == pytest.approx(-0.31022235586, abs=1e-8)


@pytest.mark.slow
def test_the_woodpecker_has_each_of_its_incidents_once(toy):
    assert [(e.contact, e.kind) for e in toy.events] == WOODPECKER


@pytest.mark.slow
def test_period_of_the_woodpecker_to_1e_8():
    assert limit_cycle(peck).period == pytest.approx(0.1459760651, abs=1e-8)


@pytest.mark.slow
def test_the_woodpecker_needs_fewer_evaluations_than_switching(toy):
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-9, rtol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = carom.models.woodpecker()
        switching = carom.simulate(*model, method, t1=0.15, stepping=carom.Switching(1e-11, 5e-3))
    assert toy.stats["evaluations"] < switching.stats["evaluations"]
