"""What happens on the way that makes a derivative doubtful: grazing, impacts at once, an event at the end."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.derivatives.slowing import Slowing
from carom.interpolation import lowest
from carom.running.loop import Problem
from carom.solvers.contact_problem import CONSTRAINT
from carom.state import Carry, Row, State
from carom.systems.contact_rows import Event, contact_rows, laws_of
from carom.systems.system import System

_FAR = 300.0  # times the error of a gap: an impact that would go so deep, or a miss by so much, is none of its doing
_SOON = 8.0  # times the depth of an impact: one after another of its contact by so little is no graze, but bounces on
_COUPLED = 1e-9  # of the diagonal of the Delassus matrix
_SAME_TIME = 1e-6  # of the run
_STILL = 1e-12  # of the velocities: rates this small are rounding


class Watch(eqx.Module):
    """Along a run: how deep the shallowest impact would have gone, how near the nearest miss came, and when.

    `together` is when contacts that act on each other hit at once (infinite if never), `apart` how far (about) the
    second of two such contacts was open when the first was hit, at least. `hit_at` is when contacts were last hit,
    `closed` which of them are, `last` is the last event, `beside` how near one came to where states are wanted,
    `events` how many there were of contacts, `order` tells one order of events from another. A contact that bounces on
    and on until it rests has one impact here, its first.
    """

    depth: Array
    depth_at: Array
    miss: Array
    miss_at: Array
    together: Array
    apart: Array
    apart_at: Array
    hit_at: Array
    closed: Array
    last: Array
    beside: Array
    events: Array
    order: Array
    slowing: Slowing | None

    @classmethod
    def nothing(cls, contacts: int, slowing: Slowing | None) -> Watch:
        """At the start."""
        inf, zero, none = jnp.asarray(jnp.inf), jnp.zeros(()), jnp.zeros((), jnp.int64)
        never, open_ = jnp.full(contacts, -jnp.inf), jnp.zeros(contacts, bool)
        return cls(inf, zero, inf, zero, inf, inf, zero, never, open_, -inf, inf, none, none, slowing)

    @classmethod
    def of(cls, system: System, state: State) -> Watch:
        """At the start of a run."""
        laws = laws_of(system, state)
        frictions = laws.frictions + laws.elements
        return cls.nothing(laws.contacts, Slowing.nothing(frictions) if frictions else None)

    def after(self, problem: Problem, old: Carry, new: Carry, row: Row, wanted: Array) -> Watch:
        """After one more attempt; states are `wanted` at times of their own."""
        if row.info.event is None:
            return self
        system = problem.system.since(old.epoch)
        event, kept = jnp.where(row.keep, row.info.event, 0), row.keep
        near = jnp.min(jnp.abs(wanted - old.state.t), initial=jnp.inf)
        near = jnp.where(jnp.any(event != 0), jnp.minimum(self.beside, near), self.beside)
        beside = eqx.tree_at(lambda w: w.beside, self, near)
        if self.slowing is not None:
            step = (system, problem.method, old.state, new.state, row, event)
            slowing = jax.lax.cond(kept, lambda slowing: slowing.after(*step), lambda slowing: slowing, self.slowing)
            beside = eqx.tree_at(lambda w: w.slowing, beside, slowing)
        watch = beside.ordered(event, old.state.t)
        if system.contacts is None:
            return watch
        return jax.lax.cond(kept, lambda: beside.of_contacts(system, old.state, new.state, row, event), lambda: watch)

    def ordered(self, event: Array, t: Array) -> Watch:
        """With one more row of events in their order."""
        codes = jnp.sum(event * (7 ** jnp.arange(event.size, dtype=jnp.int64) % 1_000_003))
        happened = jnp.any(event != 0)
        order = jnp.where(happened, (self.order * 1_000_033 + codes) % 2_147_483_647, self.order)
        return eqx.tree_at(lambda w: (w.last, w.order), self, (jnp.where(happened, t, self.last), order))

    def of_contacts(self, system: System, a: State, b: State, row: Row, event: Array) -> Watch:
        """Impacts, and gaps that turn before they close."""
        (gap, rate, bend), (gap1, rate1, _) = jets(system, a), jets(system, b)
        n, t = gap.size, a.t
        mode, pressed = jnp.asarray(row.info.mode)[:n], jnp.asarray(row.info.impulse)[:n] > 0
        bounced, since = event[:n] == Event.BOUNCES, t - self.hit_at
        depth = 0.5 * rate**2 / jnp.maximum(jnp.abs(bend), 1e-290)
        again = bounced & (since * jnp.abs(rate) < _SOON * depth)
        depth = jnp.where(bounced & ~again, depth, jnp.inf)
        at = contact_rows(system, a.t, a.q, a.v)
        W = at.W.dense()[:n]
        falls = rate < -_STILL * jnp.max(jnp.abs(W), initial=0.0) * jnp.max(jnp.abs(a.v))
        turned = (mode != CONSTRAINT) & ~self.closed & ~pressed & falls & (rate1 >= 0)
        low = lowest(gap, gap1, (b.t - a.t) * rate, (b.t - a.t) * rate1)
        miss = jnp.where(turned, jnp.maximum(low, 0.0), jnp.inf)
        hits = (rate < 0) & pressed & ~self.closed & (gap <= jnp.maximum(jnp.min(gap), 0.0) + 1e-9)
        hits = hits & jnp.any(bounced)
        G = W @ jax.vmap(lambda w: system.mass_solve(a.t, a.q, w))(W).T
        coupled = jnp.abs(G) > _COUPLED * jnp.sqrt(jnp.abs(jnp.outer(jnp.diag(G), jnp.diag(G))))
        others = coupled & ~jnp.asarray(np.eye(n, dtype=bool))
        both = jnp.any(others & hits[:, None] & hits)
        since = jnp.min(jnp.where(others, since, jnp.inf), axis=1, initial=jnp.inf)
        deepest, nearest = jnp.min(depth, initial=jnp.inf), jnp.min(miss, initial=jnp.inf)
        apart = jnp.min(jnp.where(bounced, since * jnp.abs(rate), jnp.inf), initial=jnp.inf)
        watch = self.ordered(event.at[:n].set(jnp.where(again, Event.NONE, event[:n])), t)
        return Watch(
            jnp.minimum(self.depth, deepest),
            jnp.where(deepest < self.depth, t, self.depth_at),
            jnp.minimum(self.miss, nearest),
            jnp.where(nearest < self.miss, t, self.miss_at),
            jnp.minimum(self.together, jnp.where(both, t, jnp.inf)),
            jnp.minimum(self.apart, apart),
            jnp.where(apart < self.apart, t, self.apart_at),
            jnp.where(bounced, t, self.hit_at),
            mode == CONSTRAINT,
            jnp.where(jnp.any(event != 0), t, self.last),
            self.beside,
            self.events + jnp.sum(event[:n] != 0),
            watch.order,
            self.slowing,
        )


def jets(system: System, state: State) -> tuple[Array, Array, Array]:
    """Gaps with their first and second derivatives along the motion of open contacts."""

    def rates(t: Array, q: Array, v: Array) -> Array:
        return system.gap_rates(t, q, system.rate(t, q, v))

    place = (state.t, state.q, state.v)
    flow = (jnp.ones_like(state.t), system.rate(*place), system.acceleration(*place))
    rate, bend = jax.jvp(rates, place, flow)
    return system.gaps(state.t, state.q), rate, bend


def doubts(
    watch: Watch, end: State, gaps: np.ndarray, errors: tuple[float, float], span: float, t0: float, at_t1: bool
) -> list[str]:
    """What was seen, in words; `errors` are those of a gap and of a velocity."""
    told, error = [], errors[0]
    if watch.slowing is not None and float(watch.slowing.near) < _FAR * errors[1]:
        told.append(
            f"slip stops for a moment only at t = {t0 + float(watch.slowing.near_at):.6g}, or all but stops (by "
            f"{float(watch.slowing.near):.2g}): beyond that the derivative is another one"
        )
    if float(watch.depth) < _FAR * error:
        told.append(
            f"a contact is hit at a grazing angle at t = {t0 + float(watch.depth_at):.6g} (it would go "
            f"{float(watch.depth):.2g} deep): the derivative may be far off"
        )
    if float(watch.miss) < _FAR * error:
        told.append(
            f"a contact is missed by {float(watch.miss):.2g} at t = {t0 + float(watch.miss_at):.6g}: behind a touch "
            f"the derivative is another one"
        )
    if np.isfinite(float(watch.together)):
        told.append(
            f"contacts that act on each other are hit at once at t = {t0 + float(watch.together):.6g}: the derivative "
            f"is one of several, which depend on who is first"
        )
    elif float(watch.apart) < _FAR * error:
        told.append(
            f"contacts that act on each other are hit one after the other, {float(watch.apart):.2g} apart, at t = "
            f"{t0 + float(watch.apart_at):.6g}: in the other order the derivative is another one"
        )
    late = float(end.t) - t0 - float(watch.last)
    if at_t1 and late <= _SAME_TIME * span or (gaps.size and np.any((gaps > 0) & (gaps < error))):
        told.append("an event lies at the end of the run: the derivative jumps there")
    if float(watch.beside) <= _SAME_TIME * span:
        told.append("an event lies at a time of save_at: the derivative jumps there")
    return told
