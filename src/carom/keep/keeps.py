"""All keeps of a run together: which rows are written, and how their memories change with accepted steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import whole
from carom.keep.base import AbstractKeep, Taken, ring_of, unknown
from carom.keep.places import Times
from carom.methods.base import AbstractMethod
from carom.state import Row, State, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.system import System

PyTree = Any
RECENT = 8  # steps, more than a stepping goes back
_NEVER = 10**17
_ALWAYS = ("k", "keep", "t", "h")


class Columns(eqx.Module):
    """The rows of the solution: these columns of every n-th step, of the first and of the last.

    Without names all columns are kept. Steps with events are kept too if the column "event" is. The columns "t", "h"
    and "k" are always there.

    Example:
        >>> sol = carom.simulate(system, state, method, t1=1.0, h=1e-4, keep=[carom.keep.columns("t", "q", every=10)])
        >>> sol.t, sol.q
    """

    names: tuple[str, ...] = eqx.field(static=True)
    every: int = eqx.field(static=True)

    def __init__(self, *names: str, every: int = 1):
        for i, name in enumerate(names):
            if not isinstance(name, str):
                msg = f"keep.columns: names must be texts such as 'q', got {shortened(name)}"
                raise TypeError(msg)
            if name in names[:i]:
                msg = f"keep.columns: '{name}' is named twice"
                raise ValueError(msg)
        self.names, self.every = names, whole(every, "keep.columns: every", 1)


class Keeps(eqx.Module):
    """What a run keeps: memories by name, and the columns of its rows (None: of the first and the last row alone)."""

    entries: dict[str, AbstractKeep]
    columns: Columns | None

    @classmethod
    def of(cls, keep: Any) -> Keeps:
        """From a list, with names such as "section 0", or a dict of keeps."""
        named = dict(keep) if isinstance(keep, Mapping) else dict(enumerate(_listed(keep)))
        kinds = [one.kind if isinstance(one, AbstractKeep) else None for one in named.values()]
        entries, rows = {}, []
        for i, (name, one) in enumerate(named.items()):
            if isinstance(one, (Columns, Times)):
                rows.append(one)
            if isinstance(one, AbstractKeep):
                usual = f"{one.kind} {kinds[:i].count(one.kind)}"
                entries[_checked(name) if isinstance(keep, Mapping) else usual] = one
            elif not isinstance(one, Columns):
                kind = getattr(one, "__name__", "") if isinstance(one, type) else ""
                got = f"the class {kind}; write {kind.lower()}(...)" if kind else shortened(one)
                msg = f"keep[{name!r}] must be a keep such as carom.keep.final(), got {got}"
                raise TypeError(msg)
        if len(rows) > 1:
            msg = "keep: give one of columns and times, once: each decides which rows the solution has"
            raise ValueError(msg)
        columns = rows[0] if rows and isinstance(rows[0], Columns) else Columns() if rows else None
        return cls(entries, columns)

    @property
    def every(self) -> int:
        """The stride of the rows."""
        return _NEVER if self.columns is None else self.columns.every

    @property
    def times(self) -> tuple[str, Times] | None:
        """The name and the times at which the solution has its rows, if any are given."""
        return next(((name, one) for name, one in self.entries.items() if isinstance(one, Times)), None)

    @property
    def has_all_columns(self) -> bool:
        """Whether rows are whole (without their events, if there are only two)."""
        return self.columns is None or not self.columns.names

    @property
    def growing(self) -> list[str]:
        """The keeps whose places the host must take."""
        return [name for name, one in self.entries.items() if one.grows]

    def check(self, system: System, state: State, t1: float) -> None:
        """Raise before a run for what cannot be kept."""
        for name, one in self.entries.items():
            one.check(name, system, state, t1)

    def row(self, row: Row, method: AbstractMethod) -> Row:
        """The row with its columns that are kept."""
        found = row.columns
        wanted = [name for name in found if name != "event"] if self.columns is None else list(self.columns.names)
        for name in wanted:
            if name not in found:
                raise ValueError(unknown(name, found, "columns", method))
        if not wanted:
            return row
        leaves = [leaf if name in wanted or name in _ALWAYS else None for name, leaf in found.items()]
        return jax.tree.unflatten(jax.tree.structure(row), leaves)

    # ---- memories --------------------------------------------------------------------------------------------------

    def init(self, system: System, state: State, stepping: AbstractStepping) -> PyTree:
        """The memories before the first step; where a stepping goes back, those after the latest steps one by one."""
        first = {name: one.init(system, state) for name, one in self.entries.items()}
        if not stepping.goes_back:
            return first
        return jax.tree.map(lambda x: jnp.repeat(x[None], RECENT, axis=0), jax.tree.map(jnp.asarray, first))

    def after(self, kept: PyTree, k: Array, taken: Taken) -> PyTree:
        """The memories after an attempt that began after step k."""
        before = current(kept, k, taken.stepping)
        new = {name: one.update(before[name], taken) for name, one in self.entries.items()}
        if not taken.stepping.goes_back:
            return new
        slot = jnp.where(taken.accepted, taken.row.k % RECENT, RECENT)
        return jax.tree.map(lambda recent, x: recent.at[slot].set(x, mode="drop"), kept, new)

    def not_finite(self, kept: PyTree, k: Array, stepping: AbstractStepping) -> Array | None:
        """Whether a function was NaN; None if there is no function that could be."""
        memories = current(kept, k, stepping)
        found = [one.not_finite_at(memories[name]) for name, one in self.entries.items()]
        found = [jnp.isfinite(t) for t in found if t is not None]
        return jnp.any(jnp.stack(found)) if found else None

    def crowded(self, before: PyTree, now: PyTree) -> Array | None:
        """Whether the host must take places before more are found; None if it never must."""
        rings = [(ring_of(before[name]), ring_of(now[name])) for name in self.growing]
        full = [jnp.any(new.count - old.count >= new.rows.shape[-2] // 2) for old, new in rings if old and new]
        return jnp.any(jnp.stack(full)) if full else None


def current(kept: PyTree, k: Any, stepping: AbstractStepping) -> PyTree:
    """The memories after step k."""
    return jax.tree.map(lambda x: x[k % RECENT], kept) if stepping.goes_back else kept


def _listed(keep: Any) -> list[Any]:
    if not isinstance(keep, (list, tuple)):
        hint = "; write keep=[...]" if isinstance(keep, (AbstractKeep, Columns)) else ""
        msg = f"keep must be a list or a dict of keeps such as [carom.keep.final()], got {shortened(keep)}{hint}"
        raise TypeError(msg)
    return list(keep)


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not name or name != name.strip():
        msg = f"keep: names must be texts, got {shortened(name)}"
        raise TypeError(msg)
    return name
