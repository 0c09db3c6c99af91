"""Many bodies in rigid contact: disks and spheres in drums, boxes, columns, hoppers and heaps.

Lengths are in units of the largest radius unless a radius is given; disks have the radii `radius` times uniform random
numbers between `smallest` and 1, and the density 1 / pi, so that a disk of radius 1 has the mass 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carom import shapes
from carom.arguments import plain_numbers, whole
from carom.bodies import Bodies
from carom.models.registry import model
from carom.pairs import CellList
from carom.state import State
from carom.systems.contact import Contacts
from carom.systems.system import System

_SKIN = 0.3  # of the largest radius
_NARROWEST = 3.0  # of the largest radii: a box for rows of one body


def _weight(q, m, p):
    return p["gravity"] * m * q[1]


def _weight_in_space(q, m, p):
    return p["gravity"] * m * q[2]


def _moved_places(t, q, v):
    del t, q
    return v.reshape(-1, 6)[:, :3].ravel()


def random_radii(count: int, smallest: float, seed: int) -> np.ndarray:
    """Radii of bodies."""
    if not 0 < smallest <= 1:
        msg = f"smallest must lie above 0 and not above 1, the largest radius, got {smallest}"
        raise ValueError(msg)
    return np.random.default_rng(seed).uniform(smallest, 1.0, whole(count, "count", 1))


def _system_of_disks(
    radii: np.ndarray, walls: list[Any], friction: float, restitution: float, gravity: float
) -> System:
    """Disks that touch each other and walls."""
    grains, laws = Bodies(radii.size, dof=3), {"friction": friction, "restitution": restitution}
    mass = radii**2
    search = CellList(reach=2.0 * radii.max(), skin=_SKIN * radii.max())
    contacts = [Contacts.between(grains, shapes.disk, data=radii, search=search, **laws)]
    contacts += [Contacts.each(grains, wall, data=radii, **laws) for wall in walls]
    return System(
        grains.mass(mass, mass, 0.5 * mass * radii**2),
        grains.each(_weight, data=mass),
        contacts=contacts,
        params={"gravity": gravity},
    )


def _lattice(count: int, columns: int, spacing: float = 2.0, rise: float = 2.0) -> np.ndarray:
    """Places in rows of so many columns, every other row shifted by half a place."""
    row, column = np.divmod(np.arange(count), whole(columns, "columns", 1))
    return np.column_stack([spacing * (column + 0.5 * (row % 2)), rise * row])


def _at_rest(places: np.ndarray) -> State:
    q = np.column_stack([places, np.zeros(len(places))])
    return State(q.ravel(), np.zeros(q.size))


def drum_radius(count: int, smallest: float, seed: int, filling: float) -> float:
    """Radius of a drum of which disks fill a part when packed at random."""
    part = float(plain_numbers(filling, "filling", size=1, positive=True))
    return float(np.sqrt(np.sum(random_radii(count, smallest, seed) ** 2) / (part * 0.84)))


def width_of_box(count: int, width: float | None) -> float:
    """The width asked for, or that of a square heap."""
    return 2.0 * float(np.ceil(np.sqrt(count))) if width is None else _wide_enough(width)


def _wide_enough(width: float) -> float:
    """A width that rows with every other one shifted fit into."""
    given = float(plain_numbers(width, "width", size=1))
    if given < _NARROWEST:
        msg = f"width must be at least {_NARROWEST:g} of the largest radii, got {width}"
        raise ValueError(msg)
    return given


def hopper_height(count: int, opening: float, angle: float) -> float:
    """How high the walls of a hopper reach: above the last disk."""
    return _rows_in_hopper(count, opening, angle)[-1][1] + 12.0


def _rows_in_hopper(count: int, opening: float, angle: float) -> list[tuple[float, float]]:
    if not (0 < angle < np.pi / 2 or (angle == 0 and opening >= 4)):
        msg = f"hopper: angle must lie between 0 and pi / 2 (0 with an opening of 4 or more), got {angle} and {opening}"
        raise ValueError(msg)
    places, y = [], 1.0
    while len(places) < count:
        n = int(0.5 * opening + y * np.tan(angle) - 1.0 / np.cos(angle))
        places += [(2.0 * (i - 0.5 * (n - 1)), y) for i in range(n)]
        y += 2.0
    return places[:count]


@model(t1=40.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def disks_in_drum(
    count: int = 1000,
    speed: float = 0.1,
    friction: float = 0.4,
    restitution: float = 0.0,
    gravity: float = 1.0,
    smallest: float = 0.8,
    filling: float = 0.45,
    seed: int = 0,
) -> tuple[System, State]:
    """Disks mixed in a turning drum, the many bodies of Studer2008 Fig. 2; `filling` is the part of it they fill.

    Example:
        >>> drum, state = carom.models.disks_in_drum(100)
    """
    radii = random_radii(count, smallest, seed)
    R = drum_radius(count, smallest, seed, filling)
    spacing = 2.0
    columns = np.arange(-np.floor(R / spacing), np.floor(R / spacing) + 1) * spacing
    grid = np.array(
        [(x + 0.5 * spacing * (j % 2), -R + 1.0 + 1.8 * j) for j in range(int(2 * R / 1.8)) for x in columns]
    )
    inside = grid[np.hypot(*grid.T) <= R - 1.0]
    if len(inside) < count:
        msg = f"disks_in_drum: filling = {filling} leaves no room for {count} disks on a grid; take less"
        raise ValueError(msg)
    system = _system_of_disks(radii, [shapes.drum(R, speed)], friction, restitution, gravity)
    return system, _at_rest(inside[:count])


@model(t1=40.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def disks_in_box(
    count: int = 1000,
    width: float | None = None,
    friction: float = 0.3,
    restitution: float = 0.0,
    gravity: float = 1.0,
    smallest: float = 0.8,
    seed: int = 0,
) -> tuple[System, State]:
    """Disks that fall into a box, open above, and settle; the default width is that of a square heap.

    Example:
        >>> box, state = carom.models.disks_in_box(100, friction=0.5)
    """
    radii = random_radii(count, smallest, seed)
    width = width_of_box(count, width)
    columns = max(1, int((width - 1.0) // 2.0) - 1)
    wall = shapes.box(lower=(0.0, 0.0), upper=(width, np.inf))
    system = _system_of_disks(radii, [wall], friction, restitution, gravity)
    return system, _at_rest(_lattice(count, columns) + [1.0, 1.0])


@model(t1=40.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def column_collapse(
    count: int = 1000,
    columns: int = 20,
    friction: float = 0.3,
    gravity: float = 1.0,
    smallest: float = 0.8,
    seed: int = 0,
) -> tuple[System, State]:
    """A column of disks beside a wall that collapses onto the floor.

    Example:
        >>> column, state = carom.models.column_collapse(200, columns=8)
    """
    radii = random_radii(count, smallest, seed)
    wall = shapes.box(lower=(0.0, 0.0), upper=(np.inf, np.inf))
    system = _system_of_disks(radii, [wall], friction, 0.0, gravity)
    return system, _at_rest(_lattice(count, columns, rise=1.8) + [1.0, 1.0])


@model(t1=40.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def hopper(
    count: int = 1000,
    opening: float = 12.0,
    angle: float = np.pi / 5,
    friction: float = 0.3,
    gravity: float = 1.0,
    smallest: float = 0.8,
    seed: int = 0,
) -> tuple[System, State]:
    """Disks that flow out of a hopper onto a floor below it.

    Example:
        >>> funnel, state = carom.models.hopper(200, opening=8.0)
    """
    radii = random_radii(count, smallest, seed)
    height = hopper_height(count, opening, angle)
    walls = [shapes.hopper(opening, angle, height), shapes.half_plane((0.0, 1.0), offset=-2.0 * opening)]
    system = _system_of_disks(radii, walls, friction, 0.0, gravity)
    return system, _at_rest(np.array(_rows_in_hopper(count, opening, angle)))


@model(t1=60.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def heap(
    count: int = 1000,
    columns: int = 12,
    friction: float = 0.5,
    gravity: float = 1.0,
    smallest: float = 0.8,
    seed: int = 0,
) -> tuple[System, State]:
    """Disks poured onto a floor, a few at a time, that come to rest at an angle.

    Example:
        >>> pile, state = carom.models.heap(200)
    """
    radii = random_radii(count, smallest, seed)
    system = _system_of_disks(radii, [shapes.half_plane((0.0, 1.0))], friction, 0.0, gravity)
    return system, _at_rest(_lattice(count, columns, rise=2.5) + [-columns, 1.0])


@model(t1=20.0, h=0.02, save_every=10, method="MoreauMidpoint(solver=AcceleratedGaussSeidel(tol=1e-4))")
def spheres_in_box(
    count: int = 512,
    width: float | None = None,
    friction: float = 0.3,
    restitution: float = 0.0,
    gravity: float = 1.0,
    smallest: float = 0.8,
    seed: int = 0,
) -> tuple[System, State]:
    """Spheres that fall into a box, open above. Only their places are coordinates: q' is the first half of v.

    Example:
        >>> box, state = carom.models.spheres_in_box(64)
    """
    radii = random_radii(count, smallest, seed)
    side = max(1, round(count ** (1 / 3)))
    width = 2.0 * side + 1.0 if width is None else _wide_enough(width)
    columns = max(1, int((width - 1.0) // 2.0))
    layer, rest = np.divmod(np.arange(count), columns**2)
    shift = 0.5 * (layer % 2)
    places = np.column_stack([2.0 * (rest % columns) + shift, 2.0 * (rest // columns) + shift, 2.0 * layer]) + 1.0
    grains, laws = Bodies(count, dof=6, coordinates=3), {"friction": friction, "restitution": restitution}
    mass, search = radii**3, CellList(reach=2.0 * radii.max(), skin=_SKIN * radii.max())
    wall = shapes.box(lower=(0.0, 0.0, 0.0), upper=(width, width, np.inf))
    system = System(
        grains.mass(*(mass,) * 3, *(0.4 * mass * radii**2,) * 3),
        grains.each(_weight_in_space, data=mass),
        kinematics=_moved_places,
        contacts=[
            Contacts.between(grains, shapes.sphere, data=radii, search=search, **laws),
            Contacts.each(grains, wall, data=radii, **laws),
        ],
        params={"gravity": gravity},
    )
    return system, State(places.ravel(), np.zeros(6 * count))
