"""Steppings: who chooses the step size, accepts, rejects and goes back."""

from carom.stepping.grid import Constant as Constant
from carom.stepping.grid import Prescribed as Prescribed
from carom.stepping.step_halving import StepHalving as StepHalving
from carom.stepping.switching import Switching as Switching
