"""Set-valued laws: unilateral contacts with friction, and friction elements without a contact [Studer2008 sec. 2].

Letters: g gap, gamma relative velocity, mu friction, eps restitution, N normal, T tangential.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import UserFunction, is_traced, judged, names_of, numbers, texts, user_function
from carom.bodies import Bodies
from carom.pairs import AbstractSearch
from carom.state import reals
from carom.systems.body_contacts import PairContacts, WorldContacts
from carom.systems.contact_base import AbstractContacts, between_0_and_1
from carom.systems.shape import Shape, Wall

NO_FORCE = 1e-300  # the limit of a friction element that only watches a sign


class Contacts(AbstractContacts):
    """Unilateral contacts `g >= 0` with Newton's impact law and Coulomb friction.

    Args:
        gap: `g(q)` or `g(t, q)`, one entry per contact; positive when open.
        slip: tangential displacement `s(q)` or `s(t, q)`, of which the rate is the slip velocity: one entry per
            contact, or one pair per contact for friction in a plane.
        slip_velocity: the slip velocity itself, `(q, v)` or `(t, q, v)`, affine in v; give this or `slip`.
        friction: Coulomb's mu, a number or one per contact.
        restitution: eps of the normal direction in [0, 1], a number or one per contact.
        tangential_restitution: eps of the tangential directions in [0, 1], a number or one per contact.
        names: of the contacts, one each, for plots, reports and messages; else they are numbered.

    Example:
        >>> floor = carom.Contacts(gap=lambda q: q[1:2], slip=lambda q: q[:1], friction=0.3, names=["floor"])
        >>> wall = carom.Contacts(gap=lambda q: 1.0 - q[:1], restitution=0.5, names=["wall"])
        >>> ball = carom.System(mass=1.0, contacts=[floor, wall])
    """

    gap: UserFunction
    slip: UserFunction | None
    slip_velocity: UserFunction | None
    friction: Array
    restitution: Array
    tangential_restitution: Array
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        gap: Callable[..., Any],
        *,
        slip: Callable[..., Any] | None = None,
        slip_velocity: Callable[..., Any] | None = None,
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        tangential_restitution: ArrayLike = 0.0,
        names: str | Sequence[str] = (),
    ):
        self.gap = user_function(gap, "gap", ("q",), ("t", "q"))
        self.slip = slip and user_function(slip, "slip", ("q",), ("t", "q"))
        self.slip_velocity = slip_velocity and user_function(
            slip_velocity, "slip_velocity", ("q", "v"), ("t", "q", "v")
        )
        self.friction = numbers(friction, "friction", nonnegative=True)
        self.restitution = between_0_and_1(restitution, "restitution")
        self.tangential_restitution = between_0_and_1(tangential_restitution, "tangential_restitution")
        self.names = texts((names,) if isinstance(names, str) else names, "Contacts: names", "one text per contact")
        if self.slip is not None and self.slip_velocity is not None:
            msg = "Contacts: give slip= or slip_velocity=, not both"
            raise ValueError(msg)
        if not self.has_friction and (is_traced(friction) or np.any(np.asarray(friction) > 0)):
            msg = f"Contacts: friction = {friction} needs slip directions: give slip= or slip_velocity="
            raise ValueError(msg)

    @staticmethod
    def between(
        bodies: Bodies,
        shape: Shape,
        *,
        search: AbstractSearch,
        data: Any = None,
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        tangential_restitution: ArrayLike = 0.0,
        materials: ArrayLike | None = None,
    ) -> PairContacts:
        """Contacts of all pairs of bodies that come near each other.

        Args:
            bodies: how coordinates and velocities are cut into bodies.
            shape: `carom.shapes.disk`, `carom.shapes.sphere`, or a `carom.Shape` of your own.
            search: who finds the pairs: `carom.CellList(...)`, `carom.Fixed(edges)` or `carom.AllPairs()`.
            data: what the shape is given of each body, one number for all or one per body: the radius of disks.
            friction: Coulomb's mu, a number, or a symmetric table of materials by materials.
            restitution: eps of the normal direction, likewise.
            tangential_restitution: eps of the tangential directions, likewise.
            materials: the number of each body's material, where tables are given.

        Example:
            >>> grains = carom.Bodies(100, dof=3)
            >>> search = carom.CellList(reach=2.0, skin=0.2)
            >>> touching = carom.Contacts.between(grains, carom.shapes.disk, data=1.0, search=search, friction=0.5)
        """
        laws = (friction, restitution, tangential_restitution)
        return PairContacts.of(bodies, shape, data, search, laws, materials)

    @staticmethod
    def each(
        bodies: Bodies,
        wall: Wall,
        *,
        data: Any = None,
        friction: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        tangential_restitution: ArrayLike = 0.0,
        materials: ArrayLike | None = None,
    ) -> WorldContacts:
        """Contacts of every body with the world.

        Args:
            bodies: how coordinates and velocities are cut into bodies.
            wall: one of `carom.shapes` (`half_plane`, `box`, `drum`, `hopper`, `plate`), or a `carom.Wall` of your own.
            data: what the wall is given of each body, one number for all or one per body: the radius of disks.
            friction: Coulomb's mu, a number, one per body, or one per material.
            restitution: eps of the normal direction, likewise.
            tangential_restitution: eps of the tangential directions, likewise.
            materials: the number of each body's material, where coefficients are given per material.

        Example:
            >>> grains = carom.Bodies(100, dof=3)
            >>> floor = carom.Contacts.each(grains, carom.shapes.half_plane((0, 1)), data=1.0, friction=0.5)
        """
        laws = (friction, restitution, tangential_restitution)
        return WorldContacts.of(bodies, wall, data, laws, materials)

    @property
    def has_friction(self) -> bool:
        """Whether the contacts have tangential directions."""
        return self.slip is not None or self.slip_velocity is not None

    @property
    def functions(self) -> tuple[Any, ...]:
        """The user's functions of gap and slip, None where there is none."""
        return self.gap, self.slip, self.slip_velocity

    @property
    def has_slip_velocity(self) -> bool:
        """Whether slip velocities are the user's, in contrast to rates of displacements."""
        return self.slip_velocity is not None

    def gaps(self, given: Any, t: Array, q: Array) -> Array:
        """g(t, q), one entry per contact."""
        g = jnp.atleast_1d(jnp.asarray(self.gap(given, t=t, q=q), float))
        for name in ("friction", "restitution", "tangential_restitution"):
            size = getattr(self, name).size
            if g.ndim != 1 or size not in (1, g.size):
                msg = f"Contacts: gap must return one number per contact, and {name} fit it: got {g.shape} and {size}"
                raise ValueError(msg)
        if self.names and len(self.names) != g.size:
            msg = f"Contacts: names has {len(self.names)} entries, but gap gives {g.size} contacts"
            raise ValueError(msg)
        return g

    def slip_rates(self, given: Any, t: Array, q: Array, rate: Array, v: Array) -> Array:
        """gamma_T, one row per contact and one column per tangential direction."""
        if self.slip is not None:
            slip = self.slip
            position = lambda s, x: jnp.asarray(slip(given, t=s, q=x), float)  # noqa: E731
            return _columns(jax.jvp(position, (t, q), (jnp.ones_like(t), rate))[1], "slip")
        assert self.slip_velocity is not None
        return _columns(jnp.asarray(self.slip_velocity(given, t=t, q=q, v=v), float), "slip_velocity")


