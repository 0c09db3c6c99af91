"""What can be named in texts, scenario files and stored runs: methods, steppings, solvers, tableaux.

One registration for each, at its definition:

    @register
    class Theta(AbstractMethod): ...
"""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])
registered: dict[str, Callable[..., Any]] = {}


def register(thing: T) -> T:
    """Register a class or a function under its own name."""
    name = thing.__name__
    if name in registered:
        msg = f"two things are named {name}: {registered[name].__module__} and {thing.__module__}"
        raise ValueError(msg)
    registered[name] = thing
    return thing


def kinds(base: type) -> dict[str, Any]:
    """The registered classes that derive from `base`, by name."""
    found = {name: kind for name, kind in registered.items() if isinstance(kind, type) and issubclass(kind, base)}
    return dict(sorted(found.items()))
