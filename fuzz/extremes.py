"""Families at the edge: rest on redundant supports, functions that become NaN, runaways, steps too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import quad

from fuzz import draws, systems
from fuzz.motion import SOLVE, Motion, Numbers, adaptive, constant
from fuzz.motions import spring_reference
from fuzz.oracles import NoReferenceError
from fuzz.verdicts import RIGHT, WARNED, WRONG, Verdict, of_error

_COUNTS = ((2, 5), (6, 10), (11, 20))  # supports of the planks of one campaign: one number of each range
_MOVED = 1e-7
_STEPS = 4  # of free fall: time-stepping may open a closed contact by a rounding error for a step or two


def supports(seed: int) -> list[int]:
    """How many supports the planks of a campaign have; every number is a program of its own."""
    rng = np.random.default_rng([seed, 10**6])
    return [int(rng.integers(low, high + 1)) for low, high in _COUNTS]


class Plank(Motion):
    """A plank at rest on many supports: nothing moves, and the supports carry the weight."""

    def program(self, n: Numbers) -> str:
        """Every number of supports is another program."""
        return f"{super().program(n)} {len(n['x'])}"

    def judged(self, n: Numbers, solution: Any, said: list[str]) -> Verdict:
        """Rest, and the sum of the forces."""
        weight, count = n["m"] * n["g"], len(n["x"])
        fall = _STEPS * n["h"] if n["stepping"] == "constant" else 0.0
        carried = solution.impulse.reshape(len(solution.t), -1)[1:, :count].sum() / (weight * n["span"])
        checks = (
            ("moves by", np.max(np.abs(solution.q)), n["g"] * fall**2 / (2 * _STEPS) / n["j"] + _MOVED),
            ("moves with", np.max(np.abs(solution.v)), n["g"] * fall / n["j"] + _MOVED),
            ("has carried but for", abs(carried - 1), fall / n["span"] + 1e-6),
        )
        for what, found, most in checks:
            if not found <= most:
                text = f"a plank at rest on {count} supports {what} {found:.2g} (allowed {most:.2g})"
                return Verdict(WARNED if said else WRONG, text)
        return Verdict(RIGHT)


def draw_plank(rng: np.random.Generator) -> Numbers:
    """A plank with its centre of mass between its outermost supports, for the campaign's numbers of supports."""
    return {"m": float(rng.uniform(0.5, 3)), "g": float(rng.uniform(1, 10)), "j": float(rng.uniform(0.1, 1))} | {
        "mu": float(rng.choice([0.0, rng.uniform(0.1, 0.8)])),
        "e": float(rng.choice([0.0, rng.uniform(0, 0.9)])),
        "depth": float(rng.uniform(0, 0.3)),
        "span": float(rng.uniform(0.1, 0.5)),
        "q0": [0.0, 0.0, 0.0],
        "v0": [0.0, 0.0, 0.0],
        "x": sorted({-1.0, 1.0} | set(rng.uniform(-1, 1, 18).tolist())),
        "rate": 2.0,
    }


class Poisoned(Motion):
    """A ball that falls into a region where one of the functions is NaN: the run must end there, or say so."""

    def reached(self, n: Numbers) -> bool:
        """Whether the ball gets there, in its first fall."""
        low = self.below(n)
        return low > 0 and n["span"] > 1.001 * np.sqrt(2 * (n["q0"][0] - low) / n["g"])

    def below(self, n: Numbers) -> float:
        """The height under which a function that is used is NaN."""
        return max(n["sick_energy"], n["sick_force"], n["sick_gap"], n["sick_stop"] if n["stop"] else -1e9)

    def stumbled(self, n: Numbers, error: Exception) -> Verdict:
        """An error is due where the region is reached."""
        return of_error(error, due=self.reached(n))

    def judged(self, n: Numbers, solution: Any, said: list[str]) -> Verdict:
        """A solution without a word is right only where the region is not reached."""
        if not self.reached(n):
            return Verdict(RIGHT)
        sick = next(name for name in n if name.startswith("sick_") and n[name] > 0)
        text = f"{sick[5:]} is NaN under {n[sick]:.3g}, but the run ends at {solution.t[-1]:.3g} with {solution.q[-1]}"
        return Verdict(WARNED, f"{text}; {said[0][:150]}") if said else Verdict(WRONG, text)