class FrictionElements(eqx.Module):
    """Dry friction without a contact, with a given limit of the force: brakes, clutches, prestressed springs.

    Args:
        slip_velocity: `(q, v)` or `(t, q, v)`, affine in v: one entry per element, or one pair per element for friction
            in a plane.
        limit: largest force, a number or one per element; for one-dimensional elements also one pair
            `[lowest, highest]` per element, of any sign and possibly infinite (a one-way clutch is `[0, inf]`);
            or a function of `(t, q, v)` that returns one of these, taken at the start of a step; or of
            `(t, q, v, lam)`, which sees the multipliers of the constraints: friction in joints.

    Example:
        >>> brake = carom.FrictionElements(slip_velocity=lambda q, v: v[:1], limit=2.0)
        >>> guide = carom.FrictionElements(lambda q, v: v[:1], limit=lambda t, q, v, lam: 0.3 * jnp.abs(lam[:1]))
    """

    slip_velocity: UserFunction
    limit: Array | UserFunction

    has_slip_velocity: ClassVar[bool] = True

    def __init__(self, slip_velocity: Callable[..., Any], limit: ArrayLike | Callable[..., Any]):
        self.slip_velocity = user_function(slip_velocity, "slip_velocity", ("q", "v"), ("t", "q", "v"))
        if callable(limit):
            self.limit = user_function(limit, "limit", ("t", "q", "v"), ("t", "q", "v", "lam"))
            return
        values = reals(limit, "FrictionElements: limit", "a number, or one number or pair per element")
        pairs = values.ndim == 2 and values.shape[1] == 2
        if values.ndim > 1 and not pairs:
            msg = f"FrictionElements: limit must be a number, or one number or pair per element, got {values.shape}"
            raise ValueError(msg)
        self.limit = jnp.asarray(judged(values, _judge_limit))

    def slip_rates(self, given: Any, t: Array, q: Array, rate: Array, v: Array) -> Array:
        """gamma, one row per element and one column per direction."""
        del rate
        return _columns(jnp.asarray(self.slip_velocity(given, t=t, q=q, v=v), float), "slip_velocity")

    @property
    def reads_multipliers(self) -> bool:
        """Whether the limit follows from the multipliers of the constraints."""
        return isinstance(self.limit, UserFunction) and "lam" in self.limit.takes

    @property
    def only_watches(self) -> bool:
        """Whether elements have no force, and their signs alone are of interest."""
        known = not isinstance(self.limit, UserFunction) and not is_traced(self.limit)
        return known and bool(np.all(np.abs(np.asarray(self.limit)) <= NO_FORCE))

    def limits(self, given: Any, t: Array, q: Array, v: Array, lam: Array, elements: int) -> Array:
        """Pairs [lowest, highest] of every element (a disk has the radius `highest`)."""
        values = self.limit
        if isinstance(values, UserFunction):
            values = jnp.asarray(values(given, t=t, q=q, v=v, lam=lam), float)
        if values.shape == (elements, 2):
            return values
        if values.size not in (1, elements):
            msg = f"FrictionElements: limit has shape {values.shape}, but there are {elements} elements"
            raise ValueError(msg)
        high = jnp.broadcast_to(values.reshape(-1), (elements,))
        return jnp.stack([-high, high], axis=1)


