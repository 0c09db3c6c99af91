"""Impacts one after another instead of all at once."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom


def _balls(restitution):
    return carom.System(1.0, contacts=carom.Contacts(lambda q: jnp.diff(q) - 1.0, restitution=restitution))


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [1.0, 0.5])
def test_one_impact_after_another_throws_the_last_ball(restitution):
    method = carom.EventCapturing(carom.explicit(4), impacts="sequential")
    start = carom.State([-0.5, 1.0, 2.0], [1.0, 0.0, 0.0])
    last = carom.simulate(_balls(restitution), start, method, t1=1.0, h=0.1).v[-1]
    expected = np.array([1.0, 0.0, 0.0])
    for _ in range(200):
        for i in (0, 1):
            approach = expected[i] - expected[i + 1]
            if approach > 0:
                expected[i : i + 2] += 0.5 * (1 + restitution) * approach * np.array([-1.0, 1.0])
    np.testing.assert_allclose(last, expected, atol=1e-10)


def test_an_unknown_law_of_impacts_is_refused():
    with pytest.raises(ValueError, match="impacts must be 'simultaneous' or 'sequential', got 'together'"):
        carom.EventCapturing(carom.explicit(4), impacts="together")
