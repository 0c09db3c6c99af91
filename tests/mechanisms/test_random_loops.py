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
