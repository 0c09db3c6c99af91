"""The equations of a run that goes backward: in s = t0 - t and w = -v time runs forward, and every method as it does.

M dw/ds = f(t0 - s, q, -w),    dq/ds = -q'(t0 - s, q, -w),    H(q, -w),    g(t0 - s, q) = 0,    rate damping -gamma
"""

from __future__ import annotations

import copy
from typing import Any

import equinox as eqx

from carom.arguments import Given, UserFunction
from carom.running.compiled import remembered
from carom.systems.system import System
from carom.systems.terms import INTERACTIONS


class Mirrored(UserFunction):
    """A function of a system, told t and v as the user knows them; what it returns may change its sign too."""

    sign: float = eqx.field(static=True, default=1.0)

    def __call__(self, given: Given, **available: Any) -> Any:
        """Call the function itself with the other signs."""
        turned = {name: -available[name] for name in ("t", "v") if name in available}
        value = self.fn(given, **available | turned)
        return value if self.sign == 1.0 else self.sign * value


@remembered
def backward(system: System) -> System:
    """The same motion with time running backward."""
    changes = {
        "mass": _mirrored(system.mass),
        "potential": {name: _mirrored(part) for name, part in system.potential.items()},
        "forces": {name: _mirrored(force) for name, force in system.forces.items()},
        "rate_damping": {name: _negative(rate) for name, rate in system.rate_damping.items()},
        "kinematics": _mirrored(system.kinematics, -1.0),
        "constraints": _mirrored(system.constraints),
        "nonholonomic": _mirrored(system.nonholonomic, -1.0),
        "hamiltonian": _mirrored(system.hamiltonian),
        "backward": True,
    }
    turned = copy.copy(system)
    for name, value in changes.items():
        object.__setattr__(turned, name, value)
    return turned


def _mirrored(term: Any, sign: float = 1.0) -> Any:
    return Mirrored(term, term.takes, term.named, sign) if isinstance(term, UserFunction) else term


def _negative(rate: Any) -> Any:
    if isinstance(rate, UserFunction):
        return _mirrored(rate, -1.0)
    return rate.scaled(-1.0) if isinstance(rate, INTERACTIONS) else -rate
