# ruff: noqa: N816
"""The woodpecker toy in Siconos (its own interpreter): microseconds per step of MoreauJean with theta = 1/2."""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import siconos.kernel as sk
import siconos.numerics as sn

STEPS, H, TOL = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])

m_M, J_M, m_S, J_S, c, g = 0.0003, 5.0e-9, 0.0045, 7.0e-7, 0.0056, 9.81
r_0, r_M, h_M, l_M, l_G, h_S, l_S = 0.0025, 0.0031, 0.0058, 0.010, 0.015, 0.02, 0.0201
M = [
    [m_S + m_M, m_S * l_M, m_S * l_G],
    [m_S * l_M, J_M + m_S * l_M**2, m_S * l_M * l_G],
    [m_S * l_G, m_S * l_M * l_G, J_S + m_S * l_G**2],
]
K = [[0.0, 0.0, 0.0], [0.0, c, -c], [0.0, -c, c]]
toy = sk.LagrangianLinearTIDS([0.0, -0.1036, -0.2788], [-0.3411, 0.0, -7.4583], M, K, np.zeros((3, 3)))
toy.setFExtPtr(np.array([-(m_S + m_M) * g, -m_S * g * l_M, -m_S * g * l_G]))

sleeve = [1.0, r_M, 0.0]
rows = [
    ([[0.0, 0.0, -h_S], [1.0, l_M, l_G - l_S]], l_M + l_G - l_S - r_0, 0.5),
    ([[0.0, h_M, 0.0], sleeve], r_M - r_0, 0.0),
    ([[0.0, -h_M, 0.0], sleeve], r_M - r_0, 0.0),
]
model = sk.NonSmoothDynamicalSystem(0.0, 2 * STEPS * H)
model.insertDynamicalSystem(toy)
interactions = []
for directions, offset, restitution in rows:
    law = sk.NewtonImpactFrictionNSL(restitution, 0.0, 0.3, 2)
    interaction = sk.Interaction(law, sk.LagrangianLinearTIR(directions, [offset, 0.0]))
    model.link(interaction, toy)
    interactions.append(interaction)
problem = sk.FrictionContact(2, sn.SICONOS_FRICTION_2D_NSGS)
problem.numericsSolverOptions().iparam[0] = 10000
problem.numericsSolverOptions().dparam[0] = TOL
simulation = sk.TimeStepping(model, sk.TimeDiscretisation(0.0, H), sk.MoreauJeanOSI(0.5), problem)

data = np.zeros((STEPS, 13))
q, v = toy.q(), toy.velocity()


def advance(count):
    for k in range(count):
        simulation.computeOneStep()
        data[k, 0] = simulation.nextTime()
        data[k, 1:4], data[k, 4:7] = q, v
        for i, interaction in enumerate(interactions):
            data[k, 7 + 2 * i : 9 + 2 * i] = interaction.lambda_(1)
        simulation.nextStep()


started = time.perf_counter()
advance(STEPS)
elapsed = time.perf_counter() - started
print(json.dumps({"us": 1e6 * elapsed / STEPS, "phi_S": data[-1, 3], "t": data[-1, 0]}))
