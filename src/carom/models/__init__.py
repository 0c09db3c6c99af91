"""Ready-made models: `carom.models.NAME(**parameters) -> (System, State)`."""

from carom.models.collision import binary_collision as binary_collision
from carom.models.collision import damping_from_restitution as damping_from_restitution
from carom.models.granular import bead_chain as bead_chain
from carom.models.granular import dimer_chain as dimer_chain
from carom.models.granular import granular_chain as granular_chain
from carom.models.granular import newtons_cradle as newtons_cradle
from carom.models.granular import trimer as trimer
from carom.models.registry import build as build
from carom.models.registry import registry as registry
