"""Every claim of the reproduction of Studer2008 agrees."""

import warnings

import pytest

from carom.papers import paper

ITEMS = paper("studer2008").items


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "fig2" else n for n in ITEMS])
def test_every_claim_agrees(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        claims, _ = ITEMS[name]()
    assert claims
    assert not [claim for claim in claims if not claim.agrees]
