"""carom: dynamics of mechanical systems that hit, stick, slide, chain together or must keep an invariant.

Importing carom turns on JAX's 64-bit mode (opt out: `CAROM_X64=0`) and its persistent compilation cache (opt out:
`CAROM_CACHE=0`, or name another folder).
"""

from typing import Any

from carom import _config as _config
from carom import keep as keep
from carom import models as models
from carom import shapes as shapes
from carom import tableaux as tableaux
from carom.bodies import Bodies as Bodies
from carom.joining import join as join
from carom.methods.capturing.event_capturing import EventCapturing as EventCapturing
from carom.methods.moreau.extrapolated import Extrapolated as Extrapolated
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint as MoreauMidpoint
from carom.methods.moreau.moreau_theta import MoreauTheta as MoreauTheta
from carom.methods.pseudo_energy.asynchronous import AsynchronousPseudoEnergy as AsynchronousPseudoEnergy
from carom.methods.pseudo_energy.composed import Composed as Composed
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy as PseudoEnergy
from carom.methods.pseudo_energy.stormer_verlet import StormerVerlet as StormerVerlet
from carom.methods.runge_kutta.explicit_rk import ExplicitRK as ExplicitRK
from carom.methods.runge_kutta.irk import IRK as IRK
from carom.methods.runge_kutta.theta import Theta as Theta
from carom.methods.spark.spark import RATTLE as RATTLE
from carom.methods.spark.spark import LobattoIIIAB as LobattoIIIAB
from carom.methods.spark.spark import Spark as Spark
from carom.methods.stability import StabilityWarning as StabilityWarning
from carom.methods.stability import stability_limit as stability_limit
from carom.methods.tailored.tailored_irk import AdditiveTailoredIRK as AdditiveTailoredIRK
from carom.methods.tailored.tailored_irk import TailoredIRK as TailoredIRK
from carom.methods.tailored.tailored_theta import TailoredTheta as TailoredTheta
from carom.pairs import AllPairs as AllPairs
from carom.pairs import CellList as CellList
from carom.pairs import Fixed as Fixed
from carom.pairs import LeesEdwards as LeesEdwards
from carom.pairs import Periodic as Periodic
from carom.running.batch import simulate_batch as simulate_batch
from carom.running.run import simulate as simulate
from carom.solution import Solution as Solution
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel as AcceleratedGaussSeidel
from carom.solvers.newton import Newton as Newton
from carom.solvers.pjor import PJOR as PJOR
from carom.solvers.psor import PSOR as PSOR
from carom.solvers.semismooth import SemismoothNewton as SemismoothNewton
from carom.solvers.structure import Tridiagonal as Tridiagonal
from carom.solving import solve as solve
from carom.state import Interrupted as Interrupted
from carom.state import SimulationError as SimulationError
from carom.state import State as State
from carom.state import Status as Status
from carom.stepping.adaptive import Adaptive as Adaptive
from carom.stepping.energy_gap import EnergyGap as EnergyGap
from carom.stepping.grid import Constant as Constant
from carom.stepping.grid import Prescribed as Prescribed
from carom.stepping.reversible import Reversible as Reversible
from carom.stepping.step_halving import StepHalving as StepHalving
from carom.stepping.switching import Switching as Switching
from carom.systems.augmented import augmented as augmented
from carom.systems.check import check as check
from carom.systems.consistent import consistent as consistent
from carom.systems.consistent import multiplier as multiplier
from carom.systems.contact import Contacts as Contacts
from carom.systems.contact import FrictionElements as FrictionElements
from carom.systems.interactions import Interactions as Interactions
from carom.systems.regularise import regularise as regularise
from carom.systems.shape import Shape as Shape
from carom.systems.shape import Wall as Wall
from carom.systems.system import System as System
from carom.tableaux import Tableau as Tableau
from carom.tableaux import explicit as explicit
from carom.tableaux import gauss as gauss
from carom.tableaux import lobatto_iiia as lobatto_iiia
from carom.tableaux import lobatto_iiib as lobatto_iiib
from carom.tableaux import lobatto_iiic as lobatto_iiic
from carom.tableaux import lobatto_iiic_star as lobatto_iiic_star
from carom.tableaux import lobatto_iiid as lobatto_iiid
from carom.tableaux import radau_iia as radau_iia

_LAZY = {
    "sweep": ("carom.sweeps.sweep", "sweep"),
    "Grid": ("carom.sweeps.cells", "Grid"),
    "Cases": ("carom.sweeps.cells", "Cases"),
    "Random": ("carom.sweeps.cells", "Random"),
    "bifurcation": ("carom.sweeps.tools", "bifurcation"),
    "basins": ("carom.sweeps.tools", "basins"),
    "monte_carlo": ("carom.sweeps.tools", "monte_carlo"),
    "load_sweep": ("carom.sweeps.storage", "load_sweep"),
    "load": ("carom.files.resuming", "load"),
    "resume": ("carom.files.resuming", "resume"),
    "report": ("carom.reports", "report"),
    "film": ("carom.reports", "film"),
    "to_diffrax": ("carom.ecosystem", "to_diffrax"),
    "contact_problems": ("carom.contact_problems", None),
    "measures": ("carom.measures", None),
    "plots": ("carom.plots", None),
    "papers": ("carom.papers", None),
}


def __getattr__(name: str) -> Any:
    """Import what needs xarray or matplotlib when it is first used."""
    if name in _LAZY:
        from importlib import import_module

        module, attribute = _LAZY[name]
        return getattr(import_module(module), attribute) if attribute else import_module(module)
    msg = f"module 'carom' has no attribute '{name}'"
    raise AttributeError(msg)
