"""State of a system, result of one step, status codes and the errors they become."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

if TYPE_CHECKING:
    from carom.solution import Solution

PyTree = Any
Numbers = ArrayLike | Sequence[Any]


class Status(enum.IntEnum):
    """How an attempt ended. Zero is success; every other value stops the run with `message`."""

    OK = 0
    NEWTON_DIVERGED = 1
    NOT_FINITE = 2
    CONTACT_NOT_SOLVED = 3
    STEP_TOO_SMALL = 4
    CONSTRAINTS_LOST_RANK = 5
    NO_POST_IMPACT_STATE = 6
    EVENT_NOT_LOCATED = 7
    TOO_MANY_EVENTS = 8
    STOPPED_SHORT = 9
    LIST_FULL = 10
    MAX_STEPS_REACHED = 11
    NOT_REACHED = 12
    NEEDS_RESCUE = 13
    NO_CONSISTENT_MODE = 20
    SEVERAL_CONSISTENT_MODES = 21

    @property
    def message(self) -> tuple[str, str]:
        """What happened, and what to try."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: ("the step succeeded", ""),
    Status.NEWTON_DIVERGED: (
        "Newton's method did not converge",
        "Take smaller steps, or use a method with a smoother equation",
    ),
    Status.NOT_FINITE: ("the state became NaN or infinite", "Take smaller steps, or check the system with carom.check"),
    Status.CONTACT_NOT_SOLVED: (
        "the contact solver did not converge",
        "Take smaller steps or raise the solver's max_iter; a body that walls squeeze has no solution",
    ),
    Status.STEP_TOO_SMALL: (
        "the step size fell under its minimum",
        "Loosen the tolerance, or declare the instants at which forces jump with System(jumps=...)",
    ),
    Status.CONSTRAINTS_LOST_RANK: (
        "constraints that depend on each other contradict each other",
        "Remove one of them, or take smaller steps",
    ),
    Status.NO_POST_IMPACT_STATE: ("no post-impact state exists", "Check restitution and friction"),
    Status.EVENT_NOT_LOCATED: ("an event could not be located", "Take smaller steps"),
    Status.TOO_MANY_EVENTS: ("too many events without a whole step between them", "Use carom.Switching"),
    Status.STOPPED_SHORT: (
        "a method that declares whole steps stopped short",
        "Leave Gives.WHOLE_STEPS out of what the method gives",
    ),
    Status.LIST_FULL: (
        "the list of pairs would take more than half of the memory",
        "Lower reach or skin of the search, or the step",
    ),
    Status.MAX_STEPS_REACHED: ("the run took max_steps steps before its end", "Raise max_steps or take larger steps"),
    Status.NOT_REACHED: ("the run came to t1 before what `until` names", "Raise t1, or look at direction and count"),
    Status.NEEDS_RESCUE: (
        "Newton's method does not solve the contact problem alone",
        "Let the solver go on with SemismoothNewton(rescue=True)",
    ),
    Status.NO_CONSISTENT_MODE: (
        "no mode of the contacts is consistent",
        "Lower the friction: rigid contact has no solution here",
    ),
    Status.SEVERAL_CONSISTENT_MODES: (
        "more than one mode of the contacts is consistent",
        "Lower the friction, or let the solver choose with SemismoothNewton(enumerate_modes=False)",
    ),
}


