"""A family of motions: random numbers for one system, ways to run it, and the reference it is held against.

The allowed error follows from the conditioning of the reference itself: the start is perturbed by the size of the error
that was asked for (rtol for tolerances, (rate h)^order for constant steps), and the answer must lie within
`_MULTIPLE` times what that changes, plus the error asked for. carom promises a factor 30 of rtol.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import carom
from fuzz.oracles import NoReferenceError
from fuzz.verdicts import RIGHT, UNJUDGED, WARNED, WRONG, Verdict, of_error

Numbers = dict[str, Any]
_MULTIPLE = 30.0
_FIRST_ORDER = (5e-4, 5e-3)  # rate times h of methods of order one
_HOPELESS = 0.5  # of the size of the motion: a larger allowed error judges nothing
_PIECES = 200  # steps of a prescribed list
_UNEVEN = f"(lambda w: w / w.sum())(1.0 + 0.5 * np.sin(np.arange({_PIECES}.0)))"
_SIZED = 30  # rows of the reference that tell the size of the motion
_ROWS = 6  # rows that are compared where no times are asked for


@dataclass(frozen=True)
class Way:
    """A method with its stepping; `order` of the error in constant steps."""

    method: str
    stepping: str
    order: int = 1


SOLVE = Way("carom.solve", "tolerances")


def constant(method: str, order: int = 1) -> Way:
    """A method with constant steps."""
    return Way(f"carom.{method}", "constant", order)


def adaptive(method: str) -> Way:
    """A method with step sizes from tolerances."""
    return Way(f"carom.{method}", "adaptive")


EXTRAPOLATED = Way("carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-9, rtol=1e-7)", "switching")


@dataclass(frozen=True)
class Motion:
    """A family: numbers drawn at random, a system built of them, ways to run it and the truth about it."""

    name: str
    build: Callable[[Numbers], Any]
    pieces: tuple[Callable, ...]
    draw: Callable[[np.random.Generator], Numbers]
    reference: Callable[..., Any]
    ways: tuple[Way, ...]
    steps: tuple[float, float] = (0.01, 0.1)  # rate times h of constant steps of higher order
    ends: bool = False  # whether the pieces end at events, so that time is rounded where the clock stands far from 0
    stop: Callable | None = None
    budget: Callable[[Numbers, Any], str | None] = field(default=lambda n, sol: None)

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """A case."""
        n = {"t0": 0.0} | self.draw(rng)
        way = self.ways[rng.integers(len(self.ways))]
        n |= {"method": way.method, "stepping": way.stepping, "order": way.order}
        n["rtol"] = float(10.0 ** rng.uniform(-9, -4))
        n["atol"] = 1e-3 * n["rtol"]
        n["h"] = float(rng.uniform(*(_FIRST_ORDER if way.order == 1 else self.steps))) / n["rate"]
        n["stop"] = bool(n.get("stop")) and way == SOLVE
        n["save_every"] = int(rng.choice([1, 1, 1, 3, 50]))
        n["save_at"] = sorted(rng.uniform(0, n["span"], 5).tolist()) if rng.random() < 0.3 else None
        if n["save_at"] is not None:
            n["save_every"] = 1
        return n

    def program(self, n: Numbers) -> str:
        """What shares compiled code."""
        return f"{self.name} {n['method']} {n['stepping']}{' stop' if n.get('stop') else ''}"

    def call(self, n: Numbers) -> str:
        """The call of carom as text, run here and printed for users."""
        more = f", t1={n['t0'] + n['span']!r}"
        if n["save_at"] is not None:
            more += f", save_at={[n['t0'] + s for s in n['save_at']]!r}"
        if n.get("stop"):
            more += f", stop={self.stop.__name__}"
        if n["stepping"] == "tolerances":
            return f"carom.solve(system, state, rtol={n['rtol']!r}, atol={n['atol']!r}{more})"
        stepping = {
            "constant": f"carom.Constant({n['h']!r})",
            "adaptive": f"carom.Adaptive({n['rtol']!r}, {n['atol']!r})",
            "prescribed": f"carom.Prescribed({n['span']!r} * {_UNEVEN})",
            "switching": f"carom.Switching({1e-5 * n['span']!r}, {0.02 * n['span']!r})",
        }[n["stepping"]]
        return f"carom.simulate(system, state, {n['method']}, stepping={stepping}, save_every={n['save_every']}{more})"

    def run(self, n: Numbers) -> Verdict:
        """Run a case and judge it."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                system, state = self.build(n)
                names = {"carom": carom, "np": np, "system": system, "state": state}
                names |= {self.stop.__name__: self.stop} if self.stop else {}
                solution = eval(self.call(n), names)
            except Exception as error:
                return self.stumbled(n, error)
        return self.judged(n, solution, [str(w.message) for w in caught if w.category is not DeprecationWarning])

    def stumbled(self, n: Numbers, error: Exception) -> Verdict:
        """The verdict on a run that ended in an error: these are ordinary problems."""
        del n
        return of_error(error, due=False)

    def judged(self, n: Numbers, solution: Any, said: list[str]) -> Verdict:
        """Compare rows with the truth."""
        sick = [name for name, x in solution.columns.items() if name != "error" and not np.isfinite(x).all()]
        if sick not in ([], ["residual"]):  # `error` is NaN on purpose where there is no estimate
            return Verdict(WARNED if said else WRONG, f"not finite: {', '.join(sick)}")
        try:
            end = self.ended(n, solution)
            times, allowed = self.truth(n, solution)
        except NoReferenceError as error:
            return Verdict(UNJUDGED, str(error))
        found = end or self.budget(n, solution) or compared(times, allowed) or (sick and "not finite: residual")
        if not found:
            return Verdict(UNJUDGED, "ill-conditioned") if allowed.hopeless else Verdict(RIGHT)
        return Verdict(WARNED, f"{found}; {said[0][:150]}") if said else Verdict(WRONG, found)

    def ended(self, n: Numbers, solution: Any) -> str | None:
        """Whether the run began, went on and ended where it had to."""
        if n["save_at"] is not None:
            asked = np.array([n["t0"] + s for s in n["save_at"]])
            cut = n.get("stop") and solution.t[-1] < asked[-1]  # a run that was stopped tells its end in their place
            wanted = np.append(asked[asked <= solution.t[-1]], solution.t[-1]) if cut else asked
            if not np.array_equal(solution.t, wanted):
                return f"rows at {solution.t.tolist()}, asked for {asked.tolist()}"
            if not cut:
                return None
        elif (np.diff(solution.t) < 0).any() or solution.t[0] != n["t0"] or solution.q[0].tolist() != n["q0"]:
            return "the first row is not the start, or time goes back"
        if not n.get("stop"):
            wanted = n["t0"] + n["span"]
            return None if solution.t[-1] == wanted else f"ended at t = {solution.t[-1]!r}, not at {wanted!r}"
        t = np.linspace(0, n["span"], 4000)
        x = self.reference(n, n["q0"], n["v0"], t)[0][:, 0] - n["low"]
        margin = 0.02 * np.ptp(x) + 1e3 * n["rtol"]
        first = np.flatnonzero(x < -margin)
        reached = solution.t[-1] - n["t0"]
        if first.size and reached > t[first[0]]:
            return f"stop = {x[first[0]]:.3g} at t = {t[first[0]]:.6g}, but the run ended at {reached:.6g}"
        early = np.interp(reached, t, x)
        if reached < n["span"] and early > margin:
            return f"stopped at t = {reached:.6g}, where stop = {early:.3g}"
        return None

    def truth(self, n: Numbers, solution: Any) -> tuple[Any, Any]:
        """(times, found and wanted values) and the allowed errors."""
        count = len(solution.t)
        rows = np.arange(count) if n["save_at"] is not None else np.unique(np.linspace(0, count - 1, _ROWS).astype(int))
        rows = rows[-1:] if n["t0"] and n["save_at"] is None else rows
        times = solution.t[rows] - n["t0"]
        size, q0, v0 = self.asked(n), np.array(n["q0"]), np.array(n["v0"])
        q, v = self.reference(n, q0, v0, times)
        whole = self.reference(n, q0, v0, np.linspace(0.0, n["span"], _SIZED))
        q_size, v_size = (max(np.max(np.abs(x)), 1e-6) for x in whole)
        size += n["atol"] / min(q_size, v_size) if n["stepping"] in ("tolerances", "adaptive") else 0.0
        changed = [
            self.reference(n, q0 + i * size * q_size, v0 + j * size * v_size, times)
            for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        most = [max(np.max(np.abs(c[k] - x)) for c in changed) for k, x in enumerate((q, v))]
        limits = [_MULTIPLE * (size * s + m) + 1e-12 for s, m in zip((q_size, v_size), most)]
        late = _MULTIPLE * size / n["rate"] if self.ends else 0.0  # events, at which velocities jump, may be late
        jump = [np.abs(self.reference(n, q0, v0, np.clip(times + s, 0, n["span"]))[1] - v) for s in (-late, late)]
        allowed = Allowed(limits[0], limits[1] + np.max(jump, axis=(0, 2)))
        allowed.hopeless = allowed.q > _HOPELESS * q_size
        between = n["stepping"] == "switching" and n["save_at"] is not None  # velocities are interpolated linearly
        allowed.judges_v = limits[1] <= _HOPELESS * v_size and not between
        return (times, solution.q[rows], solution.v[rows], q, v), allowed

    def asked(self, n: Numbers) -> float:
        """The relative error asked for."""
        clock = np.spacing(n["t0"]) * n["rate"] if n["t0"] and (self.ends or n["save_at"] is not None) else 0.0
        if n["stepping"] == "constant":
            return (n["rate"] * n["h"]) ** n["order"] + clock
        if n["stepping"] == "prescribed":
            return (n["rate"] * 1.5 * n["span"] / _PIECES) ** n["order"] + clock
        if n["stepping"] == "switching":
            return 1e-5 * n["span"] * n["rate"] + 1e-7 + clock
        return n["rtol"] + clock

    def script(self, n: Numbers) -> str:
        """The case as a script that needs nothing but carom."""
        sources = [inspect.getsource(f) for f in (*self.pieces, *((self.stop,) if n.get("stop") else ()), self.build)]
        own = {k: v for k, v in n.items() if k not in ("method", "stepping", "order", "rate")}
        head = "import jax.numpy as jnp\nimport numpy as np\n\nimport carom"
        tail = [f"system, state = {self.build.__name__}({own!r})", f"sol = {self.call(n)}"]
        try:
            end = min(n["span"], n.get("stopped", n["span"]))
            q, v = self.reference(n, n["q0"], n["v0"], np.array([end]))
            wanted = f"  # right at t = {n['t0'] + end:.6g}: {q[0].tolist()} {v[0].tolist()}"
        except NoReferenceError:
            wanted = ""
        tail.append(f"print(sol.t[-1], sol.q[-1], sol.v[-1]){wanted}")
        return "\n\n\n".join([head, *(s.rstrip() for s in sources), "\n".join(tail)])


class Kicked(Motion):
    """A force that jumps; steps of constant size need the jumps declared."""

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """A case."""
        n = super().numbers(rng)
        return n | {"declared": n["declared"] or n["stepping"] == "constant"}

    def asked(self, n: Numbers) -> float:
        """A jump that is not declared is met by error estimates that are no estimates there: fifty times as much."""
        return super().asked(n) * (1.0 if n["declared"] else 50.0)

    def program(self, n: Numbers) -> str:
        """Declared jumps are another program."""
        return f"{super().program(n)} {'declared' if n['declared'] else 'unseen'}"


@dataclass
class Allowed:
    """Allowed errors of q and, row by row, of v, and whether they can tell right from wrong."""

    q: float
    v: np.ndarray
    hopeless: bool = False
    judges_v: bool = True


def compared(rows: Any, allowed: Allowed) -> str | None:
    """The first row that is off by more than allowed."""
    times, q, v, q_true, v_true = rows
    checks = [("q", q, q_true, allowed.q, not allowed.hopeless), ("v", v, v_true, allowed.v, allowed.judges_v)]
    for name, found, wanted, limit, judges in checks:
        off, most = np.max(np.abs(found - wanted), axis=1), np.broadcast_to(limit, len(times))
        if judges and (off > most).any():
            i = int(np.flatnonzero(off > most)[0])
            values = f"{found[i].tolist()}, right {wanted[i].tolist()}"
            return f"{name} off by {off[i]:.2g} (allowed {most[i]:.2g}) at t - t0 = {times[i]:.6g}: {values}"
    return None
