"""A slider-crank of rigid bodies with a motor: joints, forces on the guide, paths of markers."""

import numpy as np

import carom


def main(t1: float = 2.0) -> carom.Solution:
    crank = carom.RigidBody.rod(1.0, 0.5, position=(0.0, 0.25), rotation=np.pi / 2, name="crank")
    rod = carom.RigidBody.rod(1.0, 1.0, position=(0.4, 0.25), rotation=-0.5, name="rod")
    piston = carom.RigidBody(2.0, 0.1, position=(0.9, 0.0), name="piston")
    joints = [
        carom.joints.revolute(
            "ground", "crank.left", at=(0, 0), motor=lambda t, x, rate: 4.0 * (3.0 - rate), name="axle"
        ),
        carom.joints.revolute("crank.right", "rod.left"),
        carom.joints.revolute("rod.right", "piston", at=(0.9, 0)),
        carom.joints.prismatic("ground", "piston", at=(0.9, 0), axis=(1, 0), damping=0.5, name="guide"),
    ]
    engine = carom.Mechanism([crank, rod, piston], joints, gravity=9.81)
    print(engine, f"rank {engine.rank}")
    sol = carom.simulate(*engine, carom.Spark(2), t1=t1, h=0.005)
    stroke = engine.point(sol, "piston")[:, 0]
    side = sol.multiplier[:, engine.rows["guide"]][:, 0]
    print(
        f"piston between {stroke.min():.3f} and {stroke.max():.3f}, force on the guide up to {np.abs(side).max():.1f}"
    )
    print(f"joints are open by {sol.account.worst['drift']:.1e} at most")
    return sol


if __name__ == "__main__":
    main()
