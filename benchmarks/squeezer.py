"""Work and precision on Andrews' squeezer: carom's SPARK against what a Python user would pick.

Error: largest entry of q at t = 0.03 against SPARK with six stages and small steps. Times are the shortest of several,
compile time apart. Peers in NumPy, derivatives by hand: SciPy's DOP853 on the index-1 form (accelerations from the
13 x 13 system), Radau of scipy_dae and SUNDIALS' IDA (scikit-sundae) on the stabilised form of Gear, Gupta and
Leimkuhler (on the index-1 residual the first gives up and the second needs minutes). A second part times 1e5 steps of
the double pendulum.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp
from scipy_dae.integrate import solve_dae
from sksundae.ida import IDA

import carom
from carom.models import squeezer

T1, TORQUE, WANTED = 0.03, 0.033, 1e-8
TOLERANCES = {
    "scipy_dae Radau": (1e-6, 1e-8, 1e-9),
    "SUNDIALS IDA": (1e-8, 1e-10, 1e-11),
    "SciPy DOP853": 10.0 ** -np.arange(6.0, 11.5, 0.5),
}


class NumpySqueezer:
    """The mechanism as hand-written NumPy: M, forces, constraints and their derivatives."""

    def __init__(self):
        system, state = carom.models.andrews_squeezer(TORQUE)
        bodies, joints = system.mass.fn, system.constraints.fn
        self.parts = np.asarray(bodies.parts)
        self.angles, self.on_cos, self.on_sin = (np.asarray(x) for x in (joints.angles, joints.on_cos, joints.on_sin))
        self.offset, self.q0 = np.asarray(joints.offset), np.asarray(state.q)

    def mass(self, q: np.ndarray) -> np.ndarray:
        """M(q)."""
        P = self.parts
        return P[0] + np.cos(q[1]) * P[1] + np.sin(q[3]) * P[2] + np.sin(q[5]) * P[3]

    def force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Spring, torque, and the inertia terms grad(v M v / 2) - (dM/dt) v."""
        P = self.parts
        slopes = ((1, -np.sin(q[1]), P[1]), (3, np.cos(q[3]), P[2]), (5, np.cos(q[5]), P[3]))
        f = np.zeros(7)
        for i, slope, part in slopes:
            w = slope * (part @ v)
            f -= v[i] * w
            f[i] += 0.5 * (v @ w)
        c, s = np.cos(q[2]), np.sin(q[2])
        x = squeezer.sd * c + squeezer.sc * s + squeezer.xb - squeezer.xc
        y = squeezer.sd * s - squeezer.sc * c + squeezer.yb - squeezer.yc
        L = np.hypot(x, y)
        pull = -squeezer.c0 * (L - squeezer.l0) / L
        f[2] += pull * (x * (squeezer.sc * c - squeezer.sd * s) + y * (squeezer.sd * c + squeezer.sc * s))
        f[0] += TORQUE
        return f

    def jacobian_and_bias(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G and G_q(v, v)."""
        a, w = self.angles @ q, self.angles @ v
        c, s = np.cos(a), np.sin(a)
        return (self.on_sin * c - self.on_cos * s) @ self.angles, -(self.on_cos * c + self.on_sin * s) @ (w * w)

    def solve(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Accelerations and multipliers from the index-1 form."""
        G, bias = self.jacobian_and_bias(q, v)
        matrix = np.zeros((13, 13))
        matrix[:7, :7], matrix[:7, 7:], matrix[7:, :7] = self.mass(q), G.T, G
        return np.linalg.solve(matrix, np.concatenate([self.force(q, v), -bias]))

    def rhs(self, t: float, y: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """(q, v)' of the index-1 form."""
        return np.concatenate([y[7:], self.solve(y[:7], y[7:])[:7]])

    def constraint(self, q: np.ndarray) -> np.ndarray:
        """g(q)."""
        a = self.angles @ q
        return self.on_cos @ np.cos(a) + self.on_sin @ np.sin(a) - self.offset

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Residual in y = (q, v, integrals of lambda and of the multipliers of G v = 0)."""
        q, v = y[:7], y[7:14]
        G, _ = self.jacobian_and_bias(q, v)
        momentum = self.mass(q) @ yp[7:14] - self.force(q, v) + G.T @ yp[14:20]
        return np.concatenate([yp[:7] - v - G.T @ yp[20:], momentum, self.constraint(q), G @ v])


def timed(run: Callable[[], np.ndarray], repeats: int = 7) -> tuple[float, np.ndarray]:
    """Shortest of several timings in seconds, and q at the end."""
    times, q = [], np.zeros(7)
    for _ in range(repeats):
        started = time.perf_counter()
        q = run()
        times.append(time.perf_counter() - started)
    return min(times), q


def peers() -> dict[str, Callable[[float], np.ndarray]]:
    """Functions from a tolerance to q at t = 0.03."""
    model = NumpySqueezer()
    zero = np.zeros(7)
    both = model.solve(model.q0, zero)
    y0 = np.concatenate([model.q0, np.zeros(19)])
    yp0 = np.concatenate([zero, both, np.zeros(6)])

    def dop853(tol: float) -> np.ndarray:
        return solve_ivp(model.rhs, (0, T1), y0[:14], method="DOP853", rtol=tol, atol=tol).y[:7, -1]

    def radau(tol: float) -> np.ndarray:
        return solve_dae(model.residual, (0, T1), y0, yp0, method="Radau", rtol=tol, atol=tol).y[:7, -1]

    def ida(tol: float) -> np.ndarray:
        def resfn(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray) -> None:
            res[:] = model.residual(t, y, yp)

        solver = IDA(resfn, rtol=tol, atol=tol, max_num_steps=200_000)
        return solver.solve(np.array([0.0, T1]), y0, yp0).y[-1, :7]

    return {"scipy_dae Radau": radau, "SUNDIALS IDA": ida, "SciPy DOP853": dop853}


def spark(stages: int) -> Callable[[float], np.ndarray]:
    """A function from the number of steps to q at t = 0.03."""
    system, state = carom.models.andrews_squeezer(TORQUE)
    method = carom.Spark(stages)

    def run(steps: float) -> np.ndarray:
        return carom.simulate(system, state, method, t1=T1, h=T1 / steps, save_every=10**6, progress=False).q[-1]

    return run


def study() -> dict[str, list[tuple[float, float, float]]]:
    """For every code: knob, error and seconds."""
    exact = spark(6)(1200)
    table: dict[str, list[tuple[float, float, float]]] = {}
    for s, steps in ((3, (300, 600, 1000, 1600)), (4, (150, 300, 450, 600)), (5, (100, 150, 200, 300))):
        run = spark(s)
        run(steps[0])
        table[f"carom Spark({s})"] = [
            (n, np.abs(q - exact).max(), t) for n in steps for t, q in [timed(lambda: run(n))]
        ]  # noqa: B023
    for name, run in peers().items():
        rows = table[name] = []
        for tol in TOLERANCES[name]:
            seconds, q = timed(lambda: run(tol), repeats=5 if name == "SciPy DOP853" else 1)  # noqa: B023
            rows.append((tol, float(np.abs(q - exact).max()), seconds))
            if rows[-1][1] < WANTED:
                break
    return table


def main() -> None:
    """Print the table, the ratios at 1e-8, and the time of 1e5 steps."""
    best = {}
    for name, rows in study().items():
        for knob, error, seconds in rows:
            print(f"{name:18s}  {knob:8.3g}  error {error:.2e}  {seconds * 1e3:9.1f} ms")
        reached = [seconds for _, error, seconds in rows if error < WANTED]
        best[name] = min(reached, default=float("inf"))
    ours = min(value for name, value in best.items() if name.startswith("carom"))
    print(f"\nerror below {WANTED:g}: carom {ours * 1e3:.1f} ms")
    for name, seconds in best.items():
        print(f"{name:18s}  {seconds * 1e3:9.1f} ms  {seconds / ours:6.1f} x carom")
    system, state = carom.models.double_pendulum()
    run = lambda: carom.simulate(system, state, carom.Spark(3), t1=1e3, h=1e-2, save_every=1000, progress=False).q[-1]  # noqa: E731
    run()
    print(f"\n1e5 steps of the double pendulum, s = 3: {timed(run)[0]:.2f} s")


if __name__ == "__main__":
    main()
