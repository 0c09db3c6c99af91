"""What the Jacobian of a fit says about its parameters, and means of what parts of a run say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats

from carom.arguments import names_of, users_frame

_ALIKE = 1e-10  # ratio of singular values of parameters that cannot be told apart
_TAKES_PART = 0.1  # entry of a direction in which nothing changes
_GROUPS = 20  # of parts of a run whose means tell the error


def covariance(J: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """(J^T J)^{-1}, with infinite entries, and a warning, for parameters that the data do not determine."""
    units = np.linalg.norm(J, axis=0)
    units = np.where(units > 0, units, 1.0)
    _, s, V = np.linalg.svd(J / units, full_matrices=False)
    lost = s < _ALIKE * s[0]
    if lost.any():
        alike = [names[i] for i in np.flatnonzero(np.abs(V[lost]).max(axis=0) > _TAKES_PART)]
        msg = f"these data do not determine {names_of(alike)}: their intervals are unbounded"
        warnings.warn(msg, stacklevel=users_frame())
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(np.abs(V.T) < _ALIKE, 0.0, V.T / np.where(lost, 0.0, s))
        return (root @ root.T) / np.outer(units, units)


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
