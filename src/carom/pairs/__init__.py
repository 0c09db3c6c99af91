"""Lists of pairs of bodies: boxes, searches, colours, and the data of pairs."""

from carom.pairs.boxes import LeesEdwards as LeesEdwards
from carom.pairs.boxes import Open as Open
from carom.pairs.boxes import Periodic as Periodic
from carom.pairs.cells import CellList as CellList
from carom.pairs.colouring import coloured as coloured
from carom.pairs.lists import Capacity as Capacity
from carom.pairs.lists import Pairs as Pairs
from carom.pairs.lists import grown as grown
from carom.pairs.lists import memory as memory
from carom.pairs.lists import moved as moved
from carom.pairs.lists import padded as padded
from carom.pairs.lists import tight as tight
from carom.pairs.lists import with_spare_colours as with_spare_colours
from carom.pairs.searches import AbstractSearch as AbstractSearch
from carom.pairs.searches import AllPairs as AllPairs
from carom.pairs.searches import Fixed as Fixed
from carom.pairs.searches import Lattice as Lattice
