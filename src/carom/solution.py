"""Solution: what happened, and the evidence that it can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from carom import over_rows
from carom.account import Account
from carom.arguments import users_frame
from carom.interpolation import between
from carom.methods.base import AbstractMethod
from carom.rows import Column
from carom.state import Carry, Clock, State, Status, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.backward import backward
from carom.systems.contact_rows import Happened, event_table
from carom.systems.listed_pairs import listed_energies
from carom.systems.system import System

if TYPE_CHECKING:
    import pandas
    import xarray

    from carom.contact_problems import LocalProblem


class Solution:
    """The motion, row by row, with what the steps recorded.

    Attributes `t, q, v, h` are NumPy arrays with one row per saved step; row 0 is the start (with h = 0). `elapsed` is
    the time since the start, exact where `t` is large; negative in a run that goes backward, where `h` stays a size.
    `v` is the right limit where velocities jump. `state` is the last state, to start from; `account` holds the
    evidence, `stats` the counters; `choice` what `carom.solve` picked and why, None if the method was given; `notes`
    where a stored run comes from; `kept` what was asked for by `keep=`, by name.
    """

    t = Column("Times of the rows; row 0 is the start.")
    elapsed = Column("Time since the start.")
    h = Column("Size of the step that ended in a row, 0 in row 0.")
    q = Column("Coordinates, (rows, coordinates).")
    v = Column("Velocities, (rows, velocities); right limits where they jump.")
    v_minus = Column("Left limits of the velocities.")
    k = Column("Number of the step.")
    residual = Column("Residual of the equations of the step.")
    iterations = Column("Iterations of the step.")
    evaluations = Column("Evaluations of forces in the step.")
    error = Column("Estimated error of the step over the tolerance.")
    order = Column("Order of the step, where it varies.")
    impulse = Column("Impulses of contacts and friction in the step, (rows, laws).")
    mode = Column("Modes of contacts and friction after the step, (rows, laws).")
    event = Column("Switching points of contacts and friction in the step, (rows, laws).")
    multiplier = Column("Multipliers of the constraints, (rows, constraints).")
    work = Column("Work of contacts and friction in the step, (rows, laws).")

    def __init__(
        self,
        system: System,
        method: AbstractMethod,
        stepping: AbstractStepping,
        columns: Mapping[str, np.ndarray],
        carry: Carry,
        timing: dict[str, float],
        choice: Any = None,
    ):
        self.system, self.method, self.stepping = system, method, stepping
        self.columns, self.carry, self.timing = columns, carry, timing
        self.choice = choice
        self.notes: dict[str, Any] = {}
        self.keeps: Any = None
        self.kept: dict[str, Any] = {}
        self.happened: Happened | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            columns = self.__dict__.get("columns", {})
            if name in columns:
                return columns[name]
            if isinstance(getattr(type(self), name, None), Column):
                msg = f"{type(self.method).__name__} records no '{name}'"
                raise AttributeError(msg)
            msg = f"'{type(self).__name__}' has no attribute '{name}'; recorded are {', '.join(columns)}"
            raise AttributeError(msg)

    def __dir__(self) -> list[str]:
        absent = {name for name, value in vars(Solution).items() if isinstance(value, Column)} - set(self.columns)
        return sorted(set(super().__dir__()) - absent)

    def __len__(self) -> int:
        return len(self.columns["t"])

    def __repr__(self) -> str:
        n = self.carry.state.q.shape[0]
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
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates, if they have any."""
        return self.system.labels

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the coordinates, one for all or one each, if they have any."""
        return self.system.units

    @property
    def time_unit(self) -> str:
        """Unit of the time, if it has one."""
        return self.system.time_unit

    @property
    def instants(self) -> np.ndarray:
        """Start, jumps of the forces, and the end that was asked for."""
        return np.asarray(self.carry.instants)

    @property
    def facts(self) -> dict[str, Any]:
        """What was run and where it comes from, as a file tells it."""
        from carom.files.datasets import attributes

        return attributes(self)

    @property
    def status(self) -> Status:
        """How the run ended."""
        return Status(int(self.carry.status))

    @property
    def state(self) -> State:
        """The last accepted state."""
        s = self.carry.state
        return State(s.q, self.stepped.outer_velocity(s.t, s.q, s.v), self.clock.time(s.t))

    @cached_property
    def clock(self) -> Clock:
        """From elapsed times to those of the user."""
        return Clock.of(self.carry)

    @property
    def running(self) -> System:
        """The system since the start of the run: its t is `elapsed`."""
        return self.system.since(self.clock.epoch)

    @property
    def stepped(self) -> System:
        """The system that the method stepped: another one where time runs backward."""
        return backward(self.system).since(self.clock.epoch) if self.clock.backward else self.running

    @property
    def force(self) -> np.ndarray:
        """Contact forces: impulse / h."""
        h = self.columns["h"]
        return self.impulse / np.where(h > 0, h, np.inf)[:, None]

    @cached_property
    def events(self) -> np.recarray:
        """Switching points in order of time: `time`, `contact` and `kind` (closes, opens, sticks, slips, reverses).

        `time` is the instant from which the new mode acts; friction elements count on after the contacts. Empty where
        no events are recorded.
        """
        if "event" not in self.columns:
            return event_table(self.system, self.state, np.zeros(0), np.zeros((0, 0), int))
        if self.happened is None:
            return event_table(self.system, self.state, self.t - self.h, self.event)
        later = self.columns["k"] > self.happened.k
        table = event_table(self.system, self.state, (self.t - self.h)[later], self.event[later])
        return np.concatenate([self.happened.table, table]).view(np.recarray)

    @property
    def stats(self) -> dict[str, float]:
        """Counters (accepted, rejected, evaluations, iterations; of listed pairs also unsolved) and times."""
        counts, pairs = self.carry.counts, self.carry.pairs
        unsolved = {} if pairs is None else {"unsolved": int(pairs.unsolved)}
        return dict(zip(counts.names, np.asarray(counts.values).tolist())) | unsolved | self.timing

    @cached_property
    def account(self) -> Account:
        """Energies and residuals of the saved rows."""
        n, rows = len(self), over_rows.repeated_last(len(self))
        t, q, v, system = self.elapsed[rows], self.q[rows], self.v[rows], self.running
        pairs = self.carry.pairs if system.pair_potentials else None
        both = over_rows.energies(system, t, q, v) if pairs is None else listed_energies(system, t, q, v, pairs)
        kinetic, potential = (np.asarray(e)[:n] for e in both)
        extra = {
            name.removeprefix("extra."): values for name, values in self.columns.items() if name.startswith("extra.")
        }
        residual = self.columns.get("residual", np.zeros(len(self)))
        totals = {}
        if "work" in self.columns and self.carry.work is not None:
            extra["contact work"] = self.work
            totals["contact work"] = self.contact_work
        if system.contacts is not None and not system.is_listed:
            extra["penetration"] = np.maximum(-np.asarray(over_rows.gaps(system, t, q))[:n], 0.0)
        if self.carry.pairs is not None:
            deepest, means = np.asarray(self.carry.pairs.depths).tolist()
            totals |= {"deepest penetration": deepest, "mean penetration": means / max(int(self.carry.k), 1)}
        if system.constraints is not None:
            extra["drift"] = np.asarray(over_rows.drift(system, t, q))[:n]
        if not np.isfinite(potential).all():
            when = self.t[np.argmax(~np.isfinite(potential))]
            warnings.warn(f"the potential is not finite at t = {when:.9g}", stacklevel=users_frame())
        extra |= self.method.evidence(self, kinetic + potential)
        return Account(kinetic, potential, residual, extra, totals)

    @property
    def contact_work(self) -> float:
        """Work of contacts and friction over all steps, saved or not; negative where they dissipate."""
        if self.carry.work is None:
            return 0.0
        totals = np.asarray(self.carry.work)
        return float(totals[int(self.carry.k) % totals.size])

    def at(self, times: Any) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities at any times inside the run, by Hermite interpolation between saved rows.

        Of order 6, from the equations of motion and their time derivative at both ends, where contact forces are known
        there; else cubic for positions and linear for velocities.
        """
        times = np.atleast_1d(np.asarray(reals(times, "times", "a list of times")))
        low, high = sorted((self.t[0], self.t[-1]))
        if times.ndim != 1 or not times.size or not ((times >= low) & (times <= high)).all():
            msg = f"times must lie between {low:g} and {high:g}, got {shortened(times.tolist())}"
            raise ValueError(msg)
        system, rows, times = self.stepped, self.clock.turned(self.elapsed), self._since_start(times)
        right = np.clip(np.searchsorted(rows, times), 1, len(self) - 1)
        left = right - 1
        v_left_limit = self.columns.get("v_minus", self.columns["v"])
        mode = self.columns["mode"][right] if "mode" in self.columns else None
        ends = [
            (rows[i], self.q[i], np.asarray(over_rows.velocities(system, False, rows[i], self.q[i], v[i])))
            for i, v in ((left, self.v), (right, v_left_limit))
        ]
        inner = ((system.beside(t, side), q, v) for (t, q, v), side in zip(ends, (1, -1)))  # forces may jump
        jets = [over_rows.jets(system, self.method, *end, mode) for end in inner]
        q, v = between(ends, jets, times)
        v = np.asarray(over_rows.velocities(system, True, times, q, v))
        exact = times == rows[right]
        return np.where(exact[:, None], self.q[right], q), np.where(exact[:, None], self.v[right], v)

    def _since_start(self, times: np.ndarray) -> np.ndarray:
        """The time since the start as the run counts it, rising; of the times of rows that of the row."""
        elapsed, rows = self.clock.turned(times - self.clock.epoch), self.clock.turned(self.elapsed)
        right = np.clip(np.searchsorted(rows, elapsed), min(1, len(rows) - 1), len(rows) - 1)
        nearest = np.where(np.abs(rows[right - 1] - elapsed) < np.abs(rows[right] - elapsed), right - 1, right)
        return np.where(self.t[nearest] == times, rows[nearest], elapsed)

    def contact_problem(self, t: float) -> LocalProblem:
        """The contact problem that the step containing t solved, with its closed contacts; for `MoreauMidpoint`.

        Its velocities are gamma_E + eps gamma_B. Rows of all steps must have been kept.

        Example:
            >>> carom.contact_problems.write(sol.contact_problem(0.1), "step.hdf5")
        """
        from carom.contact_problems.steps import of_step

        if not self.t[0] <= t <= self.t[-1] or len(self) < 2:
            msg = f"t must lie between {self.t[0]:g} and {self.t[-1]:g}"
            raise ValueError(msg)
        row = np.searchsorted(self.clock.turned(self.elapsed), self._since_start(np.asarray([float(t)])))[0]
        return of_step(self, max(int(row), 1))

    def interpolated(self, times: Any) -> Solution:
        """The solution at given times: q and v interpolated, everything else from the step that contains the time."""
        times = np.atleast_1d(np.asarray(times, float))
        elapsed = self._since_start(times)
        rows = np.clip(np.searchsorted(self.clock.turned(self.elapsed), elapsed), 0, len(self) - 1)
        columns = {name: values[rows] for name, values in self.columns.items()}
        columns["q"], columns["v"] = self.at(times)
        columns["t"], columns["elapsed"] = times, self.clock.turned(elapsed)
        sampled = Solution(self.system, self.method, self.stepping, columns, self.carry, self.timing, self.choice)
        sampled.notes, sampled.keeps, sampled.kept = self.notes, self.keeps, self.kept
        if "event" in columns:
            sampled.happened = Happened.of(self.events, int(self.carry.k))
        return sampled

    def to_xarray(self) -> xarray.Dataset:
        """The rows as a dataset with labelled coordinates; for a table use `to_pandas`.

        The dataset's own `to_dataframe` would give a row for every combination of time, coordinate, velocity and law.
        """
        from carom.files.datasets import to_dataset

        return to_dataset(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a table, a column per number: `q.x`, `v.x`, `impulse.0`; the time is its index.

        Example:
            >>> sol.to_pandas().to_csv("run.csv")
        """
        from carom.files.datasets import to_frame

        return to_frame(self)

    def save(self, path: Any) -> None:
        """Write the rows and all that `carom.resume` needs to a netCDF file, replacing it atomically."""
        from carom.files.writing import save

        save(self, path)
