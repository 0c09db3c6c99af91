"""Measures: numbers computed from systems and solutions."""

from carom.measures.convergence import observed_order as observed_order
from carom.measures.energy import energy as energy
from carom.measures.energy import momentum as momentum
from carom.measures.graph_distance import filled_graph as filled_graph
from carom.measures.graph_distance import graph_distance as graph_distance
from carom.measures.graph_distance import grid_norm as grid_norm
from carom.measures.graph_distance import local_error as local_error
from carom.measures.history import search_history as search_history
