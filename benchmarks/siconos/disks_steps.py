"""Steps of disks in a box in Siconos (its own interpreter): Bullet's search, Moreau's scheme with theta = 1/2, NSGS.

Usage: disks_steps.py start.npz found.json tolerance steps.
"""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import siconos.kernel as sk
import siconos.numerics as sn
from siconos.mechanics.collision.base import *  # noqa: F403
from siconos.mechanics.collision.bullet import *  # noqa: F403

start, tol, steps = np.load(sys.argv[1]), float(sys.argv[3]), int(sys.argv[4])
width, h, kept = float(start["width"]), float(start["h"]), []


def contactors(shape, outside, inside):
    """A shape as Siconos hands it to Bullet."""
    shape.setOutsideMargin(outside)
    shape.setInsideMargin(inside)
    found = SiconosContactorSet()  # noqa: F405
    found.append(SiconosContactor(shape))  # noqa: F405
    kept.extend([shape, found])
    return found


options = SiconosBulletOptions()  # noqa: F405
options.dimension, options.worldScale, options.contactBreakingThreshold = SICONOS_BULLET_2D, 1.0, 0.02  # noqa: F405
manager = SiconosBulletCollisionManager(options)  # noqa: F405
world = sk.NonSmoothDynamicalSystem(0, 1e3)
for R, q, v in zip(start["radii"], start["q"].reshape(-1, 3), start["v"].reshape(-1, 3)):
    body = RigidBody2dDS(list(q), list(v), R * R, 0.5 * R**4)  # noqa: F405
    body.setContactors(contactors(SiconosDisk(R), 0.0, 0.0))  # noqa: F405
    body.setFExtPtr([0.0, -R * R, 0.0])
    world.insertDynamicalSystem(body)
    kept.append(body)
for size, place in (
    ((4 * width, 2.0), (width / 2, -1.0)),
    ((2.0, 8 * width), (-1.0, width)),
    ((2.0, 8 * width), (width + 1.0, width)),
):
    manager.insertStaticContactorSet(contactors(SiconosBox2d(*size), 0.0, 0.1), [*place, 0.0])  # noqa: F405
manager.insertNonSmoothLaw(sk.NewtonImpactFrictionNSL(0.0, 0.0, float(start["friction"]), 2), 0, 0)
problem = sk.FrictionContact(2, sn.SICONOS_FRICTION_2D_NSGS)
solver = problem.numericsSolverOptions()
solver.dparam[0], solver.iparam[0] = tol, 100_000
problem.setMStorageType(sn.NM_SPARSE_BLOCK)
problem.setMaxSize(20_000)
problem.setKeepLambdaAndYState(True)
simulation = sk.TimeStepping(world, sk.TimeDiscretisation(0, h))
simulation.insertIntegrator(sk.MoreauJeanOSI(0.5))
simulation.insertNonSmoothProblem(problem)
simulation.insertInteractionManager(manager)
simulation.setNewtonOptions(sk.SICONOS_TS_LINEAR)
simulation.setNewtonMaxIteration(1)
found = []
for _ in range(steps):
    wall, cpu = time.perf_counter(), time.process_time()
    simulation.computeOneStep()
    ms = {"wall": 1e3 * (time.perf_counter() - wall), "cpu": 1e3 * (time.process_time() - cpu)}
    found.append(ms | {"contacts": problem.getSizeOutput() // 2, "iterations": int(solver.iparam[1])})
    simulation.nextStep()
with open(sys.argv[2], "w") as file:
    json.dump(found, file)
