"""Steppings: who chooses the step size, accepts, rejects and goes back."""

from carom.stepping.adaptive import Adaptive as Adaptive
from carom.stepping.energy_gap import EnergyGap as EnergyGap
from carom.stepping.grid import Constant as Constant
from carom.stepping.grid import Prescribed as Prescribed
from carom.stepping.reversible import Reversible as Reversible
from carom.stepping.step_halving import StepHalving as StepHalving
from carom.stepping.switching import Switching as Switching
