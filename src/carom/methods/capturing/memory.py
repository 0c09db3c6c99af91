"""What event capturing remembers from step to step, and where one step stands."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.capturing.location import Search
from carom.methods.capturing.modes import Modes


class CaptureMemory(eqx.Module):
    """What the next step must know.

    `modes` are those of the laws; if `unsettled`, the next step has to choose among the closed contacts and the
    sticking friction. `located` are the contacts of the critical step to come, `last` the modes of the last row as
    numbers, `h` the step of the grid if the last was `short`, `events` the number of pieces cut by events in a row,
    `search` that for the first event of a step under way.
    """

    modes: Modes
    located: Array
    last: Array
    unsettled: Array = eqx.field(converter=jnp.asarray)
    h: Array = eqx.field(converter=jnp.asarray)
    short: Array = eqx.field(converter=jnp.asarray)
    events: Array = eqx.field(converter=jnp.asarray)
    search: Search

    def searching(self, modes: Modes, search: Search) -> CaptureMemory:
        """The same, with modes that are settled, in the middle of a search."""
        return eqx.tree_at(lambda m: (m.modes, m.unsettled, m.search), self, (modes, jnp.asarray(False), search))


class Phase(eqx.Module):
    """Where a step stands: its modes and located contacts, the grid's step, the critical length and its floor."""

    memory: CaptureMemory
    modes: Modes
    located: Array
    nominal: Array
    window: Array
    floor: Array
