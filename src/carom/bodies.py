"""How the flat vectors q and v of a system are cut into equal bodies."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import per_entry, user_function, whole
from carom.state import Numbers, strong


class Bodies(eqx.Module):
    """`count` bodies one after another, with `dof` velocities each (and `coordinates`, where q is longer than v).

    A slice selects some of them: `bodies[10:20]` reads and acts on these alone, within the q and v of all.

    Example:
        >>> grains = carom.Bodies(1000, dof=3)  # q.reshape(1000, 3) is x, y, angle
        >>> mass = grains.mass(m, m, J)
        >>> weight = grains.each(lambda q, m: 9.81 * m * q[1], data=m)
    """

    count: int = eqx.field(static=True)
    dof: int = eqx.field(static=True)
    coordinates: int = eqx.field(static=True)
    rows: range = eqx.field(static=True)

    def __init__(self, count: int, dof: int, coordinates: int | None = None):
        self.count = whole(count, "Bodies: count", 1)
        self.dof = whole(dof, "Bodies: dof", 1)
        self.coordinates = self.dof if coordinates is None else whole(coordinates, "Bodies: coordinates", 1)
        self.rows = range(self.count)

    def __len__(self) -> int:
        """How many bodies are selected."""
        return len(self.rows)

    def __getitem__(self, selected: slice | int) -> Bodies:
        """The bodies of a slice (or one of them)."""
        rows = self.rows[selected] if isinstance(selected, slice) else None
        if isinstance(selected, (int, np.integer)) and -len(self) <= selected < len(self):
            rows = self.rows[selected : selected + 1 or None]
        if not rows:
            msg = f"bodies[{selected}] selects none of the {len(self)} bodies: give a slice such as bodies[10:20]"
            raise IndexError(msg)
        view = Bodies(self.count, self.dof, self.coordinates)
        object.__setattr__(view, "rows", rows)
        return view

    @property
    def _slice(self) -> slice:
        stop = self.rows[-1] + self.rows.step
        return slice(self.rows[0], stop if stop >= 0 else None, self.rows.step)

    def positions(self, q: Float[Array, " q"]) -> Float[Array, "bodies coordinates"]:
        """The coordinates of q, one row per body."""
        return self._cut(q, self.coordinates, "q", "coordinates")[self._slice]

    def velocities(self, v: Float[Array, " v"]) -> Float[Array, "bodies dof"]:
        """The entries of v, one row per body."""
        return self._cut(v, self.dof, "v", "velocities")[self._slice]

    def _cut(self, x: Array, each: int, name: str, what: str) -> Array:
        if jnp.shape(x) != (self.count * each,):
            msg = (
                f"{name} must have {self.count * each} entries ({self.count} bodies with {each} {what} each), "
                f"got shape {jnp.shape(x)}: check count, dof and coordinates of Bodies"
            )
            raise ValueError(msg)
        return jnp.reshape(x, (self.count, each))

    def mass(self, *masses: Numbers) -> Float[Array, " v"]:
        """Masses and moments of inertia, one argument per velocity of a body, each a number or one per body.

        Example:
            >>> carom.Bodies(2, dof=3).mass(1.0, 1.0, [0.4, 0.5])  # [1, 1, 0.4, 1, 1, 0.5]
        """
        if len(self) != self.count:
            msg = "mass is that of all bodies, not of a selection: write bodies.mass(...)"
            raise ValueError(msg)
        if len(masses) != self.dof:
            msg = f"mass needs one argument per velocity of a body ({self.dof}), got {len(masses)}"
            raise TypeError(msg)
        columns = [per_entry(m, f"mass: argument {k}", self.count, "body", positive=True) for k, m in enumerate(masses)]
        return jnp.stack(columns, 1).reshape(-1)

    def each(self, f: Callable[..., Any], data: Any = None) -> Each:
        """The same function of one body for all of them: energies are summed, forces are put one after another.

        Args:
            f: an energy of one body, `f(q)` or `f(t, q)`, or a force on it, `f(t, q, v)`; with `data`, that of the body
                is one more argument at the end. As elsewhere, arguments named `p` and `elapsed` are filled by name.
            data: array, or pytree of arrays, with one row per body; numbers are the same for all.

        Example:
            >>> system = carom.System(mass=grains.mass(m, m, J), potential=grains.each(lambda q, m: m * q[1], data=m))
        """
        last = () if data is None else ("data",)
        wrapped = user_function(f, "each: f", *((*places, *last) for places in (("q",), ("t", "q"), ("t", "q", "v"))))
        places = tuple(name for name in wrapped.takes if name != "data")
        return Each(self, f, None if data is None else self._rows_of(data), places, wrapped.named)

    def _rows_of(self, data: Any) -> Any:
        for path, leaf in jax.tree_util.tree_leaves_with_path(data):
            if np.ndim(leaf) and np.shape(leaf)[0] != len(self):
                where = jax.tree_util.keystr(path)
                msg = f"each: data{where} must have one row per body ({len(self)}), got shape {np.shape(leaf)}"
                raise ValueError(msg)
        return jax.tree.map(lambda x: x if jnp.ndim(x) else jnp.broadcast_to(x, (len(self),)), strong(data))


class Each(eqx.Module):
    """A function of one body, applied to many; see `Bodies.each`."""

    bodies: Bodies
    f: Callable[..., Any]
    data: Any
    places: tuple[str, ...] = eqx.field(static=True)
    named: tuple[str, ...] = eqx.field(static=True)

    @property
    def __signature__(self) -> inspect.Signature:
        """The arguments, for who has to know them."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in (*self.places, *self.named)])

    def __call__(self, *given: Any, **named: Any) -> Array:
        """The sum of the energies, or the vector of the forces."""
        bodies, at = self.bodies, dict(zip(self.places, given, strict=True))
        cut = {"q": bodies.positions, "v": bodies.velocities}
        rows = [cut[name](x) if name in cut else x for name, x in at.items()]
        axes = [0 if name in cut else None for name in at]
        if self.data is not None:
            rows, axes = [*rows, self.data], [*axes, 0]
        values = jax.vmap(lambda *row: jnp.asarray(self.f(*row, **named), float), axes)(*rows)
        return self._forces(values) if "v" in self.places else self._energy(values)

    def _energy(self, values: Array) -> Array:
        if values.shape[1:] not in ((), (1,)):
            msg = f"each: an energy f({', '.join(self.places)}) must return one number per body, got {values.shape[1:]}"
            raise ValueError(msg)
        return jnp.sum(values)

    def _forces(self, values: Array) -> Array:
        bodies = self.bodies
        if values.size != len(bodies) * bodies.dof:
            msg = f"each: a force f(t, q, v) must return {bodies.dof} numbers per body, got shape {values.shape[1:]}"
            raise ValueError(msg)
        values = values.reshape(len(bodies), bodies.dof)
        whole = jnp.zeros((bodies.count, bodies.dof), values.dtype).at[bodies._slice].set(values)
        return (values if len(bodies) == bodies.count else whole).reshape(-1)
