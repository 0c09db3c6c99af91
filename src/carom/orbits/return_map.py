"""The map from a state to its return, with its derivatives, as one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import plain_numbers
from carom.derivatives.final import final_state
from carom.derivatives.resting import kept_resting
from carom.methods.base import AbstractMethod
from carom.orbits.family import Family
from carom.orbits.newton import Image
from carom.running.compiled import compiled
from carom.state import State
from carom.stepping.base import AbstractStepping
from carom.sweeps.template import arguments_of


class Return(NamedTuple):
    """A way from a state to its return: to a section, or over one period of the drive.

    Unknown are the coordinates that are not ignored, and all velocities; `state` has the others, and the first time.
    """

    family: Family
    state: State
    method: AbstractMethod
    stepping: AbstractStepping
    section: Any
    period: Any
    reset: Callable[..., Any] | None
    ignored: tuple[int, ...]
    longest: float
    max_steps: int

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the coordinates that return."""
        return np.setdiff1d(np.arange(self.state.q.size), np.asarray(self.ignored, int))

    def unknowns(self, state: State) -> Any:
        """Of a state what has to return."""
        return jnp.concatenate([state.q[self.kept], state.v])

    def start(self, x: Any) -> State:
        """The state with these unknowns."""
        n = len(self.kept)
        return self.state.moved(self.state.t, self.state.q.at[self.kept].set(x[:n]), jnp.asarray(x[n:]))

    def span(self, parameters: dict[str, Any]) -> Any:
        """The period of the drive."""
        given = self.period
        value = given(**arguments_of(given, "period", parameters)) if callable(given) else given
        return jnp.asarray(plain_numbers(value, "period", size=1, positive=True)).reshape(())

    def go(self, x: Array, parameters: dict[str, Any]) -> tuple[Array, Array, Array, Array]:
        """Where these unknowns return to, after which time, moved by what, and the status of the run."""
        system = self.family.member(parameters)
        start = kept_resting(system, self.start(x))
        t1 = start.t + (self.longest if self.period is None else self.span(parameters))
        more = {"stepping": self.stepping, "until": self.section, "max_steps": self.max_steps}
        end = final_state(system, start, self.method, t1=t1, **more)
        state = end.state
        if self.reset is not None:
            state = State(*self.reset(state.q, state.v))
        shift = end.state.q[np.asarray(self.ignored, int)] - start.q[np.asarray(self.ignored, int)]
        return self.unknowns(state), end.state.t - start.t, shift, end.status


@compiled
def _image(way: Return, x: Array, along: dict[str, Any]) -> tuple[Any, Array]:
    """The return from x, and its derivatives with respect to x and to the parameters `along` a direction."""
    given = way.family.parameters

    def end(z: Array) -> tuple[Array, Any]:
        parameters = {name: value + z[-1] * along[name] for name, value in given.items()}
        y, *rest = way.go(z[:-1], parameters)
        return y, (y, *rest)

    slopes, (y, period, shift, status) = jax.jacfwd(end, has_aux=True)(jnp.append(x, 0.0))
    return (y, period, shift, status), slopes


def image(way: Return, x: Any, along: dict[str, Any]) -> Image:
    """The return of a state on the host."""
    (y, period, shift, status), slopes = _image(way, jnp.asarray(x), along)
    return Image(np.asarray(y), float(period), np.asarray(shift), np.asarray(slopes), int(status))
