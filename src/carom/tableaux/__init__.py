"""Runge-Kutta coefficients as data: generated for any number of stages, checked when built, order verified by trees."""

from carom.tableaux import modified, order, structure
from carom.tableaux.collocation import gauss, radau_iia
from carom.tableaux.damping import beta_for, damped
from carom.tableaux.embedded import Embedded, embedded
from carom.tableaux.explicit import explicit, half_explicit
from carom.tableaux.lobatto import lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star, lobatto_iiid
from carom.tableaux.names import from_name
from carom.tableaux.tableau import Tableau
from carom.tableaux.tailored import tailored, tailored_coefficients, tailored_part
from carom.tableaux.transforms import adjoint, conjugate

__all__ = [
    "Embedded",
    "Tableau",
    "adjoint",
    "beta_for",
    "conjugate",
    "damped",
    "embedded",
    "explicit",
    "from_name",
    "gauss",
    "half_explicit",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "modified",
    "order",
    "radau_iia",
    "structure",
    "tailored",
    "tailored_coefficients",
    "tailored_part",
]
