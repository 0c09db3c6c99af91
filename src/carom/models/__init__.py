"""Ready-made models: `carom.models.NAME(**parameters) -> (System, State)`."""

from carom.models.contact import falling_mass as falling_mass
from carom.models.contact import impact_oscillator as impact_oscillator
from carom.models.contact import sliding_mass as sliding_mass
from carom.models.granular import bead_chain as bead_chain
from carom.models.granular import dimer_chain as dimer_chain
from carom.models.granular import granular_chain as granular_chain
from carom.models.granular import newtons_cradle as newtons_cradle
from carom.models.granular import trimer as trimer
from carom.models.registry import build as build
from carom.models.registry import registry as registry
from carom.models.woodpecker import woodpecker as woodpecker
