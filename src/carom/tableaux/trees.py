"""Rooted trees and the order conditions they carry, for one tableau or for several used together.

A tree is the sorted tuple of its branches, a branch is ``(colour, tree)``, and the single vertex is ``()``.
With one colour these are the classical rooted trees; with several, a colour says which matrix of an additive
Runge-Kutta method the branch is multiplied by (the weights ``b`` are shared, Jay1998 (20a)).
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Tree = tuple
Array = NDArray[np.float64]


@cache
def rooted_trees(order: int, colours: int = 1) -> tuple[Tree, ...]:
    """All rooted trees with ``order`` vertices whose branches carry one of ``colours`` colours."""
    branches = [
        (size, (colour, tree))
        for size in range(1, order)
        for tree in rooted_trees(size, colours)
        for colour in range(colours)
    ]
    return tuple(tuple(sorted(chosen)) for chosen in _multisets(branches, order - 1, 0))


def _multisets(branches: list, vertices: int, start: int) -> Iterator[tuple]:
    """Multisets of ``branches[start:]`` that have ``vertices`` vertices in all."""
    if vertices == 0:
        yield ()
        return
    for position in range(start, len(branches)):
        size, branch = branches[position]
        if size <= vertices:
            for rest in _multisets(branches, vertices - size, position):
                yield (branch, *rest)


@cache
def tree_order(tree: Tree) -> int:
    """The number of vertices."""
    return 1 + sum(tree_order(branch) for _, branch in tree)


@cache
def density(tree: Tree) -> int:
    """The density gamma(t): the product over all vertices of the order of the subtree that hangs there."""
    product = tree_order(tree)
    for _, branch in tree:
        product *= density(branch)
    return product


def stage_weights(tree: Tree, matrices: Sequence[Array], known: dict[Tree, Array]) -> Array:
    """The stage vector phi(t) = prod over branches (m, u) of A^(m) phi(u); ``known`` remembers subtrees."""
    if tree not in known:
        value = np.ones(len(matrices[0]))
        for colour, branch in tree:
            value = value * (matrices[colour] @ stage_weights(branch, matrices, known))
        known[tree] = value
    return known[tree]


def order_residuals(matrices: Sequence[Array], b: Array, order: int) -> Array:
    """The values ``b . phi(t) - 1 / gamma(t)`` for all trees t with ``order`` vertices."""
    known: dict[Tree, Array] = {}
    trees = rooted_trees(order, len(matrices))
    return np.array([b @ stage_weights(tree, matrices, known) - 1 / density(tree) for tree in trees])


def largest_order(matrices: Sequence[Array], b: Array, max_order: int, tol: float = 1e-12) -> int:
    """The largest p <= ``max_order`` for which the conditions of all trees with up to p vertices hold."""
    for order in range(1, max_order + 1):
        if np.abs(order_residuals(matrices, b, order)).max() > tol:
            return order - 1
    return max_order
