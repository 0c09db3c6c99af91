"""Random states of many bodies, the pairs a search must find in them, and compiled searches shared by the tests."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from carom.pairs import CellList, LeesEdwards, Periodic, coloured, moved

N, SKIN = 300, 0.2
LENGTH = 14.0

BOXES = {
    "open": lambda d: None,
    "periodic": lambda d: Periodic([LENGTH, LENGTH + 1.0, LENGTH - 1.0][:d]),
    "half open": lambda d: Periodic([None, LENGTH, None][:d]),
    "sheared": lambda d: LeesEdwards([LENGTH, LENGTH + 1.0, None][:d], rate=0.37),
}


def gas(rng, d):
    return rng.uniform(-3 * LENGTH, 3 * LENGTH, (N, d)), np.full(N, 1.0)


def dense_gas(rng, d):
    return rng.uniform(0.0, LENGTH, (N, d)), np.full(N, 1.0)


def lattice(rng, d):
    side = int(np.ceil(N ** (1 / d)))
    places = np.stack(np.meshgrid(*[np.arange(side)] * d, indexing="ij"), -1).reshape(-1, d)[:N]
    return rng.permutation(places * 1.05 + 1e-9 * rng.normal(size=(N, d))), np.full(N, 1.0)


def polydisperse(rng, d):
    return rng.uniform(0.0, LENGTH, (N, d)), rng.choice([0.2, 0.5, 2.0], N, p=[0.8, 0.15, 0.05])


def clustered(rng, d):
    centres = rng.uniform(-100.0, 100.0, (3, d))
    return centres[rng.integers(0, 3, N)] + 0.7 * rng.normal(size=(N, d)), np.full(N, 0.6)


def single_file(rng, d):
    x = np.zeros((N, d))
    x[:, rng.integers(d)] = 0.9 * rng.permutation(N)
    return x, np.full(N, 1.0)


def scattered(rng, d):
    x = rng.uniform(0.0, LENGTH, (N, d))
    x[rng.choice(N, 20, replace=False)] *= 1e6
    x[rng.integers(N)] = 10.0 ** rng.uniform(3, 9)
    return x, np.full(N, 1.0)


KINDS = (gas, dense_gas, lattice, polydisperse, clustered, single_file, scattered)


def all_near(x, far, box=None, t=0.0):
    """By comparing all: the pairs (a, b), a < b, with centres within the mean of `far` of both."""
    a, b = np.triu_indices(len(x), 1)
    away = x[b] - x[a]
    away = away if box is None else np.asarray(box.nearest(jnp.asarray(away), t))
    near = np.sum(away**2, 1) <= (0.5 * (far[a] + far[b])) ** 2
    return np.stack([a[near], b[near]], 1)


def listed_in(pairs):
    """The pairs of a list in the order (a, b)."""
    a, b, rank = (np.asarray(x)[np.asarray(pairs.valid)] for x in (pairs.a, pairs.b, pairs.rank))
    order = np.argsort(rank)
    return np.stack([a[order], b[order]], 1)


find = jax.jit(lambda search, x, t, capacity: search.find(x, t, capacity), static_argnums=3)
colour = jax.jit(coloured, static_argnums=1)
move = jax.jit(moved)


@lru_cache
def box_of(kind, d):
    return BOXES[kind](d)


def search_of(kind, reach, d):
    return CellList(reach, SKIN, box_of(kind, d))
