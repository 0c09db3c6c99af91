"""System: masses, potential, named forces, rate damping, kinematics, constraints and contacts; everything else derived.

Letters as in docs/notation.md: q coordinates, v velocities, M mass, f forces, V potential, g constraints.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.state import Numbers, reals, strong
from carom.systems.arguments import DerivedFunction, Given, UserFunction, is_traced, names_of, texts, user_function
from carom.systems.constrained import accelerations
from carom.systems.contact import Contacts, FrictionElements, one_or_several, refuse_repeated_names
from carom.systems.interactions import Interactions
from carom.systems.lagrangian import Lagrangian

Part = Interactions | UserFunction
CONSERVATIVE = "conservative"


class Origin:
    """Name and arguments (as JSON) of what a record was built from; all are equal, so that none makes JAX recompile."""

    def __init__(self, name: str, arguments: str = ""):
        self.name, self.arguments = name, arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


class System(eqx.Module):
    """The equations of motion `M v' = -dV/dq + forces + rate damping`, `q' = v` (or `kinematics`).

    Args:
        mass: a number, one per coordinate, a symmetric matrix (dense, or a `carom.Tridiagonal`), or a function `M(q)` /
            `M(t, q)`. With a function the inertia terms (Coriolis and the like) are derived: never put them into
            `forces`.
        potential: `V(q)`, `V(t, q)`, `Interactions`, or a dictionary of named ones.
        forces: `{name: f(t, q, v)}`; `f(t, q, v, lam)` where forces depend on the constraint multipliers.
        rate_damping: `{part: gamma}` adds `gamma d/dt(force of that part of the potential)`, gamma a number or one per
            interaction; `{name: R}` with a potential-like `R(q)` adds `d/dt(-dR/dq)`.
        kinematics: `q'(t, q, v)`, affine in v; default `q' = v`.
        constraints: bilateral constraints `g(q)` or `g(t, q)`, zero when fulfilled.
        nonholonomic: constraints on velocities `k(q, v)`.
        contacts: unilateral contacts, a `carom.Contacts` or a list of them, numbered through in its order.
        friction: friction elements without a unilateral contact, a `carom.FrictionElements` or a list of them.
        hamiltonian: `H(q, p)` instead of mass and potential; see `System.from_hamiltonian`.
        params: any pytree; functions with an argument named `p` receive it. New values never recompile. An argument
            named `elapsed` receives the time since the start of the run, which is exact where `t` is a large number.
        jumps: instants at which forces jump in time; every stepping lands on them.
        structure: "auto", "dense" or "tridiagonal": what carom may assume of the Jacobians of the forces.
        labels: names of the coordinates, for plots and files.
        units: units of the coordinates, one for all or one each, for plots and files.

    Example:
        >>> pendulum = carom.System(mass=1.0, potential=lambda q: 9.81 * (1 - jnp.cos(q[0])))
    """

    mass: Any
    potential: dict[str, Part]
    forces: dict[str, UserFunction]
    rate_damping: dict[str, Array | Part]
    kinematics: UserFunction | None
    shift: Callable[..., Array] | None
    constraints: UserFunction | None
    nonholonomic: UserFunction | None
    contacts: Any
    friction: Any
    hamiltonian: UserFunction | None
    params: Any
    epoch: Any
    jumps: Array
    structure: str = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    origin: Origin | None = eqx.field(static=True)

    def __init__(
        self,
        mass: Any = 1.0,
        potential: Any = None,
        forces: Mapping[str, Callable[..., Any]] | None = None,
        *,
        rate_damping: Mapping[str, Any] | None = None,
        kinematics: Callable[..., Any] | None = None,
        constraints: Callable[..., Any] | None = None,
        nonholonomic: Callable[..., Any] | None = None,
        contacts: Any = None,
        friction: Any = None,
        hamiltonian: Callable[..., Any] | None = None,
        params: Any = None,
        jumps: Numbers = (),
        structure: str = "auto",
        labels: Sequence[str] = (),
        units: str | Sequence[str] = (),
    ):
        self.mass = user_function(mass, "mass", ("q",), ("t", "q")) if callable(mass) else _mass(mass)
        named = potential if isinstance(potential, Mapping) else {} if potential is None else {CONSERVATIVE: potential}
        self.potential = {name: _part(part, role_of("potential", name)) for name, part in named.items()}
        self.forces = {
            name: user_function(f, f"force '{name}'", ("t", "q", "v"), ("t", "q", "v", "lam"))
            for name, f in _mapping(forces, "forces").items()
        }
        self.rate_damping = {
            name: _rate(value, name, self.potential) for name, value in _mapping(rate_damping, "rate_damping").items()
        }
        self.kinematics = kinematics and user_function(kinematics, "kinematics", ("t", "q", "v"))
        self.shift = None
        self.constraints = constraints and user_function(constraints, "constraints", ("q",), ("t", "q"))
        self.nonholonomic = nonholonomic and user_function(nonholonomic, "nonholonomic", ("q", "v"), ("t", "q", "v"))
        self.contacts = one_or_several(contacts, Contacts, "contacts", "write carom.Contacts(gap, ...)")
        self.friction = one_or_several(
            friction, FrictionElements, "friction", "a coefficient belongs to carom.Contacts"
        )
        refuse_repeated_names(self.contact_groups)
        self.hamiltonian = hamiltonian and user_function(hamiltonian, "hamiltonian", ("q", "v"), ("t", "q", "v"))
        self.params = None if params is None else _numeric(params)
        self.epoch = np.float64(0.0)
        self.jumps = _instants(jumps)
        if structure not in ("auto", "dense", "tridiagonal"):
            msg = f"structure must be 'auto', 'dense' or 'tridiagonal', got '{structure}'"
            raise ValueError(msg)
        self.structure = structure
        if isinstance(labels, str):
            msg = f"labels must be a list of names, one per coordinate, got the text '{labels}'"
            raise TypeError(msg)
        self.labels = texts(labels, "labels", "a list of names, one per coordinate")
        self.units = texts((units,) if isinstance(units, str) else units, "units", "a text, or a list of texts")
        self.origin = None

    @classmethod
    def from_lagrangian(cls, L: Callable[..., Any], **options: Any) -> System:
        """The system of a Lagrangian `L(q, v)` or `L(t, q, v)`, quadratic in v; `options` are those of `System`.

        Mass and potential are read off L by differentiation; terms linear in v become the force "gyroscopic".

        Example:
            >>> carom.System.from_lagrangian(lambda q, v: 0.5 * v @ v - q[1], constraints=lambda q: q @ q - 1.0)
        """
        lagrangian = Lagrangian(user_function(L, "the Lagrangian", ("q", "v"), ("t", "q", "v")))
        mass, potential = (DerivedFunction(f, ("t", "q"), ()) for f in (lagrangian.mass, lagrangian.potential))
        gyroscopic = DerivedFunction(lagrangian.gyroscopic, ("t", "q", "v"), ())
        return cls(
            mass, potential, {"gyroscopic": gyroscopic, **_mapping(options.pop("forces", None), "forces")}, **options
        )

    @classmethod
    def from_hamiltonian(cls, H: Callable[..., Any], **options: Any) -> System:
        """The system `q' = dH/dp`, `p' = -dH/dq + forces - G^T lambda` of `H(q, p)` or `H(t, q, p)`, Jay1998 (6).

        `State.v` then holds the momentum p, and forces are functions of (t, q, p). In the functions given here the
        parameters of the system, if any, cannot be called `p`.

        Example:
            >>> carom.System.from_hamiltonian(lambda q, p: 0.5 * p @ p + q[1], constraints=lambda q: q @ q - 1.0)
        """
        names = inspect.signature(H).parameters
        if len(names) not in (2, 3):
            msg = f"the Hamiltonian must be a function of (q, p) or (t, q, p), got ({', '.join(names)})"
            raise TypeError(msg)
        return cls(1.0, None, hamiltonian=UserFunction(H, ("t", "q", "v")[-len(names) :], ()), **options)

    # ---- what there is ------------------------------------------------------------------------------------------

    @property
    def rates(self) -> bool:
        """Whether the velocities are the rates of the coordinates, so that they have their units per second."""
        return self.kinematics is None and self.shift is None and self.hamiltonian is None

    @property
    def features(self) -> frozenset[str]:
        """The features a method must handle to take this system."""
        present = {
            "mass of q": isinstance(self.mass, UserFunction),
            "mass matrix": not isinstance(self.mass, UserFunction) and self.mass.ndim == 2,
            "explicit time": any(isinstance(p, UserFunction) and p.sees_time for p in self.potential.values()),
            "forces": bool(self.forces),
            "multiplier forces": any("lam" in f.takes for f in self.forces.values()),
            "rate damping": bool(self.rate_damping),
            "kinematics": self.kinematics is not None or self.shift is not None,
            "constraints": self.constraints is not None,
            "nonholonomic constraints": self.nonholonomic is not None,
            "hamiltonian": self.hamiltonian is not None,
            "contacts": self.contacts is not None,
            "friction": self.friction is not None or any(group.has_friction for group in self.contact_groups),
        }
        return frozenset(name for name, there in present.items() if there)

    @property
    def contact_groups(self) -> tuple[Contacts, ...]:
        """The contacts as a list, which may be empty."""
        return _listed(self.contacts)

    @property
    def friction_groups(self) -> tuple[FrictionElements, ...]:
        """The friction elements as a list, which may be empty."""
        return _listed(self.friction)

    @property
    def given(self) -> Given:
        """What every function of the user is given besides its place."""
        return Given(self.params, self.epoch)

    def since(self, epoch: Any) -> System:
        """The system of a run that began at `epoch`: its `t` is the time since then."""
        return eqx.tree_at(lambda s: s.epoch, self, epoch)

    def beside(self, t: Any, side: float) -> Any:
        """The next elapsed time before (`side` -1) or after t (1) that the user's functions can tell from it."""
        xp = np if isinstance(t, np.ndarray) else jnp
        size = xp.maximum(abs(t), abs(self.epoch + t))
        apart = t + side * 2 * (xp.nextafter(size, np.inf) - size)  # two, as the sum of both times is rounded
        return xp.where(self.epoch == 0, xp.nextafter(t, side * np.inf), apart)

    @property
    def is_tridiagonal(self) -> bool:
        """Whether the Jacobians of all forces are tridiagonal (declared, or seen from neighbour stencils)."""
        if self.structure != "auto":
            return self.structure == "tridiagonal"
        damped = (r for r in self.rate_damping.values() if isinstance(r, Part))
        neighbours = all(isinstance(r, Interactions) and r.span is not None and r.span <= 1 for r in damped)
        alone = bool(self.potential) and not self.forces and self.kinematics is None
        return alone and neighbours and self.has_neighbour_potential

    # ---- mass ---------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """The system in a notebook."""
        from carom.display import system_html

        return system_html(self)

    def mass_at(self, t: Array, q: Array) -> Any:
        """Mass as a scalar, a diagonal or a matrix."""
        return jnp.asarray(self.mass(self.given, t=t, q=q)) if isinstance(self.mass, UserFunction) else self.mass

    def dense_mass_at(self, t: Array, q: Array) -> Array:
        """`mass_at` with a banded matrix written out."""
        M = self.mass_at(t, q)
        return M.dense() if hasattr(M, "dense") else M

    def mass_times(self, t: Array, q: Array, v: Array) -> Array:
        """M v."""
        M = self.mass_at(t, q)
        return M @ v if M.ndim == 2 else M * v

    def mass_solve(self, t: Array, q: Array, f: Array) -> Array:
        """M^{-1} f; with constraints M is positive only along them."""
        M = self.mass_at(t, q)
        if hasattr(M, "solve"):
            return M.solve(f)
        if M.ndim == 2 and self.constraints is not None:
            return jnp.linalg.solve(M, f)
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(M), True), f) if M.ndim == 2 else f / M

    # ---- energies and forces ------------------------------------------------------------------------------------

    def part_energy(self, name: str, t: Array, q: Array) -> Array:
        """Energy of one part of the potential."""
        value = _evaluate(self.potential[name], self.given, t, q)
        return seen(value, q) if self.energy_is_seen and isinstance(self.potential[name], UserFunction) else value

    @property
    def energy_is_seen(self) -> bool:
        """Whether forces are NaN where the energy is; with contacts and friction constant forces stay constant."""
        return self.contacts is None and self.friction is None

    def potential_energy(self, t: Array, q: Array) -> Array:
        """V(t, q), all parts; H(t, q, 0) of a Hamiltonian system."""
        if self.hamiltonian is not None:
            return self.total_energy(t, q, jnp.zeros_like(q))
        return sum((self.part_energy(name, t, q) for name in self.potential), jnp.zeros((), q.dtype))

    def kinetic_energy(self, t: Array, q: Array, v: Array) -> Array:
        """Kinetic energy v M v / 2; H(t, q, p) - H(t, q, 0) of a Hamiltonian system."""
        if self.hamiltonian is not None:
            return self.total_energy(t, q, v) - self.total_energy(t, q, jnp.zeros_like(q))
        return 0.5 * jnp.vdot(v, self.mass_times(t, q, v))

    def total_energy(self, t: Array, q: Array, v: Array) -> Array:
        """Kinetic and potential energy together, or H."""
        if self.hamiltonian is not None:
            return seen(self.hamiltonian(self.given, t=t, q=q, v=v), q)
        return self.kinetic_energy(t, q, v) + self.potential_energy(t, q)

    def part_force(self, name: str, t: Array, q: Array) -> Array:
        """-dV_name/dq."""
        part = self.potential[name]
        if isinstance(part, Interactions):
            return -part.gradient(q)
        return -jax.grad(lambda x: self.part_energy(name, t, x))(q)

    def conservative_force(self, t: Array, q: Array) -> Array:
        """-dV/dq, all parts."""
        return sum((self.part_force(name, t, q) for name in self.potential), jnp.zeros_like(q))

    def neighbour_stiffness(self, q: Array, weights: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
        """Diagonal and off-diagonal of sum_a weight_a d2V_a/dq2, for potentials made of neighbour interactions."""
        diagonal, beside = jnp.zeros_like(q), jnp.zeros(q.shape[0] - 1)
        for name, part in self.potential.items():
            assert isinstance(part, Interactions)
            w = 1.0 if weights is None else weights[name]
            own, other = part.neighbour_hessian(q)
            diagonal, beside = diagonal + w * own, beside + w * other
        return diagonal, beside

    @property
    def has_neighbour_potential(self) -> bool:
        """Whether the potential is made of interactions between neighbours only, and the mass is diagonal."""
        parts = self.potential.values()
        diagonal = not isinstance(self.mass, UserFunction) and self.mass.ndim < 2
        return diagonal and all(isinstance(p, Interactions) and p.span is not None and p.span <= 1 for p in parts)

    def damping_potential(self, t: Array, q: Array) -> Array:
        """R(q): rate damping is the force d/dt(-dR/dq)."""
        total = jnp.zeros((), q.dtype)
        for name, rate in self.rate_damping.items():
            part = rate if isinstance(rate, Part) else _scaled(self.potential[name], rate)
            total = total + _evaluate(part, self.given, t, q)
        return total

    def damped_impulse(self, t: Array, q: Array) -> Array:
        """r(q) = -dR/dq, whose time derivative is the rate-damping force."""
        return -jax.grad(lambda x: self.damping_potential(t, x))(q)

    def applied_force(self, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """Sum of the named forces."""
        return sum((self.named_force(name, t, q, v, lam) for name in self.forces), jnp.zeros_like(v))

    def named_force(self, name: str, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """One named force."""
        return jnp.asarray(self.forces[name](self.given, t=t, q=q, v=v, lam=lam), float)

    def inertia_force(self, t: Array, q: Array, v: Array) -> Array:
        """dT/dq - (dM/dt) v: what M(t, q) adds to the right-hand side of M v' (zero for a constant mass)."""
        if not isinstance(self.mass, UserFunction):
            return jnp.zeros_like(v)
        momentum_rate = jax.jvp(lambda s, x: self.mass_times(s, x, v), (t, q), (jnp.ones_like(t), self.rate(t, q, v)))[
            1
        ]
        return self.to_velocities(t, q, v, jax.grad(lambda x: self.kinetic_energy(t, x, v))(q)) - momentum_rate

    def force(self, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """Everything on the right-hand side of M v', constraint and contact forces excepted."""
        if self.hamiltonian is not None:
            return self.applied_force(t, q, v, lam) - jax.grad(self.total_energy, 1)(t, q, v)
        f = self.to_velocities(t, q, v, self.conservative_force(t, q)) + self.applied_force(t, q, v, lam)
        f = f + self.inertia_force(t, q, v)
        if self.rate_damping and self.shift is None:
            f = f + jax.jvp(lambda x: self.damped_impulse(t, x), (q,), (self.rate(t, q, v),))[1]
        return f

    def acceleration(self, t: Array, q: Array, v: Array) -> Array:
        """M^{-1} force; with bilateral constraints, what they leave of it."""
        if self.constraints is not None or self.nonholonomic is not None:
            return accelerations(self, t, q, v).a
        return self.mass_solve(t, q, self.force(t, q, v))

    # ---- kinematics ---------------------------------------------------------------------------------------------

    def rate(self, t: Array, q: Array, v: Array) -> Array:
        """The rate q' = B(t, q) v + a(t, q), or dH/dp."""
        if self.hamiltonian is not None:
            return jax.grad(self.total_energy, 2)(t, q, v)
        if self.kinematics is not None:
            return self.kinematics(self.given, t=t, q=q, v=v)
        return v if self.shift is None else v + self.shift(self, t, q)

    def to_velocities(self, t: Array, q: Array, v: Array, covector: Array) -> Array:
        """B^T covector: a gradient with respect to q as a generalised force."""
        if self.kinematics is None:
            return covector
        return jax.vjp(lambda u: self.rate(t, q, u), v)[1](covector)[0]

    def inner_velocity(self, t: Array, q: Array, v: Array) -> Array:
        """The velocity variable a method steps, from the one the user gives."""
        return v if self.shift is None else v - self.shift(self, t, q)

    def outer_velocity(self, t: Array, q: Array, v: Array) -> Array:
        """The velocity the user sees, from the variable a method steps."""
        return v if self.shift is None else v + self.shift(self, t, q)

    def constraint(self, t: Array, q: Array) -> Array:
        """g(t, q) of the bilateral constraints, a vector."""
        if self.constraints is None:
            return jnp.zeros(0)
        return jnp.atleast_1d(self.constraints(self.given, t=t, q=q))

    def gaps(self, t: Array, q: Array) -> Array:
        """g(t, q) of all contacts, a vector."""
        return jnp.concatenate([jnp.zeros(0), *(group.gaps(self.given, t, q) for group in self.contact_groups)])

    def gap_rates(self, t: Array, q: Array, rate: Array) -> Array:
        """gamma_N = dg/dq q' + dg/dt of all contacts."""
        rates = (group.gap_rates(self.given, t, q, rate) for group in self.contact_groups)
        return jnp.concatenate([jnp.zeros(0), *rates])


def seen(energy: Any, q: Array) -> Array:
    """An energy whose gradient is NaN where the energy is: `jnp.where` hides the NaN of its branches from gradients."""
    value = jnp.asarray(energy, float).reshape(())
    return value + 0.0 * jax.lax.stop_gradient(value) * q[0]


def role_of(kind: str, name: str) -> str:
    """How messages call a part: by its name, if the user gave one."""
    return kind if name == CONSERVATIVE else f"{kind} '{name}'"


def with_origin(system: System, name: str, arguments: str) -> System:
    """Note which ready-made model this is, so that a stored run can rebuild it."""
    marked = copy.copy(system)
    object.__setattr__(marked, "origin", Origin(name, arguments))
    return marked


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"{name} must be a dictionary {{name: value}}, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def _numeric(params: Any) -> Any:
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if not eqx.is_array_like(leaf) or jnp.iscomplexobj(leaf):
            msg = f"params{jax.tree_util.keystr(path)} must be a real number or an array of them, got {leaf!r}"
            raise TypeError(msg)
    return strong(params)


def _mass(value: Any) -> Any:
    if hasattr(value, "solve"):
        return _symmetric_band(value)
    mass = reals(value, "mass", "a number, one per coordinate, or a square matrix")
    if mass.ndim > 2 or (mass.ndim == 2 and mass.shape[0] != mass.shape[1]):
        msg = f"mass must be a number, one per coordinate, or a square matrix, got shape {mass.shape}"
        raise ValueError(msg)
    if is_traced(mass):
        return mass
    mass = np.asarray(mass)
    if not np.isfinite(mass).all():
        msg = f"mass must be finite, got {_first_bad(mass, ~np.isfinite(mass))}"
        raise ValueError(msg)
    if mass.ndim < 2 and (mass <= 0).any():
        msg = f"mass must be positive, got {_first_bad(mass, mass <= 0)}"
        raise ValueError(msg)
    if mass.ndim == 2 and not np.allclose(mass, mass.T, rtol=1e-12, atol=0.0):
        i, j = np.unravel_index(np.argmax(np.abs(mass - mass.T)), mass.shape)
        msg = f"mass must be symmetric, got mass[{i},{j}] = {mass[i, j]} but mass[{j},{i}] = {mass[j, i]}"
        raise ValueError(msg)
    return jnp.asarray(mass)


def _instants(jumps: Numbers) -> Array:
    times = reals(jumps, "jumps", "a list of times")
    if is_traced(times):
        return jnp.sort(jnp.ravel(times))
    instants = np.unique(np.asarray(times))
    if not np.isfinite(instants).all():
        msg = f"jumps must be finite times, got {jumps}"
        raise ValueError(msg)
    return jnp.asarray(instants)


def _symmetric_band(mass: Any) -> Any:
    if is_traced(mass):
        return mass
    lower, upper = np.asarray(mass.lower)[1:], np.asarray(mass.upper)[:-1]
    if not np.allclose(lower, upper, rtol=1e-12, atol=0.0):
        i = int(np.argmax(np.abs(lower - upper)))
        msg = f"mass must be symmetric, got mass[{i},{i + 1}] = {upper[i]} but mass[{i + 1},{i}] = {lower[i]}"
        raise ValueError(msg)
    return mass


def _first_bad(values: np.ndarray, bad: np.ndarray) -> str:
    index = tuple(int(i) for i in np.argwhere(bad)[0]) if values.ndim else ()
    return f"mass[{', '.join(map(str, index))}] = {values[index]}" if index else f"mass = {float(values)}"


def _part(value: Any, role: str) -> Part:
    return value if isinstance(value, Interactions) else user_function(value, role, ("q",), ("t", "q"))


def _rate(value: Any, name: str, potential: Mapping[str, Part]) -> Array | Part:
    if isinstance(value, Interactions) or callable(value):
        return _part(value, f"rate_damping '{name}'")
    if name not in potential:
        msg = f"rate_damping names '{name}', but the potential has the parts {names_of(list(potential))}"
        raise ValueError(msg)
    gamma = reals(value, f"rate_damping['{name}']", "a number or one per interaction")
    if not is_traced(gamma) and not (np.isfinite(gamma) & (gamma >= 0)).all():
        msg = f"rate_damping['{name}'] must be zero or positive, got {gamma}"
        raise ValueError(msg)
    if gamma.ndim and not isinstance(potential[name], Interactions):
        msg = f"rate_damping['{name}']: one value per interaction needs a potential given as Interactions"
        raise ValueError(msg)
    return jnp.asarray(gamma)


def _evaluate(part: Any, given: Given, t: Array, q: Array) -> Array:
    return part(q) if isinstance(part, Interactions) else jnp.asarray(part(given, t=t, q=q), float).reshape(())


def _scaled(part: Part, gamma: Array) -> Any:
    if isinstance(part, Interactions):
        return part.scaled(gamma)
    return lambda given, t, q: gamma * part(given, t=t, q=q)
