"""Bridges and displays."""

import html
import re

import jax.numpy as jnp
import numpy as np
import pytest

import carom


@pytest.mark.slow
def test_diffrax_solves_a_chain_to_the_same_motion():
    diffrax = pytest.importorskip("diffrax")
    system = carom.System(1.0, lambda q: 1 - jnp.cos(q[0]), {"drag": lambda t, q, v: -0.1 * v})
    state = carom.State([1.0], [0.0])
    control = diffrax.PIDController(rtol=1e-10, atol=1e-10)
    term = carom.to_diffrax(system)
    theirs = diffrax.diffeqsolve(
        term, diffrax.Dopri8(), 0.0, 5.0, 0.01, (state.q, state.v), stepsize_controller=control
    )
    ours = carom.simulate(system, state, carom.IRK(carom.gauss(3)), t1=5.0, h=0.01)
    assert np.asarray(theirs.ys[0][-1]) == pytest.approx(ours.q[-1], abs=1e-8)
    assert np.asarray(theirs.ys[1][-1]) == pytest.approx(ours.v[-1], abs=1e-8)


def test_what_diffrax_cannot_do_is_refused_by_name():
    with pytest.raises(ValueError, match="this one has constraints"):
        carom.to_diffrax(carom.System(1.0, constraints=lambda q: q[:1]))
    with pytest.raises(TypeError, match="must be a carom System"):
        carom.to_diffrax("system")


def test_notebooks_show_the_system_the_evidence_and_a_player():
    chain, state = carom.models.trimer()
    assert all(word in chain._repr_html_() for word in ("trimer", "contact", "rate damping"))
    shown = carom.simulate(chain, state, carom.TailoredTheta(), t1=1.0, h=0.1)._repr_html_()
    assert "worst residual" in shown
    page = html.unescape(re.search('<iframe [^>]*srcdoc="([^"]*)"', shown)[1])
    assert page.startswith("<!doctype html>")
    assert "</html>" in page


def test_labels_are_escaped_in_notebooks():
    assert "<b>" not in carom.System(1.0, labels=("<b>",))._repr_html_()


def test_columns_share_named_dimensions():
    block, state = carom.models.block_on_belt()
    sol = carom.simulate(block, state, carom.MoreauMidpoint(), t1=0.1, h=0.01)
    data = sol.to_xarray()
    assert {"q", "v"} <= {name for name in data if data[name].dims == ("time", "coordinate")}
    assert {"impulse", "mode", "event", "work"} <= {name for name in data if data[name].dims == ("time", "law")}
    assert set(data.sizes) == {"time", "coordinate", "law"}
    assert len(sol.to_pandas()) == len(sol)


def test_the_unit_of_time_reaches_velocities_files_and_reports(tmp_path):
    spring = carom.System(1.0, lambda q: 0.5 * q @ q, labels=["x"], units="mm", time_unit="ms")
    run = carom.simulate(spring, carom.State([1.0], [0.0]), carom.StormerVerlet(), t1=0.5, h=0.1)
    assert run.to_xarray().time.units == "ms"
    assert run.to_xarray().v.units == "mm ms-1"
    run.save(tmp_path / "run.nc")
    stored = carom.load(tmp_path / "run.nc")
    assert stored.time_unit == "ms"
    page = carom.report(stored, tmp_path / "run.html").read_text()
    assert '"time_unit":"ms"' in page
    assert "mm/ms" in page
    assert "mm/s" not in page
    assert carom.System(1.0, units="m").time_unit == "s"
    assert carom.System(1.0).time_unit == ""
    with pytest.raises(TypeError, match="time_unit must be a text such as 'ms'"):
        carom.System(1.0, time_unit=3)
