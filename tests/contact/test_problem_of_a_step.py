"""The contact problems that the steps of a run solved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.contact_problems import solve


@pytest.fixture(scope="module")
def run():
    with pytest.warns(UserWarning, match="penetration"):
        return carom.simulate(*carom.models.woodpecker(), carom.MoreauMidpoint(), t1=0.2, h=1e-3)


def test_the_contact_problem_of_a_step_has_the_impulses_of_the_step(run):
    names = ["beak", "lower sleeve", "upper sleeve"]
    rows = np.flatnonzero((run.impulse[:, :3] > 0).any(axis=1))
    assert len(rows) > 20
    for row in rows[::5]:
        problem = run.contact_problem(run.t[row] - 1e-4)
        shut = [names.index(name) for name in problem.info["description"].removeprefix("contacts ").split(", ")]
        impulse = solve(problem).impulse.reshape(-1, 2)
        expected = np.stack([run.impulse[row, :3], run.impulse[row, 3:]], axis=1)
        np.testing.assert_allclose(impulse, expected[shut], atol=1e-10 * np.abs(expected).max())
        assert np.all(np.delete(expected, shut, axis=0) == 0)


@pytest.mark.slow
def test_contacts_with_and_without_friction_and_constraints_have_one_problem(tmp_path):
    system = carom.System(
        mass=np.ones(5),
        forces={"weight": lambda t, q, v: jnp.array([-1.0, 0.4, -2.0, 0.0, 0.5])},
        contacts=[
            carom.Contacts(lambda q: q[:1], slip=lambda q: q[1:2], friction=0.3),
            carom.Contacts(lambda q: q[2:3]),
        ],
        constraints=lambda q: q[3:4] - q[4:5] - 0.1 * q[1:2],
    )
    sol = carom.simulate(system, carom.State(np.zeros(5), np.zeros(5)), carom.MoreauMidpoint(), t1=0.03, h=0.01)
    problem = sol.contact_problem(0.03)
    result = solve(problem)
    assert problem.dimension == 2
    np.testing.assert_allclose(result.impulse[[0, 2, 1]], sol.impulse[-1], atol=1e-12)
    np.testing.assert_allclose(result.multiplier, -0.01 * sol.multiplier[-1], atol=1e-12)


def test_steps_without_a_contact_problem_say_so(run):
    gaps = np.asarray(jax.vmap(lambda q: run.system.gaps(0.0, q))(run.q)).min(axis=1)
    flying = run.t[np.argmax(gaps)]
    with pytest.raises(ValueError, match="no contact is closed"):
        run.contact_problem(flying)
    with pytest.raises(ValueError, match="t must lie between 0 and 0.2"):
        run.contact_problem(0.3)
    with pytest.raises(ValueError, match="keep every step"):
        run.interpolated([0.0, 0.1, 0.2]).contact_problem(0.1)
    other = carom.Solution(run.system, carom.MoreauTheta(), run.stepping, run.columns, run.carry, {})
    with pytest.raises(TypeError, match="MoreauTheta does not lay its contact problems open"):
        other.contact_problem(0.1)
