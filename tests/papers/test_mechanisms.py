"""Known mechanisms: every claim holds."""

import pytest

from carom.papers import mechanisms


@pytest.mark.slow
@pytest.mark.parametrize("name", mechanisms.items)
def test_the_claims_about_mechanisms_hold(name):
    claims, _ = mechanisms.items[name]()
    assert claims
    assert [claim for claim in claims if not claim.agrees] == []
