"""Least squares across jumps, what they say about parameters and noise, and means of what parts of a run say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import least_squares

from carom.arguments import names_of

_ALIKE = 1e-10  # ratio of singular values of parameters that cannot be told apart
_TAKES_PART = 1e-3  # entry of a direction in which nothing changes
_HORIZONS = ((0.25, 0.5, 1.0), (0.5, 1.0), (1.0,))  # shares of the data, one after the other
_WITHIN = 4.0  # standard errors
_JUMP = 3.0  # standard deviations
_FEW = 0.25  # share of the data
_ROUNDS = 5
_CLOSE = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
_LOOSELY = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-4)
_SMALLEST = 1e-7  # of the data: differences that rounding and truncation may make
_DOUBT = 0.25  # of the difference to a coarser run
_AT = 0.01  # standard errors
_NORMAL = 1.4826  # standard deviation over median deviation
_WORTH = 0.37  # of what a standard deviation tells, the median deviation tells
_UNLIKELY = 1e-6
_FAR = 6.0  # standard deviations
_GROUPS = 20  # of parts of a run whose means tell the error


class Found(NamedTuple):
    """Parameters that fit best, the Jacobian and the cost of the numbers that counted, and how many runs it took."""

    theta: np.ndarray
    J: np.ndarray
    cost: float
    counted: np.ndarray
    looks: int


class Fit:
    """Least squares over all, or some, of the numbers that were measured, each in units of its noise.

    A row on the wrong side of an impact has a residual that no derivative sees. Such rows weigh little in a Cauchy
    loss, and the first impacts come right before the later ones; close to an impact a row says nothing.
    """

    def __init__(
        self,
        predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        measured: np.ndarray,
        noise: np.ndarray,
        limits: Any,
        *,
        known: bool,
    ):
        self.predict, self.limits, self.known = predict, limits, known
        self.there = ~np.isnan(measured)
        self.data, self.noise = (measured / noise)[self.there], noise
        self.least = _SMALLEST * (float(np.abs(self.data).max()) or 1.0)
        self.looks, self.last = 0, (b"", np.zeros(0), np.zeros(0))

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and their Jacobian; NaN where the run fails."""
        if self.last[0] != theta.tobytes():
            values, J = self.predict(theta)
            values, J = (values / self.noise)[self.there], (J / self.noise[..., None])[self.there]
            self.last = (theta.tobytes(), np.where(np.isfinite(J).all(axis=1), values - self.data, np.nan), J)
            self.looks += 1
        return self.last[1:]

    def closest(self, theta: np.ndarray, rows: Any, **how: Any) -> Any:
        """Least squares over these rows."""

        def residuals(x: np.ndarray) -> np.ndarray:
            return self.at(x)[0][rows]

        def slopes(x: np.ndarray) -> np.ndarray:
            return self.at(x)[1][rows]

        return least_squares(residuals, theta, jac=slopes, bounds=self.limits, x_scale="jac", **how)  # pyright: ignore

    def spread(self, theta: np.ndarray, rows: Any = slice(None)) -> float:
        """Standard deviation of these residuals, of which some may stand out."""
        return max(typical(self.at(theta)[0][rows]), self.least)

    def approached(self, theta: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
        """Parameters that fit most of the data, from the first part of them to the whole."""
        for share in shares:
            rows = slice(int(np.ceil(share * self.data.size)))
            new = self.closest(theta, rows, loss="cauchy", f_scale=self.spread(theta, rows), **_LOOSELY).x
            theta = new if np.isfinite(self.at(new)[0]).all() else theta
        return theta

    def found(self, theta: np.ndarray) -> Found:
        """The fit of all rows but those that say nothing."""
        ways = [self.approached(theta, shares) for shares in _HORIZONS]
        scale = min(self.spread(x) for x in ways)
        theta = min(ways, key=lambda x: np.sum(np.log1p((self.at(x)[0] / scale) ** 2)))
        jumping = np.zeros(self.data.size, bool)
        rows = self.enough(np.abs(self.at(theta)[0]) <= _FAR * self.spread(theta))
        best = self.closest(theta, rows, **_CLOSE)
        for _ in range(_ROUNDS):
            jumping |= self.jumping(best, rows)
            new = self.enough(~jumping)
            if np.array_equal(rows, new):
                break
            rows, best = new, self.closest(best.x, new, **_CLOSE)
        counted = self.there.copy()
        counted[self.there] = rows
        return Found(best.x, best.jac, best.cost, counted, self.looks)

    def enough(self, rows: np.ndarray) -> np.ndarray:
        """These rows, or all where they are too few to stand for all."""
        most = np.mean(rows) > 1.0 - _FEW and np.sum(rows) > self.limits[0].size
        return rows if most else np.ones_like(rows)

    def jumping(self, best: Any, rows: np.ndarray) -> np.ndarray:
        """Where residuals jump as the parameters move within their errors."""
        r, J = self.at(best.x)
        noise = 1.0 if self.known else np.sqrt(2 * best.cost / (best.fun.size - best.x.size))
        threshold, found = _JUMP * self.spread(best.x, rows), np.zeros(r.size, bool)
        for way in principal_errors(best.jac):
            for side in (-_WITHIN, _WITHIN):
                there = np.clip(best.x + side * noise * way, *self.limits)
                off = np.abs(self.at(there)[0] - r - J @ (there - best.x)) > threshold
                found |= off & (np.mean(off) < _FEW)
        return found


def covariance(J: np.ndarray, names: tuple[str, ...], off: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(J^T J)^{-1}, with infinite entries, and warnings, for parameters that the data do not determine.

    `off` is how inaccurate J may be: what it shows by less than that is no sign of a parameter.
    """
    units = _units(J)
    _, s, V = np.linalg.svd(J / units, full_matrices=False)
    doubt = np.abs(V) @ np.linalg.norm(off / units, axis=0)
    lost = (s <= _ALIKE * s[0]) | (s < _DOUBT * doubt)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(lost & (np.abs(V.T) < _TAKES_PART), 0.0, V.T / np.where(lost, 0.0, s))
        C = (root @ root.T) / np.outer(units, units)
    alike = [name for name, unbounded in zip(names, np.isinf(np.diag(C))) if unbounded]
    return C, [f"these data do not determine {names_of(alike)}: their intervals are unbounded"] if alike else []


def principal_errors(J: np.ndarray) -> np.ndarray:
    """Directions among the parameters, a row each, as long as their standard error; only those that J determines."""
    units = _units(J)
    _, s, V = np.linalg.svd(J / units, full_matrices=False)
    known = s > _ALIKE * s[0]
    return V[known] / s[known, None] / units


def _units(J: np.ndarray) -> np.ndarray:
    found = np.linalg.norm(J, axis=0)
    return np.where(found > 0, found, 1.0)


def at_bounds(theta: np.ndarray, errors: np.ndarray, limits: Any, names: tuple[str, ...]) -> list[str]:
    """Warnings of parameters that would leave their bounds if they could."""
    told = []
    for x, error, low, high, name in zip(theta, errors, *limits, names):
        end = low if x - low < high - x else high
        if np.isfinite(error) and abs(x - end) < _AT * error:
            told.append(f"{name} lies at its bound, {end:g}: the intervals are those without bounds and do not hold")
    return told


def typical(residuals: np.ndarray) -> float:
    """Standard deviation of normal numbers among which a few stand out."""
    return float(_NORMAL * np.median(np.abs(residuals)))


def misfit(left: np.ndarray, off: np.ndarray, unknown: int, *, known: bool) -> list[str]:
    """Warnings of residuals (per sigma, NaN where there are none) that no noise explains; `off`: their inaccuracy."""
    there = ~np.isnan(left)
    free, square = int(there.sum()) - unknown, float(np.nansum(left**2))
    why = []
    if known and stats.chi2.sf(square, free) < _UNLIKELY:
        why.append(f"chi2 per degree of freedom is {square / free:.3g}")
    for i in range(left.shape[1]):
        rows = np.flatnonzero(there[:, i])
        if len(rows) > unknown + 1:
            x = np.abs(left[rows, i])
            most = float(stats.t(_WORTH * (len(rows) - unknown)).isf(_UNLIKELY / len(rows)))
            spread = typical(x) + off[rows, i]
            worst = int(np.argmax(x - max(most, _FAR) * spread))
            if x[worst] > max(most, _FAR) * spread[worst]:
                far = x[worst] / spread[worst]
                why.append(f"row {rows[worst]} is {far:.2g} standard deviations of the others away")
    return [f"the motion does not pass through the data: {why[0]}; the intervals do not hold"] if why else []


def interval_width(level: float, free: int | None) -> float:
    """Half the width of an interval in standard errors; of an estimated noise with so many degrees of freedom."""
    law = stats.norm if free is None else stats.t(free)
    return float(law.ppf(0.5 + level / 2))


def stacked_names(parameters: dict[str, Any]) -> tuple[str, ...]:
    """A name per number, in the order in which they are stacked."""
    found = []
    for name in sorted(parameters):
        shape = np.shape(parameters[name])
        found += [name] if not shape else [f"{name}{list(i)}" for i in np.ndindex(shape)]
    return tuple(found)


def mean_rates(growth: np.ndarray, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Growth per time over all parts of a run (rows), and its standard error from means over groups of parts."""
    groups = [g for g in np.array_split(np.arange(len(spans)), _GROUPS) if len(g)]
    with np.errstate(invalid="ignore"):
        means = np.stack([growth[g].sum(axis=0) / spans[g].sum(axis=0) for g in groups])
        errors = means.std(axis=0, ddof=min(1, len(groups) - 1)) / np.sqrt(len(groups))
    return growth.sum(axis=0) / spans.sum(axis=0), errors
