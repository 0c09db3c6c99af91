"""Pair interactions one by one, of single coordinates: for who sorts interactions by what they touch."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.systems.interactions import Interactions
from carom.systems.pair_interactions import PairInteractions, PairLaw, overlap_of


class FlatPair(eqx.Module):
    """The energy of one pair as a function of its coordinates: those of body a, then those of b."""

    law: PairLaw

    def __call__(self, *given: Any) -> Array:
        """The last argument holds the data of both bodies and their bond at rest."""
        *x, (ends, rest) = given
        d = len(x) // 2
        return self.law.energy(overlap_of(self.law, [b - a for a, b in zip(x[:d], x[d:])], ends, rest), *ends)


def flat(part: PairInteractions) -> Interactions:
    """The same interactions, kind after kind, by the places of their coordinates."""
    numbers, rows = part.bonds.numbers, part.bodies.rows
    bodies = [rows.start + rows.step * jnp.concatenate([jnp.ravel(x) for x in side]) for side in zip(*numbers)]
    indices = [part.bodies.coordinates * body + i for body in bodies for i in range(part.dimension)]
    rests = part.rest or [None] * len(numbers)
    kinds = [
        jax.tree.map(lambda x, shape=a.shape: jnp.broadcast_to(x, shape).ravel(), own)
        for (a, _), own in zip(numbers, zip(part.ends(), rests))
    ]
    data = jax.tree.map(lambda *x: jnp.concatenate(x), *kinds)
    return Interactions(FlatPair(part.law), indices=jnp.stack(indices, 1), data=data, weight=part.weight)
