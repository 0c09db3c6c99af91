"""A potential made of the energies of bodies that touch walls; made by `Interactions.against`.

Walls are those of contacts (`carom.shapes`): gaps g of a body, positive when open, and slip velocities. The overlap -g
has the energy of a pair law whose other body is flat. Friction with memory against walls is that between bodies
(`carom.systems.pair_friction`), as if the wall were a body that does not turn: springs are vectors in space, stretched
by the wall's slip velocities, and a force T acts along the derivative of slip by velocities, so that its power is
-T.slip; bodies roll by their angular velocity.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from carom.arguments import Given
from carom.bodies import Bodies
from carom.pairs import Capacity, Fixed, Pairs
from carom.systems.pair_arguments import of_each_body, refuse_turning
from carom.systems.pair_friction import turned_rows
from carom.systems.pair_interactions import PairLaw
from carom.systems.shape import Wall, refuse_kind

_FLAT = 1e16  # radii: next to it the radius of a body is nothing


class WallInteractions(eqx.Module):
    """The same law for many bodies and all gaps of a wall; arrays have one row per body and one column per gap."""

    bodies: Bodies
    wall: Wall
    law: PairLaw
    data: tuple[Any, ...]
    material: Any
    weight: Array
    search: Fixed
    friction: Any
    dimension: int = eqx.field(static=True)
    gaps_of_each: int = eqx.field(static=True)
    room: Array | None = None

    span = None
    stencil = None
    relative = False

    @classmethod
    def of(cls, bodies: Bodies, wall: Wall, law: PairLaw, data: Any, material: Any, friction: Any) -> WallInteractions:
        """With checked arguments."""
        walls = "one of carom.shapes (half_plane, box, drum, hopper, plate) or a carom.Wall"
        refuse_kind(bodies, Bodies, "bodies", "carom.Bodies(count, dof)")
        refuse_kind(wall, Wall, "wall", walls)
        refuse_kind(law, PairLaw, "law", "one of carom.laws (hertz_pair, power_pair(p), spring_pair) or a PairLaw")
        data = of_each_body(data, len(bodies), law.radii)
        _refuse_data(law, data)
        if wall.gap.sees_time or (wall.slip is not None and wall.slip.sees_time):
            msg = "Interactions.against: the wall must be at rest; gap and slip of this one depend on time"
            raise ValueError(msg)
        if friction is not None:
            refuse_turning(bodies)
            if wall.slip is None:
                msg = "friction with memory needs slip velocities: give the wall a slip"
                raise ValueError(msg)
        row = {"t": jnp.zeros(()), "q": jnp.ones(bodies.coordinates), "data": jnp.ones(())}
        count = jax.eval_shape(lambda: jnp.ravel(wall.gap(_NOTHING, **row))).size
        n = len(bodies)
        search = Fixed(np.stack([np.repeat(np.arange(n), count), n + np.tile(np.arange(count), n)], 1))
        d = {3: 2, 6: 3}.get(bodies.dof, bodies.coordinates)
        return cls(bodies, wall, law, data, material, jnp.ones(()), search, friction, d, count)

    # ---- what a run lists ---------------------------------------------------------------------------------------

    @property
    def is_listed(self) -> bool:
        """Whether a run remembers something of bodies and gaps; they are listed as pairs, gaps after bodies."""
        return self.friction is not None

    def listed(self, found: Pairs, room: Capacity) -> Pairs:
        """The pairs found, as they are."""
        del room
        return found

    def with_list(self, found: Pairs | None, colours: Any) -> WallInteractions:
        """The same with the room of a list: every body and every gap, in order, and some places that are empty."""
        del colours
        return self if found is None else eqx.tree_at(lambda w: w.room, self, found.a, is_leaf=lambda x: x is None)

    def positions(self, q: Array) -> Float[Array, "bodies_and_gaps d"]:
        """Where bodies are; gaps have no place."""
        return jnp.pad(self.bodies.positions(q)[:, : self.dimension], ((0, self.gaps_of_each), (0, 0)))

    @property
    def no_history(self) -> Float[Array, "rows pairs"]:
        """What friction remembers of bodies that have just met a wall: zeros."""
        return jnp.zeros((self.bodies.dof, self.count(0) if self.room is None else self.room.size))

    # ---- energies and forces ------------------------------------------------------------------------------------

    def count(self, n: int) -> int:
        """Number of interactions."""
        del n
        return len(self.bodies) * self.gaps_of_each

    def energies(self, q: Array) -> Float[Array, " interactions"]:
        """Energy of every body at every gap."""
        rows = self.bodies.positions(q)
        weights = jnp.broadcast_to(self.weight, self.count(0)).reshape(len(self.bodies), -1)
        return jnp.ravel(jax.vmap(self._energies)(rows, self._of_each(), weights))

    def __call__(self, q: Array) -> Array:
        """Total energy."""
        return jnp.sum(self.energies(q))

    def gradient(self, q: Array) -> Array:
        """Derivative of the total energy."""
        return jax.grad(self)(q)

    def scaled(self, factor: ArrayLike) -> WallInteractions:
        """The same interactions, every energy multiplied by `factor` (a number, or one per interaction)."""
        return eqx.tree_at(lambda i: i.weight, self, self.weight * factor)

    def own_blocks(self, q: Array) -> Float[Array, "bodies c c"]:
        """Second derivatives, a block per body."""
        weights = jnp.broadcast_to(self.weight, self.count(0)).reshape(len(self.bodies), -1)
        energy = jax.hessian(lambda *own: jnp.sum(self._energies(*own)))
        blocks = jax.vmap(energy)(self.bodies.positions(q), self._of_each(), weights)
        c = self.bodies.coordinates
        return jnp.zeros((self.bodies.count, c, c)).at[self.bodies._slice].set(blocks)

    def rubbed(self, q: Array, v: Array, history: Array, h: Array) -> tuple[Array, Array, Array]:
        """The forces of friction over a step on all velocities, what is remembered after it, energy of the springs."""
        n, g = len(self.bodies), self.gaps_of_each
        memory = history[:, : n * g].reshape(-1, n, g).transpose(1, 2, 0)
        rows = self.bodies.positions(q), self.bodies.velocities(v), self._of_each(), memory
        force, memory, energy = jax.vmap(self._rubbed, (0, 0, 0, 0, None))(*rows, h)
        whole = jnp.zeros((self.bodies.count, self.bodies.dof)).at[self.bodies._slice].set(force)
        found = memory.transpose(2, 0, 1).reshape(-1, n * g)
        return whole.reshape(-1), history.at[:, : n * g].set(found), jnp.sum(energy)

    def _rubbed(self, q: Array, v: Array, own: Any, memory: Array, h: Array) -> tuple[Array, Array, Array]:
        """Of one body: the force on it, the memory of its gaps, the energy of its springs."""
        law, d = self.friction, self.dimension
        r = own[0]
        gaps, closing = jax.jvp(lambda x: self._gaps(x, r), (q,), (v,))
        normals = jax.jacrev(lambda x: self._gaps(x, r))(q)
        N = jnp.maximum(jax.vmap(jax.grad(lambda x: self._law(x, own)))(-gaps), 0.0)
        slip, along = self._slips(q, v, r), jax.jacfwd(lambda u: self._slips(q, u, r))(v)
        about, frame = jnp.broadcast_to(v[d:], (len(gaps), v.size - d)), along[:, :, :d]
        n = normals[:, :d] / jnp.linalg.norm(normals[:, :d], axis=1, keepdims=True)
        xi, psi = turned_rows(memory[:, :d], memory[:, d:], n, 0.5 * h * about)
        T, xi = law.held(jnp.einsum("gix,gx->gi", frame, xi) + h * slip, slip, N)
        M, psi = law.rolled(psi + h * about, about, N * r)
        push = jnp.where(N > 0, law.normal_damping * closing, 0.0)
        force = -jnp.einsum("gi,giv->v", T, along) - push @ normals - jnp.pad(jnp.sum(M, 0), (d, 0))
        memory = jnp.concatenate([jnp.einsum("gix,gi->gx", frame, xi), psi], 1)
        return force, memory, 0.5 * (law.stiffness * jnp.sum(xi**2) + law.rolling_stiffness * jnp.sum(psi**2))

    def _of_each(self) -> Any:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (len(self.bodies),)), self.data)

    def _energies(self, q: Array, own: Any, weights: Array) -> Array:
        return weights * self._law(-self._gaps(q, own[0]), own)

    def _law(self, overlap: Array, own: Any) -> Array:
        rest = own[1:] if self.material is None else (self.material, *own[2:])
        return self.law.energy(overlap, own, (_FLAT * own[0], *rest))

    def _gaps(self, q: Array, r: Array) -> Float[Array, " gaps"]:
        return jnp.ravel(jnp.asarray(self.wall.gap(_NOTHING, t=jnp.zeros(()), q=q, data=r), float))

    def _slips(self, q: Array, v: Array, r: Array) -> Float[Array, "gaps directions"]:
        slip = self.wall.slip(_NOTHING, t=jnp.zeros(()), q=q, v=v, data=r)  # pyright: ignore
        return jnp.asarray(slip, float).reshape(self.gaps_of_each, -1)


_NOTHING = Given(None, 0.0)


def _refuse_data(law: PairLaw, data: Any) -> None:
    """The first of the data of a body is its radius."""
    radius = next(iter(data), None) if isinstance(data, tuple) else None
    if radius is None or not np.allclose(2 * radius, law.length(data, data)):
        msg = "Interactions.against: data must be a tuple (radius, ...), as the laws of carom.laws take it"
        raise ValueError(msg)
