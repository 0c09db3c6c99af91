"""James, Vorotnikov and Brogliato (2020): Figs 2 to 11, Table 1, and the numbers of sections 2.1, 5 and A.1.

Every item is a function without arguments that returns its claims and a figure.
"""

from carom.papers.claims import Item
from carom.papers.james2020.comparison import fig10, fig11
from carom.papers.james2020.cradle import fig4, fig5
from carom.papers.james2020.crystals import crystals
from carom.papers.james2020.dimer import fig7, fig8, fig9, table1
from carom.papers.james2020.outlook import programme
from carom.papers.james2020.theory import a1, restitution
from carom.papers.james2020.trimer import fig2, fig3, fig6

items: dict[str, Item] = {
    "restitution": restitution,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "table1": table1,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "fig11": fig11,
    "a1": a1,
    "outlook": programme,
    "crystals": crystals,
}
