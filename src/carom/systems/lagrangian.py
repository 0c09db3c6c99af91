"""Systems from a Lagrangian (Jay1998 sec. 3.2): mass, potential and gyroscopic forces read off L by differentiation."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import Given, UserFunction


class Lagrangian(eqx.Module):
    """L(t, q, v) = v M v / 2 + a v - V, quadratic in v; M, a, V may depend on t and q."""

    fn: UserFunction

    def value(self, t: Array, q: Array, v: Array, given: Given) -> Array:
        """L."""
        return jnp.asarray(self.fn(given, t=t, q=q, v=v), float).reshape(())

    def mass(self, t: Array, q: Array, given: Given) -> Array:
        """M = d2L/dv2."""
        return jax.hessian(lambda v: self.value(t, q, v, given))(jnp.zeros_like(q))

    def potential(self, t: Array, q: Array, given: Given) -> Array:
        """V = -L at rest."""
        return -self.value(t, q, jnp.zeros_like(q), given)

    def gyroscopic(self, t: Array, q: Array, v: Array, given: Given) -> Array:
        """(da/dq)^T v - (da/dq) v - da/dt, the force of the terms a v linear in v."""

        def a(s: Array, x: Array) -> Array:
            return jax.grad(lambda w: self.value(s, x, w, given))(jnp.zeros_like(v))

        along = jax.grad(lambda x: jnp.vdot(a(t, x), v))(q)
        return along - jax.jvp(a, (t, q), (jnp.ones_like(t), v))[1]

    def quadratic_defect(self, t: Array, q: Array, v: Array, given: Given) -> Array:
        """L minus its second-order expansion in v, relative to the kinetic energy."""
        zero = jnp.zeros_like(v)
        slope = jax.grad(lambda w: self.value(t, q, w, given))(zero)
        kinetic = 0.5 * v @ self.mass(t, q, given) @ v
        expansion = kinetic + slope @ v - self.potential(t, q, given)
        return jnp.abs(self.value(t, q, v, given) - expansion) / (jnp.abs(kinetic) + 1e-300)
