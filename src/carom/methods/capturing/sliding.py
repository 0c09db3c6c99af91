"""Friction that slides in smooth motion: its multipliers follow from those of held rows [Acary2012 (62)-(64)]."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.contact_laws import Laws


class Sliding(eqx.Module):
    """lam = E x + e from multipliers x of held rows: friction that slides follows its normal force, or is given (e).

    `pull` is what a unit of the normal force adds to each row of friction.
    """

    pull: Array
    given: Array
    laws: Laws

    def multipliers(self, x: Array) -> Array:
        """E x + e."""
        laws = self.laws
        nothing = jnp.zeros(laws.contacts), jnp.zeros(laws.elements), jnp.zeros(laws.bilateral)
        lam = x + self.pull * laws.by_row(nothing[0], x[: laws.contacts], *nothing[1:])
        return lam + self.given if laws.elements else lam

    def columns(self, A: Array) -> Array:
        """A E."""
        pulled, parts = A * self.pull, []
        for block in self.laws.contact_blocks:
            rows, k = pulled[:, block.rows], block.directions
            parts.append(sum((rows[:, i::k] for i in range(k)), A[:, block.laws]))
        return jnp.concatenate([*parts, A[:, self.laws.contacts :]], axis=1)