class State(eqx.Module):
    """Time, coordinates and velocities; `v` is the right limit where velocities jump.

    Example:
        >>> state = carom.State(q=[1.0], v=[0.0])
    """

    t: Float[Array, ""]
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]

    def __init__(self, q: Numbers, v: Numbers, t: ArrayLike = 0.0):
        self.t = jnp.asarray(reals(t, "State: t", "a number"))
        self.q = jnp.atleast_1d(jnp.asarray(reals(q, "State: q", "a list of numbers")))
        self.v = jnp.atleast_1d(jnp.asarray(reals(v, "State: v", "a list of numbers")))

    def __check_init__(self):
        if self.q.ndim != 1 or self.v.ndim != 1:
            msg = f"State: q and v must be vectors, got shapes {self.q.shape} and {self.v.shape}"
            raise ValueError(msg)
        if self.q.size == 0 or self.v.size == 0:
            msg = f"State: q and v need at least one entry, got {self.q.size} and {self.v.size}"
            raise ValueError(msg)
        if self.t.ndim:
            msg = f"State: t must be one number, got shape {self.t.shape}"
            raise ValueError(msg)

    def __repr__(self) -> str:
        try:
            t, q, v = (np.array2string(np.asarray(x), separator=", ", threshold=12) for x in (self.t, self.q, self.v))
        except jax.errors.TracerArrayConversionError:
            t, q, v = self.t, self.q, self.v
        return f"State(t={t}, q={q}, v={v})"

    def moved(self, t: Array, q: Array, v: Array) -> State:
        """The same record with other numbers, skipping the conversions of the constructor."""
        return eqx.tree_at(lambda s: (s.t, s.q, s.v), self, (t, q, v))


class Info(eqx.Module):
    """What only the step knows. Fields left None take no room in the stored rows.

    `local_error` estimates the error of this step in q and in v; it is for the stepping alone and never stored.
    """

    status: Int[Array, ""] = eqx.field(default=Status.OK, converter=jnp.int32)
    residual: Float[Array, ""] = eqx.field(default=0.0, converter=jnp.float64)
    iterations: Int[Array, ""] = eqx.field(default=0, converter=jnp.int32)
    evaluations: Int[Array, ""] = eqx.field(default=1, converter=jnp.int32)
    local_error: tuple[Array, Array] | None = None
    error: Array | None = None
    order: Array | None = None
    v_minus: Array | None = None
    impulse: Array | None = None
    mode: Array | None = None
    event: Array | None = None
    multiplier: Array | None = None
    work: Array | None = None
    extra: dict[str, Array] = eqx.field(default_factory=dict)


class Step(eqx.Module):
    """Result of `method.step`: where it got to, what it must remember, what it saw, the data of listed pairs.

    A method that does not give whole steps may spread one over several attempts: while `pending`, the run stays where
    it is and nothing but the memory counts; the next attempt, of the same size, goes on from there.
    """

    state: State
    memory: PyTree
    info: Info
    pending: Array | None = None
    pairs: PyTree = None


class Counts(eqx.Module):
    """Counters of a run, rejected attempts included: one vector, so that counting is one kernel."""

    values: Int[Array, " 4"]

    names: ClassVar[tuple[str, ...]] = ("accepted", "rejected", "evaluations", "iterations")

    @classmethod
    def zero(cls) -> Counts:
        """All counters at zero."""
        return cls(jnp.zeros(4, jnp.int64))

    def add(self, info: Info, accepted: Array) -> Counts:
        """The counters after one more attempt."""
        ok = jnp.asarray(accepted, jnp.int64)
        new = (ok, 1 - ok, info.evaluations, info.iterations)
        return Counts(self.values + jnp.stack([jnp.asarray(n, jnp.int64) for n in new]))


class Mark(eqx.Module):
    """A place in a run: where it stands, what is remembered there, the steps taken, the segment, the listed pairs."""

    state: State
    memory: PyTree
    k: Int[Array, ""]
    segment: Int[Array, ""]
    pairs: PyTree = None


