"""Functions that read a number that is being differentiated from around them, instead of being given it."""

from __future__ import annotations

from typing import Any

import jax

from carom.running.functions import reads_traced


def refuse_closures(tree: Any) -> None:
    """Raise where a user's function reads a traced number from around it: no derivative would see it."""
    for function in jax.tree.leaves(tree):
        if callable(function) and not isinstance(function, (jax.Array, type)):
            name = reads_traced(function)
            if name is not None:
                msg = (
                    f"a function of the system reads '{name}', a number that is being differentiated, from around "
                    f"it: give System(params={{'{name}': {name}}}) and an argument p, and write p['{name}']"
                )
                raise TypeError(msg)
