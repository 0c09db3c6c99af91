"""The numbers of a run between two steps, as vectors."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.state import Carry


class Line(NamedTuple):
    """The numbers of a carry, those that have derivatives and the others; or those of many, row by row."""

    x: Array
    i: Array

    @classmethod
    def of(cls, carry: Carry) -> Line:
        """The numbers of a carry."""
        parts, rest = eqx.partition(bare(carry), eqx.is_inexact_array)
        return cls(ravel_pytree(parts)[0], ravel_pytree(eqx.filter(rest, eqx.is_array))[0])


def bare(carry: Carry) -> Carry:
    """A carry without what stays the same."""
    return eqx.tree_at(lambda c: (c.ends, c.instants), carry, (None, None))
