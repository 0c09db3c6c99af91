"""Tableaux by name: the text ``damped(lobatto_iiid(3), 0.2)`` back to the tableau, without evaluating code."""

import ast
from typing import Any

from carom.names import registered
from carom.tableaux.tableau import Tableau


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
        builder = builders().get(node.func.id)
        if builder is not None:
            return builder(*map(_built, node.args))
    raise TypeError(ast.unparse(node))


def _expected(name: str) -> str:
    return f"name must be a call like 'gauss(2)' of one of {sorted(builders())}; got {name!r}"


def builders() -> dict[str, Any]:
    """The functions that make tableaux, by name."""
    return {name: fn for name, fn in registered.items() if fn.__module__.startswith("carom.tableaux.")}
