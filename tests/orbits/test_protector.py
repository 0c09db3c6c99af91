"""The peak of a force at a wall behind a chain of beads: its gradient in reverse against differences of runs."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "14_granular_protector.py"


@pytest.mark.slow
def test_the_gradient_of_the_peak_force_is_that_of_differences_in_twenty_directions():
    spec = importlib.util.spec_from_file_location("protector", EXAMPLE)
    protector = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(protector)
    draws = np.random.default_rng(0)
    x = 0.05 * draws.normal(size=40)
    slopes = protector.peak(x, 60.0, 0.1).gradient["logarithms"]
    for _ in range(20):
        d = draws.normal(size=40) / np.sqrt(40)
        high, low = (protector.peak(x + s * d, 60.0, 0.1).value for s in (1e-5, -1e-5))
        assert slopes @ d == pytest.approx((high - low) / 2e-5, abs=1e-7 * np.linalg.norm(slopes))
