"""The Delassus matrix row by row, for problems in which few contacts touch each other.

Letters: G Delassus matrix, P impulses, m rows, k entries of the fullest row.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from carom.solvers.directions import AbstractDelassus


class SparseDelassus(AbstractDelassus):
    """The entries of every row and their columns, filled up with zeros; contacts of one colour do not meet in G."""

    columns: Int[Array, "m k"]
    values: Float[Array, "m k"]
    colours: Int[Array, "colours contacts"]

    has_matrix = True

    @classmethod
    def of(cls, indptr: Any, indices: Any, data: Any, contact_of_row: Any) -> SparseDelassus:
        """From compressed rows and the contact to which each row belongs."""
        count = np.diff(indptr)
        row = np.repeat(np.arange(count.size), count)
        slot = np.arange(row.size) - np.asarray(indptr)[row]
        columns = np.zeros((count.size, int(count.max(initial=1))), np.int32)
        values = np.zeros(columns.shape)
        columns[row, slot], values[row, slot] = indices, data
        pairs = np.unique(np.stack([contact_of_row[row], contact_of_row[indices]]), axis=1)
        colours = coloured(pairs, int(contact_of_row.max(initial=-1)) + 1)
        return cls(jnp.asarray(columns), jnp.asarray(values), jnp.asarray(colours))

    def __matmul__(self, P: Array) -> Array:
        """G P."""
        return jnp.sum(self.values * P[self.columns], axis=1)

    def entries(self, rows: Any, columns: Any) -> Array:
        """The diagonal of a square part of G."""
        wanted = jnp.arange(self.columns.shape[0])[columns, None]
        return jnp.sum(jnp.where(self.columns[rows] == wanted, self.values[rows], 0.0), axis=1)

    def row_sums(self, weights: Array) -> Array:
        """sum_j |G_ij| weights_j."""
        return jnp.sum(jnp.abs(self.values) * weights[self.columns], axis=1)

    def dense(self) -> Array:
        """G as a matrix."""
        m = self.columns.shape[0]
        return jnp.zeros((m, m)).at[jnp.arange(m)[:, None], self.columns].add(self.values)


def coloured(pairs: np.ndarray, contacts: int) -> np.ndarray:
    """Contacts by colour, one line each, filled up with `contacts`: no two of a line are a pair.

    Every contact takes the colour that fewest have so far and none of its partners.
    """
    partners: list[set[int]] = [set() for _ in range(contacts)]
    for a, b in pairs.T.tolist():
        if a != b:
            partners[a].add(b)
            partners[b].add(a)
    colour, members = np.full(contacts, -1), []
    for contact in range(contacts):
        taken = {colour[other] for other in partners[contact]}
        free = [k for k in range(len(members)) if k not in taken]
        if not free:
            members.append([])
            free = [len(members) - 1]
        colour[contact] = min(free, key=lambda k: len(members[k]))
        members[colour[contact]].append(contact)
    table = np.full((len(members), max(map(len, members), default=0)), contacts, np.int32)
    for line, own in zip(table, members):
        line[: len(own)] = own
    return table
