"""Largest exponents of many cells against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom


def test_the_exponent_of_a_driven_linear_oscillator_is_half_its_damping():
    def build(frequency, damping):
        drive = {"drive": lambda t, q, v, p: jnp.cos(p["w"] * t) - p["c"] * v}
        numbers = {"w": frequency, "c": damping}
        return carom.System(1.0, lambda q: 0.5 * q @ q, drive, params=numbers), carom.State([0.3], [0.0])

    data = carom.exponent_map(
        build,
        carom.Grid(frequency=[0.7, 1.3], damping=[0.1, 0.3, -np.inf]),
        carom.ExplicitRK(carom.explicit(4)),
        period=lambda frequency: 2 * np.pi / frequency,
        transient=4,
        kept=80,
        steps=40,
    )
    good = data.isel(damping=slice(2))
    assert np.allclose(good.exponent, -0.5 * good.damping.values, atol=2e-3)
    assert (np.abs(good.exponent + 0.5 * good.damping.values) < 3 * good.exponent_error).all()
    assert (good.steps == 84 * 40).all()
    assert np.isnan(data.exponent.isel(damping=2)).all()
    assert (data.status.isel(damping=2) != 0).all()


@pytest.mark.slow
def test_the_exponent_of_a_shaken_ball_is_that_of_its_restitution():
    """One bounce per period with complex multipliers: their product is the square of the restitution."""
    data = carom.exponent_map(
        lambda shaking: carom.models.shaken_ball(shaking, height=0.05, velocity=0.4),
        carom.Grid(shaking=[0.6, 0.8, 1.0]),
        carom.EventCapturing(carom.explicit(4)),
        period=1.0,
        transient=100,
        kept=400,
        steps=30,
    )
    assert np.allclose(data.exponent, np.log(0.8), atol=5e-3)


def test_methods_that_step_over_impacts_are_refused():
    with pytest.raises(TypeError, match=r"MoreauMidpoint steps over impacts .* Use carom.EventCapturing$"):
        carom.exponent_map(carom.models.shaken_ball, carom.Grid(shaking=[0.6, 0.8]), carom.MoreauMidpoint(), period=1.0)
