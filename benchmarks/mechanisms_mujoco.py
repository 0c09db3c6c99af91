"""Open chains of rigid bodies: the passive motion of `carom.Mechanism` against MuJoCo's.

Random trees of two to six bodies with hinges, sliders and ball joints, gravity, random starts, half a second. MuJoCo
runs RK4 with dt 1e-4, contact, limits and frictionloss off; carom holds every joint by constraints. Printed is the
largest difference of places and rotation matrices of all bodies at the end, and what both took (compile time apart).
"""

from __future__ import annotations

import sys
import time

import mujoco
import numpy as np

import carom

T1, DT, GRAVITY = 0.5, 1e-4, 9.81
JOINTS = {"hinge": carom.joints.revolute, "slide": carom.joints.prismatic, "ball": carom.joints.spherical}


def random_tree(rng: np.random.Generator) -> list[dict]:
    """Bodies with a parent (-1 is the ground), a pose, a joint with its parent and velocities along it."""
    bodies, count = [], int(rng.integers(2, 7))
    for i in range(count):
        parent = int(rng.integers(-1 if rng.random() < 0.2 else max(i - 2, -1), i)) if i else -1
        origin = np.zeros(3) if parent < 0 else bodies[parent]["place"]
        a, p = rng.uniform(0.01, 0.05, 3), rng.normal(size=4)
        kind = str(rng.choice(list(JOINTS)))
        place = origin + rng.uniform(-0.6, 0.6, 3)
        axis = rng.normal(size=3)
        body = {"parent": parent, "mass": rng.uniform(0.5, 2.0), "inertia": a.sum() - a, "place": place, "kind": kind}
        body |= {"p": p / np.linalg.norm(p), "at": 0.5 * (origin + place) + rng.uniform(-0.1, 0.1, 3)}
        bodies.append(body | {"axis": axis / np.linalg.norm(axis), "rate": rng.normal(size=3 if kind == "ball" else 1)})
    return bodies


def matrix(p: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, p)
    return R.reshape(3, 3)


def text(numbers: np.ndarray) -> str:
    """Numbers for XML."""
    return " ".join(f"{x:.17g}" for x in numbers)


def xml_of(bodies: list[dict], parent: int) -> str:
    """The children of a body."""
    out = ""
    x, R = (np.zeros(3), np.eye(3)) if parent < 0 else (bodies[parent]["place"], matrix(bodies[parent]["p"]))
    p = np.array([1.0, 0, 0, 0]) if parent < 0 else bodies[parent]["p"]
    for i, body in enumerate(bodies):
        if body["parent"] != parent:
            continue
        own, turned = matrix(body["p"]), np.zeros(4)
        mujoco.mju_mulQuat(turned, p * [1, -1, -1, -1], body["p"])
        point, axis = own.T @ (body["at"] - body["place"]), own.T @ body["axis"]
        joint = f'<joint type="{body["kind"]}" pos="{text(point)}" axis="{text(axis)}"/>'
        mass = f'<inertial pos="0 0 0" mass="{body["mass"]:.17g}" diaginertia="{text(body["inertia"])}"/>'
        place = f'pos="{text(R.T @ (body["place"] - x))}" quat="{text(turned)}"'
        out += f'<body name="b{i}" {place}>{joint}{mass}{xml_of(bodies, i)}</body>'
    return out


class MuJoCo:
    """The tree in MuJoCo."""

    def __init__(self, bodies: list[dict]):
        flags = '<flag contact="disable" limit="disable" frictionloss="disable"/>'
        option = f'<option timestep="{DT}" integrator="RK4" gravity="0 0 {-GRAVITY}">{flags}</option>'
        xml = f'<mujoco><compiler angle="radian"/>{option}<worldbody>{xml_of(bodies, -1)}</worldbody></mujoco>'
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)
        self.number = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, f"b{i}") for i in range(len(bodies))]
        self.start = np.concatenate([bodies[self.number.index(k)]["rate"] for k in sorted(self.number)])
        self.reset()

    def reset(self) -> None:
        """Go to the start."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qvel[:] = self.start
        mujoco.mj_forward(self.model, self.data)

    def velocity(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Velocity of the centre, and angular velocity in body axes."""
        found, kind = np.zeros(6), mujoco.mjtObj.mjOBJ_XBODY
        mujoco.mj_objectVelocity(self.model, self.data, kind, self.number[i], found, 0)
        return found[3:], self.data.xmat[self.number[i]].reshape(3, 3).T @ found[:3]

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        """Places and rotations at the end."""
        self.reset()
        for _ in range(round(T1 / DT)):
            mujoco.mj_step(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)
        return self.data.xpos[self.number], self.data.xmat[self.number].reshape(-1, 3, 3)


def mechanism_of(bodies: list[dict], peer: MuJoCo) -> carom.Mechanism:
    """The tree in carom."""
    parts, joints = [], []
    for i, body in enumerate(bodies):
        velocity, spin = peer.velocity(i)
        given = {"position": body["place"], "rotation": body["p"], "velocity": velocity, "spin": spin}
        parts.append(carom.RigidBody(body["mass"], body["inertia"], name=f"b{i}", **given))
        parent = "ground" if body["parent"] < 0 else f"b{body['parent']}"
        axis = {} if body["kind"] == "ball" else {"axis": body["axis"]}
        joints.append(JOINTS[body["kind"]](parent, f"b{i}", at=body["at"], **axis))
    return carom.Mechanism(parts, joints, gravity=GRAVITY)


def main(count: int = 10, seed: int = 1) -> None:
    """Compare `count` random trees."""
    print("bodies freedom   difference     carom  steps    MuJoCo")
    for k in range(count):
        bodies = random_tree(np.random.default_rng([seed, k]))
        peer = MuJoCo(bodies)
        mechanism = mechanism_of(bodies, peer)
        sol = carom.solve(*mechanism, t1=T1, rtol=1e-9, atol=1e-10)
        started = time.perf_counter()
        carom.solve(*mechanism, t1=T1, rtol=1e-9, atol=1e-10)
        took = time.perf_counter() - started
        started = time.perf_counter()
        place, turn = peer.run()
        other = time.perf_counter() - started
        own = mechanism.frames(sol)
        apart = max(np.abs(own.place[-1] - place).max(), np.abs(own.turn[-1] - turn).max())
        print(
            f"{len(bodies):6d} {mechanism.freedom:7d} {apart:12.2e} {took:8.3f} s {len(sol):6d} {other:8.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:]))
