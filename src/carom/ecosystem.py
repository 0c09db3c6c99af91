"""Bridges to other libraries."""

from __future__ import annotations

from typing import Any

from carom.systems.features import SMOOTH
from carom.systems.system import System


def to_diffrax(system: System) -> Any:
    """A smooth, unconstrained system as a `diffrax.ODETerm` of `y = (q, v)`.

    Example:
        >>> term = carom.to_diffrax(system)
        >>> diffrax.diffeqsolve(term, diffrax.Dopri8(), 0.0, 10.0, 0.01, (state.q, state.v))
    """
    if not isinstance(system, System):
        msg = f"system must be a carom System, got {type(system).__name__}"
        raise TypeError(msg)
    beyond = sorted(system.features - SMOOTH)
    if beyond:
        msg = f"diffrax solves smooth, unconstrained systems; this one has {', '.join(beyond)}"
        raise ValueError(msg)
    try:
        import diffrax
    except ImportError:
        msg = "to_diffrax needs diffrax: pip install diffrax"
        raise ImportError(msg) from None

    def slope(t: Any, y: Any, args: Any) -> Any:
        del args
        q, v = y
        return system.rate(t, q, v), system.acceleration(t, q, v)

    return diffrax.ODETerm(slope)
