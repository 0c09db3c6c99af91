"""How near an orbit is to grazing: gaps that nearly close, impacts that are nearly none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from carom.orbits.arclength import Course, Point
from carom.orbits.orbit import Orbit
from carom.over_rows import repeated_last
from carom.running.compiled import compiled
from carom.systems.contact_rows import Event
from carom.systems.system import System

_PAST = 1.001  # periods: past the section, at which an impact may lie
_NEAR = 1e-2  # of the longest step of the branch, to where what shrinks is continued


class Touch(NamedTuple):
    """The impacts of an orbit, the smallest clearance between them, the speed of the weakest.

    `spare` is the shortest time between an impact and an end of the period.
    """

    impacts: int
    clearance: float
    speed: float
    spare: float


def touch(orbit: Orbit) -> Touch | None:
    """How an orbit touches; None without contacts. Impacts that accumulate count as one, where the contact closes."""
    if orbit.system.contacts is None:
        return None
    sol = orbit.run((1.0 if orbit.way.section is None else _PAST) * orbit.period)
    rows = repeated_last(len(sol))
    gap, rate = (np.asarray(x)[: len(sol)] for x in _gaps(sol.running, sol.elapsed[rows], sol.q[rows], sol.v[rows]))
    event = sol.event[:, : gap.shape[1]]
    closes, bounces = event == Event.CLOSES, event == Event.BOUNCES
    hit = np.where(closes.any(axis=0), closes, bounces)
    h = np.diff(sol.elapsed)[:, None]
    a, b, da, db = gap[:-1], gap[1:], h * rate[:-1], h * rate[1:]
    turns = (da < 0) & (db > 0) & ~closes[1:] & ~bounces[1:]
    clearance = np.min(_lowest(a, b, da, db)[turns], initial=np.inf)
    speed = np.min(-rate[:-1][hit[1:]], initial=np.inf)
    at = np.asarray(sol.elapsed)[hit.any(axis=1)]
    return Touch(int(hit.sum()), float(clearance), float(speed), float(np.min([at, orbit.period - at], initial=np.inf)))


def _lowest(a: np.ndarray, b: np.ndarray, da: np.ndarray, db: np.ndarray) -> np.ndarray:
    """The minimum of the cubic with these values and slopes at 0 and 1, falling at first and rising in the end."""
    cubic, square = 2 * (a - b) + da + db, 3 * (b - a) - 2 * da - db
    root = square + np.sqrt(np.maximum(square**2 - 3 * cubic * da, 0.0))
    s = -da / np.where(root == 0, 1.0, root)
    return a + s * (da + s * (square + s * cubic))


@compiled
def _gaps(system: System, t: Any, q: Any, v: Any) -> Any:
    """Gaps of rows and their rates."""

    def one(row):
        t, q, v = row
        return jax.jvp(system.gaps, (t, q), (jnp.ones_like(t), system.rate(t, q, v)))

    return jax.lax.map(one, tuple(jnp.asarray(x) for x in (t, q, v)))


def grazes(orbit_at: Callable[[Point], Orbit], pair: Any) -> Callable[[Point], float] | None:
    """A function that passes zero where an orbit grazes between two with these touches; None with as many impacts."""
    if pair[0] is None or pair[0].impacts == pair[1].impacts:
        return None
    few, many = sorted(pair)

    def clear(at: Point) -> float:
        now = touch(orbit_at(at))
        assert now is not None
        return min(now.clearance, many.speed) if now.impacts == few.impacts else -now.speed

    return clear


def reached(touched: list[Any], points: list[Point], course: Course) -> str | None:
    """What a branch with these last orbits is about to come to: "grazing", or "strobe" with an impact."""
    alike = [i for i, one in enumerate(touched) if one is not None and one.impacts == touched[-1].impacts]
    if not alike:
        return None
    first, last = touched[alike[0]], touched[-1]
    s = np.linalg.norm((points[-1].z - points[alike[0]].z) / course.scale)
    pairs = (first.clearance, last.clearance), (first.speed**2, last.speed**2), (first.spare, last.spare)
    for kind, (a, b) in zip(("grazing", "grazing", "strobe"), pairs):
        if np.isfinite(a) and b < a and b * s <= _NEAR * course.step * (a - b):
            return kind
    return None
