"""Who handles what: the declarations of all methods as one table."""

from __future__ import annotations

from carom import methods
from carom.methods.base import AbstractMethod

FEATURES = (
    "mass matrix",
    "mass of q",
    "explicit time",
    "forces",
    "multiplier forces",
    "rate damping",
    "kinematics",
    "constraints",
    "nonholonomic constraints",
    "contacts",
    "friction",
)


def public_methods() -> dict[str, type[AbstractMethod]]:
    """All methods by name."""
    kinds = {name: kind for name, kind in vars(methods).items() if isinstance(kind, type)}
    return {name: kind for name, kind in sorted(kinds.items()) if issubclass(kind, AbstractMethod)}


def matrix() -> str:
    """The table of methods and features in Markdown."""
    lines = ["| method | " + " | ".join(FEATURES) + " |", "|---|" + ":-:|" * len(FEATURES)]
    for name, kind in public_methods().items():
        marks = ("yes" if feature in kind.handles else "" for feature in FEATURES)
        lines.append(f"| `{name}` | " + " | ".join(marks) + " |")
    return "\n".join(lines)
