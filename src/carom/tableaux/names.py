"""Tableaux by name: the text ``damped(lobatto_iiid(3), 0.2)`` back to the tableau, without evaluating code."""

import ast
from collections.abc import Callable

from carom.tableaux.collocation import gauss, radau_iia
from carom.tableaux.damping import damped
from carom.tableaux.explicit import explicit, half_explicit
from carom.tableaux.lobatto import lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star, lobatto_iiid
from carom.tableaux.tableau import Tableau
from carom.tableaux.tailored import tailored
from carom.tableaux.transforms import adjoint, conjugate

BUILDERS: dict[str, Callable[..., Tableau]] = {
    builder.__name__: builder
    for builder in (
        gauss,
        radau_iia,
        lobatto_iiia,
        lobatto_iiib,
        lobatto_iiic,
        lobatto_iiic_star,
        lobatto_iiid,
        explicit,
        half_explicit,
        tailored,
        damped,
        conjugate,
        adjoint,
    )
}


def from_name(name: str) -> Tableau:
    """The tableau that a name such as ``"gauss(2)"`` describes; the inverse of ``Tableau.name``."""
    try:
        tableau = _built(ast.parse(name, mode="eval").body)
    except (SyntaxError, TypeError) as error:
        raise ValueError(_expected(name)) from error
    if not isinstance(tableau, Tableau):
        raise ValueError(_expected(name))
    return tableau


def _built(node: ast.expr) -> Tableau | int | float:
    """A number, or a call of one of the builders on numbers and calls; anything else is refused."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # pyright: ignore[reportReturnType]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        builder = BUILDERS.get(node.func.id)
        if builder is not None:
            return builder(*map(_built, node.args))
    raise TypeError(ast.unparse(node))


def _expected(name: str) -> str:
    return f"name must be a call like 'gauss(2)' of one of {sorted(BUILDERS)}; got {name!r}"