class Carry(eqx.Module):
    """Everything a run needs to go on: the whole of it is stored for `carom.resume`.

    Inside a run time is the time since its start: `state.t` and `ends` are elapsed times, positive also in a run that
    goes backward (whose velocities have the other sign, `carom.systems.backward`). `instants` are the same ends
    as the user knows them, the first of them the epoch that is added to t wherever a user's function is called.
    `work` is the work of all laws since the start, after step k in its entry k modulo its length, so that a stepping
    that goes back takes its work back; the loop keeps it. `kept` are the memories of keeps (`carom.keep`), `pairs` the
    lists of pairs of bodies with their data (`carom.systems.listed_pairs`).
    """

    state: State
    memory: PyTree
    stepping: PyTree
    ends: Float[Array, " segments+1"]
    instants: Float[Array, " segments+1"]
    segment: Int[Array, ""]
    k: Int[Array, ""]
    status: Int[Array, ""]
    done: Array
    counts: Counts
    work: Float[Array, " recent"] | None = None
    kept: PyTree = None
    pairs: PyTree = None

    @property
    def epoch(self) -> Array:
        """The time at which the run began."""
        return self.instants[0]

    @property
    def mark(self) -> Mark:
        """Where the run stands."""
        return Mark(self.state, self.memory, self.k, self.segment, self.pairs)


class Clock:
    """From the time since the start to the user's, on the host; ends of segments are exact."""

    def __init__(self, instants: Any, ends: Any):
        self.instants, self.ends = np.asarray(instants), np.asarray(ends)
        self.epoch = self.instants[0]
        self.backward = bool(self.instants[-1] < self.epoch)

    @classmethod
    def of(cls, carry: Carry) -> Clock:
        """The clock of a run."""
        return cls(carry.instants, carry.ends)

    def turned(self, x: Any) -> Any:
        """What changes its sign with the direction of time, from the user's to the run's and back."""
        return 0.0 - x if self.backward else x

    def time(self, elapsed: Any) -> np.ndarray:
        """The user's times, from elapsed ones."""
        elapsed = np.asarray(elapsed)
        place = np.minimum(np.searchsorted(self.ends, elapsed), len(self.ends) - 1)
        return np.where(self.ends[place] == elapsed, self.instants[place], self.epoch + self.turned(elapsed))


class Row(eqx.Module):
    """One line of the log of attempts; `keep` says whether it belongs to the result."""

    k: Array
    keep: Array
    t: Array
    h: Array
    q: Array
    v: Array
    info: Info

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name, in the order in which they are packed."""
        leaves = jax.tree_util.tree_flatten_with_path(self)[0]
        names = [jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("info.") for path, _ in leaves]
        return dict(zip(names, (leaf for _, leaf in leaves)))


class SimulationError(RuntimeError):
    """A run that could not go on. `.solution` holds everything accepted before; of a derivative `.state` the last."""

    def __init__(self, message: str, solution: Solution | None = None, status: Status | None = None):
        super().__init__(message)
        self.solution = solution
        self.status = status
        self.state: State | None = None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run. `.solution` holds everything accepted before; `carom.resume` goes on from it."""

    def __init__(self, message: str, solution: Solution):
        super().__init__(message)
        self.solution = solution


def reals(value: Any, name: str, wanted: str) -> Any:
    """`value` as an array of floats; texts, truth values and complex numbers are refused by name."""
    if isinstance(value, jax.Array) and value.dtype.kind in "fiu":
        return jnp.asarray(value, float)
    try:
        array = np.asarray(value)
    except jax.errors.TracerArrayConversionError:
        return jnp.asarray(value, float)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        msg = f"{name} must be {wanted}, got {shortened(value)}"
        raise TypeError(msg)
    return array.astype(float)


def shortened(value: Any) -> str:
    """A value in a message: a small one as it is, of others their kind."""
    plain = value is None or isinstance(value, (bool, int, float, complex, str, list, tuple))
    small = plain and len(repr(value)) < 60
    return repr(value) if small else f"a {type(value).__name__}"


def choose(condition: Array, yes: PyTree, no: PyTree) -> PyTree:
    """One of two records, number by number."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def lift(tree: PyTree) -> PyTree:
    """Python and NumPy numbers that are floats become arrays, so that a new value never recompiles."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64) if isinstance(x, float) else x, tree)


def strong(tree: PyTree) -> PyTree:
    """Numbers and NumPy arrays become JAX arrays of a definite type (a weak one would compile once more)."""
    return jax.tree.map(lambda x: x if isinstance(x, jax.Array) else jnp.asarray(np.asarray(x)), tree)
