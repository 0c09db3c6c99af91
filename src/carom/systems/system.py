"""System: masses, potential, named forces, rate damping, kinematics, constraints and contacts; everything else derived.

Letters as in docs/notation.md: q coordinates, v velocities, M mass, f forces, V potential, g constraints.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from carom.arguments import DerivedFunction, UserFunction, texts, user_function
from carom.state import Numbers
from carom.systems.contact import FrictionElements, one_or_several, refuse_repeated_names
from carom.systems.contact_base import AbstractContacts
from carom.systems.equations import Equations, Origin
from carom.systems.features import Feature
from carom.systems.lagrangian import Lagrangian
from carom.systems.terms import (
    CONSERVATIVE,
    given_jumps,
    given_mass,
    given_names,
    given_params,
    given_part,
    given_rate,
    given_time_unit,
    role_of,
)


class System(Equations):
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
        manifold: brings coordinates back to where they belong after every step, `q -> q`: unit quaternions, say.
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
        time_unit: unit of the time, for plots and files; seconds where coordinates have units.

    Example:
        >>> pendulum = carom.System(mass=1.0, potential=lambda q: 9.81 * (1 - jnp.cos(q[0])))
    """

    def __init__(
        self,
        mass: Any = 1.0,
        potential: Any = None,
        forces: Mapping[str, Callable[..., Any]] | None = None,
        *,
        rate_damping: Mapping[str, Any] | None = None,
        kinematics: Callable[..., Any] | None = None,
        manifold: Callable[..., Any] | None = None,
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
        time_unit: str = "",
    ):
        self.mass = user_function(mass, "mass", ("q",), ("t", "q")) if callable(mass) else given_mass(mass)
        named = potential if isinstance(potential, Mapping) else {} if potential is None else {CONSERVATIVE: potential}
        self.potential = {name: given_part(part, role_of("potential", name)) for name, part in named.items()}
        self.forces = {
            name: user_function(f, f"force '{name}'", ("t", "q", "v"), ("t", "q", "v", "lam"))
            for name, f in given_names(forces, "forces").items()
        }
        self.rate_damping = {
            name: given_rate(value, name, self.potential)
            for name, value in given_names(rate_damping, "rate_damping").items()
        }
        self.kinematics = kinematics and user_function(kinematics, "kinematics", ("t", "q", "v"))
        self.manifold = manifold and user_function(manifold, "manifold", ("q",))
        self.shift = None
        self.constraints = constraints and user_function(constraints, "constraints", ("q",), ("t", "q"))
        self.nonholonomic = nonholonomic and user_function(nonholonomic, "nonholonomic", ("q", "v"), ("t", "q", "v"))
        self.contacts = one_or_several(contacts, AbstractContacts, "contacts", "write carom.Contacts(gap, ...)")
        self.friction = one_or_several(
            friction, FrictionElements, "friction", "a coefficient belongs to carom.Contacts"
        )
        refuse_repeated_names(self.contact_groups)
        if self.has_joint_friction and self.constraints is None:
            msg = "FrictionElements: limit reads lam, but the system has no constraints="
            raise ValueError(msg)
        self.hamiltonian = hamiltonian and user_function(hamiltonian, "hamiltonian", ("q", "v"), ("t", "q", "v"))
        self.params = None if params is None else given_params(params)
        self.epoch, self.pairs, self.backward = np.float64(0.0), None, False
        self.jumps = given_jumps(jumps)
        if structure not in ("auto", "dense", "tridiagonal"):
            msg = f"structure must be 'auto', 'dense' or 'tridiagonal', got '{structure}'"
            raise ValueError(msg)
        self.structure = structure
        if isinstance(labels, str):
            msg = f"labels must be a list of names, one per coordinate, got the text '{labels}'"
            raise TypeError(msg)
        self.labels = texts(labels, "labels", "a list of names, one per coordinate")
        self.units = texts((units,) if isinstance(units, str) else units, "units", "a text, or a list of texts")
        self.time_unit = given_time_unit(time_unit, self.units)
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
            mass, potential, {"gyroscopic": gyroscopic, **given_names(options.pop("forces", None), "forces")}, **options
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

    def __repr__(self) -> str:
        if self.origin is not None:
            given = ", ".join(f"{name}={value!r}" for name, value in json.loads(self.origin.arguments or "{}").items())
            return f"<System of carom.models.{self.origin.name}({given})>"
        named = {"potential": self.potential, "forces": self.forces, "rate damping": self.rate_damping}
        parts = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
        parts += [feature for feature in Feature if feature in self.features - set(named)]
        return f"<System with {'; '.join(parts) or 'masses only'}>"

    def _repr_html_(self) -> str:
        """The system in a notebook."""
        from carom.display import system_html

        return system_html(self)


def with_origin(system: System, name: str, arguments: str) -> System:
    """Note which ready-made model this is, so that a stored run can rebuild it."""
    marked = copy.copy(system)
    object.__setattr__(marked, "origin", Origin(name, arguments))
    return marked
