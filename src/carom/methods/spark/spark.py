r"""Super partitioned additive Runge-Kutta methods for constrained mechanics [Jay1998].

One step of Definition 4.1 for `q' = v`, `(M(q) v)' = sum of parts - G^T lambda`, `0 = g(q)`:

    Q_i = q_0 + h sum_j a_ij V_j,   M(Q_i) V_i = M(q_0) v_0 + h sum_parts sum_j a_ij^part k^part(Q_j, V_j, U_j),
    0 = g(q_0 + h sum_j a_ij^A V_j),   0 = G(q_1) v_1,

each part with the coefficients of its own Lobatto family; (q_1, v_1) are the same sums with weights b.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.methods.base import AbstractMethod, Derivative, Gives
from carom.methods.spark.families import OTHER, coefficients, has_constraints, objection, part_names
from carom.methods.spark.linking import Links, links
from carom.methods.spark.stages import StageEquations, Unknowns
from carom.names import register
from carom.plain import found_field
from carom.running.compiled import compiled, compiled_roughly
from carom.solvers.newton import Newton, Root
from carom.state import Info, State, Status, Step
from carom.systems.consistent import constraint_residuals
from carom.systems.constrained import Saddle, accelerations, directions, ineffective, mass_matrix, time_scale
from carom.systems.features import Feature
from carom.systems.system import System
from carom.tableaux import Tableau, embedded, lobatto_iiia
from carom.tableaux.tableau import checked_count

_STIFF = 0.3  # h^2 |df/dq| + h |df/dv| from which the derivatives of the forces enter the Jacobian
_FAR_TOO_STIFF = 10.0  # the same for a step of this part of the time scale of the motion, where steps find their size
_FOLLOWS = 0.02
_ENOUGH, _ROUGHEST = 1e-4, 1e-9  # of rtol, and at most: the accuracy of stages where steps find their size
_LEFT = 1e-8  # of constraints that depend on each other and hold, relative to their terms
_NEAR = 0.05  # smallest singular value of normalised constraints, relative, that is near a singular position
_LOOKED_AT = 33  # places ahead at which a failed step looks for a singular position


class Memory(eqx.Module):
    """The stages of the last step, from which the next guess is extrapolated; h is infinite before the first.

    `redundant` counts the constraints that depend on others at the start of the next step, `idle` projects on the
    multipliers that move nothing there.
    """

    V: Float[Array, "s n"]
    U: Float[Array, "s m"]
    W: Float[Array, "s nq"] | None
    h: Array
    redundant: Array
    idle: Float[Array, "m m"]


@register
class Spark(AbstractMethod):
    """Lobatto IIIA-B-C-C*-D SPARK method of order 2s - 2 [Jay1998].

    Args:
        stages: s, at least 2.
        families: which Lobatto family treats which part: "A", "B", "C", "C*" or "D", or one of these per component.
            Keys are "kinematic" (default A; "rotation" (D) in its place for systems with `kinematics`, where D keeps
            quadratic invariants: the length of quaternions), "inertia" (B), "constraint" (B), "conservative" (B),
            "dissipative" (C), "exciting" (C*), and the names of other forces and parts of the potential (B).
        damping: `{part: beta}`, numerical damping by the split `(1 - beta) D + beta C` (sec. 7), beta from 0 to 1;
            a stiff linear part then has spectral radius (1 - beta) / (1 + beta).
        multiplier: "consistent" solves (17h), order 2s - 2; "stage" takes U_s, order about s - 1.
        newton: settings of the implicit solve. Strategy "full" differentiates all equations; "shared" neglects the
            derivatives of the forces; "auto" takes "full" for stiff forces, looked at before the run.

    Example:
        >>> method = carom.Spark(3, families={"dissipative": "C", "motor": "B"})
    """

    stages: int = eqx.field(static=True)
    families: dict[str, Array]
    multiplier: str = eqx.field(static=True)
    newton: Newton
    links: Links | None = found_field()

    handles = frozenset(
        {
            Feature.MASS_OF_Q,
            Feature.MASS_MATRIX,
            Feature.EXPLICIT_TIME,
            Feature.FORCES,
            Feature.MULTIPLIER_FORCES,
            Feature.RATE_DAMPING,
            Feature.CONSTRAINTS,
            Feature.NONHOLONOMIC,
            Feature.HAMILTONIAN,
            Feature.KINEMATICS,
        }
    )
    gives = frozenset({Gives.WHOLE_STEPS, Gives.SYMMETRIC_ERROR, Gives.LOCAL_ERROR, Gives.BACKWARD})
    derivative = Derivative.EXACT
    mostly_lapack = True  # ten bodies: 3.1 instead of 3.7 s for the loop, steps as fast (squeezer, Bricard, ten bodies)

    def __init__(
        self,
        stages: int,
        families: Mapping[str, Any] | None = None,
        damping: Mapping[str, Any] | None = None,
        multiplier: str = "consistent",
        newton: Newton | None = None,
    ):
        self.stages = checked_count("Spark: stages", stages, 2)
        self.families = coefficients(self.stages, families, damping)
        if multiplier not in ("consistent", "stage"):
            msg = f"Spark: multiplier must be 'consistent' (17h) or 'stage' (U_s), got '{multiplier}'"
            raise ValueError(msg)
        self.multiplier = multiplier
        self.newton = Newton(tol=1e-15, max_iter=60) if newton is None else newton
        self.links = None

    @property
    def order(self) -> int:
        """2s - 2 (Jay1998 Corollary 8.2)."""
        return 2 * self.stages - 2

    @property
    def error_orders(self) -> tuple[int, int]:
        """Of the estimate (38) and of the method."""
        return self.stages, self.order

    def objection(self, system: System) -> str | None:
        """Families must name parts the system has; multipliers never meet Lobatto IIIA."""
        if system.shift is not None:
            return "Spark: pass the system itself, not a regularised one"
        if system.hamiltonian is not None and system.nonholonomic is not None:
            return "Spark: nonholonomic constraints need velocities; give mass and potential instead of a Hamiltonian"
        return objection(self.stages, self.families, system)

    def tuned(self, system: System, state: State, h: float | None) -> Spark:
        """Full Newton where forces are stiff or equations beyond the structured form, else the simplified one."""
        per_component = [name for name, a in self.families.items() if a.ndim == 3 and a.shape[0] != state.v.size]
        if per_component:
            n = self.families[per_component[0]].shape[0]
            msg = f"Spark: '{per_component[0]}' has {n} families, but the state has {state.v.size} velocities"
            raise ValueError(msg)
        if self.newton.strategy != "auto":
            return linked(self, links(system, state, self.stages, self.newton.strategy))
        coupled = {Feature.HAMILTONIAN, Feature.MULTIPLIER_FORCES} & system.features
        whole = self.families["constraint"].ndim == 2 and self.families["kinematic"].ndim == 2
        plain = not coupled and whole
        strategy = "shared" if plain and not is_stiff(system, state, h) else "full"
        new = Newton(self.newton.tol, self.newton.max_iter, strategy)
        return linked(eqx.tree_at(lambda m: m.newton, self, new), links(system, state, self.stages, strategy))

    def with_tolerances(self, rtol: Array, atol: Array) -> Spark:
        """Stages solved as far as such steps deserve it."""
        del atol
        tol = jnp.maximum(self.newton.tol, jnp.minimum(_ENOUGH * rtol, _ROUGHEST))
        return eqx.tree_at(lambda m: m.newton.tol, self, tol)

    @staticmethod
    def alike(methods: list[Spark]) -> list[Spark]:
        """In a batch all lanes use one solver: full Newton if any needs it, whole matrices unless all link alike."""
        if len({m.links for m in methods}) > 1:
            methods = [linked(m, None) for m in methods]
        if len({m.newton.strategy for m in methods}) == 1:
            return methods
        return [eqx.tree_at(lambda m: m.newton, m, Newton(m.newton.tol, m.newton.max_iter, "full")) for m in methods]

    def init(self, system: System, state: State) -> Memory:
        """A constant guess: the start."""
        start, shape = compiled(accelerations)(system, state.t, state.q, state.v), (self.stages, 1)
        V, U = jnp.tile(state.v, shape), jnp.tile(start.u, shape)
        differ = system.hamiltonian is not None or system.kinematics is not None
        W = jnp.zeros((self.stages, state.q.size)) if differ else None
        return Memory(V, U, W, jnp.asarray(jnp.inf, float), start.redundant, start.idle)

    def step(self, system: System, state: State, memory: Memory, h: Array) -> Step:
        """One step, Jay1998 Definition 4.1; backward in time every family is replaced by its adjoint (37)."""
        base = lobatto_iiia(self.stages)
        turned = {name: jnp.where(h < 0, base.b - a[..., ::-1, ::-1], a) for name, a in self.families.items()}
        n = state.v.size
        parts = stacked([turned.get(name, turned[OTHER]) for name in part_names(system)], self.stages, n)
        kinematic = turned["kinematic" if system.kinematics is None else "rotation"]
        idle = memory.idle if len(memory.idle) > 1 else jnp.zeros_like(memory.idle)  # one row is never left out
        equations = StageEquations(system, state.t, state.q, state.v, h, kinematic, parts, idle, base, self.links)
        root = equations.solve(predicted(system, equations, memory), self.newton)
        x, (q_rates, p_rates) = root.x, root.aux
        t1, q1 = state.t + h, equations.end(x)
        if self.multiplier == "stage":
            u, D = x.U[-1], directions(system, t1, q1, x.v1)
            redundant, idle = ineffective(system, t1, q1, D, D)
        else:
            along = None if self.links is None else self.links.of_accelerations
            saddle = Saddle.of(system, t1, q1, x.v1)
            D, (_, u, redundant, idle) = saddle.D, saddle.accelerations(along)  # (17h)
        info = Info(
            status=self.status_of(system, root, state.moved(t1, q1, x.v1), memory.redundant, D),
            residual=root.error * self.newton.tol,
            iterations=root.iterations,
            evaluations=self.stages * root.evaluations,
            local_error=local_error(system, base, state.moved(t1, q1, x.v1), h, q_rates, p_rates),
            error=estimate(base.c, base.b, h, q_rates, p_rates),
            multiplier=u if has_constraints(system) else None,
            extra={"redundant": redundant} if u.size > 1 else {},
        )
        return Step(state.moved(t1, q1, x.v1), Memory(x.V, x.U, x.W, h, redundant, idle), info)

    def status_of(self, system: System, root: Root, end: State, redundant: Array, D: Array) -> Array:
        """How the step ended: where constraints depend on each other, those that were left out must hold too."""
        status = jnp.where(root.converged, Status.OK, Status.NEWTON_DIVERGED)
        if root.x.U.shape[1] < 2:
            return status
        left = jnp.max(jnp.stack(constraint_residuals(system, end.t, end.q, end.v, D)))
        kept = (redundant == 0) | ~root.converged | (left <= _LEFT + self.newton.tol)
        return jnp.where(kept, status, Status.CONSTRAINTS_LOST_RANK)

    def explain(self, system: System, state: State, memory: Memory, status: Status) -> str:
        """Whether the constraints lose rank in the step ahead."""
        if status not in (Status.NEWTON_DIVERGED, Status.CONSTRAINTS_LOST_RANK) or not has_constraints(system):
            return ""
        return rank_ahead(system, state, float(memory.h))


@register
def RATTLE(**options: Any) -> Spark:
    """RATTLE, the constrained Verlet method of order 2: Lobatto IIIA-B with two stages.

    Example:
        >>> method = carom.RATTLE()
    """
    return LobattoIIIAB(2, **options)


@register
def LobattoIIIAB(stages: int, **options: Any) -> Spark:
    """The symplectic and symmetric Lobatto IIIA-B method: positions with IIIA, every force with IIIB.

    Example:
        >>> method = carom.LobattoIIIAB(3)
    """
    return Spark(stages, families={"dissipative": "B", "exciting": "B", "rate damping": "B"}, **options)


def linked(method: Spark, links: Links | None) -> Spark:
    """The method with the links of a mechanism."""
    new = copy.copy(method)
    object.__setattr__(new, "links", links)
    return new


def stacked(matrices: list[Array], s: int, n: int) -> Array:
    """The matrices of all parts, (P, s, s), or (P, n, s, s) if any part treats components differently."""
    if not matrices:
        return jnp.zeros((0, s, s))
    if any(a.ndim == 3 for a in matrices):
        matrices = [jnp.broadcast_to(a, (n, s, s)) for a in matrices]
    return jnp.stack(matrices)


def predicted(system: System, equations: StageEquations, memory: Memory) -> Unknowns:
    """Stages extrapolated from the polynomial through those of the last step (at most two steps ahead)."""
    c = equations.base.c
    ahead = 1.0 + jnp.asarray(c) * jnp.clip(equations.h / memory.h, 0.0, 2.0)
    gaps = c[:, None] - c[None] + np.eye(len(c))
    factors = (ahead[:, None, None] - c) * (1 - np.eye(len(c))) + np.eye(len(c))
    weights = jnp.prod(factors, -1) / np.prod(gaps, -1)
    V = weights @ (memory.V - memory.V[-1]) + equations.v
    U = jnp.broadcast_to(memory.U[-1], memory.U.shape)
    W = None
    if memory.W is not None:
        W = weights @ (memory.W - memory.W[-1]) + system.rate(equations.t, equations.q, equations.v)
    return Unknowns(V, U, V[-1], W)


def estimate(c: np.ndarray, b: np.ndarray, h: Array, q_rates: Array, p_rates: Array) -> Array:
    """The symmetric error estimate (38): h |sum e_i q'_i| + h |sum e_i (M v)'_i|.

    e is the divided difference over the nodes with e_1 = b_1: (1, -2, 1)/6 for s = 3.
    """
    e = 1.0 / np.prod(c[:, None] - c[None] + np.eye(len(c)), axis=1)
    e = jnp.asarray(e * b[0] / e[0])
    return jnp.abs(h) * (jnp.linalg.norm(e @ q_rates) + jnp.linalg.norm(e @ p_rates))


def local_error(system: System, base: Tableau, end: State, h: Array, q_rates: Array, p_rates: Array) -> Any:
    """The embedded estimate of the error in q and v."""
    e = jnp.asarray(embedded(base).weights[1:-1])  # pyright: ignore
    return h * (e @ q_rates), system.mass_solve(end.t, end.q, h * (e @ p_rates))


def rank_ahead(system: System, state: State, h: float) -> str:
    """Where the constraints come nearest to losing rank on a straight line through the step ahead, and how near."""
    span = h if np.isfinite(h) else 0.0
    rate, times = system.rate(state.t, state.q, state.v), np.linspace(0.0, span, _LOOKED_AT if span else 1)
    rows = jax.vmap(lambda s: directions(system, state.t + s, state.q + s * rate, state.v))(jnp.asarray(times))
    lengths = np.linalg.norm(np.asarray(rows), axis=2, keepdims=True)
    values = np.linalg.svd(np.asarray(rows) / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
    values = np.pad(values, ((0, 0), (0, max(0, rows.shape[1] - values.shape[1]))))
    nearest = int(np.argmin(values[:, -1]))
    if values[nearest, -1] > _NEAR * values[nearest, 0]:
        return ""
    rank = int((values[nearest] > max(4 * values[nearest, -1], 1e-5)).sum())
    when = float(system.epoch + system.turned(state.t + times[nearest]))
    return f"The constraints have rank {rank} of {rows.shape[1]} at or near t = {when:.6g}, a singular position."


def is_stiff(system: System, state: State, h: float | None) -> bool:
    """Whether steps of size h, or (None) steps that follow the motion at the start, need the forces' derivatives."""
    return stiffness(system, state, h) >= (_FAR_TOO_STIFF if h is None else _STIFF)


