"""Acary2012: one number per statement; the full curves are in `carom paper acary2012`."""

import pytest

from carom.papers import papers
from carom.papers.acary2012 import capturing, items, work
from carom.papers.acary2012.common import BALL, OSCILLATOR
from carom.tableaux import radau_iia


def test_the_paper_is_listed_with_all_its_figures():
    assert "acary2012" in papers
    assert {"fig2", "fig3", "fig4", "fig5", "propositions"} <= set(items)


def test_every_item_has_a_title():
    assert all(item.__doc__ for item in items.values())


@pytest.mark.slow
@pytest.mark.parametrize("example", [OSCILLATOR, BALL], ids=lambda e: e.name)
def test_event_capturing_has_the_order_of_radau_iia(example):
    errors = capturing.errors_of(example, [radau_iia(2)])["radau_iia(2)"]
    assert capturing._claim(example, radau_iia(2), errors).agrees


@pytest.mark.slow
def test_step_halving_beats_constant_steps_on_the_ball():
    run = work.halved(BALL, [1e-7])[0]
    assert run.stats["evaluations"] < 2000
    assert BALL.position_error(run) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", items)
def test_every_claim_of_the_paper_agrees(name):
    claims, _ = items[name]()
    assert [claim.what for claim in claims if not claim.agrees] == []
