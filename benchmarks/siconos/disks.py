"""One contact problem in Siconos (its own interpreter): milliseconds of NSGS to the asked residuals, from zero.

Processor time is given beside wall time, for machines with neighbours; the best of five counts.
"""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import siconos.numerics as sn

problem = sn.frictionContactProblemFromFile(sys.argv[1])
rows, found = 2 * problem.numberOfContacts, []
for tol in map(float, sys.argv[3:]):
    options = sn.SolverOptions(sn.SICONOS_FRICTION_2D_NSGS)
    options.dparam[0], options.iparam[0] = tol, 200_000
    wall = cpu = float("inf")
    for _ in range(5):
        impulse, velocity = np.zeros(rows), np.zeros(rows)
        started, began = time.perf_counter(), time.process_time()
        sn.fc2d_driver(problem, impulse, velocity, options)
        wall, cpu = min(wall, time.perf_counter() - started), min(cpu, time.process_time() - began)
    found.append(
        {"wall": 1e3 * wall, "cpu": 1e3 * cpu, "iterations": int(options.iparam[1]), "impulse": impulse.tolist()}
    )
with open(sys.argv[2], "w") as file:
    json.dump(found, file)
