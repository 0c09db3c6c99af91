"""The multiplier that Moreau's schemes report is the whole force of a constraint, also of one that turns the motion."""

import numpy as np
import pytest

import carom


@pytest.mark.parametrize("method", [carom.MoreauMidpoint(), carom.MoreauTheta(0.5)], ids=["midpoint", "theta"])
def test_the_rod_of_a_pendulum_carries_the_weight_and_what_turns_the_motion(method):
    rod = carom.System(1.0, lambda q: 9.81 * q[1], constraints=lambda q: 0.5 * (q @ q - 1.0))
    sol = carom.simulate(rod, carom.State([1.0, 0.0], [0.0, 0.0]), method, t1=0.8, h=2e-3)
    force = np.sum(sol.v**2, axis=1) - 9.81 * sol.q[:, 1]
    assert np.max(np.abs(sol.multiplier[1:, 0] - 0.5 * (force[1:] + force[:-1]))) <= 5e-4
    assert np.max(sol.multiplier) == pytest.approx(3 * 9.81, rel=1e-4)
