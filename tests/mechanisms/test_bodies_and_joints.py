"""Rigid bodies and joints: what each joint lets free, where bodies are assembled, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.mechanisms.picking import picked
from carom.mechanisms.rotations import quaternion, space_rotation
from carom.solvers.colouring import coloured
from carom.systems.constrained import directions, touched, velocity_residual

RNG = np.random.default_rng(3)
AXIS = np.array([0.6, 0.0, 0.8])
ACROSS = np.array([0.0, 1.0, 0.0])
AT = np.array([0.3, -0.2, 0.5])


def _twists(*directions):
    """(velocity of the joint's point, angular velocity) of motions that a joint lets free."""
    return [np.concatenate([np.asarray(u, float), np.asarray(w, float)]) for u, w in directions]


NONE, THIRD = np.zeros(3), np.cross(AXIS, ACROSS)
FREE = {
    "revolute": _twists((NONE, AXIS)),
    "prismatic": _twists((AXIS, NONE)),
    "cylindrical": _twists((AXIS, NONE), (NONE, AXIS)),
    "spherical": _twists(*((NONE, e) for e in np.eye(3))),
    "universal": _twists((NONE, AXIS), (NONE, ACROSS)),
    "planar": _twists((ACROSS, NONE), (THIRD, NONE), (NONE, AXIS)),
    "slot": _twists((AXIS, NONE), *((NONE, e) for e in np.eye(3))),
    "rigid": [],
    "screw": _twists((0.5 / (2 * np.pi) * AXIS, AXIS)),
}


@pytest.fixture(scope="module")
def all_kinds():
    bodies, joints = [], []
    for kind in FREE:
        turn = Rotation.random(random_state=RNG.integers(100)).as_matrix()
        bodies.append(carom.RigidBody(1.0, (1.0, 1.2, 1.5), RNG.normal(size=3), turn, name=kind))
        axis = {} if kind in ("spherical", "rigid") else {"axis": AXIS}
        more = {"across": ACROSS} if kind == "universal" else {"pitch": 0.5} if kind == "screw" else {}
        joints.append(getattr(carom.joints, kind)("ground", kind, at=AT, **axis, **more))
    return carom.Mechanism(bodies, joints)


@pytest.fixture(scope="module")
def all_rows(all_kinds):
    system, state = all_kinds
    rate = lambda v: jax.jvp(lambda q: system.constraint(0.0, q), (state.q,), (system.rate(0.0, state.q, v),))[1]
    return jax.jit(jax.jacfwd(rate))(state.v)


@pytest.mark.parametrize("kind", list(FREE))
def test_a_joint_lets_free_what_it_should_and_nothing_else(all_kinds, all_rows, kind):
    i = list(FREE).index(kind)
    place, turn, _ = all_kinds.frames(all_kinds.state)
    C = np.asarray(all_rows)[all_kinds.rows[all_kinds.joints[i].name], 6 * i : 6 * i + 6]
    assert np.linalg.matrix_rank(C) == len(C) == 6 - len(FREE[kind])
    for twist in FREE[kind]:
        velocity = twist[:3] + np.cross(twist[3:], place[i] - AT)
        assert np.abs(C @ np.concatenate([velocity, turn[i].T @ twist[3:]])).max(initial=0.0) < 1e-14


@pytest.fixture(scope="module")
def train():
    """Wheels that roll and are geared, on a chain of bodies that are not joined in their order."""
    bodies = [carom.RigidBody(1.0, 0.3, (2.0 * i, 1.0), name=f"b{i}") for i in range(5)]
    joints = [
        carom.joints.rolling("b4", radius=1.0),
        carom.joints.revolute("b0", "b3", at=(0.5, 1.0), name="near"),
        carom.joints.revolute("b1", "b4", at=(5.0, 1.0)),
        carom.joints.revolute("b3", "b1", at=(3.0, 1.0), name="far"),
        carom.joints.gear("near", "far", teeth=(1, 2)),
        carom.joints.slot("ground", "b2", at=(4.0, 1.0)),
    ]
    return carom.Mechanism(bodies, joints)


def test_rows_of_joints_act_on_the_velocities_that_they_tell_and_are_found_together(all_kinds, all_rows, train):
    system, state = train
    at = (system, state.t, state.q, state.v)
    whole = lambda *at: jax.jacfwd(lambda v: velocity_residual(*at[:3], v))(at[3])
    found, rows = jax.jit(lambda *at: (directions(*at), whole(*at)))(*at)
    np.testing.assert_allclose(found, rows, atol=1e-15)
    for one, whole, colours in ((all_kinds.system, all_rows, 6), (system, rows, 9)):
        touches = np.concatenate([touched(f, whole.shape[1]) for f in (one.constraints, one.nonholonomic)])
        assert not np.asarray(whole)[~touches].any()
        assert coloured(touches).max() + 1 == colours < whole.shape[1]


def test_picked_rows_are_those_of_an_index_with_all_derivatives():
    x, rows = jnp.asarray(RNG.normal(size=(4, 2))), (3, 0, 4, 3, 3)
    index = lambda x: jnp.concatenate([x, jnp.zeros((1, 2))])[np.asarray(rows)]
    cubes = [lambda x, f=f: jnp.sum(f(x) ** 3) for f in (lambda x: picked(x, rows), index)]
    for derivative in (lambda f: f, jax.grad, jax.jacfwd, jax.hessian):
        one, other = (jax.jit(derivative(f))(x) for f in cubes)
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(jax.vmap(lambda x: picked(x, rows), 1, 1)(x), index(x))


def test_the_rank_of_all_joints_together_is_known(all_kinds):
    assert all_kinds.rank == sum(6 - len(free) for free in FREE.values())
    assert all_kinds.freedom == 6 * len(FREE) - all_kinds.rank


@pytest.mark.parametrize("seed", range(5))
def test_rotations_are_those_of_scipy(seed):
    turn = Rotation.random(random_state=seed)
    for given in (turn.as_matrix(), turn.as_rotvec(), turn.as_quat(scalar_first=True)):
        found = np.asarray(space_rotation(jnp.asarray(quaternion(given, "rotation"))))
        np.testing.assert_allclose(found, turn.as_matrix(), atol=1e-15)


def test_boxes_rods_and_polygons_have_the_inertia_of_their_shape():
    box = carom.RigidBody.box(2.0, (3.0, 4.0))
    same = carom.RigidBody.polygon(2.0, np.array([(0, 0), (3, 0), (3, 4), (0, 4)]) + 7.0)
    np.testing.assert_allclose(same.inertia, box.inertia)
    np.testing.assert_allclose(sorted(map(tuple, same.corners)), sorted(map(tuple, box.corners)), atol=1e-12)
    assert carom.RigidBody.rod(3.0, 2.0).inertia == pytest.approx(1.0)
    np.testing.assert_allclose(carom.RigidBody.box(12.0, (1.0, 2.0, 3.0)).inertia, [13.0, 10.0, 5.0])


def test_a_rod_in_space_has_the_inertia_of_the_slices_of_a_cylinder_with_half_balls():
    half, r, mass = 0.75, 0.3, 2.0
    nodes, weights = np.polynomial.legendre.leggauss(8)
    slices = []
    for low, high in ((-half - r, -half), (-half, half), (half, half + r)):
        x, w = 0.5 * (low + high) + 0.5 * (high - low) * nodes, 0.5 * (high - low) * weights
        square = r**2 - np.maximum(np.abs(x) - half, 0.0) ** 2
        slices.append([w @ square, w @ square**2 / 2, w @ (square**2 / 4 + square * x**2)])
    volume, along, across = np.sum(slices, axis=0)
    rod = carom.RigidBody.rod(mass, 2 * half, radius=r, dimension=3)
    np.testing.assert_allclose(rod.inertia, mass / volume * np.array([along, across, across]), rtol=1e-13)


def _held(*joints, **parts):
    body = carom.RigidBody(1.0, (1, 1, 1), markers={"m": (1, 0, 0)}, corners=[(0, 0, 0)], name="a")
    return carom.Mechanism([body], joints, **parts)


REFUSED = {
    "negative inertia": (lambda: carom.RigidBody(1.0, -1.0), "inertia must be positive"),
    "no body": (lambda: carom.RigidBody(1.0, (1.0, 1.0, 3.0)), "none may exceed the sum of the other two"),
    "not symmetric": (lambda: carom.RigidBody(1.0, np.eye(3) + np.eye(3, k=1)), "symmetric"),
    "thin rod in space": (lambda: carom.RigidBody.rod(1.0, 1.0, dimension=3), "radius of a rod in space must be pos"),
    "rod of four dimensions": (lambda: carom.RigidBody.rod(1.0, 1.0, dimension=4), "must be 2 .* or 3"),
    "no mass": (lambda: carom.RigidBody(0.0, 1.0), "mass must be positive"),
    "mixed": (lambda: carom.Mechanism([carom.RigidBody(1, 1), carom.RigidBody(1, (1, 1, 1))]), "all be in the plane"),
    "unknown body": (
        lambda: carom.Mechanism(
            [carom.RigidBody(1, 1, name="rod")], [carom.joints.revolute("ground", "rot", at=(0, 0))]
        ),
        "no body 'rot'.*did you mean 'rod'",
    ),
    "unknown marker": (
        lambda: carom.Mechanism([carom.RigidBody.rod(1, 1, name="a")], [carom.joints.revolute("ground", "a.end")]),
        "'a' has no marker 'end'; it has 'left', 'right'",
    ),
    "nowhere": (
        lambda: carom.Mechanism([carom.RigidBody(1, 1, name="a")], [carom.joints.revolute("ground", "a")]),
        "give the point of the joint, at=",
    ),
    "space only": (
        lambda: carom.Mechanism(
            [carom.RigidBody(1, 1, name="a")], [carom.joints.screw("ground", "a", pitch=1, at=(0, 0))]
        ),
        "in the plane there is no such joint",
    ),
    "same body": (
        lambda: carom.Mechanism([carom.RigidBody(1, 1, name="a")], [carom.joints.revolute("a", "a", at=(0, 0))]),
        "two different bodies",
    ),
    "no such joint": (
        lambda: carom.Mechanism(
            [carom.RigidBody(1, 1, name="a")],
            [
                carom.joints.revolute("ground", "a", at=(0, 0), name="axle"),
                carom.joints.gear("axel", "axle", teeth=(1, 2)),
            ],
        ),
        "no joint 'axel' with a coordinate.*did you mean 'axle'",
    ),
    "less than a turn": (
        lambda: _held(carom.joints.revolute("ground", "a", at=(0, 0, 0), limits=(-1.0, np.inf))),
        "less than a turn apart, got \\(-1.0, inf\\)",
    ),
    "three limits": (lambda: carom.joints.revolute("ground", "a", limits=(0, 1, 2)), "limits must be \\(lowest, high"),
    "rest": (lambda: carom.joints.revolute("ground", "a", stiffness=1.0, rest=np.nan), "rest must be finite"),
    "two motors": (lambda: carom.joints.revolute("ground", "a", motor=(1.0, 2.0)), "motor must be a number"),
    "no pitch": (lambda: carom.joints.screw("ground", "a", pitch=0.0), "pitch must not be zero"),
    "marker": (lambda: carom.RigidBody(1.0, 1.0, markers={"m": (np.nan, 0.0)}), "marker 'm' must be finite"),
    "frame": (
        lambda: carom.Frame((0, 0, 0), axis=(0, 0, 1), across=(0, 0, 2)).axes(3),
        "axis must not be zero, nor parallel to across",
    ),
    "normal": (lambda: _held(carom.joints.rolling("a", radius=1.0, normal=(0, 0, 0))), "normal must not be zero"),
    "flat disk": (lambda: _held(carom.joints.rolling("a", radius=1.0, axis=(0, 0, 1))), "lies flat on its plane"),
    "ground that rolls": (lambda: _held(carom.joints.rolling("ground", radius=1.0)), "name the body that rolls"),
    "gear of one": (
        lambda: _held(
            carom.joints.revolute("ground", "a", at=(0, 0, 0), name="axle"),
            carom.joints.gear("axle", "axle", teeth=(1, 2)),
        ),
        "ties two different joints",
    ),
    "plane of no direction": (lambda: _held(planes=carom.Plane((0, 0, 0))), "normal must not be zero"),
    "own plane": (
        lambda: _held(planes=carom.Plane((0, 0, 1), of="a", touches=["a"])),
        "'a' carries the plane and cannot touch it",
    ),
    "plane of a marker": (lambda: _held(planes=carom.Plane((0, 0, 1), of="a.m")), "name a body, not a marker"),
    "not a spring": (lambda: _held(springs=[1.0]), "springs must be carom.Spring, got float"),
    "no bodies": (lambda: carom.Mechanism([]), "one body at least"),
    "no coordinate": (
        lambda: carom.Mechanism(
            [carom.RigidBody(1, (1, 1, 1), name="a")],
            [carom.joints.spherical("ground", "a", at=(0, 0, 0), limits=(0.0, 1.0))],
        ),
        "no single coordinate",
    ),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_mistakes_are_refused_in_words(what):
    build, said = REFUSED[what]
    with pytest.raises((ValueError, TypeError), match=said):
        build()


def test_stops_and_springs_of_a_hinge_in_space_act_beyond_half_a_turn():
    hinge = carom.joints.revolute("ground", "a", at=(0, 0, 0), limits=(2.5, 3.6), stiffness=2.0, rest=3.4)
    system, state = _held(hinge)
    found = jax.jit(lambda q: (system.gaps(0.0, q), system.part_energy("joint springs", 0.0, q)))
    for angle in (2.7, 3.3, 4.0):
        gaps, energy = found(state.q + jnp.asarray([0, 0, 0, np.cos(angle / 2) - 1, 0, 0, np.sin(angle / 2)]))
        np.testing.assert_allclose(gaps, [angle - 2.5, 3.6 - angle], atol=1e-14)
        assert energy == pytest.approx((angle - 3.4) ** 2)


def test_a_ball_rolls_on_the_plane_that_its_normal_and_offset_name():
    _, state = _held(carom.joints.rolling("a", radius=1.0, normal=(0, 0, 2), offset=1.0))
    np.testing.assert_allclose(state.q[:3], [0, 0, 1.5], atol=1e-15)


def test_joints_may_come_from_a_generator():
    body = carom.RigidBody(1.0, 1.0, name="a")
    assert carom.Mechanism([body], (carom.joints.revolute("ground", "a", at=(0, 0)) for _ in range(1))).freedom == 1


def _four_bar(length):
    rods = [
        carom.RigidBody.rod(1.0, l, position=(x, 0.3), name=n)
        for n, l, x in (("a", 1, 0), ("b", length, 1), ("c", 1, 2))
    ]
    joints = [
        carom.joints.revolute("ground", "a.left", at=(0, 0), name="first"),
        carom.joints.revolute("a.right", "b.left"),
        carom.joints.revolute("b.right", "c.left"),
        carom.joints.revolute("c.right", "ground", at=(2, 0), name="last"),
    ]
    return carom.Mechanism(rods, joints)


def test_bodies_are_brought_to_where_the_joints_hold():
    linkage = _four_bar(1.5)
    assert np.abs(linkage.system.constraint(0.0, linkage.state.q)).max() < 1e-14
    np.testing.assert_allclose(
        linkage.point(linkage.state, "a.right"), linkage.point(linkage.state, "b.left"), atol=1e-14
    )
    assert linkage.freedom == 1


def test_joints_that_cannot_be_assembled_are_named_with_what_is_left():
    with pytest.raises(ValueError, match=r"cannot be assembled.*revolute joint '.*' of '.*' and '.*' by 0\.\d+"):
        _four_bar(6.0)


SHAPES = {
    "rod": lambda: carom.RigidBody.rod(1.0, 1.4, radius=0.1, name="body"),
    "rod in space": lambda: carom.RigidBody.rod(1.0, 1.4, radius=0.1, dimension=3, name="body"),
    "box in the plane": lambda: carom.RigidBody.box(1.0, (0.6, 1.1), name="body"),
    "polygon": lambda: carom.RigidBody.polygon(1.0, [(0, 0), (2, 0), (1.5, 1), (0.2, 0.8)], name="body"),
    "box in space": lambda: carom.RigidBody.box(1.0, (0.6, 1.1, 0.4), name="body"),
    "ball": lambda: carom.RigidBody(1.0, (1.0, 1.0, 1.0), corners=[(0, 0, 0)], radius=0.3, name="body"),
}


@pytest.mark.parametrize("of", ["ground", "carrier"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_lowest_gap_of_corners_is_that_of_the_whole_shape(shape, of):
    """Convex combinations of corners are all of a shape, its edges and faces among them."""
    rng, body = np.random.default_rng(2), SHAPES[shape]()
    d = body.dimension
    carrier = carom.RigidBody(1.0, 1.0 if d == 2 else (1.0, 1.0, 1.0), name="carrier")
    normal = rng.normal(size=d)
    mechanism = carom.Mechanism([body, carrier], planes=[carom.Plane(normal, 0.3, of=of, touches=["body"])])
    q = np.array(mechanism.state.q) + rng.normal(size=mechanism.state.q.size)
    if d == 3:
        q.reshape(2, 7)[:, 3:] /= np.linalg.norm(q.reshape(2, 7)[:, 3:], axis=1, keepdims=True)
    gaps = np.asarray(mechanism.system.gaps(0.0, q))
    place, turn, _ = mechanism.frames(q)
    corners, radii = (np.array(x) for x in zip(*body.rounded))
    weights = np.vstack([rng.dirichlet(np.full(len(corners), 0.3), 400), np.eye(len(corners))])
    points = place[0] + (weights @ corners) @ turn[0].T
    n = normal / np.linalg.norm(normal)
    if of == "carrier":
        points = (points - place[1]) @ turn[1]
    assert gaps.size == len(corners)
    assert gaps.min() == pytest.approx((points @ n - weights @ radii).min() - 0.3 / np.linalg.norm(normal), abs=1e-13)
