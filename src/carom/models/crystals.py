"""Granular matter in the plane and in space [James2020 sec. 5]: crystals of spheres, packings, a layer on a medium.

Spheres touch by Hertz contact with viscoelastic damping, in SI units as in `bead_chain`; the coordinates of crystals
are displacements from the lattice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.arguments import is_traced, numpy_for, plain_entries, plain_numbers, real
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
    hit = np.zeros((*shape, len(shape)))
    hit[(0, *(n // 2 for n in shape[1:]), 0)] = 1.0
    v = real(plain_numbers(impact_velocity, "impact_velocity")) * hit
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
    gamma = plain_numbers(damping, "damping", size=1, nonnegative=True)
    return {part: gamma} if is_traced(gamma) or float(gamma) > 0 else None


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
    count: int = 100,
    radius: float = 0.01,
    smallest: float = 0.8,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    fraction: float = 0.9,
    impact_velocity: float = 1.0,
    seed: int = 0,
) -> tuple[System, State]:
    """Spheres of random radii in a periodic plane, pressed together till they carry each other; one is hit.

    Radii are `radius` times uniform random numbers between `smallest` and 1; disks of these radii would fill the part
    `fraction` of the plane, 0.84 where they just carry each other. Neighbours come and go: `carom.CellList` finds them.

    Example:
        >>> packing, state = carom.models.disordered_packing(100)
    """
    rng = np.random.default_rng(seed)
    r = rng.uniform(smallest, 1.0, _count(count, 16))
    length = float(np.sqrt(np.pi * np.sum(r**2) / fraction))
    unit = _packed(rng, r, length)
    beads, size = Bodies(count, dof=2), real(plain_numbers(radius, "radius", positive=True))
    E, rho = _material(young, poisson, density, count)
    search = CellList(2 * size, 0.3 * size, Periodic([size * length, size * length]))
    contact = Interactions.between(beads, hertz_pair, data=(size * r, E), search=search)
    m = 4 / 3 * np.pi * (size * r) ** 3 * rho
    middle = np.argmin(np.sum((unit - 0.5 * length) ** 2, 1))
    v = real(plain_numbers(impact_velocity, "impact_velocity")) * np.outer(np.arange(count) == middle, [1.0, 0.0])
    system = System(beads.mass(m, m), {"contact": contact}, rate_damping=_damped("contact", damping), units="m")
    return system, State(size * unit.ravel(), v.ravel())


def _packed(rng: np.random.Generator, r: np.ndarray, length: float) -> np.ndarray:
    """Places of spheres at rest in a periodic square: a minimum of the energy of their Hertz contacts."""
    from scipy.optimize import minimize  # a quarter of a second and 34 MB of every process

    a, b = np.triu_indices(r.size, 1)
    touching, k = r[a] + r[b], np.sqrt(r[a] * r[b] / (r[a] + r[b]))

    def energy(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = flat.reshape(-1, 2)
        w = x[b] - x[a]
        w -= length * np.round(w / length)
        d = np.sqrt(np.sum(w**2, 1)) + 1e-12
        o = np.maximum(touching - d, 0.0)
        f = -(k * o**1.5 / d)[:, None] * w
        slope = [np.bincount(b, g, r.size) - np.bincount(a, g, r.size) for g in f.T]
        return 0.4 * float(np.sum(k * o**2.5)), np.stack(slope, 1).ravel()

    start = rng.uniform(0, length, 2 * r.size)
    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(energy, start, jac=True, method="L-BFGS-B", options=options).x.reshape(-1, 2) % length


@model(t1=0.0015, h=1e-06, method="StormerVerlet()", save_every=15)
def granular_layer(
    count: int = 20,
    depth: int = 10,
    radius: float = 0.01,
    young: float = 203e9,
    poisson: float = 0.3,
    density: float = 7780.0,
    stiffness: float = 1e5,
    medium_density: float = 1.0,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """A row of beads on an elastic medium, a net of springs, seen from the side; the first bead is hit.

    Bodies are the beads from left to right, then the nodes of the net, layer under layer; `depth = 1` is a membrane.
    The parts of the potential are "beads" and "support" (Hertz contact), "medium" (springs of `stiffness` in N/m),
    "across" (half as stiff) and "ground" (the last layer is held). A node has `medium_density` masses of a bead.

    Example:
        >>> layer, state = carom.models.granular_layer(20)
        >>> method = carom.AsynchronousPseudoEnergy(("beads", "support"), ratio=10)
    """
    n, layers, r = _count(count, 3), _count(depth, 1, "depth"), real(plain_numbers(radius, "radius", positive=True))
    number = np.arange(n * (layers + 1)).reshape(layers + 1, n)
    bodies = Bodies(number.size, dof=2)
    row, column = np.indices(number.shape)
    places = 2 * r * np.stack([column, -row], -1).reshape(-1, 2)
    nodes, k = number[1:], real(plain_numbers(stiffness, "stiffness", positive=True))
    edges = {
        "beads": _joined((number[0, :-1], number[0, 1:])),
        "support": _joined((number[0], number[1])),
        "medium": _joined((nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])),
        "across": _joined((nodes[:-1, :-1], nodes[1:, 1:]), (nodes[:-1, 1:], nodes[1:, :-1])),
    }
    touch, net, wide = (r, modulus(young, poisson)), (r, k), (2**0.5 * r, 0.5 * k)
    laws = {"beads": (hertz_pair, touch), "support": (hertz_pair, touch)}
    laws |= {"medium": (spring_pair, net), "across": (spring_pair, wide)}
    potential: dict[str, Any] = {
        name: Interactions.between(bodies, law, data=data, search=Fixed(edges[name]), places=places)
        for name, (law, data) in laws.items()
        if len(edges[name])
    }
    held = np.arange(2 * number[-1, 0], 2 * number.size)
    potential["ground"] = Interactions(spring, indices=held[:, None], data=k * np.ones(held.size))
    share = numpy_for(medium_density).where(np.arange(number.size) < n, 1.0, medium_density)
    m = share * 4 / 3 * np.pi * r**3 * density
    v = impact_velocity * np.outer(np.arange(number.size) == 0, [1.0, -1.0])
    return System(bodies.mass(m, m), potential, units="m"), State(np.zeros(v.size), v.ravel())


def _joined(*ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Edges between the entries of arrays of numbers."""
    return np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in ends])
