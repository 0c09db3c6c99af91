"""Periodic orbits of systems that hit, stick and slip, by Newton's method on the return map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.arguments import plain_numbers, user_function, whole
from carom.derivatives.until import AbstractUntil, Section
from carom.methods.base import AbstractMethod
from carom.orbits.asking import failure, refuse_run
from carom.orbits.family import family
from carom.orbits.newton import Found, NotFoundError, corrected, scales
from carom.orbits.return_map import Return, image
from carom.running.asking import chosen_stepping
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import SimulationError, State, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.system import System

if TYPE_CHECKING:
    from carom.orbits.branch import Branch

_REPEATED = 1e-5  # of its size: rounds of an orbit differ by less
_AT_ONCE = 1e-9  # of its size: an orbit moves by more
_NEUTRAL = 1e-6  # multipliers so near 1 in size are 1


@dataclass(frozen=True)
class Orbit:
    """A motion that repeats itself.

    Attributes:
        state: where it begins, on the section.
        period: time to its return.
        jacobian: derivative of the return map, in the coordinates that return and all velocities.
        multipliers: its eigenvalues, the largest first; a section adds one that is zero.
        shift: how far the ignored coordinates move in one period.
        iterations: how many times the return map was evaluated.
        error: size of the next correction, relative to the unknowns.
    """

    state: State
    period: float
    jacobian: np.ndarray
    multipliers: np.ndarray
    shift: np.ndarray
    iterations: int
    error: float
    way: Return

    @classmethod
    def of(cls, way: Return, found: Found) -> Orbit:
        """The orbit through a point that returns."""
        J = found.image.jacobian
        multipliers = np.linalg.eigvals(J)
        multipliers = multipliers[np.argsort(-np.abs(multipliers), kind="stable")]
        numbers = (found.image.shift, found.iterations, found.error)
        return cls(way.start(found.z[:-1]), found.image.period, J, np.real_if_close(multipliers), *numbers, way)

    @property
    def stable(self) -> bool:
        """Whether motions nearby approach it; not where their distance stays the same but for rounding."""
        return bool(np.abs(self.multipliers[0]) < 1 - _NEUTRAL)

    @property
    def kind(self) -> str:
        """How motions nearby move: "stable", "unstable", or "neutral" with a largest multiplier of size 1."""
        neutral = abs(np.abs(self.multipliers[0]) - 1) <= _NEUTRAL
        return "neutral" if neutral else "stable" if self.stable else "unstable"

    @property
    def system(self) -> System:
        """The system at the parameters of this orbit."""
        return self.way.family.member(self.way.family.parameters)

    def __repr__(self) -> str:
        return f"<Orbit: period {self.period:.10g}, {self.kind}, largest multiplier {self.multipliers[0]:.8g}>"

    def solution(self, periods: int = 1) -> Solution:
        """The motion over some periods, row by row."""
        return self.run(whole(periods, "periods", 1) * self.period)

    def run(self, span: float) -> Solution:
        """The motion over some time."""
        t1, stepping = float(self.state.t) + span, self.way.stepping
        return simulate(self.system, self.state, self.way.method, t1=t1, stepping=stepping, progress=False)

    def follow(self, parameter: str, within: tuple[float, float], step: float = 0.05, most: int = 200) -> Branch:
        """The branch of orbits through this one as a parameter changes, both ways and through folds.

        Args:
            parameter: its name, in `System(params=...)` or among `parameters=`.
            within: range of the parameter; beyond it the branch is not followed.
            step: longest distance of neighbours, in parts of that range and of the size of the unknowns.
            most: how many orbits to each side.

        Example:
            >>> branch = orbit.follow("shaking", within=(0.3, 1.2))
            >>> [(special.kind, special.value) for special in branch.specials]
        """
        from carom.orbits.branch import followed

        return followed(self, parameter, within, step, most)


def periodic_orbit(
    system: System | Callable[..., Any],
    guess: State,
    *,
    method: AbstractMethod,
    section: Any = None,
    period: Any = None,
    ignore: Sequence[int | str] = (),
    reset: Callable[..., Any] | None = None,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    parameters: Mapping[str, Any] | None = None,
    tol: float = 1e-9,
    longest: float = 1000.0,
    max_steps: int = 4096,
) -> Orbit:
    """A motion that repeats itself, found from a guess by Newton's method with exact derivatives.

    The return is to a section, or of a driven system the one after a period of the drive. With a section the motion
    may be anywhere at first: from the guess it is followed to the section once. A motion that returns once, but not
    again (the system is driven with another period, an ignored coordinate matters), is refused.

    Args:
        system: a System, or a function of `parameters` that builds one.
        guess: a state near the orbit; its t is the first time of a driven system, best away from impacts.
        method: one step; `carom.EventCapturing` where there are contacts.
        section: a `carom.Section` or `carom.Event` (the next return), or a function of (t, q, v), (q, v) or (q).
        period: of the drive, or a multiple of it: a number, or a function of the parameters.
        ignore: coordinates that need not return (a toy that falls, a wheel that rolls), by number or label.
        reset: function of (q, v) that returns both as the next round begins (a wheel on its next spoke).
        h: constant step size.
        stepping: who chooses the step size; give this or `h`.
        parameters: of a function that builds the system, by name.
        tol: relative size of the last correction.
        longest: a return to the section that takes more time is given up.
        max_steps: a return that takes more steps is given up.

    Example:
        >>> toy, state = carom.models.woodpecker()
        >>> method, stepping = carom.EventCapturing(carom.radau_iia(3)), carom.Adaptive(1e-10, 1e-12)
        >>> beak = carom.Event(0, "bounces")
        >>> orbit = carom.periodic_orbit(toy, state, section=beak, method=method, stepping=stepping, ignore=["y"])
        >>> orbit.period, orbit.multipliers[0], orbit.shift
    """
    if (section is None) == (period is None):
        msg = "give section= (of a system that is not driven) or period= (of the drive)"
        raise ValueError(msg)
    if ignore and reset is not None:
        msg = "give ignore= or reset=, not both: a reset says itself what returns"
        raise ValueError(msg)
    if not isinstance(guess, State):
        msg = f"guess must be a carom.State, got {shortened(guess)}"
        raise TypeError(msg)
    tol = float(plain_numbers(tol, "tol", size=1, positive=True))
    known = family(system, parameters)
    made = known.member(known.parameters)
    steps, until = chosen_stepping(h, stepping), _section(section)
    most, far = whole(max_steps, "max_steps", 1), float(plain_numbers(longest, "longest", size=1, positive=True))
    refuse_run(made, guess, method, steps, float(guess.t) + far)
    back = (_reset(reset, guess), _ignored(ignore, made, guess))
    way = Return(known, guess, method, steps, until, period, *back, far, most)
    if until is None:
        way.span(known.parameters)
    else:
        until.check(made, guess)
        way = _onto_section(way)
    orbit = solved(way, np.asarray(way.unknowns(way.state)), tol)
    refuse_if_unrepeated(orbit, "")
    return orbit


def refuse_if_unrepeated(orbit: Orbit, where: str) -> None:
    """Raise where the next round, at its own time and from the coordinates that were ignored, is another one."""
    way, state = orbit.way, orbit.state
    x, n = np.asarray(way.unknowns(state)), len(way.kept)
    q = state.q.at[np.asarray(way.ignored, int)].add(orbit.shift)
    later = way._replace(state=state.moved(state.t + orbit.period, q, state.v))
    again = image(later, x, way.family.nowhere)
    gained = orbit.period * orbit.system.acceleration(state.t, state.q, state.v)
    rates = (orbit.system.rate(state.t, state.q, state.v), gained)
    moved = orbit.period * max(np.max(np.abs(rate)) for rate in rates)
    if way.section is not None and moved <= _AT_ONCE * np.max(np.abs([x, way.unknowns(way.state)])):
        msg = (
            f"what was found{where} hardly moves until its return, after {orbit.period:.3g}: it stands still there, or "
            f"meets its section again where it begins. Give a guess further from rest, or another section"
        )
        raise SimulationError(msg)
    sizes = [np.abs(way.unknowns(s)) for s in (state, state.moved(state.t, state.q, gained), way.state)]
    sizes = np.max(sizes, axis=0)  # at its start, an orbit may be at rest
    apart = np.max(np.abs(again.end - x) / scales(sizes[:n], sizes[n:], orbit.period))
    if again.status or apart > _REPEATED * (1.0 + np.max(np.abs(orbit.jacobian))):
        far = "does not return" if again.status else f"ends elsewhere, by {apart:.1e} of its size"
        msg = (
            f"a motion returns{where} after {orbit.period:.9g}, but its next round {far}: it is no periodic orbit. Of "
            f"a driven system give period=, that of the drive or a multiple (a function of the parameters where they "
            f"change it), and ignore= only coordinates that do not matter to the motion"
        )
        raise SimulationError(msg)


def solved(way: Return, x: np.ndarray, tol: float) -> Orbit:
    """The orbit near x, or words about why there is none."""
    first = image(way, x, way.family.nowhere)
    if first.status:
        raise failure(first.status, "no return from the guess", "Give a better guess")
    n = len(way.kept)
    scale, normal = np.append(scales(x[:n], x[n:], first.period), 1.0), np.append(np.zeros(len(x)), 1.0)
    try:
        found = corrected(lambda z: image(way, z[:-1], way.family.nowhere), np.append(x, 0.0), normal, scale, tol)
    except NotFoundError as last:
        raise _not_found(last) from None
    return Orbit.of(way, found)


def _not_found(last: NotFoundError) -> SimulationError:
    if last.image.status:
        what = f"no return after {last.iterations - 1} corrections of the guess"
        return failure(last.image.status, what, "Give a better guess")
    msg = (
        f"no periodic orbit was found: after {last.iterations} iterations the next correction has a relative size of "
        f"{last.error:.1e}. Give a guess nearer to the orbit: the end of a longer run if it is stable"
    )
    return SimulationError(msg)


def _section(section: Any) -> AbstractUntil | None:
    if section is None or isinstance(section, AbstractUntil):
        return section
    if callable(section):
        return Section(section)
    msg = f"section must be a carom.Section, a carom.Event or a function of (q) or (q, v), got {shortened(section)}"
    raise TypeError(msg)


def _reset(reset: Any, guess: State) -> Any:
    if reset is None:
        return None
    user_function(reset, "reset", ("q", "v"))
    made = reset(guess.q, guess.v)
    if not isinstance(made, tuple) or len(made) != 2 or [np.shape(x) for x in made] != [guess.q.shape, guess.v.shape]:
        msg = f"reset must return (q, v) of the shapes {guess.q.shape} and {guess.v.shape}"
        raise ValueError(msg)
    return reset


def _ignored(ignore: Any, system: System, guess: State) -> tuple[int, ...]:
    """Numbers of the coordinates that need not return."""
    if isinstance(ignore, str):
        ignore = (ignore,)
    found = []
    for one in ignore:
        number = system.labels.index(one) if one in system.labels else one
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < guess.q.size:
            labels = f" or of {', '.join(system.labels)}" if system.labels else ""
            msg = f"ignore: coordinates must be numbers from 0 to {guess.q.size - 1}{labels}, got {shortened(one)}"
            raise ValueError(msg)
        found.append(int(number))
    return tuple(sorted(set(found)))


def _onto_section(way: Return) -> Return:
    """The same way from where the motion first comes to the section."""
    come = image(way, way.unknowns(way.state), way.family.nowhere)
    if come.status:
        what = "the motion from the guess does not come to the section"
        raise failure(come.status, what, "Begin nearer to it, or raise longest or max_steps")
    return way._replace(state=way.start(come.end))
