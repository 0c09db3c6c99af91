"""Solution: what happened, and the evidence that it can be trusted."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.methods.base import AbstractMethod, hermite, jet, quintic
from carom.running.compiled import compiled
from carom.state import Carry, Clock, State, Status, reals
from carom.stepping.base import AbstractStepping
from carom.systems.arguments import users_frame
from carom.systems.contact_rows import event_table
from carom.systems.system import System

if TYPE_CHECKING:
    import pandas
    import xarray

_LOOK_BACK = 4  # rows a stepping may still take back


class RowStore:
    """The rows of one trajectory on the host: appended in chunks, rows taken back by the stepping dropped."""

    def __init__(self, start: State):
        self.start = start
        self.fields = _fields(("k", "keep", "t", "h", "q", "v"), ((), (), (), (), start.q.shape, start.v.shape))
        self.chunks: list[np.ndarray] = []
        self.wanted: np.ndarray | None = None
        self.newest = 0.0

    def append(self, rows: np.ndarray) -> None:
        """Add a chunk. A kept row replaces all rows from its k on; a row not kept takes back all rows after its k."""
        if not len(rows):
            return
        k, keep = rows[:, 0], rows[:, 1] > 0
        drop_from = np.where(keep, k, k + 1)
        later = np.minimum.accumulate(np.append(drop_from[1:], np.inf)[::-1])[::-1]
        while self.chunks and self.chunks[-1][-1, 0] >= drop_from.min():
            kept = self.chunks[-1][self.chunks[-1][:, 0] < drop_from.min()]
            self.chunks[-1:] = [kept] if len(kept) else []
        self.add(rows[keep & (k < later)])

    def add(self, rows: np.ndarray) -> None:
        """Add rows that follow the ones there."""
        if len(rows):
            self.chunks.append(rows)
            self.newest = rows[-1, 0]
        if self.wanted is not None:
            self._thin(self.wanted)

    def thin_to(self, times: np.ndarray, t0: float, t1: float) -> None:
        """Keep only rows that bracket one of these times (and the newest few, which may be taken back)."""
        times = np.atleast_1d(times)
        if times.ndim != 1 or not times.size or not np.all((times >= t0) & (times <= t1)):
            msg = f"save_at must be times between {t0:g} and {t1:g}, got {times}"
            raise ValueError(msg)
        self.wanted = np.sort(times) - t0

    def _thin(self, wanted: np.ndarray) -> None:
        rows = np.concatenate(self.chunks) if self.chunks else np.zeros((0, 1))
        if len(rows) <= _LOOK_BACK:
            return
        t = rows[:, self.fields["t"][0]].ravel()
        needed = np.zeros(len(rows), bool)
        after = np.searchsorted(t, wanted)
        needed[np.clip(after, 0, len(t) - 1)] = True
        needed[np.clip(after - 1, 0, len(t) - 1)] = True
        needed[-_LOOK_BACK:] = True
        if "event" in self.fields:
            needed |= np.any(rows[:, self.fields["event"][0]] != 0, axis=1)
        self.chunks = [rows[needed]]

    def latest(self) -> str:
        """Step size and contacts of the newest row, in words for the progress bar."""
        if not self.chunks:
            return ""
        row = self.chunks[-1][-1]
        closed = f", {int(np.sum(row[self.fields['mode'][0]] == 0))} laws closed" if "mode" in self.fields else ""
        return f"h = {float(row[self.fields['h'][0]][0]):.2g}{closed}"

    def snapshot(self, carry: Carry) -> Columns:
        """The columns of the rows stored so far, the start as row 0."""
        return Columns(self.start, self.fields, tuple(self.chunks), carry)


class Columns(Mapping[str, np.ndarray]):
    """Stored rows by column; a column is put together when it is first asked for.

    Rows hold the time since the start, the column `elapsed`; `t` is the user's.
    """

    def __init__(self, start: State, fields: Fields, chunks: tuple[np.ndarray, ...], carry: Carry):
        names = {"t": "elapsed"}
        self.fields = {names.get(name, name): place for name, place in fields.items() if name != "keep"}
        self.start, self.chunks, self.carry = start, chunks, carry
        self.known: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name == "t" and name not in self.known:
            self.known[name] = Clock.of(self.carry).time(self["elapsed"])
        if name not in self.known:
            place, shape = self.fields[name]
            first = np.asarray(getattr(self.start, name)) if name in ("q", "v") else np.zeros(shape)
            rows = np.concatenate([first.reshape(1, -1), *(chunk[:, place] for chunk in self.chunks)])
            values = rows.reshape(len(rows), *shape)
            self.known[name] = values.astype(int) if name in _WHOLE else values
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("t", *self.fields))

    def __len__(self) -> int:
        return 1 + len(self.fields)

    def __or__(self, others: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**self, **others}


def append(stores: list[RowStore], layout: Any, rows: np.ndarray) -> None:
    """Add a chunk of every lane, (rows, lanes, width); lanes in which nothing is dropped need no closer look."""
    if len(stores[0].fields) != len(layout.names):
        fields = _fields(layout.names, layout.shapes)
        for store in stores:
            store.fields = fields
    k, keep = rows[:, :, 0], rows[:, :, 1] > 0
    after_newest = np.all(k[:1] > np.array([store.newest for store in stores]), axis=0)
    follows = after_newest & np.all(keep, axis=0) & np.all(k[1:] > k[:-1], axis=0)
    for lane, store in enumerate(stores):
        (store.add if follows[lane] else store.append)(rows[:, lane])


Fields = dict[str, tuple[slice, tuple[int, ...]]]


@functools.lru_cache
def _fields(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> Fields:
    """Where each field stands in a packed row, and its shape."""
    ends = itertools.accumulate(math.prod(shape) for shape in shapes)
    return {n: (slice(end - math.prod(shape), end), shape) for n, shape, end in zip(names, shapes, ends)}


_WHOLE = ("k", "status", "iterations", "evaluations", "mode", "event", "order")


@dataclass(frozen=True)
class Account:
    """The evidence: energies and residuals per saved row, and the worst of each.

    `extra` holds, where they apply, per saved row: "contact work" (done by the contact laws in the step, negative where
    they dissipate), "penetration" (negative gaps), "drift" (residual of the constraints), and what the method adds.
    `totals` holds what is summed over all steps, saved or not.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    residual: np.ndarray
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @property
    def worst(self) -> dict[str, float]:
        """Each piece of evidence as one number.

        "residual": largest residual of the equations of a step. "energy rise" and "energy loss": how far the energy
        went above and below its start, never negative. "contact work": total over all steps, with its sign. All others:
        largest size over rows and entries.
        """
        change = self.energy - self.energy[0]
        worst = {
            "residual": float(np.max(self.residual, initial=0.0)),
            "energy rise": float(np.max(change)),
            "energy loss": float(-np.min(change) + 0.0),
        }
        sizes = {name: float(np.max(np.abs(values), initial=0.0)) for name, values in self.extra.items()}
        return worst | sizes | self.totals


