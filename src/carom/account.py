"""The evidence of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Account:
    """The evidence: energies and residuals per saved row, and the worst of each.

    `extra` holds, where they apply, per saved row: "contact work" (done by the contact laws in the step, negative where
    they dissipate), "penetration" (negative gaps), "drift" (residual of the constraints), and what the method adds.
    `totals` holds what is summed over all steps, saved or not; of listed pairs the "deepest penetration" of all steps
    and the "mean penetration" of closed contacts, averaged over them.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    residual: np.ndarray
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        worst = ", ".join(f"{name} {value:.3g}" for name, value in self.worst.items())
        return f"<Account of {len(self.kinetic)} rows, worst {worst}>"

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @property
    def worst(self) -> dict[str, float]:
        """Each piece of evidence as one number.

        "residual": largest residual of the equations of a step. "energy rise" and "energy loss": how far the energy
        went above and below its start, never negative. "contact work": total over all steps, with its sign. All others:
        largest size over rows and entries.
        """
        change = self.energy - self.energy[0]
        worst = {
            "residual": float(np.max(self.residual, initial=0.0)),
            "energy rise": float(np.max(change)),
            "energy loss": float(-np.min(change) + 0.0),
        }
        sizes = {name: float(np.max(np.abs(values), initial=0.0)) for name, values in self.extra.items()}
        return worst | sizes | self.totals
