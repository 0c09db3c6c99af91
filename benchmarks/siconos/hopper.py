"""Two masses on a spring that hop on a floor, in Siconos (its own interpreter): end and seconds for several steps."""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import siconos.kernel as sk

T1, SIZES = float(sys.argv[1]), [float(h) for h in sys.argv[2:]]


def run(h):
    """The end of a run with step h, and its seconds."""
    k, g = 20.0, 9.81
    masses = sk.LagrangianLinearTIDS([0.5, 1.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 2.0]], [[k, -k], [-k, k]], [[0, 0]] * 2)
    masses.setFExtPtr([-g - 0.5 * k, -2.0 * g + 0.5 * k])
    model = sk.NonSmoothDynamicalSystem(0.0, T1 + h)
    model.insertDynamicalSystem(masses)
    floor = sk.Interaction(sk.NewtonImpactNSL(0.6), sk.LagrangianLinearTIR([[1.0, 0.0]]))
    model.link(floor, masses)
    simulation = sk.TimeStepping(model, sk.TimeDiscretisation(0.0, h), sk.MoreauJeanOSI(0.5), sk.LCP())
    started = time.perf_counter()
    for _ in range(round(T1 / h)):
        simulation.computeOneStep()
        simulation.nextStep()
    return [*masses.q().tolist(), time.perf_counter() - started]


print(json.dumps([run(h) for h in SIZES]))
