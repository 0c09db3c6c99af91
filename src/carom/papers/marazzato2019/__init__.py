"""Marazzato, Ern, Mariotti and Monasse (2019): Figs 1, 3-6, 10-16, Table 1, and the cost of an implicit scheme.

Every item is a function without arguments that returns its claims and a figure.
"""

from carom.papers.claims import Item
from carom.papers.marazzato2019.chain import fig10, fig11, fig12, fig13
from carom.papers.marazzato2019.particles import fig1, fig3
from carom.papers.marazzato2019.string import cost, fig4, fig5, fig6, table1
from carom.papers.marazzato2019.wave import fig14, fig15, fig16

items: dict[str, Item] = {
    "fig1": fig1,
    "fig3": fig3,
    "fig4": fig4,
    "table1": table1,
    "fig5": fig5,
    "fig6": fig6,
    "cost": cost,
    "fig10": fig10,
    "fig11": fig11,
    "fig12": fig12,
    "fig13": fig13,
    "fig14": fig14,
    "fig15": fig15,
    "fig16": fig16,
}