def draw_poisoned(rng: np.random.Generator) -> Numbers:
    """One of the four functions turns NaN at a random height, or never."""
    n = dict.fromkeys(("sick_energy", "sick_force", "sick_gap", "sick_stop"), -1e9)
    which = str(rng.choice(list(n)))
    n[which] = float(rng.choice([-1e9, rng.uniform(0.05, 0.8)], p=[0.1, 0.9]))
    n |= {"g": float(rng.uniform(2, 10)), "e": float(rng.uniform(0, 0.9)), "q0": [1.0], "v0": [0.0], "rate": 3.0}
    return n | {"span": float(rng.uniform(0.5, 3)), "stop": which == "sick_stop"}


class Runaway(Motion):
    """x'' = 4 k x^3 goes to infinity in finite time: no run may pass that time."""

    def escapes(self, n: Numbers) -> float:
        """The time of escape."""
        x0, v0, k = n["q0"][0], n["v0"][0], n["k"]
        return quad(lambda x: 1 / np.sqrt(v0**2 + 2 * k * (x**4 - x0**4)), x0, np.inf)[0]

    def stumbled(self, n: Numbers, error: Exception) -> Verdict:
        """An error is due."""
        return of_error(error, due=n["span"] > self.escapes(n))

    def judged(self, n: Numbers, solution: Any, said: list[str]) -> Verdict:
        """No solution lies beyond the escape."""
        when = self.escapes(n)
        if n["span"] < when:
            return Verdict(RIGHT)
        return Verdict(WARNED if said else WRONG, f"escapes at {when:.6g}, but the run goes on to {solution.t[-1]:.6g}")


def draw_runaway(rng: np.random.Generator) -> Numbers:
    """A start that runs away."""
    n = {"k": float(rng.uniform(0.3, 3)), "q0": [float(rng.uniform(0.5, 2))], "v0": [float(rng.uniform(0.1, 2))]}
    return n | {"span": float(rng.choice([0.1, rng.uniform(3, 8)])), "rate": 1.0}


class Unstable(Motion):
    """Steps far beyond the stability limit: refused, warned of, or right."""

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """Too long a step."""
        n = super().numbers(rng) | {"t0": 0.0, "k3": 0.0, "save_at": None}
        n["h"] = float(rng.uniform(3.2, 6)) / float(np.sqrt(n["k"]))
        return n | {"span": n["h"] * float(rng.integers(40, 90))}

    def stumbled(self, n: Numbers, error: Exception) -> Verdict:
        """An error is welcome."""
        del n
        return of_error(error, due=True)

    def judged(self, n: Numbers, solution: Any, said: list[str]) -> Verdict:
        """Growth without bound must not pass in silence."""
        most = np.max(np.abs(solution.q)) * np.sqrt(n["k"])
        start = np.hypot(n["q0"][0] * np.sqrt(n["k"]), n["v0"][0])
        if most <= 2 * start:
            return Verdict(RIGHT)
        return Verdict(WARNED if said else WRONG, f"the amplitude grows from {start:.3g} to {most:.3g}")


def no_reference(*_: Any) -> Any:
    """For families that need no trajectory."""
    raise NoReferenceError("none needed")


@dataclass(frozen=True)
class Supported(Plank):
    """Planks with one of the campaign's numbers of supports."""

    counts: tuple[int, ...] = (2,)

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """Keep the outermost supports and some of the others."""
        n = super().numbers(rng)
        count = int(rng.choice(self.counts))
        inner = n["x"][1:-1][: count - 2]
        return n | {"x": [n["x"][0], *inner, n["x"][-1]], "save_at": None, "save_every": 1}


def edges(seed: int) -> dict[str, Motion]:
    """The families at the edge, for the campaign of a seed."""
    pieces = (systems.plank_weight, systems.plank_gap, systems.plank_slip)
    moreau = (constant("MoreauMidpoint()"), constant("MoreauTheta()"))
    sick = (systems.poisoned_energy, systems.poisoned_force, systems.poisoned_gap)
    families = (
        Supported(
            "plank", systems.plank, pieces, draw_plank, no_reference, (*moreau, SOLVE), counts=tuple(supports(seed))
        ),
        Poisoned(
            "poisoned",
            systems.poisoned,
            sick,
            draw_poisoned,
            no_reference,
            (*moreau, SOLVE),
            stop=systems.poisoned_stop,
        ),
        Runaway(
            "runaway",
            systems.runaway,
            (systems.runaway_energy,),
            draw_runaway,
            no_reference,
            (SOLVE, adaptive("LobattoIIIAB(2)")),
        ),
        Unstable(
            "unstable",
            systems.spring,
            (systems.spring_potential,),
            draws.spring,
            spring_reference,
            (constant("ExplicitRK(carom.explicit(4))", 4), constant("StormerVerlet()", 2)),
        ),
    )
    return {family.name: family for family in families}
