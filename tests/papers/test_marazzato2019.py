"""Marazzato2019: every claim has its expected verdict; the numbers themselves are pinned in tests/pseudo_energy."""

import pytest

from carom.papers.marazzato2019 import items

#: Statements of the paper that are wrong, by item.
WRONG = {"fig3": {"drift with the mid-point rule"}, "fig14": {"the paper's steps, h_S = dx, h_F = 0.1 dx"}}


def differing(name):
    claims, _ = items[name]()
    return {claim.what for claim in claims if not claim.agrees}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::carom.StabilityWarning")
@pytest.mark.parametrize("name", items)
def test_the_paper_agrees_where_it_is_right(name):
    assert differing(name) == WRONG.get(name, set())
