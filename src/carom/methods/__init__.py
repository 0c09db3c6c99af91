"""Methods: one file each, one pure step each."""

from carom.methods.capturing.event_capturing import EventCapturing as EventCapturing
from carom.methods.moreau.extrapolated import Extrapolated as Extrapolated
from carom.methods.moreau.extrapolated import extrapolate as extrapolate
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
from carom.methods.tailored.tailored_irk import AdditiveTailoredIRK as AdditiveTailoredIRK
from carom.methods.tailored.tailored_irk import TailoredIRK as TailoredIRK
from carom.methods.tailored.tailored_theta import TailoredTheta as TailoredTheta
