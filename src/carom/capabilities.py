"""Who handles what: the declarations of all methods and steppings as tables."""

from __future__ import annotations

from carom.methods.base import AbstractMethod
from carom.names import kinds
from carom.stepping.base import AbstractStepping
from carom.systems.features import Feature


def public_methods() -> dict[str, type[AbstractMethod]]:
    """All methods by name."""
    return kinds(AbstractMethod)


def public_steppings() -> dict[str, type[AbstractStepping]]:
    """All steppings by name."""
    return kinds(AbstractStepping)


def declared(kind: type[AbstractMethod]) -> frozenset[Feature] | None:
    """The features a kind of method handles; None for a wrapper, which handles what its base handles."""
    return None if isinstance(kind.handles, property) else kind.handles


def matrix() -> str:
    """The table of methods and features in Markdown."""
    lines = ["| method | " + " | ".join(Feature) + " |", "|---|" + ":-:|" * len(Feature)]
    for name, kind in public_methods().items():
        handled = declared(kind)
        marks = ("as base" if handled is None else "yes" if feature in handled else "" for feature in Feature)
        lines.append(f"| `{name}` | " + " | ".join(marks) + " |")
    return "\n".join(lines)


def needs() -> str:
    """The table of steppings and what they need of a method in Markdown."""
    lines = ["| stepping | needs of the method |", "|---|---|"]
    for name, kind in public_steppings().items():
        lines.append(f"| `{name}` | {', '.join(sorted(kind.needs)) or 'nothing'} |")
    return "\n".join(lines)
