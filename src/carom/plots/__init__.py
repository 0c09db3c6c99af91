"""Figures: small functions that take arrays or a `Solution` and return a matplotlib `Figure`.

Nothing here touches pyplot: figures are saved with `figure.savefig(path)` and shown by notebooks as they are.
"""

from carom.plots.contacts import contact_forces as contact_forces
from carom.plots.convergence import convergence as convergence
from carom.plots.crystals import dispersion as dispersion
from carom.plots.crystals import force_network as force_network
from carom.plots.energy import account as account
from carom.plots.energy import energies as energies
from carom.plots.orbits import branch as branch
from carom.plots.orbits import exponents as exponents
from carom.plots.orbits import fit as fit
from carom.plots.overview import overview as overview
from carom.plots.style import COLOURS as COLOURS
from carom.plots.style import STYLE as STYLE
from carom.plots.style import canvas as canvas
from carom.plots.style import styled as styled
from carom.plots.sweeps import basins as basins
from carom.plots.sweeps import bifurcation as bifurcation
from carom.plots.sweeps import draws as draws
from carom.plots.sweeps import parameter_map as parameter_map
from carom.plots.trajectories import space_time as space_time
from carom.plots.trajectories import trajectories as trajectories
