"""Lists of pairs of disks and spheres: nanoseconds per body to search, to colour and to move the data of pairs."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from timing import best_of

from carom.pairs import CellList, coloured, grown, memory, moved, tight

SKIN = 0.15


def packing(bodies: int, dimension: int) -> np.ndarray:
    """Bodies of diameter 0.8 to 1, dense and disordered: a jittered triangular (face-centred cubic) lattice."""
    rng = np.random.default_rng(0)
    side = int(np.ceil(bodies ** (1 / dimension)))
    places = np.stack(np.meshgrid(*[np.arange(side)] * dimension, indexing="ij"), -1).reshape(-1, dimension)[:bodies]
    lattice = np.array([[1.0, 0.5], [0.0, 0.75**0.5]])
    if dimension == 3:
        lattice = np.array([[1.0, 0.5, 0.5], [0.0, 0.75**0.5, 0.75**0.5 / 3], [0.0, 0.0, (2 / 3) ** 0.5]])
    return rng.permutation(0.95 * places @ lattice.T) + rng.normal(0.0, 0.03, (bodies, dimension))


def rebuild(search, capacity):
    find = jax.jit(lambda x: search.find(x, 0.0, capacity))
    colour = jax.jit(lambda pairs: coloured(pairs, capacity))
    return find, colour, jax.jit(moved)


def fitted(search, x):
    """The capacity that has room with the usual margin."""
    capacity = search.capacity(*x.shape)
    while True:
        find, colour, _ = rebuild(search, capacity)
        pairs = colour(find(x))
        if not int(pairs.trouble):
            return tight(pairs), pairs
        capacity = grown(capacity, pairs)


def timed(bodies: int, dimension: int) -> None:
    x = jnp.asarray(packing(bodies, dimension))
    later = x + 0.05 * jnp.asarray(np.random.default_rng(1).normal(size=x.shape))
    reach = jnp.asarray(np.random.default_rng(2).uniform(0.8, 1.0, bodies))
    search = CellList(reach, SKIN)
    capacity, pairs = fitted(search, later)
    find, colour, move = rebuild(search, capacity)
    data = jnp.ones((capacity.pairs, dimension))
    old, found = colour(find(x)), find(later)
    new = colour(found)

    def whole():
        new = colour(find(later))
        return move(old, new, data)

    runs = {
        "find": lambda: find(later),
        "colour": lambda: colour(found),
        "move": lambda: move(old, new, data),
        "all": whole,
    }
    times = {name: best_of(lambda: jax.block_until_ready(run())) for name, run in runs.items()}
    per_body = "".join(f"{1e9 * seconds / bodies:9.0f}" for seconds in times.values())
    used = int((np.diff(np.asarray(pairs.starts)) > 0).sum())
    size = memory(capacity, bodies, dimension) / bodies
    print(f"{dimension}{bodies:10,}{per_body}{int(pairs.count) / bodies:10.2f}{used:9}{size:14.0f}", flush=True)


if __name__ == "__main__":
    device = jax.devices()[0]
    print(f"device: {device.device_kind}; ns per body and rebuild")
    heads = "".join(f"{name:>9}" for name in ("find", "colour", "move", "all"))
    print(f"d{'bodies':>10}{heads}{'pairs':>10}{'colours':>9}{'bytes':>14}")
    large = [10**6] if device.platform == "gpu" or "--large" in sys.argv else []
    for dimension in (2, 3):
        for bodies in [10**3, 10**4, 10**5, *large]:
            timed(bodies, dimension)
