"""What a run keeps besides its rows, or in place of them: `carom.simulate(..., keep=[carom.keep.strobe(period)])`.

Everything is found while the run goes on, so memory is that of what is kept: with keeps, but neither `columns` nor
`times` among them, the solution has its first and its last row only. What was found is `sol.kept["strobe 0"]`, or under
the name given in `keep={"name": ...}`.

Example:
    >>> keep = [carom.keep.strobe(period, last=100), carom.keep.peak("impulse")]
    >>> sol = carom.simulate(system, state, method, t1=300 * period, h=period / 500, keep=keep)
    >>> sol.kept["strobe 0"].q, sol.kept["peak 0"].value
"""

from carom.keep.averages import Histogram as Histogram
from carom.keep.averages import Mean as Mean
from carom.keep.base import Places as Places
from carom.keep.contacts import Contacts as Contacts
from carom.keep.contacts import Pushes as Pushes
from carom.keep.keeps import Columns as Columns
from carom.keep.keeps import Keeps as Keeps
from carom.keep.places import Final as Final
from carom.keep.places import Section as Section
from carom.keep.places import Strobe as Strobe
from carom.keep.places import Times as Times
from carom.keep.totals import Count as Count
from carom.keep.totals import Highest as Highest
from carom.keep.totals import Peak as Peak
from carom.keep.totals import Reduce as Reduce

columns, times, strobe, section = Columns, Times, Strobe, Section
peak, final, count, reduce = Peak, Final, Count, Reduce
mean, histogram, contacts = Mean, Histogram, Contacts
