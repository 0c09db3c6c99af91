"""A thousand disks mixed with friction in a turning drum [Studer2008 Fig. 2]."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.models import disks_in_drum
from carom.models.many_bodies import drum_radius, random_radii
from carom.papers.claims import Claim, within
from carom.running.run import simulate
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel

_COUNT, _STEPS, _H = 1000, 1000, 0.02


def fig2() -> tuple[list[Claim], Any]:
    """A thousand disks mixed with friction: drum of carom's choice, friction .4, 1000 steps to a residual of 1e-4."""
    method = MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))
    sol = simulate(*disks_in_drum(_COUNT), method, t1=_STEPS * _H, h=_H, save_every=10)
    contacts, penetration = (sol.account.extra[name] for name in ("contacts", "penetration"))
    claims = [
        within("most contacts in a step", 1500, 4000, float(contacts.max())),
        within("steps not solved to 1e-4, of 1000", 0, 30, sol.stats["unsolved"]),
        within("largest penetration in radii", 0, 0.2, float(penetration.max())),
    ]
    return claims, _picture(sol)


def _picture(sol: Any) -> Any:
    from matplotlib.collections import EllipseCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    radii, R = random_radii(_COUNT, 0.8, 0), drum_radius(_COUNT, 0.8, 0, 0.45)
    left = sol.q[0, 0::3] < np.median(sol.q[0, 0::3])
    for axis, part in zip(figure.subplots(1, 3), (0.0, 0.5, 1.0)):
        row = round(part * (len(sol) - 1))
        places = np.column_stack([sol.q[row, 0::3], sol.q[row, 1::3]])
        for half, colour in ((left, "C0"), (~left, "C1")):
            size = 2 * radii[half]
            disks = EllipseCollection(size, size, 0 * size, units="xy", offsets=places[half], facecolors=colour)
            disks.set_offset_transform(axis.transData)
            axis.add_collection(disks)
        angle = np.linspace(0, 2 * np.pi, 200)
        axis.plot(R * np.cos(angle), R * np.sin(angle), color="grey")
        axis.set(aspect="equal", title=f"t = {sol.t[row]:.3g}")
        axis.set_axis_off()
    return figure