def one_or_several(value: Any, kind: type, name: str, hint: str) -> Any:
    """A record, a tuple of several, or None; a list of one is that one."""
    records = tuple(value) if isinstance(value, (list, tuple)) else () if value is None else (value,)
    for record in records:
        if not isinstance(record, kind):
            wanted = kind.__name__.removeprefix("Abstract")
            msg = f"{name} must be a carom.{wanted} or a list of them, got {type(record).__name__}; {hint}"
            raise TypeError(msg)
    return records if len(records) > 1 else records[0] if records else None


def refuse_repeated_names(groups: Iterable[AbstractContacts]) -> None:
    """Raise where two contacts of a system have one name."""
    repeated = [name for name, times in Counter(name for group in groups for name in group.names).items() if times > 1]
    if repeated:
        msg = f"names of contacts must differ within a system, but {names_of(repeated)} occurs more than once"
        raise ValueError(msg)


def _columns(values: Array, name: str) -> Array:
    values = jnp.atleast_1d(values)
    if values.ndim > 2 or (values.ndim == 2 and values.shape[1] not in (1, 2)):
        msg = f"{name} must return one number or one pair per law, got shape {values.shape}"
        raise ValueError(msg)
    return values[:, None] if values.ndim == 1 else values


def _judge_limit(values: np.ndarray) -> None:
    pairs = values.ndim == 2
    if np.isnan(values).any() or (values[:, 0] > values[:, 1] if pairs else values < 0).any():
        msg = f"FrictionElements: limit must be zero or positive, or pairs [lowest, highest], got {values.tolist()}"
        raise ValueError(msg)
