"""What Runge-Kutta methods of one tableau share: order, embedded error estimate, no memory."""

from __future__ import annotations

import equinox as eqx

from carom.methods.base import SMOOTH, AbstractMethod, Derivative, Gives
from carom.state import State
from carom.systems.features import Feature
from carom.systems.system import System
from carom.tableaux import Tableau, embedded


class TableauMethod(AbstractMethod):
    """A one-step method that is its tableau."""

    tableau: Tableau = eqx.field(static=True)

    handles = SMOOTH | {Feature.MOVING_PAIRS}
    derivative = Derivative.EXACT

    @property
    def order(self) -> int:
        """Order of the tableau."""
        return self.tableau.order

    @property
    def gives(self) -> frozenset[Gives]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Steps in both directions, and the local error where the tableau has an embedded companion."""
        estimate = {Gives.LOCAL_ERROR} if embedded(self.tableau) else set()
        return frozenset({Gives.WHOLE_STEPS, Gives.BACKWARD} | estimate)

    @property
    def error_orders(self) -> tuple[int, int]:
        """The powers of h of the embedded estimate and of the error."""
        companion = embedded(self.tableau)
        assert companion is not None
        return companion.power, self.tableau.order

    def init(self, system: System, state: State) -> None:
        """No memory."""
