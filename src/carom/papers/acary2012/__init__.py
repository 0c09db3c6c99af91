"""Acary (2012): Figs 2 to 5, Propositions 1 to 3 as local orders, and a work-precision diagram.

Every item is a function without arguments that returns its claims and a figure.
"""

from carom.papers.acary2012.capturing import fig4, fig5
from carom.papers.acary2012.moreau import fig2, propositions
from carom.papers.acary2012.work import fig3, work_precision
from carom.papers.claims import Item

items: dict[str, Item] = {
    "fig2": fig2,
    "propositions": propositions,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "work_precision": work_precision,
}
