"""carom: dynamics of mechanical systems that hit, stick, slide, chain together or must keep an invariant.

Importing carom turns on JAX's 64-bit mode (opt out: `CAROM_X64=0`) and its persistent compilation cache (opt out:
`CAROM_CACHE=0`, or name another folder).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carom import _config as _config
from carom import keep, laws, models, shapes, tableaux
from carom._config import __version__
from carom.bodies import Bodies
from carom.derivatives.along import Integral, Peak
from carom.derivatives.final import End, final_state
from carom.derivatives.gradient import Gradient, gradient
from carom.derivatives.sensitivity import Sensitivity, sensitivity
from carom.derivatives.until import Event, Section
from carom.joining import join
from carom.mechanisms import Frame, Mechanism, Plane, RigidBody, Spring, joints
from carom.methods.capturing.event_capturing import EventCapturing
from carom.methods.moreau.extrapolated import Extrapolated
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.methods.moreau.moreau_theta import MoreauTheta
from carom.methods.pseudo_energy.asynchronous import AsynchronousPseudoEnergy
from carom.methods.pseudo_energy.composed import Composed
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy
from carom.methods.pseudo_energy.stormer_verlet import StormerVerlet
from carom.methods.runge_kutta.explicit_rk import ExplicitRK
from carom.methods.runge_kutta.irk import IRK
from carom.methods.runge_kutta.theta import Theta
from carom.methods.spark.spark import RATTLE, LobattoIIIAB, Spark
from carom.methods.stability import StabilityWarning, stability_limit
from carom.methods.tailored.tailored_irk import AdditiveTailoredIRK, TailoredIRK
from carom.methods.tailored.tailored_theta import TailoredTheta
from carom.pairs import AllPairs, CellList, Fixed, Lattice, LeesEdwards, Periodic
from carom.running.batch import simulate_batch
from carom.running.run import simulate
from carom.solution import Solution
from carom.solvers.apgd import APGD
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel
from carom.solvers.newton import Newton
from carom.solvers.pjor import PJOR
from carom.solvers.psor import PSOR
from carom.solvers.semismooth import SemismoothNewton
from carom.solvers.structure import Tridiagonal
from carom.solving import solve
from carom.state import Interrupted, SimulationError, State, Status
from carom.stepping.adaptive import Adaptive
from carom.stepping.energy_gap import EnergyGap
from carom.stepping.grid import Constant, Prescribed
from carom.stepping.reversible import Reversible
from carom.stepping.step_halving import StepHalving
from carom.stepping.switching import Switching
from carom.systems.augmented import augmented
from carom.systems.check import check
from carom.systems.consistent import consistent, multiplier
from carom.systems.contact import Contacts, FrictionElements
from carom.systems.interactions import Interactions
from carom.systems.regularise import regularise
from carom.systems.shape import Shape, Wall
from carom.systems.spring_dashpot import SpringDashpot
from carom.systems.system import System
from carom.tableaux import (
    Tableau,
    explicit,
    gauss,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    radau_iia,
)

if TYPE_CHECKING:
    from carom import contact_problems, measures, papers, parts, plots, scenario
    from carom.ecosystem import to_diffrax
    from carom.files.resuming import load, resume
    from carom.orbits.exponent_map import exponent_map
    from carom.orbits.identify import identify
    from carom.orbits.lyapunov import lyapunov
    from carom.orbits.orbit import periodic_orbit
    from carom.reports import film, report
    from carom.sweeps.cells import Cases, Grid, Random
    from carom.sweeps.storage import load_sweep
    from carom.sweeps.sweep import sweep
    from carom.sweeps.tools import basins, bifurcation, monte_carlo
else:
    _LAZY = {
        "sweep": ("carom.sweeps.sweep", "sweep"),
        "Grid": ("carom.sweeps.cells", "Grid"),
        "Cases": ("carom.sweeps.cells", "Cases"),
        "Random": ("carom.sweeps.cells", "Random"),
        "bifurcation": ("carom.sweeps.tools", "bifurcation"),
        "basins": ("carom.sweeps.tools", "basins"),
        "monte_carlo": ("carom.sweeps.tools", "monte_carlo"),
        "load_sweep": ("carom.sweeps.storage", "load_sweep"),
        "identify": ("carom.orbits.identify", "identify"),
        "exponent_map": ("carom.orbits.exponent_map", "exponent_map"),
        "lyapunov": ("carom.orbits.lyapunov", "lyapunov"),
        "periodic_orbit": ("carom.orbits.orbit", "periodic_orbit"),
        "load": ("carom.files.resuming", "load"),
        "resume": ("carom.files.resuming", "resume"),
        "report": ("carom.reports", "report"),
        "film": ("carom.reports", "film"),
        "to_diffrax": ("carom.ecosystem", "to_diffrax"),
        "contact_problems": ("carom.contact_problems", None),
        "measures": ("carom.measures", None),
        "plots": ("carom.plots", None),
        "papers": ("carom.papers", None),
        "parts": ("carom.parts", None),
        "scenario": ("carom.scenario", None),
    }

    def __getattr__(name: str) -> Any:
        """Import what needs xarray or matplotlib when it is first used."""
        if name not in _LAZY:
            msg = f"module 'carom' has no attribute '{name}'"
            raise AttributeError(msg)
        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute) if attribute else import_module(module)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "APGD",
    "AcceleratedGaussSeidel",
    "Adaptive",
    "AdditiveTailoredIRK",
    "AllPairs",
    "AsynchronousPseudoEnergy",
    "Bodies",
    "Cases",
    "CellList",
    "Composed",
    "Constant",
    "Contacts",
    "End",
    "EnergyGap",
    "Event",
    "EventCapturing",
    "ExplicitRK",
    "Extrapolated",
    "Fixed",
    "Frame",
    "FrictionElements",
    "Gradient",
    "Grid",
    "IRK",
    "Integral",
    "Interactions",
    "Interrupted",
    "Lattice",
    "LeesEdwards",
    "LobattoIIIAB",
    "Mechanism",
    "MoreauMidpoint",
    "MoreauTheta",
    "Newton",
    "PJOR",
    "PSOR",
    "Peak",
    "Periodic",
    "Plane",
    "Prescribed",
    "PseudoEnergy",
    "RATTLE",
    "Random",
    "Reversible",
    "RigidBody",
    "Section",
    "SemismoothNewton",
    "Sensitivity",
    "Shape",
    "SimulationError",
    "Solution",
    "Spark",
    "SpringDashpot",
    "Spring",
    "StabilityWarning",
    "State",
    "Status",
    "StepHalving",
    "StormerVerlet",
    "Switching",
    "System",
    "Tableau",
    "TailoredIRK",
    "TailoredTheta",
    "Theta",
    "Tridiagonal",
    "Wall",
    "__version__",
    "augmented",
    "basins",
    "bifurcation",
    "check",
    "consistent",
    "contact_problems",
    "explicit",
    "exponent_map",
    "film",
    "final_state",
    "gauss",
    "gradient",
    "identify",
    "join",
    "joints",
    "keep",
    "laws",
    "load",
    "load_sweep",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "lyapunov",
    "measures",
    "models",
    "monte_carlo",
    "multiplier",
    "papers",
    "parts",
    "periodic_orbit",
    "plots",
    "radau_iia",
    "regularise",
    "report",
    "resume",
    "scenario",
    "sensitivity",
    "shapes",
    "simulate",
    "simulate_batch",
    "solve",
    "stability_limit",
    "sweep",
    "tableaux",
    "to_diffrax",
]