class Solution:
    """The motion, row by row, with what the steps recorded.

    Attributes `t, q, v, h` are NumPy arrays with one row per saved step; row 0 is the start (with h = 0). `elapsed` is
    the time since the start, exact where `t` is large. `v` is the right limit where velocities jump. `state` is the
    last state, to start from; `account` holds the evidence, `stats` the counters; `choice` what `carom.solve` picked
    and why, None if the method was given; `notes` where a stored run comes from.
    """

    def __init__(
        self,
        system: System,
        method: AbstractMethod,
        stepping: AbstractStepping,
        columns: Mapping[str, np.ndarray],
        carry: Carry,
        timing: dict[str, float],
        choice: Any = None,
        clock: Clock | None = None,
    ):
        self.system, self.method, self.stepping = system, method, stepping
        self.columns, self.carry, self.timing = columns, carry, timing
        self.choice = choice
        self.notes: dict[str, Any] = {}
        if clock is not None:
            self.clock = clock

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        if name in ("impulse", "mode", "multiplier", "order", "event", "work"):
            msg = f"{type(self.method).__name__} records no '{name}'"
            raise AttributeError(msg)
        msg = f"'Solution' has no attribute '{name}'; recorded are {', '.join(columns)}"
        raise AttributeError(msg)

    def __len__(self) -> int:
        return len(self.columns["t"])

    def __repr__(self) -> str:
        n = self.columns["q"].shape[1]
        coordinates = "1 coordinate" if n == 1 else f"{n} coordinates"
        span = f"t = {self.t[0]:g} to {self.t[-1]:g}"
        return (
            f"<Solution of {type(self.method).__name__}: {len(self)} rows, {coordinates}, {span}, {self.status.name}>"
        )

    def _repr_html_(self) -> str:
        """The run in a notebook: evidence and a small picture."""
        from carom.display import solution_html

        return solution_html(self)

    @property
    def status(self) -> Status:
        """How the run ended."""
        return Status(int(self.carry.status))

    @property
    def state(self) -> State:
        """The last accepted state."""
        s = self.carry.state
        system = self.system.since(self.carry.epoch)
        return State(s.q, system.outer_velocity(s.t, s.q, s.v), Clock.of(self.carry).time(s.t))

    @cached_property
    def clock(self) -> Clock:
        """From elapsed times to those of the user."""
        return Clock.of(self.carry)

    @property
    def running(self) -> System:
        """The system as the run saw it: its t is `elapsed`."""
        return self.system.since(self.clock.epoch)

    @property
    def force(self) -> np.ndarray:
        """Contact forces: impulse / h."""
        h = self.columns["h"]
        return self.impulse / np.where(h > 0, h, np.inf)[:, None]

    @cached_property
    def events(self) -> np.recarray:
        """Switching points in order of time: `time`, `contact` and `kind` (closes, opens, sticks, slips, reverses).

        `time` is the instant from which the new mode acts; friction elements count on after the contacts.
        """
        return event_table(self.system, self.state, self.t - self.h, self.event)

    @property
    def stats(self) -> dict[str, float]:
        """Counters (accepted, rejected, evaluations, iterations) and times."""
        counts = self.carry.counts
        return dict(zip(counts.names, np.asarray(counts.values).tolist())) | self.timing

    @cached_property
    def account(self) -> Account:
        """Energies and residuals of the saved rows."""
        n, rows = len(self), repeated_last(len(self))
        t, q, v, system = self.elapsed[rows], self.q[rows], self.v[rows], self.running
        kinetic, potential = (np.asarray(e)[:n] for e in energies(system, t, q, v))
        extra = {
            name.removeprefix("extra."): values for name, values in self.columns.items() if name.startswith("extra.")
        }
        residual = self.columns.get("residual", np.zeros(len(self)))
        totals = {}
        if "work" in self.columns:
            extra["contact work"] = self.work
            totals["contact work"] = self.contact_work
        if system.contacts is not None:
            extra["penetration"] = np.maximum(-np.asarray(_gaps(system, t, q))[:n], 0.0)
        if system.constraints is not None:
            extra["drift"] = np.asarray(_drift(system, t, q))[:n]
        if not np.isfinite(potential).all():
            when = self.t[np.argmax(~np.isfinite(potential))]
            warnings.warn(f"the potential is not finite at t = {when:.9g}", stacklevel=users_frame())
        extra |= self.method.evidence(self, kinetic + potential)
        return Account(kinetic, potential, residual, extra, totals)

    @property
    def contact_work(self) -> float:
        """Work of contacts and friction over all steps, saved or not; negative where they dissipate."""
        totals = np.asarray(self.carry.work)
        return float(totals[int(self.carry.k) % totals.size])

    def at(self, times: Any) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities at any times inside the run, by Hermite interpolation between saved rows.

        Of order 6, from the equations of motion and their time derivative at both ends, where contact forces are known
        there; else cubic for positions and linear for velocities.
        """
        times = np.atleast_1d(np.asarray(reals(times, "times", "a list of times")))
        if times.min() < self.t[0] or times.max() > self.t[-1]:
            msg = f"times must lie between {self.t[0]:g} and {self.t[-1]:g}"
            raise ValueError(msg)
        system, rows, times = self.running, self.elapsed, self._elapsed(times)
        right = np.clip(np.searchsorted(rows, times), 1, len(self) - 1)
        left = right - 1
        v_left_limit = self.columns.get("v_minus", self.columns["v"])
        mode = self.columns["mode"][right] if "mode" in self.columns else None
        ends = [
            (rows[i], self.q[i], np.asarray(_velocities(system, False, rows[i], self.q[i], v[i])))
            for i, v in ((left, self.v), (right, v_left_limit))
        ]
        inner = ((system.beside(t, side), q, v) for (t, q, v), side in zip(ends, (1, -1)))  # forces may jump
        jets = [_jets(system, self.method, *end, mode) for end in inner]
        q, v = between(ends, jets, times)
        v = np.asarray(_velocities(system, True, times, q, v))
        exact = times == rows[right]
        return np.where(exact[:, None], self.q[right], q), np.where(exact[:, None], self.v[right], v)

    def _elapsed(self, times: np.ndarray) -> np.ndarray:
        """The time since the start; of the times of rows that of the row."""
        elapsed, rows = times - self.clock.epoch, self.elapsed
        right = np.clip(np.searchsorted(rows, elapsed), min(1, len(rows) - 1), len(rows) - 1)
        nearest = np.where(np.abs(rows[right - 1] - elapsed) < np.abs(rows[right] - elapsed), right - 1, right)
        return np.where(self.t[nearest] == times, rows[nearest], elapsed)

    def interpolated(self, times: Any) -> Solution:
        """The solution at given times: q and v interpolated, everything else from the step that contains the time."""
        times = np.atleast_1d(np.asarray(times, float))
        elapsed = self._elapsed(times)
        rows = np.clip(np.searchsorted(self.elapsed, elapsed), 0, len(self) - 1)
        columns = {name: values[rows] for name, values in self.columns.items()}
        columns["q"], columns["v"] = self.at(times)
        columns["t"], columns["elapsed"] = times, elapsed
        parts = (self.system, self.method, self.stepping)
        sampled = Solution(*parts, columns, self.carry, self.timing, self.choice, self.clock)
        sampled.notes = self.notes
        if "event" in columns:
            sampled.events = self.events  # those between the times as well
        return sampled

    def to_xarray(self) -> xarray.Dataset:
        """The rows as a dataset with labelled coordinates; for a table use `to_pandas`.

        The dataset's own `to_dataframe` would give a row for every combination of time, coordinate, velocity and law.
        """
        from carom.files.storage import to_dataset

        return to_dataset(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a table, a column per number: `q.x`, `v.x`, `impulse.0`; the time is its index.

        Example:
            >>> sol.to_pandas().to_csv("run.csv")
        """
        from carom.files.storage import to_frame

        return to_frame(self)

    def save(self, path: Any) -> None:
        """Write the rows and all that `carom.resume` needs to a netCDF file, replacing it atomically."""
        from carom.files.storage import save

        save(self, path)


