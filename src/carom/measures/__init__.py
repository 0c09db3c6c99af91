"""Measures: numbers computed from systems and solutions."""

from carom.measures.contacts import ContactForces as ContactForces
from carom.measures.contacts import Touching as Touching
from carom.measures.contacts import contact_forces as contact_forces
from carom.measures.contacts import touching as touching
from carom.measures.convergence import observed_order as observed_order
from carom.measures.energy import created_energy as created_energy
from carom.measures.energy import energy as energy
from carom.measures.energy import momentum as momentum
from carom.measures.graph_distance import filled_graph as filled_graph
from carom.measures.graph_distance import graph_distance as graph_distance
from carom.measures.graph_distance import grid_norm as grid_norm
from carom.measures.graph_distance import local_error as local_error
from carom.measures.history import search_history as search_history
from carom.measures.packings import coordination as coordination
from carom.measures.packings import fabric as fabric
from carom.measures.packings import mixing_index as mixing_index
from carom.measures.packings import packing_fraction as packing_fraction
from carom.measures.structure import angular_momentum as angular_momentum
from carom.measures.structure import constraint_residuals as constraint_residuals
from carom.measures.structure import energy_drift as energy_drift
from carom.measures.structure import project_energy as project_energy
from carom.measures.structure import quadratic_invariant as quadratic_invariant
from carom.measures.structure import reversibility_defect as reversibility_defect
from carom.measures.structure import symplectic_defect as symplectic_defect
