"""Tableaux as traced numbers."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.systems.system import Origin
from carom.tableaux import Tableau, embedded


class Coefficients(eqx.Module):
    """A tableau as traced numbers: tableaux with equally many stages share one compiled program.

    Without a companion, `error` is zero and `error_power` NaN: weights that are NaN would spoil derivatives in reverse.
    """

    A: Array
    b: Array
    c: Array
    power: Array
    error: Array
    error_power: Array
    explicit: bool = eqx.field(static=True)
    source: Origin = eqx.field(static=True)

    def __init__(self, tableau: Tableau):
        self.source = Origin(tableau.name, tableau)
        self.A, self.b, self.c = (jnp.asarray(x) for x in (tableau.A, tableau.b, tableau.c))
        self.power = jnp.asarray(tableau.order + 1.0)
        companion = embedded(tableau)
        self.error = jnp.zeros(tableau.stages + 2) if companion is None else jnp.asarray(companion.weights)
        self.error_power = jnp.asarray(jnp.nan if companion is None else float(companion.power))
        self.explicit = tableau.is_explicit

    @property
    def made_of(self) -> Tableau:
        """The tableau with these numbers."""
        return self.source.arguments
