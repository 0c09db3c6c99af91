"""Methods and steppings written as text, as in `--method "IRK(gauss(2))"` or a scenario file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from carom.arguments import did_you_mean, names_of
from carom.names import registered


def record(text: str, known: Mapping[str, Any] = registered) -> Any:
    """A method, stepping or tableau written as a call, such as `IRK(gauss(2))`; nothing else is evaluated.

    `known` are the names that may be called.
    """

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_number(node.operand):
            return -node.operand.value  # pyright: ignore
        if isinstance(node, ast.List):
            return [build(item) for item in node.elts]
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return {key.value: build(value) for key, value in zip(node.keys, node.values)}  # pyright: ignore
        name = node.func if isinstance(node, ast.Call) else node
        if not isinstance(name, ast.Name) or name.id not in known:
            close = did_you_mean(name.id, known) if isinstance(name, ast.Name) else ""
            what = f"cannot read '{short}'{close}{' Allowed' if close else '; allowed'}"
            msg = f"{what} are {', '.join(sorted(known))} with numbers as arguments"
            raise ValueError(msg)
        arguments = node if isinstance(node, ast.Call) else None
        positional = [build(a) for a in arguments.args] if arguments else []
        named = {str(k.arg): build(k.value) for k in (arguments.keywords if arguments else [])}
        return _called(name.id, known[name.id], positional, named)

    short = text if len(text) <= 60 else f"{text[:57]}..."
    try:
        return build(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        deep = "" if isinstance(error, SyntaxError) else " (it is nested too deeply)"
        msg = f"cannot read '{short}'{deep}: write a call such as IRK(gauss(2))"
        raise ValueError(msg) from None


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _called(name: str, fn: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    """`fn` of these arguments; those that do not fit are told with the ones it takes."""
    signature = inspect.signature(fn)
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        msg = f"{name}: {error}; it takes {names_of(list(signature.parameters))}"
        raise ValueError(msg) from None
    return fn(*positional, **named)