def repeated_last(n: int) -> np.ndarray:
    """Indices of n rows, the last repeated up to a power of two: runs of other lengths share compiled programs."""
    return np.minimum(np.arange(1 << (n - 1).bit_length()), n - 1)


@compiled
def energies(system: System, t: Any, q: Any, v: Any) -> tuple[jax.Array, jax.Array]:
    """Kinetic and potential energy of rows."""

    def one(row):
        t, q, v = row
        return system.kinetic_energy(t, q, v), system.potential_energy(t, q)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))


@compiled
def _gaps(system: System, t: Any, q: Any) -> jax.Array:
    return jax.lax.map(lambda row: system.gaps(*row), (jnp.asarray(t), jnp.asarray(q)))


@compiled
def _drift(system: System, t: Any, q: Any) -> jax.Array:
    return jax.lax.map(lambda row: system.constraint(*row), (jnp.asarray(t), jnp.asarray(q)))


@compiled
def _velocities(system: System, outer: bool, t: Any, q: Any, v: Any) -> jax.Array:
    """The velocities of rows the user sees, or those a method steps."""
    convert = system.outer_velocity if outer else system.inner_velocity
    return jax.lax.map(lambda row: convert(*row), (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))


@compiled
def _jets(system: System, method: AbstractMethod, t: Any, q: Any, v: Any, mode: Any) -> Any:
    """First and second derivatives of q and v at rows; only q' where contact forces are not known."""

    def one(row):
        *place, mode = row
        field = method.field(system, mode)
        return ((system.rate(*place), None), None) if field is None else jet(field, *place)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v), mode))


def between(ends: Any, jets: Any, times: np.ndarray) -> list[np.ndarray]:
    """Q and v between rows (t, q, v) and the next ones, with the derivatives of `_jets`.

    The second derivative of a stiff motion is mostly rounding and truncation errors; where it would correct the cubic
    by more than the cubic corrects the straight line, it is left out.
    """
    start, end = ends
    (slope0, bend0), (slope1, bend1) = jax.tree.map(np.asarray, jets)
    a, b, t = start[0][:, None], end[0][:, None], times[:, None]
    values = []
    for i in (0, 1):
        y0, y1 = start[1 + i], end[1 + i]
        secant = (y1 - y0) / np.where(b > a, b - a, 1.0)
        line = y0 + (t - a) * secant
        if slope0[i] is None:
            values.append(line)
            continue
        cubic = hermite(a, b, y0, y1, slope0[i], slope1[i], t)
        if bend0 is None:
            values.append(cubic)
            continue
        fine = quintic(a, b, (y0, slope0[i], bend0[i]), (y1, slope1[i], bend1[i]), t)
        better = np.abs(fine - cubic).max(1) <= np.abs(cubic - line).max(1)
        values.append(np.where(better[:, None], fine, cubic))
    return values
