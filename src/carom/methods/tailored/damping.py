"""What the tailored methods of James2020 share: reading and checking the declared rate damping."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import names_of
from carom.systems.system import System


def damping_of(system: System, part: str) -> Array:
    """Rate damping of one part of the potential; zero if none is declared."""
    return jnp.max(jnp.asarray(system.rate_damping.get(part, 0.0)))


def declared_damping(system: System) -> Array:
    """The one rate damping of all damped parts (that it is one was checked on the host)."""
    return jnp.max(jnp.stack([jnp.zeros(()), *(damping_of(system, part) for part in system.rate_damping)]))


def tailored_objection(method, system: System, *, every_part: bool) -> str | None:
    """Why numerical dissipation cannot stand for the rate damping of this system; None if it can."""
    name = type(method).__name__
    foreign = [
        part for part in system.rate_damping if part not in system.potential or callable(system.rate_damping[part])
    ]
    if foreign:
        return (
            f"{name} imitates damping of the form gamma d/dt(force of a part of the potential); "
            f"the rate damping {names_of(foreign)} is not of this form. Use carom.regularise with carom.IRK"
        )
    values = {part: np.asarray(gamma) for part, gamma in system.rate_damping.items()}
    uneven = [part for part, gamma in values.items() if gamma.size > 1 and np.ptp(gamma) > 1e-14 * np.max(gamma)]
    if uneven:
        return f"{name} needs one damping constant, but rate_damping[{names_of(uneven)}] varies between interactions"
    gammas = {part: float(np.max(gamma)) for part, gamma in values.items()}
    if every_part:
        gammas = {part: gammas.get(part, 0.0) for part in system.potential}
    if len(set(gammas.values())) > 1:
        listed = ", ".join(f"'{part}': {gamma:g}" for part, gamma in gammas.items())
        advice = "carom.AdditiveTailoredIRK or carom.TailoredTheta" if every_part else "carom.AdditiveTailoredIRK"
        return f"{name} damps every part of the potential alike, but the system declares {listed}. Use {advice}"
    system_damping = next(iter(gammas.values()), 0.0)
    if method.damping is not None and (np.ndim(method.damping) or isinstance(method.damping, str)):
        return f"{name}: damping must be one number, got {method.damping!r}"
    if method.damping is not None and float(method.damping) != system_damping:
        return f"{name}(damping={float(method.damping):g}) differs from the system's rate damping {system_damping:g}"
    return None
