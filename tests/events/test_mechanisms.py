"""Event capturing on accumulations, persistent contacts that open, constraints beside contacts, several contacts."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.models import exact
from carom.papers.acary2012.capturing import alike
from tests.lanes import one_by_one

RADAU = carom.EventCapturing(carom.radau_iia(2))
OF_THIRD_ORDER, OF_FIFTH_ORDER = map(carom.EventCapturing, alike([carom.radau_iia(2), carom.radau_iia(3)]))
BALL = carom.models.bouncing_ball()


@pytest.fixture(scope="module")
def ball():
    steps = 4.9137 / np.round(4.9137 / (0.194 * 0.5 ** np.arange(6)))
    return steps, one_by_one(*BALL, OF_THIRD_ORDER, t1=4.9137, h=list(steps))


def test_the_ball_is_followed_through_its_accumulation_with_order_p(ball):
    steps, runs = ball
    errors = [np.abs(run.q[:, 0] - exact.bouncing_ball(run.t)[0]).max() for run in runs]
    assert observed_order(steps, errors, floor=3e-13) >= 3


def test_the_ball_is_at_rest_after_its_accumulation(ball):
    for run in ball[1]:
        late = run.t > 3 + 1e-9 + run.h.max()
        assert np.abs(run.v[late]).max() == 0.0
        assert np.abs(run.q[late]).max() < 1e-2 * run.h.max() ** 3


def test_the_number_of_events_grows_like_the_logarithm_of_the_step(ball):
    steps, runs = ball
    counts = np.array([len(run.events) for run in runs])
    growth = np.diff(counts) / np.diff(np.log2(1 / steps))
    assert growth.max() <= 6
    assert growth.min() >= 2


SPHERES = ((1.0, 0.3), (2.5, 0.1), (0.4, 0.8))
PARTS = (0.08, 0.04, 0.02, 0.01)


@pytest.fixture(scope="module")
def spheres():
    lanes = [(radius, angle, part) for radius, angle in SPHERES for part in PARTS]
    systems, states = zip(*(carom.models.mass_on_sphere(radius, angle) for radius, angle, _ in lanes))
    times = [2.2 * np.sqrt(radius) for radius, _, _ in lanes]
    runs = one_by_one(systems, states, RADAU, t1=times, h=[p * np.sqrt(r) for r, _, p in lanes])
    return dict(zip(lanes, runs))


def leaving(run):
    """Row at which the mass leaves."""
    opens = run.events[run.events.kind == "opens"]
    assert len(opens) == 1
    return int(np.argmin(np.abs(run.t - opens.time[0])))


@pytest.mark.slow
@pytest.mark.parametrize(("radius", "angle"), SPHERES)
def test_the_mass_leaves_the_sphere_where_the_cosine_is_two_thirds(spheres, radius, angle):
    cosines = []
    for part in PARTS:
        run = spheres[radius, angle, part]
        row = leaving(run)
        cosines.append(abs(run.q[row, 1] / np.hypot(*run.q[row]) - 2 / 3 * np.cos(angle)))
    assert cosines[-1] < 1e-5
    assert observed_order(PARTS, cosines) >= 2.5


@pytest.mark.slow
def test_the_drift_on_the_sphere_falls_with_order_p(spheres):
    drift = []
    for part in PARTS:
        run = spheres[1.0, 0.3, part]
        held = run.q[: leaving(run) + 1]
        drift.append(np.abs(np.hypot(*held.T) - 1.0).max())
    assert observed_order(PARTS, drift) >= 2.8


PROJECTED = carom.EventCapturing(carom.radau_iia(2), projection=True)


@pytest.mark.slow
def test_projection_removes_the_drift():
    run = carom.simulate(*carom.models.mass_on_sphere(), PROJECTED, t1=0.5, h=0.05)
    assert np.abs(np.hypot(*run.q.T) - 1.0).max() < 1e-13


@pytest.mark.slow
def test_the_velocity_form_holds_the_relative_velocity_at_the_nodes():
    system, state = carom.models.mass_on_sphere()
    run = carom.simulate(system, state, carom.EventCapturing(carom.radau_iia(2), form="velocity"), t1=0.5, h=0.05)
    assert np.abs(np.sum(run.q * run.v, axis=1)).max() < 1e-12


def test_the_velocity_form_needs_an_invertible_tableau():
    with pytest.raises(ValueError, match="unusable in the velocity form"):
        carom.EventCapturing(carom.lobatto_iiia(3), form="velocity")


def rod(q):
    return q @ q - 1.0


def wall(q):
    return q[:1] + 0.2


@pytest.mark.slow
def test_a_pendulum_that_hits_a_stop_is_followed_with_order_p():
    pendulum = carom.System(1.0, lambda q: 9.81 * q[1], constraints=rod, contacts=carom.Contacts(wall, restitution=0.5))
    state = carom.State([np.sin(0.9), -np.cos(0.9)], [0.0, 0.0])
    n = np.array([20, 40, 80, 160, 640])
    runs = one_by_one(pendulum, state, RADAU, t1=1.9137, h=list(1.9137 / n))
    errors = [np.abs(run.q[-1] - runs[-1].q[-1]).max() for run in runs[:-1]]
    assert observed_order(1 / n[:-1], errors) >= 2.8
    assert np.abs(runs[-1].account.extra["drift"]).max() < 1e-5


def pull(q, p):
    return p["weight"] @ q


def walls(t, q, p):
    """Two walls that rise with t^2; one ends in a cliff."""
    return p["normals"] @ q + p["offset"] - p["rise"] * t**2 - jnp.where(q[0] > 0.55, 0.0, p["cliff"])


def between_walls(q, v, h, t1, normals=((1.0, 0.0), (0.0, 1.0)), restitution=0.5, **params):
    """A point mass and two walls: one program for every test below."""
    nothing = dict.fromkeys(("weight", "offset", "rise", "cliff"), np.zeros(2))
    params = nothing | {name: np.array(value, float) for name, value in params.items()} | {"normals": np.array(normals)}
    system = carom.System(1.0, pull, contacts=carom.Contacts(walls, restitution=restitution), params=params)
    return carom.simulate(system, carom.State(q, v), RADAU, t1=t1, h=h)


def test_a_wall_that_moves_in_time_is_hit_at_the_right_instant():
    run = between_walls([1.0, 9.0], [-1.0, 0.0], h=0.05, t1=2.0, restitution=1.0, rise=[0.1, 0.0])
    hit = (-1 + np.sqrt(1.4)) / 0.2
    after = 1.0 + 2 * 0.2 * hit  # elastic: the velocity relative to the wall turns round
    assert run.events.kind[0] == "bounces"
    assert abs(run.events.time[0] - hit) < 1e-5
    assert abs(run.v[-1, 0] - after) < 1e-5


@pytest.mark.slow
def test_a_bar_that_hits_a_wall_without_restitution_stays_until_the_wave_is_back():
    run = carom.simulate(*carom.models.elastic_bar(), RADAU, t1=1.5, h=0.01)
    kinds = list(run.events.kind)
    assert kinds[:2] == ["closes", "opens"]
    assert abs(run.events.time[0] - 0.5) < 1e-5


def test_two_simultaneous_impacts_are_one_critical_step():
    run = between_walls([1.0, 1.0], [0.0, 0.0], h=0.1, t1=1.6, weight=[1.0, 1.0])
    assert list(run.events.contact) == [0, 1]
    assert abs(run.v[-1, 0] - run.v[-1, 1]) < 1e-13


@pytest.mark.slow
def test_the_slider_crank_converges_and_two_tableaux_agree():
    model = carom.models.slider_crank_clearance(friction=0.0, angles=(0.0, 0.0, 0.017))
    n = np.array([50, 100, 200, 800])
    methods = [carom.EventCapturing(f(2)) for f in (carom.radau_iia, carom.gauss) for _ in n]
    runs = carom.simulate_batch(*model, methods, t1=0.02, h=[0.02 / k for k in (*n, *n)])
    radau, gauss = runs[:4], runs[4:]
    assert np.abs(radau[-1].q[-1] - gauss[-1].q[-1]).max() < 1e-8
    errors = [np.abs(run.q[-1] - gauss[-1].q[-1]).max() for run in radau[:3]]
    assert observed_order(1 / n[:3], errors) >= 2.8


SAME = ((1.0, 0.0), (1.0, 0.0))


def test_redundant_contacts_warn_and_share_the_load():
    with pytest.warns(UserWarning, match="redundant at t = .*least squares"):
        run = between_walls([0.0, 0.0], [0.0, 0.0], h=0.1, t1=0.5, normals=SAME, restitution=0.0, weight=[9.81, 0.0])
    assert np.abs(run.force[-1] - 9.81 / 2).max() < 1e-6
    assert np.abs(run.q).max() < 1e-12


@pytest.mark.slow
def test_a_gap_that_jumps_is_an_error_that_names_time_and_contact_and_keeps_the_rest():
    with pytest.raises(
        carom.SimulationError, match=r"could not be located in the step from t = 0\.4.*Contact 1"
    ) as error:
        between_walls([1.0, 0.0], [-1.0, 0.0], h=0.1, t1=1.0, normals=SAME, offset=[9.0, 0.0], cliff=[0.0, 1.0])
    assert error.value.solution.t[-1] == pytest.approx(0.4)


def test_a_singular_mass_is_refused():
    system = carom.System([[1.0, 1.0], [1.0, 1.0]], contacts=carom.Contacts(lambda q: q[:1]))
    with pytest.raises(ValueError, match="mass is singular"):
        carom.simulate(system, carom.State([1.0, 1.0], [0.0, 0.0]), RADAU, t1=1.0, h=0.1)


def test_a_hamiltonian_is_refused_by_name():
    system = carom.System.from_hamiltonian(lambda q, p: 0.5 * (p @ p + q @ q))
    with pytest.raises(ValueError, match="EventCapturing does not handle 'hamiltonian'"):
        carom.simulate(system, carom.State([1.0], [0.0]), RADAU, t1=0.01, h=0.001)


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf])
def test_a_constant_that_is_not_positive_is_refused(C):
    with pytest.raises(ValueError, match=f"EventCapturing: C must be positive, got C = {C}"):
        carom.EventCapturing(carom.gauss(2), C=C)


def test_several_constants_are_refused_by_name():
    with pytest.raises(ValueError, match="C must be one number"):
        carom.EventCapturing(carom.gauss(2), C=[1.0, 2.0])


def test_a_constant_that_is_no_number_is_refused_by_name():
    with pytest.raises(TypeError, match="C must be a number, got 'small'"):
        carom.EventCapturing(carom.gauss(2), C="small")


def test_an_unusable_tableau_is_refused():
    with pytest.raises(TypeError, match="tableau must be a carom.Tableau"):
        carom.EventCapturing("radau")
    with pytest.raises(ValueError, match="unusable alone"):
        carom.EventCapturing(carom.lobatto_iiib(2))


@pytest.mark.parametrize("h", [0.005, 1 / 400])
def test_impacts_that_fall_on_grid_points_are_found(h):
    sol = carom.simulate(*BALL, OF_FIFTH_ORDER, t1=4.0, h=h)
    assert np.abs(sol.q[:, 0] - exact.bouncing_ball(sol.t)[0]).max() < 1e-10


@pytest.mark.slow
def test_impacts_that_fall_on_grid_points_are_found_with_lobatto_iiia():
    sol = carom.simulate(*BALL, carom.EventCapturing(carom.lobatto_iiia(4)), t1=4.0, h=0.01)
    assert np.abs(sol.q[:, 0] - exact.bouncing_ball(sol.t)[0]).max() < 1e-10


def test_a_start_in_penetration_stays_where_it_is():
    with pytest.warns(UserWarning, match="starts with penetration: gap = -1e-06"):
        run = between_walls([0.0, -1e-6], [1.0, 0.0], h=0.1, t1=1.0, weight=[0.0, 9.81], offset=[9.0, 0.0])
    assert np.abs(run.q[:, 1] + 1e-6).max() < 1e-18
    assert run.q[-1, 0] == pytest.approx(1.0, abs=1e-14)


@pytest.mark.slow
def test_a_start_inside_a_sphere_stays_there_though_drift_is_removed():
    system, _ = carom.models.mass_on_sphere()
    inside = carom.State([0.0, 1.0 - 1e-6], [0.0, 0.0])
    with pytest.warns(UserWarning, match="starts with penetration: gap = -1e-06"):
        run = carom.simulate(system, inside, PROJECTED, t1=1.0, h=0.1)
    assert np.abs(run.q - inside.q).max() < 1e-15


@pytest.mark.slow
def test_two_methods_agree_on_the_slider_crank_with_clearance_and_friction():
    model = carom.models.slider_crank_clearance(angles=(0.0, 0.0, 0.017))
    captured = carom.simulate(*model, carom.EventCapturing(carom.radau_iia(3)), t1=0.02, h=5e-5)
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=4, atol=1e-9, rtol=0.0)
    switched = carom.simulate(*model, method, t1=0.02, stepping=carom.Switching(4e-9, 1e-4))
    np.testing.assert_allclose(captured.q[-1], switched.q[-1], atol=1e-6, rtol=0)
