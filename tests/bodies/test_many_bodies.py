"""Many bodies in rigid contact: lists of pairs, solvers without a matrix, and the laws they must keep."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.pairs import Capacity, tight
from carom.running.listing import warn_of_overlaps
from carom.systems import first_lists

COUNT = 6
GRAINS = carom.Bodies(COUNT, dof=3)
SOLVER = carom.AcceleratedGaussSeidel(tol=1e-12, max_iter=3000)
METHOD = carom.MoreauMidpoint(solver=SOLVER)


@pytest.fixture(autouse=True)
def _one_program_for_all(monkeypatch):
    """Lists have room for whatever these tests bring."""
    monkeypatch.setattr(first_lists, "tight", lambda pairs: Capacity(200, 120, (16,) * 7))


def weight(q, m, p):
    return p * m * q[1]


def disks(search, radii, *, friction=0.4, restitution=0.3, gravity=1.0, lower=(0.0, 0.0), upper=(6.5, 1e3)):
    """Disks in a box."""
    laws = {"friction": friction, "restitution": restitution, "data": radii}
    contacts = [
        carom.Contacts.between(GRAINS, carom.shapes.disk, search=search, **laws),
        carom.Contacts.each(GRAINS, carom.shapes.box(lower, upper), **laws),
    ]
    mass = radii**2
    potential = GRAINS.each(weight, data=mass)
    return carom.System(GRAINS.mass(mass, mass, 0.5 * mass * radii**2), potential, contacts=contacts, params=gravity)


def start(seed, speed=1.0):
    """Radii, places on a grid and random velocities."""
    rng = np.random.default_rng(seed)
    radii = rng.uniform(0.8, 1.0, COUNT)
    places = np.array([(1.2 + 2.05 * (i % 3), 1.1 + 2.05 * (i // 3)) for i in range(COUNT)])
    q = np.column_stack([places + rng.uniform(-0.02, 0.02, places.shape), rng.uniform(-3, 3, COUNT)])
    return radii, carom.State(q.ravel(), speed * rng.normal(size=q.size))


def listed(radii, skin=0.3, **options):
    return disks(carom.CellList(2.0 * float(radii.max()), skin), radii, **options)


def run(system, state, steps=50, h=0.02, solver=SOLVER, **options):
    method = carom.MoreauMidpoint(solver=solver)
    return carom.simulate(system, state, method, t1=steps * h, h=h, **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_listed_pairs_move_like_all_pairs_with_a_matrix(seed):
    radii, state = start(seed)
    dense = run(disks(carom.AllPairs(), radii), state, solver=carom.SemismoothNewton())
    sparse = run(listed(radii), state)
    assert sparse.stats["unsolved"] == 0
    np.testing.assert_allclose(sparse.v, dense.v, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_fast_bodies_and_long_steps_miss_no_pair(seed):
    """A step moves bodies by several diameters: a list that lacked a pair would give another motion."""
    radii, state = start(10 + seed, speed=60.0)
    dense = run(disks(carom.AllPairs(), radii), state, steps=10, solver=carom.SemismoothNewton())
    sparse = run(listed(radii, skin=0.05), state, steps=10)
    np.testing.assert_allclose(sparse.v, dense.v, atol=1e-10 * np.abs(dense.v).max())


@pytest.mark.slow
def test_skin_changes_no_motion():
    radii, state = start(4)
    near, far = (run(listed(radii, skin=skin), state) for skin in (0.05, 0.5))
    np.testing.assert_allclose(near.v, far.v, atol=1e-10)
    np.testing.assert_array_equal(near.account.extra["contacts"], far.account.extra["contacts"])


@pytest.mark.slow
def test_small_first_lists_are_made_roomier_and_change_no_bit(monkeypatch):
    radii, state = start(5)
    roomy = run(listed(radii), state, steps=60)
    monkeypatch.setattr(first_lists, "tight", lambda pairs: tight(pairs)._replace(colours=tight(pairs).colours[:1]))
    small = run(listed(radii), state, steps=60)
    for column in ("q", "v"):
        np.testing.assert_array_equal(getattr(small, column), getattr(roomy, column))


def test_momentum_and_energy_without_gravity_and_walls():
    """Lever arms end at one point, so angular momentum is kept; elastic or not, energy never grows."""
    radii, state = start(6, speed=2.0)
    far = {"lower": (-1e3, -1e3), "upper": (1e3, 1e3)}
    sol = run(listed(radii, gravity=0.0, **far), state, steps=100)
    q, v, m = sol.q.reshape(-1, COUNT, 3), sol.v.reshape(-1, COUNT, 3), radii**2
    momentum = np.einsum("i,kij->kj", m, v[:, :, :2])
    turning = np.einsum("i,ki->k", m, q[:, :, 0] * v[:, :, 1] - q[:, :, 1] * v[:, :, 0])
    turning += v[:, :, 2] @ (0.5 * m * radii**2)
    assert sol.account.extra["contacts"].sum() > 3
    np.testing.assert_allclose(momentum, momentum[0] * np.ones_like(momentum), atol=1e-12)
    energy = sol.account.energy
    assert np.diff(energy).max() <= 1e-12 * energy[0]
    np.testing.assert_allclose(turning, turning[0], atol=1e-12)
    assert energy[-1] < 0.99 * energy[0]


def test_stored_lists_go_on_bit_for_bit(tmp_path):
    radii, state = start(7)
    system = listed(radii)
    whole = run(system, state, steps=60)
    run(system, state, steps=30).save(tmp_path / "half.nc")
    resumed = carom.resume(tmp_path / "half.nc", system=system, t1=60 * 0.02)
    np.testing.assert_array_equal(resumed.q, whole.q)
    np.testing.assert_array_equal(resumed.v, whole.v)


@pytest.mark.slow
def test_lanes_of_a_batch_move_like_single_runs():
    starts = [start(seed) for seed in (20, 21, 22)]
    radii = starts[0][0]
    states, system = [state for _, state in starts], listed(radii)
    lanes = carom.simulate_batch(system, states, METHOD, t1=1.0, h=0.02)
    for lane, state in zip(lanes, states):
        np.testing.assert_allclose(lane.v, run(system, state).v, atol=1e-10)


def test_a_column_of_disks_rests_and_each_carries_those_above_it():
    radii, h = np.full(COUNT, 0.9), 0.01
    q = np.column_stack([np.full(COUNT, 3.0), 0.9 + 1.8 * np.arange(COUNT), np.zeros(COUNT)])
    sol = run(listed(radii), carom.State(q.ravel(), np.zeros(q.size)), steps=100, h=h)
    np.testing.assert_allclose(sol.v[-1], 0.0, atol=1e-10)
    np.testing.assert_allclose(sol.q[-1], q.ravel(), atol=COUNT**2 * h**2)  # a contact closes once, by g h^2 or less
    between, walls = sol.carry.pairs.force
    pairs, weight = sol.carry.pairs.found[0], radii[0] ** 2
    carried = {int(b): float(f) for b, f, there in zip(pairs.b, between[0], pairs.valid) if there and f > 1e-6}
    assert carried == pytest.approx({i: weight * (COUNT - i) for i in range(1, COUNT)}, abs=1e-9)
    assert float(walls[0].sum()) == pytest.approx(weight * COUNT, abs=1e-9)


@pytest.mark.slow
def test_the_contact_problem_of_a_step_has_its_velocities():
    """Solved with another solver and a matrix, it brings about the same relative velocities as the run."""
    radii, state = start(1)
    sol = run(listed(radii, restitution=0.0), state, steps=50)
    busiest = int(np.argmax(sol.account.extra["contacts"]))
    problem = sol.contact_problem(sol.t[busiest])
    assert problem.mu.size == sol.account.extra["contacts"][busiest]
    found = carom.contact_problems.solve(problem)
    forces = carom.measures.contact_forces(sol, sol.t[busiest - 1])
    np.testing.assert_allclose(np.sort(found.impulse[0::2]), np.sort(forces.pressure * sol.h[busiest]), atol=1e-8)


@pytest.mark.slow
def test_projection_leaves_no_overlap_that_free_motion_does_not_close_and_creates_no_energy():
    """Disks fall and come to rest, but for slips of 2e-5 diameters; without projection they would lie deeper."""
    radii, state = start(9, speed=1.0)
    method, h = carom.MoreauMidpoint(solver=SOLVER, projection=True), 0.02
    sol = carom.simulate(listed(radii, restitution=0.0, friction=1.0), state, method, t1=20.0, h=h)
    plain = run(listed(radii, restitution=0.0, friction=1.0), state, steps=600)
    at_rest = np.abs(sol.v[-1]).max() < 1e-8
    deep, was = (s.account.extra["penetration"][-1] for s in (sol, plain))
    assert at_rest
    assert deep <= 2.01 * h**2  # g h^2 for each of both bodies
    assert was > 3 * deep
    assert np.diff(sol.account.energy).max() <= 2 * np.sum(radii**2) * h**2  # of Moreau's rule, not of projection
    np.testing.assert_allclose(sol.q[-1], sol.q[-350], atol=2e-4)
    assert sol.account.totals["deepest penetration"] >= sol.account.extra["penetration"].max()
    assert 0 < sol.account.totals["mean penetration"] < sol.account.totals["deepest penetration"]


def test_what_goes_on_unsolved_is_counted_and_warned_of():
    radii, state = start(8, speed=3.0)
    with pytest.warns(UserWarning, match=r"of 10 steps were not solved to tol = 1e-30"):
        sol = run(listed(radii), state, steps=10, solver=carom.AcceleratedGaussSeidel(tol=1e-30, max_iter=3000))
    assert sol.stats["unsolved"] > 0


def test_bodies_that_begin_inside_each_other_are_told():
    radii, state = start(9)
    closer = carom.State(state.q.at[3].set(state.q[0] + 1.5), state.v)
    with pytest.warns(UserWarning, match=r"bodies 0 and 1 overlap at the start by 0\.\d+, and 0 other"):
        run(listed(radii), closer, steps=1)


@pytest.mark.slow
def test_lanes_that_begin_inside_each_other_are_told():
    radii, state = start(9)
    closer = carom.State(state.q.at[3].set(state.q[0] + 1.5), state.v)
    with pytest.warns(UserWarning, match=r"lane 1: bodies 0 and 1 overlap at the start by 0\.\d+, and 0 other"):
        carom.simulate_batch(listed(radii), [state, closer, state], METHOD, t1=0.02, h=0.02)


@pytest.mark.slow
def test_overlaps_at_the_start_are_those_of_the_images_of_its_time():
    """At t = 0.5 the images above are displaced by half a length: bodies below each other do not touch."""
    pair = carom.Bodies(2, dof=3)
    search = carom.CellList(2.0, 0.3, box=carom.LeesEdwards([8.0, 8.0], rate=1.0))
    system = carom.System(1.0, contacts=carom.Contacts.between(pair, carom.shapes.disk, data=1.0, search=search))
    q = jnp.array([1.0, 0.5, 0.0, 1.0, 7.5, 0.0])
    state = carom.State(q, 0 * q)
    with pytest.warns(UserWarning, match=r"bodies 0 and 1 overlap at the start by 1,"):
        warn_of_overlaps(system, state, first_lists.first_pairs(system, state, 0.0), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_overlaps(system, state, first_lists.first_pairs(system, state, 0.5), 0.5)


CELLS = carom.CellList(2.0, 0.3)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: disks(CELLS, np.full(COUNT, np.nan)), "data .the radius. must be positive"),
        (lambda: disks(CELLS, np.zeros(COUNT)), "data .the radius. must be positive"),
        (lambda: disks(CELLS, np.ones(COUNT - 1)), "one number per body"),
        (lambda: disks(carom.CellList(1.5, 0.3), np.ones(COUNT)), r"reach = 1.5 is less than the diameter 2 of body 0"),
        (lambda: disks(CELLS, np.ones(COUNT), friction=np.eye(2)), "a table of materials needs materials="),
        (
            lambda: carom.Contacts.between(
                GRAINS, carom.shapes.disk, data=1.0, search=CELLS, friction=np.eye(2), materials=[0, 1, 2, 0, 1, 2]
            ),
            r"friction: the table ends at number 1, but bodies .or their materials=. go up to 2",
        ),
        (lambda: carom.Contacts.between(GRAINS, carom.shapes.disk, data=1.0, search="cells"), "must be carom.CellList"),
        (lambda: carom.Contacts.each(GRAINS, carom.shapes.disk, data=1.0), "wall must be one of carom.shapes"),
        (lambda: carom.shapes.box((0, 0), (0, 1)), "box: lower must lie below upper"),
        (lambda: carom.shapes.half_plane((0, 0)), "half_plane: normal must be a vector"),
        (lambda: carom.shapes.hopper(1.0, 2.0, 3.0), "hopper: angle must lie between -pi / 2 and pi / 2"),
        (lambda: carom.shapes.plate((0, 1), 0.1), "plate: position must be a function of t, got 0.1"),
        (lambda: carom.models.disks_in_drum(0), "count must be a whole number of at least 1, got 0"),
        (lambda: carom.models.disks_in_drum(10, filling=0.0), "filling must be positive"),
        (lambda: carom.models.disks_in_box(10, smallest=1.2), "smallest must lie above 0 and not above 1"),
        (lambda: carom.models.disks_in_box(10, width=2.0), "width must be at least 3 of the largest radii, got 2.0"),
        (lambda: carom.models.column_collapse(10, columns=0), "columns must be a whole number of at least 1"),
        (lambda: carom.models.hopper(10, angle=2.0), "hopper: angle must lie between 0 and pi / 2"),
    ],
)
def test_bodies_that_cannot_be_are_refused_in_one_sentence(make, told):
    with pytest.raises((ValueError, TypeError), match=told):
        make()


def beside(**more):
    """Two disks with a list, and something else."""
    pair = carom.Bodies(2, dof=3)
    contacts = [carom.Contacts.between(pair, carom.shapes.disk, data=1.0, search=CELLS), *more.pop("contacts", [])]
    return carom.System(more.pop("mass", 1.0), contacts=contacts, **more)


@pytest.mark.parametrize(
    ("system", "told"),
    [
        (beside(contacts=[carom.Contacts(lambda q: q[:1])]), "use Contacts.each in place of"),
        (
            beside(contacts=[carom.Contacts.each(carom.Bodies(3, dof=2), carom.shapes.half_plane((0, 1)), data=1.0)]),
            "the same Bodies",
        ),
        (beside(constraints=lambda q: q[:1]), "neither friction elements nor bilateral constraints"),
        (beside(friction=carom.FrictionElements(lambda q, v: v[:1], 1.0)), "neither friction elements"),
        (beside(mass=np.eye(6)), "masses that are a number or one per velocity"),
    ],
)
def test_what_cannot_stand_beside_listed_pairs_is_refused_by_name(system, told):
    state = carom.State(np.arange(6.0), np.zeros(6))
    with pytest.raises(ValueError, match=f"MoreauMidpoint: .*{told}"):
        carom.simulate(system, state, carom.MoreauMidpoint(solver=SOLVER), t1=0.1, h=0.1)


@pytest.mark.slow
def test_a_shape_that_is_not_a_number_ends_the_run_where_it_appears():
    pair = carom.Bodies(2, dof=3)
    torn = carom.Shape(lambda a, b: jnp.where(b[0] > 1.5, jnp.nan, b[0] - a[0]), dimension=2)
    system = carom.System(1.0, contacts=carom.Contacts.between(pair, torn, search=carom.Fixed([[0, 1]])))
    state = carom.State([0.0, 0, 0, 1.0, 0, 0], [0.0, 0, 0, 1.0, 0, 0])
    with pytest.raises(carom.SimulationError, match="gap of bodies 0 and 1 is NaN at t = 0") as error:
        carom.simulate(system, state, carom.MoreauMidpoint(solver=SOLVER), t1=1.0, h=0.1)
    assert error.value.solution.t[-1] == pytest.approx(0.4, abs=0.11)


@pytest.mark.slow
def test_several_lists_that_lack_room_at_once_are_made_roomier(monkeypatch):
    """Two groups of the same bodies: trouble of one kind in both is still that trouble."""
    radii, state = start(5)
    laws = {"search": CELLS, "data": radii, "restitution": 0.3}
    halves = [carom.Contacts.between(GRAINS, carom.shapes.disk, **laws) for _ in range(2)]
    mass = radii**2
    system = carom.System(GRAINS.mass(mass, mass, 0.5 * mass * radii**2), contacts=halves)
    monkeypatch.setattr(first_lists, "tight", lambda pairs: tight(pairs)._replace(colours=tight(pairs).colours[:1]))
    assert run(system, state, steps=5, solver=carom.AcceleratedGaussSeidel(tol=1e-8)).status == carom.Status.OK


def test_methods_steppings_and_solvers_without_lists_refuse_them():
    radii, state = start(1)
    with pytest.raises(ValueError, match="EventCapturing does not handle 'listed pairs'"):
        carom.simulate(listed(radii), state, carom.EventCapturing(carom.radau_iia(2)), t1=1.0, h=0.1)
    with pytest.raises(ValueError, match="StepHalving|Switching|Adaptive"):
        carom.simulate(
            listed(radii),
            state,
            carom.MoreauMidpoint(solver=SOLVER),
            t1=1.0,
            stepping=carom.Switching(h_max=1e-2, h_min=1e-4),
        )
    with pytest.raises(ValueError, match="Extrapolated does not handle 'listed pairs'"):
        carom.simulate(listed(radii), state, carom.Extrapolated(carom.MoreauMidpoint(solver=SOLVER)), t1=1.0, h=0.1)
    with pytest.raises(ValueError, match="SemismoothNewton needs the Delassus matrix"):
        carom.simulate(listed(radii), state, carom.MoreauMidpoint(), t1=1.0, h=0.1)
    with pytest.raises(ValueError, match="AcceleratedGaussSeidel solves contacts of listed pairs"):
        carom.simulate(*carom.models.falling_mass(), carom.MoreauMidpoint(solver=SOLVER), t1=1.0, h=0.1)


def test_impulses_of_contacts_are_kept_on_request_and_push_bodies_as_they_moved(tmp_path):
    radii, state = start(7)
    system, m, steps = listed(radii, friction=0.0), radii[:, None] ** 2, 60
    keep = [carom.keep.columns("q", "v"), carom.keep.contacts()]
    whole = run(system, state, steps=steps, keep=keep)
    found, inner = whole.kept["contacts 0"], 0
    assert "impulse" not in whole.columns
    for k in range(1, steps + 1):
        here = found.t == whole.t[k]
        x = whole.q[k - 1].reshape(COUNT, 3)[:, :2] + 0.01 * whole.v[k - 1].reshape(COUNT, 3)[:, :2]
        gained = m * (whole.v[k] - whole.v[k - 1]).reshape(COUNT, 3)[:, :2] + 0.02 * m * np.array([0.0, 1.0])
        for a, b, P in zip(*(column[here & (found.group == 0)] for column in (found.a, found.b, found.impulse))):
            push = P[0] * (x[a] - x[b]) / np.linalg.norm(x[a] - x[b])
            gained[[a, b]] -= np.stack([push, -push])
            inner += 1
        free = np.setdiff1d(np.arange(COUNT), found.a[here & (found.b == -1)])
        np.testing.assert_allclose(gained[free], 0.0, atol=1e-10)
    assert inner > 10
    run(system, state, steps=steps // 2, keep=keep).save(tmp_path / "half.nc")
    resumed = carom.resume(tmp_path / "half.nc", system=system, t1=steps * 0.02, keep=keep).kept["contacts 0"]
    for name, column in found._asdict().items():
        np.testing.assert_allclose(getattr(resumed, name), column, rtol=1e-15, err_msg=name)


def test_contacts_are_kept_of_listed_bodies_alone():
    radii, state = start(7)
    with pytest.raises(ValueError, match="contacts are kept of listed bodies"):
        run(disks(carom.AllPairs(), radii), state, solver=carom.SemismoothNewton(), keep=[carom.keep.contacts()])
