"""Numbers that gather along a run, for losses over time: integrals and peaks of functions of the motion."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import UserFunction, user_function
from carom.running.crossing import number_at
from carom.state import State
from carom.systems.system import System

_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(3)[0] + 1.0), 0.5 * np.polynomial.legendre.leggauss(3)[1])
_PARTS = 4  # of a step, in each of which a peak is looked for


class AbstractAlong(eqx.Module):
    """One number that follows from a function of the motion."""

    f: UserFunction

    def __init__(self, f: Callable[..., Any]):
        self.f = user_function(f, f"{type(self).__name__}: f", ("t", "q", "v"), ("q", "v"), ("q",))

    @abc.abstractmethod
    def init(self, system: System, state: State) -> Array:
        """The number at the start."""

    @abc.abstractmethod
    def after(self, sofar: Array, value: Callable[[Array], Array], a: Array, b: Array) -> Array:
        """The number after a step from a to b on which the function is `value`."""

    def check(self, name: str, system: System, state: State) -> None:
        """The function must give one number."""
        shape = jax.eval_shape(lambda: jnp.asarray(self.f(system.given, t=state.t, q=state.q, v=state.v)))
        if shape.size != 1:
            msg = f"along: f of '{name}' must return one number, got shape {shape.shape}"
            raise ValueError(msg)


class Integral(AbstractAlong):
    """The integral over time of `f(t, q, v)`, `f(q, v)` or `f(q)`, by Gauss' formula of order 6 on every step.

    Example:
        >>> along = {"work": carom.Integral(lambda q, v, p: p["damping"] * v[0] ** 2)}
        >>> carom.gradient(lambda state, along: along["work"], build, parameters, method, t1=1.0, h=0.01, along=along)
    """

    def init(self, system: System, state: State) -> Array:
        """Nothing yet."""
        del system, state
        return jnp.zeros(())

    def after(self, sofar: Array, value: Callable[[Array], Array], a: Array, b: Array) -> Array:
        """One more step."""
        return sofar + (b - a) * (_WEIGHTS @ jax.vmap(value)(a + (b - a) * _NODES))


class Peak(AbstractAlong):
    """The largest value of `f(t, q, v)`, `f(q, v)` or `f(q)`, looked for inside every step.

    Its derivative is that of f at the instant of the peak.

    Example:
        >>> along = {"force": carom.Peak(lambda q, p: p["stiffness"] * jnp.maximum(q[-2] - q[-1], 0.0) ** 1.5)}
    """

    def init(self, system: System, state: State) -> Array:
        """That of the start."""
        return number_at(self.f, system, state)

    def after(self, sofar: Array, value: Callable[[Array], Array], a: Array, b: Array) -> Array:
        """The end, or a higher place inside: the top of the cubic through values and slopes of a part of the step."""
        grid = a + (b - a) * np.linspace(0.0, 1.0, _PARTS + 1)
        y, slope = jax.vmap(lambda t: jax.jvp(value, (t,), (jnp.ones_like(t),)))(grid)
        width = (b - a) / _PARTS
        rest, rise, fall = y[1:] - y[:-1], width * slope[:-1], width * slope[1:]
        cubic, square = rise + fall - 2 * rest, 3 * rest - 2 * rise - fall
        root = -square + jnp.sqrt(jnp.maximum(square**2 - 3 * cubic * rise, 0.0))
        turns = (rise > 0) & (fall < 0) & (root > 0)
        top = jnp.clip(jnp.where(turns, rise / jnp.where(turns, root, 1.0), 1.0), 0.0, 1.0)
        times = jax.lax.stop_gradient(jnp.append(grid[:-1] + width * top, b))
        bends = jnp.append(jnp.where(turns, 2 * (square + 3 * cubic * top) / width**2, -jnp.inf), -jnp.inf)
        best = jnp.argmax(jax.vmap(value)(times))
        _, slope = jax.jvp(value, (times[best],), (jnp.ones_like(b),))  # zero at a peak, but for the cubic's error
        time = jnp.clip(times[best] - jnp.where(bends[best] < 0, slope / bends[best], 0.0), a, b)
        part = jax.lax.stop_gradient((time - a) / (b - a))
        return jnp.maximum(sofar, value(a + part * (b - a)))
