"""carom: dynamics of mechanical systems that hit, stick, slide, chain together or must keep an invariant.

Importing carom turns on JAX's 64-bit mode (opt out: `CAROM_X64=0`) and its persistent compilation cache (opt out:
`CAROM_CACHE=0`, or name another folder).
"""

from typing import Any

from carom import _config

_config.configure()

from carom import keep as keep  # noqa: E402
from carom import models as models  # noqa: E402
from carom import tableaux as tableaux  # noqa: E402
from carom.methods import IRK as IRK  # noqa: E402
from carom.methods import RATTLE as RATTLE  # noqa: E402
from carom.methods import AdditiveTailoredIRK as AdditiveTailoredIRK  # noqa: E402
from carom.methods import AsynchronousPseudoEnergy as AsynchronousPseudoEnergy  # noqa: E402
from carom.methods import Composed as Composed  # noqa: E402
from carom.methods import EventCapturing as EventCapturing  # noqa: E402
from carom.methods import ExplicitRK as ExplicitRK  # noqa: E402
from carom.methods import Extrapolated as Extrapolated  # noqa: E402
from carom.methods import LobattoIIIAB as LobattoIIIAB  # noqa: E402
from carom.methods import MoreauMidpoint as MoreauMidpoint  # noqa: E402
from carom.methods import MoreauTheta as MoreauTheta  # noqa: E402
from carom.methods import PseudoEnergy as PseudoEnergy  # noqa: E402
from carom.methods import Spark as Spark  # noqa: E402
from carom.methods import StormerVerlet as StormerVerlet  # noqa: E402
from carom.methods import TailoredIRK as TailoredIRK  # noqa: E402
from carom.methods import TailoredTheta as TailoredTheta  # noqa: E402
from carom.methods import Theta as Theta  # noqa: E402
from carom.methods.stability import StabilityWarning as StabilityWarning  # noqa: E402
from carom.methods.stability import stability_limit as stability_limit  # noqa: E402
from carom.running.batch import simulate_batch as simulate_batch  # noqa: E402
from carom.running.run import simulate as simulate  # noqa: E402
from carom.solution import Solution as Solution  # noqa: E402
from carom.solvers.newton import Newton as Newton  # noqa: E402
from carom.solvers.pjor import PJOR as PJOR  # noqa: E402
from carom.solvers.psor import PSOR as PSOR  # noqa: E402
from carom.solvers.semismooth import SemismoothNewton as SemismoothNewton  # noqa: E402
from carom.solvers.structure import Tridiagonal as Tridiagonal  # noqa: E402
from carom.solving import solve as solve  # noqa: E402
from carom.state import Interrupted as Interrupted  # noqa: E402
from carom.state import SimulationError as SimulationError  # noqa: E402
from carom.state import State as State  # noqa: E402
from carom.state import Status as Status  # noqa: E402
from carom.stepping import Adaptive as Adaptive  # noqa: E402
from carom.stepping import Constant as Constant  # noqa: E402
from carom.stepping import EnergyGap as EnergyGap  # noqa: E402
from carom.stepping import Prescribed as Prescribed  # noqa: E402
from carom.stepping import Reversible as Reversible  # noqa: E402
from carom.stepping import StepHalving as StepHalving  # noqa: E402
from carom.stepping import Switching as Switching  # noqa: E402
from carom.systems import Contacts as Contacts  # noqa: E402
from carom.systems import FrictionElements as FrictionElements  # noqa: E402
from carom.systems import Interactions as Interactions  # noqa: E402
from carom.systems import System as System  # noqa: E402
from carom.systems import regularise as regularise  # noqa: E402
from carom.systems.augmented import augmented as augmented  # noqa: E402
from carom.systems.check import check as check  # noqa: E402
from carom.systems.consistent import consistent as consistent  # noqa: E402
from carom.systems.consistent import multiplier as multiplier  # noqa: E402
from carom.tableaux import Tableau as Tableau  # noqa: E402
from carom.tableaux import explicit as explicit  # noqa: E402
from carom.tableaux import gauss as gauss  # noqa: E402
from carom.tableaux import lobatto_iiia as lobatto_iiia  # noqa: E402
from carom.tableaux import lobatto_iiib as lobatto_iiib  # noqa: E402
from carom.tableaux import lobatto_iiic as lobatto_iiic  # noqa: E402
from carom.tableaux import lobatto_iiic_star as lobatto_iiic_star  # noqa: E402
from carom.tableaux import lobatto_iiid as lobatto_iiid  # noqa: E402
from carom.tableaux import radau_iia as radau_iia  # noqa: E402

_LAZY = {
    "load": ("carom.files.storage", "load"),
    "resume": ("carom.files.storage", "resume"),
    "report": ("carom.reports", "report"),
    "film": ("carom.reports", "film"),
    "to_diffrax": ("carom.ecosystem", "to_diffrax"),
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