def stiffness(system: System, state: State, h: float | None) -> float:
    """h^2 |df/dq| + h |df/dv| at the start, in units of the mass (largest eigenvalues), and h |dq'/dq|."""
    rates = [np.asarray(x) for x in _rates(system, state)]
    if not all(np.isfinite(x).all() for x in rates):
        return float("inf")
    M, f_q, f_v, turn, D, f, c = rates
    sizes = [np.abs(np.linalg.eigvals(x)).max() for x in (np.linalg.solve(M, f_q), np.linalg.solve(M, f_v), turn)]
    size = _FOLLOWS * followed(state, M, D, f, c) if h is None else h
    return float(size * size * sizes[0] + size * (sizes[1] + sizes[2]))


def followed(state: State, M: np.ndarray, D: np.ndarray, f: np.ndarray, c: np.ndarray) -> float:
    """The time scale of the motion at the start; zero where nothing moves. Solved on the host: nothing to compile."""
    m, n = D.shape
    whole = np.block([[M, D.T], [D, np.zeros((m, m))]])
    a = np.linalg.lstsq(whole, np.concatenate([f, -c]), rcond=None)[0][:n]
    scale = float(time_scale(*(np.max(np.abs(x), initial=0.0) for x in (state.q, state.v, a))))
    return scale if np.isfinite(scale) else 0.0


@compiled_roughly
def _rates(system: System, state: State) -> tuple[Array, ...]:
    """Mass, derivatives of forces by rates and velocities, of rates by coordinates; terms of the accelerations."""
    t, q, v = state.t, state.q, state.v
    at = Saddle.of(system, t, q, v)
    f = lambda x, w: system.force(t, x, w, jnp.zeros(len(at.D)))  # noqa: E731
    rate = lambda x, w: system.rate(t, x, w)  # noqa: E731
    B = jax.jacfwd(rate, 1)(q, v)
    turn = jax.jacfwd(rate)(q, v) if system.kinematics is not None else jnp.zeros((1, 1))
    M = mass_matrix(system, t, q, v.size)
    return M, jax.jacfwd(f)(q, v) @ B, jax.jacfwd(f, 1)(q, v), turn, at.D, f(q, v), at.c
