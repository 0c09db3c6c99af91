"""Steppings: who chooses the step size, accepts, rejects and goes back."""

from typing import Any

from carom.names import registered


def __getattr__(name: str) -> Any:
    """A stepping by name, wherever it is written."""
    if name in registered:
        return registered[name]
    msg = f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(msg)
