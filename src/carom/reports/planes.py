"""Points in a plane that a run kept: sections and strobes of `keep=`, exact where those of rows are interpolated."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.keep import Places
from carom.reports.curves import names_of, points


def kept_points(run: Any) -> list[dict[str, Any]]:
    """A plot of the first coordinate and its velocity for each keep of places with more than two of them."""
    label = (*names_of(run)[0], "q")[0]
    found = []
    for name, kept in getattr(run, "kept", {}).items():
        if isinstance(kept, Places) and len(np.asarray(kept.t)) > 2:
            x, y, t = (np.asarray(a, float) for a in (kept.q, kept.v, kept.t))
            found.append(points(f"{name}, {len(t)} points", {name: (x[:, 0], y[:, 0], t)}, "", (label, f"d{label}/dt")))
    return found
