"""What goes through granular matter: forces of bonds, fronts of waves, spectra in space and time."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Int

from carom.measures.contacts import row_of
from carom.solution import Solution
from carom.state import State, reals
from carom.systems.listed_pairs import lists_at
from carom.systems.pair_interactions import PairInteractions
from carom.systems.system import System


class BondForces(NamedTuple):
    """Bodies a and b of the bonds that carry a force, where they are, and the force on a (along the bond)."""

    a: Int[np.ndarray, " bonds"]
    b: Int[np.ndarray, " bonds"]
    ends: Float[np.ndarray, "bonds 2 d"]
    force: Float[np.ndarray, "bonds d"]

    @property
    def size(self) -> Float[np.ndarray, " bonds"]:
        """How large the forces are."""
        return np.sqrt(np.sum(self.force**2, 1))


def bond_forces(sol: Solution, t: float | None = None, part: str | None = None) -> BondForces:
    """The network of forces between bodies in the saved row at t or before it (None: the last).

    Args:
        sol: a run of a system with `Interactions.between`.
        t: a time of the run.
        part: which part of the potential (None: the first of pairs).

    Example:
        >>> network = carom.measures.bond_forces(sol)
        >>> network.size.max()
    """
    row = row_of(sol, t)
    system, name = sol.running, pair_part(sol.system, part)
    q = jnp.asarray(sol.q[row])
    if system.pair_potentials:
        state = State(q, sol.v[row], sol.elapsed[row])
        system = system.since(system.epoch, lists_at(system, state, sol.carry.pairs, jnp.zeros(())))
    found = system.potential[name]
    slopes = [np.stack([np.ravel(c) for c in np.broadcast_arrays(*kind)], 1) for kind in found.slopes(q)]  # pyright: ignore
    ends = [[np.ravel(x) for x in kind] for kind in found.bonds.numbers]  # pyright: ignore
    force = np.concatenate(slopes)
    a, b = (np.concatenate(side) for side in zip(*ends))
    x = np.asarray(found.positions(q))  # pyright: ignore
    kept = np.any(force != 0, axis=1)
    a, b = a[kept], b[kept]
    return BondForces(a, b, np.stack([x[a], x[b]], 1), force[kept])


def pair_part(system: System, part: str | None) -> str:
    """The name of a part of the potential made of pairs of bodies."""
    names = [name for name, p in system.potential.items() if isinstance(p, PairInteractions)]
    if not names or (part is not None and part not in names):
        msg = f"this measure needs a part of the potential made by Interactions.between; there are {names}, got {part}"
        raise ValueError(msg)
    return names[0] if part is None else part


def wave_front(sol: Solution, threshold: float = 1e-3, origin: ArrayLike | None = None) -> Float[np.ndarray, " rows"]:
    """How far from where it began the motion has come, row by row: the farthest body above a part of the top speed.

    Args:
        sol: a run of a system with `Interactions.between`.
        threshold: part of the largest speed of the start.
        origin: where the motion begins; None: at the fastest body of the start.

    Example:
        >>> speed = np.polyfit(sol.t, carom.measures.wave_front(sol), 1)[0]
    """
    part = sol.system.potential[pair_part(sol.system, None)]
    x = np.asarray(part.positions(jnp.asarray(sol.q[0])))  # pyright: ignore
    rows = sol.v.reshape(len(sol), -1, part.bodies.dof)[:, part.bodies._slice, : x.shape[1]]  # pyright: ignore
    speed = np.sqrt(np.sum(rows**2, 2))
    start = x[np.argmax(speed[0])] if origin is None else np.asarray(reals(origin, "origin", "a place"))
    far = np.sqrt(np.sum((x - start) ** 2, 1))
    return np.max(np.where(speed > threshold * speed[0].max(), far, 0.0), axis=1)


def spectrum(
    sol: Solution, wavevectors: Float[np.ndarray, "k d"]
) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, "w k"]]:
    """Frequencies and the power of velocities in them, for waves exp(i k.X) on a crystal: its dispersion.

    Rows must be equally spaced. Peaks lie where omega(k)^2 is an eigenvalue of the dynamical matrix.

    Example:
        >>> omega, power = carom.measures.spectrum(sol, np.linspace(0, np.pi, 50)[:, None] * [1.0, 0.0])
    """
    part = sol.system.potential[pair_part(sol.system, None)]
    steps = np.diff(sol.t)
    if np.ptp(steps) > 1e-6 * steps.mean():
        msg = "spectrum needs rows that are equally spaced in time: run with h= and save_every="
        raise ValueError(msg)
    x = np.asarray(part.positions(jnp.zeros(sol.q.shape[1])))  # pyright: ignore
    v = sol.v.reshape(len(sol), -1, part.bodies.dof)[..., : x.shape[1]]  # pyright: ignore
    waves = np.exp(-1j * x @ np.atleast_2d(wavevectors).T)
    amplitude = np.einsum("tnd,nk->tkd", v * np.hanning(len(v))[:, None, None], waves)
    power = np.sum(
        np.abs(np.fft.rfft(amplitude.real, axis=0)) ** 2 + np.abs(np.fft.rfft(amplitude.imag, axis=0)) ** 2, 2
    )
    return 2 * np.pi * np.fft.rfftfreq(len(v), steps.mean()), power
