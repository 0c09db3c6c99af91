"""Systems: what a user writes, and everything carom derives from it."""

from carom.systems.contact import Contacts as Contacts
from carom.systems.contact import FrictionElements as FrictionElements
from carom.systems.interactions import Interactions as Interactions
from carom.systems.regularise import regularise as regularise
from carom.systems.system import System as System
