"""Constraints that depend on each other: the motion is that of an independent subset, multipliers share the load."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.solvers.redundant import dependent

METHODS = {
    "spark": (carom.Spark(3), 0.02),
    "full spark": (carom.Spark(3, newton=carom.Newton(1e-15, 60, "full")), 0.02),
    "moreau": (carom.MoreauMidpoint(), 0.002),
    "capturing": (carom.EventCapturing(carom.gauss(2), projection=True), 0.02),
}
POINTS = 4
PAIRS = np.array([(i, j) for i in range(POINTS) for j in range(i + 1, POINTS)])
RIGID = np.array([0, 1, 2, 3, 4])  # distances that fix four points in the plane


def distances(q, pairs):
    x = q.reshape(-1, 2)
    d = x[pairs[:, 0]] - x[pairs[:, 1]]
    return jnp.sum(d * d, 1)


def combined(q, p):
    return p["R"] @ (distances(q, PAIRS[RIGID]) - p["lengths"])


def weight(q):
    return 9.81 * jnp.sum(q.reshape(-1, 2)[:, 1] * (1.0 + jnp.arange(q.size // 2))) + 3.0 * q[0] ** 2


def body(seed, R=None):
    """Four points in the plane that move as one body, under rows R of their distances."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(POINTS, 2)) * 2.0
    turn = np.stack([-x[:, 1], x[:, 0]], 1)
    params = {"lengths": distances(x.ravel(), PAIRS[RIGID]), "R": np.eye(5) if R is None else R}
    system = carom.System(1.0 + np.arange(8.0) // 2, weight, constraints=combined, params=params)
    return system, carom.State(x.ravel(), (rng.normal(size=2) + 1.5 * turn).ravel())


def duplicates(rng):
    return np.eye(5)[np.r_[np.arange(5), rng.integers(0, 5, 3)]]


def combinations(rng):
    return rng.normal(size=(8, 5)) * 10.0 ** rng.uniform(-2, 2, (8, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_random_redundant_rows_move_like_an_independent_subset(name):
    method, h = METHODS[name]
    for seed, rows in ((1, duplicates), (2, combinations), (3, combinations)):
        R = rows(np.random.default_rng(seed))
        one = carom.simulate(*body(seed), method, t1=0.2, h=h)
        many = carom.simulate(*body(seed, R), method, t1=0.2, h=h)
        assert np.abs(many.q - one.q).max() < 1e-11 * np.abs(one.q).max()
        assert np.abs(many.multiplier[1:] @ R - one.multiplier[1:]).max() < 1e-7 * np.abs(one.multiplier).max()
        assert many.account.worst["redundant"] == 3
        assert one.account.worst["redundant"] == 0


def dependent_rows(rng, m, lost):
    """m rows, of which some are sums of others in shares of any size, so that any row may hardly be part of it."""
    D = rng.normal(size=(m, m + 2)) * 10.0 ** rng.uniform(-3, 3, (m, 1))
    chosen = rng.permutation(m)[:lost]
    for k in chosen:
        shares = rng.normal(size=m) * 10.0 ** rng.uniform(-10, 0, m) / np.linalg.norm(D, axis=1)
        shares[chosen] = 0.0
        D[k] = shares @ D
    return D


@pytest.mark.parametrize("m", [3, 6, 12, 30])
def test_rank_does_not_depend_on_the_order_of_rows_or_on_how_little_they_share(m):
    rng = np.random.default_rng(m)
    lost = np.arange(400) % min(m, 4)
    rows = np.stack([dependent_rows(rng, m, k) for k in lost])
    np.testing.assert_array_equal(jax.jit(jax.vmap(dependent))(rows), lost)


@pytest.mark.slow
def test_a_long_run_of_bricards_mechanism_loses_no_energy_where_a_row_takes_no_part():
    sol = carom.solve(*carom.models.bricard(), t1=10.0, rtol=1e-6, atol=1e-6)
    assert np.ptp(sol.account.energy) < 1e-5
    assert sol.account.extra["redundant"][1:].min() == 1


def tilted(q, p):
    """A wall x = 0 and the curve y = sin z on it, told by rows that include an angle of about p."""
    return jnp.stack([q[0], q[0] + p * (q[1] - jnp.sin(q[2]))])


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("spark", 1e-4),
        pytest.param("moreau", 1e-4, marks=pytest.mark.slow),
        pytest.param("full spark", 1e-4, marks=pytest.mark.slow),
        pytest.param("capturing", 1e-3, marks=pytest.mark.slow),
    ],
)
def test_rows_that_nearly_depend_on_each_other_hold_as_well_as_those_far_from_it(name, least):
    method, h = METHODS[name]
    state = carom.State([0.0, np.sin(0.5), 0.5], [0.0, np.cos(0.5), 1.0])

    def end(angle):
        system = carom.System(
            [1.0, 2.0, 3.0],
            lambda q: 9.81 * q[1] + 2.0 * q[2] ** 2 + q[0],
            constraints=tilted,
            params=angle,
        )
        return carom.simulate(system, state, method, t1=0.4, h=h).q[-1]

    for angle in np.geomspace(0.1, least, 7):
        assert np.abs(end(angle) - end(1.0)).max() < 1e-9


def fading(q):
    """A circle, told by a row that fades where the bob comes to its lowest point."""
    return (1.0 + q[1]) * (q @ q - 1.0)


def test_time_stepping_does_not_leave_constraints_without_a_word():
    bob = carom.System(1.0, lambda q: 9.81 * q[1], constraints=lambda q: q @ q - 1.0)
    start = carom.State([-1.0, 0.0], [0.0, 0.0])
    for h in (0.1, 0.4):
        assert carom.simulate(bob, start, carom.MoreauMidpoint(), t1=3.0, h=h).account.worst["drift"] < 1e-6
    with pytest.raises(carom.SimulationError, match="smaller steps"):
        carom.simulate(bob, start, carom.MoreauMidpoint(), t1=3.0, h=0.5)
    vanishing = carom.System(1.0, lambda q: 9.81 * q[1], constraints=fading)
    with pytest.raises(carom.SimulationError):
        carom.simulate(vanishing, start, carom.MoreauMidpoint(), t1=3.0, h=0.01)


def test_duplicated_rows_share_the_load():
    R = np.eye(5)[[0, 1, 2, 3, 4, 0, 0, 2]]
    state = body(4)[1]
    one, many = (carom.multiplier(body(4, rows)[0], state) for rows in (None, R))
    assert np.allclose(many, one[[0, 1, 2, 3, 4, 0, 0, 2]] / np.array([3, 1, 2, 1, 1, 3, 3, 2]), rtol=1e-9)


@pytest.mark.slow
def test_distances_of_all_points_are_redundant_by_geometry():
    def everyone(q, p):
        return distances(q, PAIRS) - p["all"]

    reference, state = body(5)
    params = {"all": distances(state.q, PAIRS)}
    system = carom.System(1.0 + np.arange(8.0) // 2, weight, constraints=everyone, params=params)
    one, many = (carom.simulate(s, state, carom.Spark(3), t1=0.2, h=0.02) for s in (reference, system))
    assert np.abs(many.q - one.q).max() < 1e-12 * np.abs(one.q).max()
    assert set(many.account.extra["redundant"][1:]) == {1}


@pytest.mark.slow
def test_a_redundant_start_is_projected():
    R = duplicates(np.random.default_rng(1))
    system, state = body(6, R)
    off = carom.State(state.q + 0.01 * np.sin(np.arange(8.0)), state.v + 0.1)
    near = carom.consistent(system, off)
    assert np.allclose(near.q, carom.consistent(body(6)[0], off).q, atol=1e-10)
    carom.check(system, near)


def test_constraints_that_contradict_each_other_are_refused_with_what_is_left():
    apart = carom.System(1.0, constraints=lambda q: jnp.array([q[0] - 1.0, q[0] - 2.0]))
    with pytest.raises(ValueError, match=r"\|g\(q\)\| = 0.333.*Only 1 of 2 constraints are independent.*contradict"):
        carom.consistent(apart, carom.State([0.0], [0.0]))
    parting = carom.System(1.0, constraints=lambda t, q: jnp.array([q[0] - t * t, q[0] - t * t / 2]))
    with pytest.raises(ValueError, match=r"contradict each other: rank 1 of 2 .*\|d2/dt2 g\(q\)\| = 0.143"):
        carom.check(parting, carom.State([0.0], [0.0]))


@pytest.mark.slow
def test_a_contradiction_that_shows_later_ends_the_run():
    system = carom.System(1.0, constraints=lambda t, q: jnp.array([q[0] - jnp.sin(t), q[0] - t]))
    with pytest.raises(
        carom.SimulationError, match=r"contradict each other in the step from t = .*rank 1 of 2"
    ) as caught:
        carom.simulate(system, carom.State([0.0], [1.0]), carom.Spark(3), t1=1.0, h=0.1)
    assert caught.value.status is carom.Status.CONSTRAINTS_LOST_RANK


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-4])
def test_a_loose_tolerance_takes_no_more_steps_than_a_tight_one_through_a_redundant_loop(rtol):
    loop = carom.models.bricard()
    loose, tight = (
        carom.simulate(*loop, carom.Spark(4), t1=10.0, stepping=carom.Adaptive(x, 1e-9)) for x in (rtol, 1e-8)
    )
    assert len(loose) < len(tight)
    assert np.abs(loose.q[-1] - tight.q[-1]).max() < rtol
