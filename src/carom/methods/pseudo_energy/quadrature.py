"""Quadratures of the force along a free flight [Marazzato2019 (8)-(11)]."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.tableaux import gauss, lobatto_iiia

Force = Callable[[Array], Array]


@dataclass(frozen=True)
class Rule:
    """Symmetric quadrature on [0, 1]; `shared` says that the last node of a step is the first of the next."""

    b: tuple[float, ...]
    c: tuple[float, ...]
    shared: bool

    @property
    def evaluations(self) -> int:
        """New force evaluations per step."""
        return len(self.c) - self.shared


@cache
def rule(name: str) -> Rule:
    """The rule called "midpoint", "gauss-n" (exact to degree 2n - 1) or "lobatto-n" (2n - 3) [Remark 2]."""
    family, count = ("gauss", 1) if name == "midpoint" else _parsed(name)
    tableau = gauss(count) if family == "gauss" else lobatto_iiia(count)
    return Rule(tuple(map(float, tableau.b)), tuple(map(float, tableau.c)), family == "lobatto")


def _parsed(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(gauss|lobatto)-(\d+)", name) if isinstance(name, str) else None
    if match is None or int(match[2]) < (1 if match[1] == "gauss" else 2):
        msg = f"quadrature must be 'midpoint', 'gauss-n' (n >= 1) or 'lobatto-n' (n >= 2), got {name!r}"
        raise ValueError(msg)
    return match[1], int(match[2])


def impulse(force: Force, rule: Rule, q: Array, u: Array, h: Array, first: Array | None) -> tuple[Array, Array | None]:
    """`h sum_i b_i f(q + c_i h u)` (9), and the force at the end where the rule shares it with the next step.

    `first` is the force at q, known from the step before if the rule shares it.
    """
    b, c = np.array(rule.b[rule.shared :]), np.array(rule.c[rule.shared :])
    if len(c) == 1:
        last = force(q + c[0] * h * u)
        total = b[0] * last
    else:
        forces = jax.vmap(lambda x: force(q + x * h * u))(jnp.asarray(c))
        total, last = jnp.sum(b[:, None] * forces, 0), forces[-1]
    if first is None:
        return h * total, None
    return h * (rule.b[0] * first + total), last
