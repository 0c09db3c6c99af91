"""Methods: one file each, one pure step each."""

from carom.methods.asynchronous import AsynchronousPseudoEnergy as AsynchronousPseudoEnergy
from carom.methods.composed import Composed as Composed
from carom.methods.event_capturing import EventCapturing as EventCapturing
from carom.methods.explicit_rk import ExplicitRK as ExplicitRK
from carom.methods.extrapolated import Extrapolated as Extrapolated
from carom.methods.extrapolated import extrapolate as extrapolate
from carom.methods.irk import IRK as IRK
from carom.methods.moreau import MoreauMidpoint as MoreauMidpoint
from carom.methods.moreau_theta import MoreauTheta as MoreauTheta
from carom.methods.pseudo_energy import PseudoEnergy as PseudoEnergy
from carom.methods.spark import RATTLE as RATTLE
from carom.methods.spark import LobattoIIIAB as LobattoIIIAB
from carom.methods.spark import Spark as Spark
from carom.methods.stormer_verlet import StormerVerlet as StormerVerlet
from carom.methods.tailored_irk import AdditiveTailoredIRK as AdditiveTailoredIRK
from carom.methods.tailored_irk import TailoredIRK as TailoredIRK
from carom.methods.tailored_theta import TailoredTheta as TailoredTheta
from carom.methods.theta import Theta as Theta
