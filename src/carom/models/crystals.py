"""Granular matter in the plane and in space [James2020 sec. 5]: crystals of elastic spheres, packings, a membrane.

Spheres touch by Hertz contact with viscoelastic damping, in SI units as in `bead_chain`; the coordinates of crystals
are displacements from the lattice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.arguments import numbers, plain_entries, plain_numbers, real
from carom.bodies import Bodies
from carom.laws import hertz_pair, modulus, spring_pair
from carom.models.granular import _count
from carom.models.registry import model
from carom.pairs import CellList, Fixed, Lattice, Periodic
from carom.state import Numbers, State
from carom.systems.interactions import Interactions
from carom.systems.laws import spring
from carom.systems.system import System

HEXAGONAL = (((1.0, 0.0), (0.5, 0.75**0.5)), ((1, 0), (0, 1), (1, -1)))
SQUARE = (((1.0, 0.0), (0.0, 1.0)), ((1, 0), (0, 1)))
CUBIC = (tuple(map(tuple, np.eye(3))), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))


def _crystal(
    kind: Any,
    shape: tuple[int, ...],
    material: tuple[Numbers, Numbers, Numbers],
    radius: float,
    damping: Numbers,
    precompression: float,
    periodic: bool,
    impact_velocity: float,
) -> tuple[System, State]:
    """Equal spheres on a lattice; the middle one of the first layer moves along the first axis."""
    r, overlap = (real(plain_numbers(x, name)) for x, name in ((radius, "radius"), (precompression, "precompression")))
    if not 0 <= overlap < r:
        msg = f"precompression is the overlap of touching beads, between 0 and the radius {r}, got {overlap}"
        raise ValueError(msg)
    shape = tuple(_count(n, 2, "the number of beads along an axis") for n in shape)
    lattice = Lattice(shape, (2 * r - overlap) * np.asarray(kind[0]), kind[1], periodic)
    beads = Bodies(int(np.prod(shape)), dof=len(shape))
    E, rho = _material(*material, len(beads))
    contact = Interactions.between(beads, hertz_pair, data=(r, E), search=lattice)
    m = 4 / 3 * np.pi * r**3 * rho
    v = np.zeros((*shape, len(shape)))
    v[(0, *(n // 2 for n in shape[1:]), 0)] = real(plain_numbers(impact_velocity, "impact_velocity"))
    system = System(
        beads.mass(*(m,) * len(shape)), {"contact": contact}, rate_damping=_damped("contact", damping), units="m"
    )
    return system, State(np.zeros(v.size), v.ravel())


def _material(young: Numbers, poisson: Numbers, density: Numbers, count: int) -> tuple[Any, Any]:
    """Modulus and density; one number for all, or one per bead."""
    own = modulus(young, poisson)
    E = own if np.ndim(own) == 0 else plain_entries(own, "young", count, "bead", positive=True)
    return E, plain_entries(density, "density", count, "bead", positive=True)


def _damped(part: str, damping: Numbers) -> dict[str, Any] | None:
    gamma = numbers(damping, "damping", size=1, nonnegative=True)
    return {part: gamma} if float(gamma) > 0 else None


@model(t1=0.0004, h=1e-06, method="StormerVerlet()", save_every=4)
def hexagonal_crystal(
    columns: int = 20,
    rows: int = 21,
    radius: float = 0.01,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    precompression: float = 0.0,
    periodic: bool = False,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """Spheres in a plane, each with six neighbours; the middle one of the left edge is hit along a row.

    Args:
        columns: beads along a row.
        rows: rows, each shifted by half a bead against the one before: a rhombus.
        radius: in m.
        young: Young's modulus in Pa, a number or one per bead (an interface).
        poisson: Poisson's ratio.
        density: in kg/m^3, a number or one per bead.
        damping: Kuwabara-Kono damping in s.
        precompression: overlap of neighbours at rest, in m; needs `periodic` to stay at rest.
        periodic: whether opposite edges touch.
        impact_velocity: in m/s.

    Example:
        >>> crystal, state = carom.models.hexagonal_crystal(20, 21)
    """
    given = (radius, damping, precompression, periodic, impact_velocity)
    return _crystal(HEXAGONAL, (columns, rows), (young, poisson, density), *given)


@model(t1=0.0004, h=1e-06, method="StormerVerlet()", save_every=4)
def square_crystal(
    columns: int = 20,
    rows: int = 21,
    radius: float = 0.01,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    precompression: float = 0.0,
    periodic: bool = False,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """Spheres in a plane, each with four neighbours; arguments as in `hexagonal_crystal`.

    Example:
        >>> crystal, state = carom.models.square_crystal(20, 21)
    """
    given = (radius, damping, precompression, periodic, impact_velocity)
    return _crystal(SQUARE, (columns, rows), (young, poisson, density), *given)


@model(t1=0.0004, h=1e-06, method="StormerVerlet()", save_every=4)
def cubic_crystal(
    side: int = 9,
    radius: float = 0.01,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    precompression: float = 0.0,
    periodic: bool = False,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """A cube of spheres, each with six neighbours; arguments as in `hexagonal_crystal`.

    Example:
        >>> crystal, state = carom.models.cubic_crystal(9)
    """
    given = (radius, damping, precompression, periodic, impact_velocity)
    return _crystal(CUBIC, (side,) * 3, (young, poisson, density), *given)


@model(t1=0.0004, h=1e-06, method="StormerVerlet()", save_every=4)
def disordered_packing(
    count: int = 200,
    radius: float = 0.01,
    smallest: float = 0.8,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    overlap: float = 1e-3,
    impact_velocity: float = 0.1,
    seed: int = 0,
) -> tuple[System, State]:
    """Spheres of random radii in a periodic plane, pressed together till they carry each other; one is hit.

    Radii are `radius` times uniform random numbers between `smallest` and 1, `overlap` is about the mean overlap of
    touching spheres, in radii. Neighbours come and go: pairs are listed (`carom.CellList`).

    Example:
        >>> packing, state = carom.models.disordered_packing(200)
    """
    rng = np.random.default_rng(seed)
    r = rng.uniform(smallest, 1.0, _count(count, 16))
    unit, length = _packed(rng, r, overlap)
    beads, size = Bodies(count, dof=2), real(plain_numbers(radius, "radius", positive=True))
    E, rho = _material(young, poisson, density, count)
    search = CellList(2 * size, 0.3 * size, Periodic([size * length, size * length]))
    contact = Interactions.between(beads, hertz_pair, data=(size * r, E), search=search)
    m = 4 / 3 * np.pi * (size * r) ** 3 * rho
    v = np.zeros((count, 2))
    v[np.argmin(np.sum((unit - 0.5 * length) ** 2, 1)), 0] = impact_velocity
    system = System(beads.mass(m, m), {"contact": contact}, rate_damping=_damped("contact", damping), units="m")
    return system, State(size * unit.ravel(), v.ravel())


def _packed(rng: np.random.Generator, r: np.ndarray, overlap: float) -> tuple[np.ndarray, float]:
    """Places of disks in a periodic square that shrinks until they overlap as much on average; and its side."""
    length = float(np.sqrt(np.pi * np.sum(r**2) / 0.7))
    x = rng.uniform(0, length, (r.size, 2))
    touching = r[:, None] + r

    def pressed() -> tuple[np.ndarray, np.ndarray]:
        w = x[:, None] - x
        w -= length * np.round(w / length)
        d = np.sqrt(np.sum(w**2, 2)) + 1e-12
        o = np.maximum(touching - d, 0.0) * (1 - np.eye(r.size))
        return np.sum((o / d)[:, :, None] * w, 1), o

    for _ in range(400):
        for _ in range(60):
            push, o = pressed()
            x = x + 0.3 * push
        if o[o > 0].size > 3.6 * r.size and o[o > 0].mean() > overlap:
            break
        x, length = x * 0.998, length * 0.998
    return x % length, length


@model(t1=0.002, h=2e-06, method="StormerVerlet()", save_every=10)
def beads_on_membrane(
    count: int = 20,
    radius: float = 0.01,
    young: float = 203e9,
    poisson: float = 0.3,
    density: float = 7780.0,
    tension: float = 2e4,
    membrane_density: float = 1.0,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """A row of beads on a stretched membrane, seen from the side; the first bead is hit along the row and downward.

    Bodies are the beads from left to right, then the nodes of the membrane under them. The parts of the potential are
    "beads" and "support" (Hertz contact), "membrane" (springs with `tension`, in N) and "ends" (those of the membrane
    are held). `membrane_density` is the mass of a node in masses of a bead.

    Example:
        >>> layer, state = carom.models.beads_on_membrane(20)
        >>> method = carom.AsynchronousPseudoEnergy(("beads", "support"), ratio=10)
    """
    n, r = _count(count, 3), real(plain_numbers(radius, "radius", positive=True))
    i, E = np.arange(n), modulus(young, poisson)
    bodies, places = Bodies(2 * n, dof=2), np.zeros((2, n, 2))
    places[:, :, 0], places[1, :, 1] = 2 * r * i, -2 * r
    places = places.reshape(-1, 2)
    pairs = {"beads": np.stack([i[:-1], i[1:]], 1), "support": np.stack([i, n + i], 1)}
    potential = {
        name: Interactions.between(bodies, hertz_pair, data=(r, E), search=Fixed(edges), places=places)
        for name, edges in pairs.items()
    }
    stretched = 10 * tension / r
    strings = Fixed(np.stack([n + i[:-1], n + i[1:]], 1))
    shorter = (r - 0.5 * tension / stretched, stretched)
    potential["membrane"] = Interactions.between(bodies, spring_pair, data=shorter, search=strings, places=places)
    held = np.array([[2 * n], [2 * n + 1], [4 * n - 2], [4 * n - 1]])
    potential["ends"] = Interactions(spring, indices=held, data=np.full(4, stretched))
    m = 4 / 3 * np.pi * r**3 * density * np.repeat([1.0, membrane_density], n)
    v = np.zeros((2 * n, 2))
    v[0] = impact_velocity * np.array([1.0, -1.0])
    return System(bodies.mass(m, m), potential, units="m"), State(np.zeros(4 * n), v.ravel())
