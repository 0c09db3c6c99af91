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
from carom.models.rigid_bodies import block_on_belt as block_on_belt
from carom.models.rigid_bodies import painleve_rod as painleve_rod
from carom.models.rigid_bodies import rocking_block as rocking_block
from carom.models.rigid_bodies import super_ball as super_ball
from carom.models.slider_crank import slider_crank_clearance as slider_crank_clearance
from carom.models.woodpecker import woodpecker as woodpecker
