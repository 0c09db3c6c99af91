"""Observed orders of convergence."""

from __future__ import annotations

import numpy as np

from carom.state import Numbers


def observed_order(h: Numbers, error: Numbers, floor: float = 0.0, least: int = 3) -> float:
    """Slope of log(error) over log(h) by least squares, errors at or under `floor` (rounding) left out.

    Args:
        h: step sizes.
        error: one error per step size.
        floor: plateau of rounding errors; points under it do not count.
        least: number of points that must remain.

    Example:
        >>> carom.measures.observed_order([0.1, 0.05, 0.025], [1e-2, 2.5e-3, 6.25e-4])
    """
    h, error = np.asarray(h, float), np.asarray(error, float)
    used = np.isfinite(error) & (error > floor)
    if used.sum() < least:
        msg = (
            f"observed_order: only {used.sum()} of {used.size} errors lie above the floor {floor:g}, {least} are needed"
        )
        raise ValueError(msg)
    return float(np.polyfit(np.log(h[used]), np.log(error[used]), 1)[0])
