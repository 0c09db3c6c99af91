"""Every claim of the reproduction of Studer2008 agrees."""

import warnings

import pytest

from carom.papers import paper

ITEMS = paper("studer2008").items


LONG = ("fig2", "fig8", "fig9", "fig11", "fig12", "fig13", "fig14", "table7")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else []) for name in ITEMS])
def test_every_claim_agrees(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        claims, _ = ITEMS[name]()
    assert claims
    assert not [claim for claim in claims if not claim.agrees]
