"""Small methods and steppings that exercise the loop, one feature each."""

import equinox as eqx
import jax
import jax.numpy as jnp

import carom
from carom.methods.base import SMOOTH, AbstractMethod, Gives
from carom.state import Carry, Info, Status, Step, choose
from carom.stepping.base import AbstractStepping, row_of


class Euler(AbstractMethod):
    """Semi-implicit Euler: one evaluation, no memory."""

    handles = SMOOTH
    order = 1

    def init(self, system, state):
        return None

    def step(self, system, state, memory, h):
        v = state.v + h * system.acceleration(state.t, state.q, state.v)
        return Step(state.moved(state.t + h, state.q + h * v, v), memory, Info())


class StopsShort(AbstractMethod):
    """Semi-implicit Euler that never steps over `instant`: it stops there and records event code 7."""

    instant: float

    handles = SMOOTH
    gives = frozenset()
    order = 1

    def init(self, system, state):
        return None

    def step(self, system, state, memory, h):
        hits = (state.t < self.instant) & (state.t + h > self.instant)
        step = Euler().step(system, state, memory, jnp.where(hits, self.instant - state.t, h))
        info = Info(event=jnp.where(hits, 7, 0)[None])
        return Step(
            step.state.moved(jnp.where(hits, self.instant, step.state.t), step.state.q, step.state.v), memory, info
        )


class Waits(AbstractMethod):
    """A method whose every step takes three attempts: the first two of them leave it pending, with a wild error."""

    method: AbstractMethod

    handles = SMOOTH
    gives = frozenset({Gives.LOCAL_ERROR})
    order = 1

    @property
    def error_orders(self):
        return self.method.error_orders

    def init(self, system, state):
        return self.method.init(system, state), jnp.zeros((), jnp.int32)

    def step(self, system, state, memory, h):
        inner, waited = memory
        step = self.method.step(system, state, inner, h)
        pending = waited < 2
        wild = jax.tree.map(lambda x: jnp.where(pending, 1e9, x), step.info.local_error)
        info = eqx.tree_at(lambda i: i.local_error, step.info, wild, is_leaf=lambda x: x is None)
        went, inner = choose(pending, (state, inner), (step.state, step.memory))
        return Step(went, (inner, jnp.where(pending, waited + 1, 0)), info, pending)


class SlowStep(AbstractMethod):
    """A step that takes a second or more."""

    loops: jax.Array

    handles = SMOOTH
    order = 1

    def init(self, system, state):
        return None

    def step(self, system, state, memory, h):
        waste = jax.lax.fori_loop(0, self.loops, lambda _, x: jnp.sin(x) + 1e-3, jnp.ones(2000))
        step = Euler().step(system, state, memory, h)
        return Step(step.state.moved(step.state.t, step.state.q + 1e-300 * waste[:1], step.state.v), memory, step.info)


class Rejecting(AbstractStepping):
    """Halves h and tries again while the step changes v by more than `most`; doubles it again after success."""

    h: float
    most: float

    def init(self, system, method, state, ends):
        return jnp.asarray(self.h)

    def attempt(self, system, method, carry):
        h = jnp.minimum(carry.stepping, carry.ends[-1] - carry.state.t)
        step = method.step(system, carry.state, carry.memory, h)
        ok = jnp.max(jnp.abs(step.state.v - carry.state.v)) <= self.most
        state = jax.tree.map(lambda a, b: jnp.where(ok, a, b), step.state, carry.state)
        done = state.t >= carry.ends[-1] * (1 - 1e-15)
        k = carry.k + ok
        new = Carry(
            state,
            carry.memory,
            jnp.where(ok, 2 * h, 0.5 * h),
            carry.ends,
            carry.instants,
            carry.segment,
            k,
            carry.status,
            done,
            carry.counts.add(step.info, ok),
        )
        return new, row_of(system, k, ok, state, h, step.info)


class Remembered(eqx.Module):
    """The last two accepted states and whether the stepping has gone back."""

    states: list
    went_back: jax.Array


class GoesBack(AbstractStepping):
    """Constant steps; on reaching step `at` for the first time it takes two steps back and goes on with half steps."""

    h: float
    at: int = 12

    def init(self, system, method, state, ends):
        return Remembered([state, state], jnp.asarray(False))

    def attempt(self, system, method, carry):
        old, m = carry.state, carry.stepping
        h = jnp.minimum(jnp.where(m.went_back, 0.5, 1.0) * self.h, carry.ends[-1] - old.t)
        step = method.step(system, old, carry.memory, h)
        back = ~m.went_back & (carry.k + 1 == self.at)
        state = jax.tree.map(lambda a, b: jnp.where(back, a, b), m.states[0], step.state)
        k = jnp.where(back, carry.k - 2, carry.k + 1)
        new = Carry(
            state,
            None,
            Remembered([m.states[1], old], m.went_back | back),
            carry.ends,
            carry.instants,
            carry.segment,
            k,
            jnp.int32(Status.OK),
            state.t >= carry.ends[-1] - 1e-12,
            carry.counts.add(step.info, ~back),
        )
        return new, row_of(system, k, ~back, state, h, step.info)


def springs(q, p):
    return 0.5 * p["k"] * jnp.sum(q * q)


def oscillator(stiffness=4.0, n=1):
    """Unit masses on linear springs, started at 1 with no velocity; the stiffness is a parameter."""
    return carom.System(1.0, springs, params={"k": stiffness}), carom.State(jnp.ones(n), jnp.zeros(n))
