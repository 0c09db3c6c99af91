"""Measures: numbers computed from systems and solutions."""

from carom.measures.convergence import observed_order as observed_order
from carom.measures.energy import energy as energy
from carom.measures.energy import momentum as momentum
from carom.measures.history import search_history as search_history
