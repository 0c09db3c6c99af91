"""Methods and steppings written as text, as in `--method "IRK(gauss(2))"` or a scenario file."""

from __future__ import annotations

import ast
from typing import Any


def public_steppings() -> dict[str, Any]:
    """Steppings that are attributes of carom, by name."""
    import carom
    from carom.stepping.base import AbstractStepping

    return {n: c for n, c in vars(carom).items() if isinstance(c, type) and issubclass(c, AbstractStepping)}


def record(text: str) -> Any:
    """A method, stepping or tableau written as a call, such as `IRK(gauss(2))`; nothing else is evaluated."""
    import carom
    from carom.capabilities import public_methods
    from carom.systems.arguments import did_you_mean

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value  # pyright: ignore
        if isinstance(node, ast.List):
            return [build(item) for item in node.elts]
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return {key.value: build(value) for key, value in zip(node.keys, node.values)}  # pyright: ignore
        name = node.func if isinstance(node, ast.Call) else node
        allowed = public_methods() | public_steppings() | {"Newton": carom.Newton}
        allowed |= {n: getattr(carom, n) for n in _TABLEAUX}
        if not isinstance(name, ast.Name) or name.id not in allowed:
            close = did_you_mean(name.id, allowed) if isinstance(name, ast.Name) else ""
            msg = f"cannot read '{text}'; allowed are {', '.join(sorted(allowed))} with numbers as arguments{close}"
            raise ValueError(msg)
        arguments = node if isinstance(node, ast.Call) else None
        positional = [build(a) for a in arguments.args] if arguments else []
        return allowed[name.id](
            *positional, **{str(k.arg): build(k.value) for k in (arguments.keywords if arguments else [])}
        )

    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        msg = f"cannot read '{text}': write a call such as IRK(gauss(2))"
        raise ValueError(msg) from None
    return build(tree.body)


_TABLEAUX = (
    "gauss",
    "radau_iia",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "explicit",
)


def default_method(system: Any) -> Any:
    """The first of a few methods that handles the system: tailored, Gauss-Legendre, SPARK, Moreau's midpoint.

    Tailored methods are for systems that declare rate damping they can imitate.
    """
    import carom

    tailored = [carom.TailoredTheta()] if system.rate_damping else []
    choices = [*tailored, carom.IRK(carom.gauss(2)), carom.Spark(3), carom.MoreauMidpoint()]
    for method in choices:
        if system.features <= method.handles and not method.objection(system):
            return method
    msg = f"name a method: none of carom's usual choices handles {', '.join(sorted(system.features))}"
    raise ValueError(msg)
