"""Random closed loops of bodies with joints of all kinds: energy and joints are kept."""

import numpy as np
import pytest

import carom

ROWS = {"revolute": 5, "prismatic": 5, "cylindrical": 4, "spherical": 3, "universal": 4, "planar": 3, "slot": 2}


def random_kinds(rng):
    """The kinds of joints around a loop through the ground, and of one more across it, with something left to move."""
    while True:
        count = int(rng.integers(2, 7))
        kinds = rng.choice(list(ROWS), count + 2)
        if sum(ROWS[kind] for kind in kinds) <= 6 * count - 2:
            return count, kinds


def random_loop(count, kinds, rng):
    """Bodies at random places and their joints, which hold as things stand."""
    bodies, joints, places = [], [], np.cumsum(rng.normal(size=(count, 3)), axis=0)
    for i in range(count):
        a = rng.uniform(0.1, 0.5, 3)
        spin = {"velocity": rng.normal(size=3), "spin": rng.normal(size=3)}
        bodies.append(
            carom.RigidBody(rng.uniform(0.5, 2), a.sum() - a, places[i], rng.normal(size=3), name=f"b{i}", **spin)
        )
    names = ["ground", *(body.name for body in bodies), "ground"]
    sides = [*zip(names, names[1:]), ("ground", f"b{count // 2}")]
    for (one, other), kind in zip(sides, kinds):
        z, x = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
        axes = {} if kind == "spherical" else {"axis": z, "across": x} if kind == "universal" else {"axis": z}
        joints.append(getattr(carom.joints, kind)(one, other, at=rng.normal(size=3), **axes))
    spring = carom.Spring("b0", (0.0, 0.0, 1.0), stiffness=5.0, length=0.3)
    return carom.Mechanism(bodies, joints, springs=[spring], gravity=9.81)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_energy_and_joints_of_random_loops_are_kept(seed):
    count, kinds = random_kinds(np.random.default_rng([7, seed]))
    for k in range(5):
        loop = random_loop(count, kinds, np.random.default_rng([seed, k]))
        runs = [carom.simulate(*loop, carom.MoreauMidpoint(), t1=0.1, h=h) for h in (2e-4, 1e-4)]
        coarse, fine = (energy_error(run) for run in runs)
        assert fine < 1e-6
        assert fine < 0.65 * coarse or fine < 1e-9, (kinds, coarse, fine)
        assert runs[1].account.worst["drift"] < 1e-11


def energy_error(sol):
    account = sol.account
    return np.abs(account.energy - account.energy[0]).max() / (account.kinetic.max() + np.ptp(account.potential))


def crank_and_rocker(rng, turn=None):
    """A random four-bar loop whose crank goes round; with a matrix its plane is turned, and bodies are in space."""
    lengths = np.array([1.0, 0.0, 0.0, 0.0])
    while lengths.max() + lengths.min() > 0.93 * (lengths.sum() - lengths.max() - lengths.min()) or lengths.argmin():
        lengths = rng.uniform(0.3, 3.0, 4)
    crank, coupler, rocker, ground = lengths
    start, spin = rng.uniform(0.0, 2 * np.pi), rng.uniform(3.0, 8.0)
    a, d = crank * np.array([np.cos(start), np.sin(start)]), np.array([ground, 0.0])
    far = np.linalg.norm(d - a)
    along = (coupler**2 - rocker**2 + far**2) / (2 * far)
    across = np.sqrt(coupler**2 - along**2) * np.array([a[1] - d[1], d[0] - a[0]])
    b = a + (along * (d - a) + across) / far
    in_space = turn is not None
    to = (lambda x: turn @ np.append(x, 0.0)) if in_space else (lambda x: x)
    bodies = []
    for name, (one, other), length in zip("cfr", ((0 * a, a), (a, b), (b, d)), (crank, coupler, rocker)):
        e, heavy = (other - one) / length, length**2 / 12
        frame = np.array([[e[0], -e[1], 0.0], [e[1], e[0], 0.0], [0.0, 0.0, 1.0]])
        ends = {"l": (-length / 2, 0.0, 0.0)[: 2 + in_space], "r": (length / 2, 0.0, 0.0)[: 2 + in_space]}
        inertia, rotation = ([1e-3, heavy, heavy], turn @ frame) if in_space else (heavy, np.arctan2(e[1], e[0]))
        turning = {"spin": (0.0, 0.0, spin) if in_space else spin} if name == "c" else {}
        bodies.append(
            carom.RigidBody(1.0, inertia, to((one + other) / 2), rotation, name=name, markers=ends, **turning)
        )
    axis = {"axis": turn[:, 2]} if in_space else {}
    sides = [
        ("ground", "c.l", {"at": to(0 * a)}),
        ("c.r", "f.l", {}),
        ("f.r", "r.l", {}),
        ("r.r", "ground", {"at": to(d)}),
    ]
    joints = [carom.joints.revolute(one, other, **at, **axis) for one, other, at in sides]
    return carom.Mechanism(bodies, joints, gravity=to(np.array([0.0, -9.81])))


@pytest.mark.slow
def test_a_planar_loop_on_hinges_in_space_moves_as_in_the_plane():
    rng = np.random.default_rng(7)
    for seed in range(4):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn[:, 2] *= np.linalg.det(turn)
        flat = crank_and_rocker(np.random.default_rng(seed))
        spatial = crank_and_rocker(np.random.default_rng(seed), turn)
        exact = carom.solve(*flat, t1=10.0, rtol=1e-10, atol=1e-10)
        sol = carom.solve(*spatial, t1=10.0, rtol=1e-8, atol=1e-8)
        assert np.all(sol.account.extra["redundant"][1:] == 3)
        expected = flat.frames(exact).place[-1][:, :2] @ turn[:, :2].T
        np.testing.assert_allclose(spatial.frames(sol).place[-1], expected, atol=1e-6)
