"""Methods by family: one file each, one pure step each."""

from typing import Any

from carom.names import registered


def __getattr__(name: str) -> Any:
    """A method by name, wherever it is written."""
    if name in registered:
        return registered[name]
    msg = f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(msg)
