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
_NEAR = 3.0  # steps of the branch, to where a clearance that shrinks is continued


class Touch(NamedTuple):
    """The impacts of an orbit, the smallest clearance between them, and the speed of the weakest."""

    impacts: int
    clearance: float
    speed: float


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
    return Touch(int(hit.sum()), float(clearance), float(np.min(-rate[:-1][hit[1:]], initial=np.inf)))


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


def located_touch(
    course: Course, orbit_at: Callable[[Point], Orbit], a: Point, b: Point, s: float, pair: Any
) -> list[Point]:
    """The orbit that grazes between two neighbours, of which one has more impacts."""
    first, second = pair
    if first is None or first.impacts == second.impacts:
        return []
    few = min(first.impacts, second.impacts)

    def clear(at: Point) -> float:
        now = touch(orbit_at(at))
        assert now is not None
        return now.clearance if now.impacts == few else -now.speed

    return [course.located(a, b, s, clear)]


def reached_touch(points: list[Point], touched: list[Touch | None]) -> list[Point]:
    """The last orbit of a branch that ends because it is about to graze."""
    if len(points) < 2:
        return []
    before, now = touched[-2:]
    if before is None or now is None:
        return []
    shrinks = [(a, b) for a, b in zip(before[1:], now[1:]) if np.isfinite(a) and b < a]
    return [points[-1]] if any(b <= _NEAR * (a - b) for a, b in shrinks) else []
