"""Jay1998: every claim of the tables and figures holds."""

import pytest

from carom.papers.jay1998 import items


@pytest.mark.parametrize("name", items)
def test_the_claims_of_jay1998_hold(name):
    claims, _ = items[name]()
    assert claims
    assert [claim for claim in claims if not claim.agrees] == []
