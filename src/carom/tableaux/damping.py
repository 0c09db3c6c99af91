"""Controllable numerical damping by splitting a force between two tableaux (Jay1998 sec. 7)."""

from carom.names import register
from carom.tableaux.lobatto import lobatto_iiic
from carom.tableaux.tableau import Tableau

SAFE_BASES = ("lobatto_iiid", "lobatto_iiia")


@register
def damped(base: Tableau, beta: float) -> Tableau:
    """``(1 - beta) A_base + beta A_IIIC``: the fraction beta of every term is treated by Lobatto IIIC.

    With base IIID the modulus of R at infinity is ``(1 - beta) / (1 + beta)`` for every s. With base IIIA the result
    is stiffly accurate, so R vanishes at infinity for every ``beta > 0``: beta then sets how fast middle frequencies
    are damped, not the limit. The order stays 2s - 2. Use the same tableau for positions and velocities: a base
    split between IIIA (positions) and IIIB (velocities) is unstable for small beta, so other bases are refused.

    Args:
        base: ``lobatto_iiid(s)`` or ``lobatto_iiia(s)``.
        beta: Fraction from 0 (no damping) to 1 (Lobatto IIIC).
    """
    if not base.name.startswith(SAFE_BASES):
        msg = f"damped(base, beta): base must be lobatto_iiid(s) or lobatto_iiia(s); got {base.name}"
        raise ValueError(msg)
    share = float(beta)
    if not 0 <= share <= 1:
        msg = f"damped(base, beta): beta must lie in [0, 1]; got {beta!r}"
        raise ValueError(msg)
    A = (1 - share) * base.A + share * lobatto_iiic(base.stages).A
    if base.is_stiffly_accurate:
        A[-1] = base.b
    return Tableau(A, base.b, base.c, order=base.order, name=f"damped({base.name}, {share!r})")


def beta_for(rho_inf: float) -> float:
    """The beta with which ``damped(lobatto_iiid(s), beta)`` has ``|R(infinity)| = rho_inf``."""
    if not 0 <= rho_inf <= 1:
        msg = f"beta_for(rho_inf): rho_inf must lie in [0, 1]; got {rho_inf!r}"
        raise ValueError(msg)
    return float((1 - rho_inf) / (1 + rho_inf))
