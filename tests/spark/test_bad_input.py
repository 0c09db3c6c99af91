import jax.numpy as jnp
import numpy as np
import pytest

import carom

circle = lambda q: 0.5 * (q @ q - 1.0)  # noqa: E731
weight = lambda q: q[1]  # noqa: E731


def run(system, state, method=None, **options):
    return carom.simulate(system, state, method or carom.Spark(3), **{"t1": 1.0, "h": 0.1, **options})


def test_an_inconsistent_position_is_named_with_its_size_and_can_be_projected():
    system, state = carom.System(1.0, weight, constraints=circle), carom.State([1.1, 0.0], [0.0, -1.0])
    with pytest.raises(ValueError, match=r"\|g\(q\)\| = 0.0868 .*carom.consistent"):
        run(system, state)
    assert np.allclose(carom.consistent(system, state).q, [1.0, 0.0], atol=1e-14)


def test_an_inconsistent_velocity_is_named_with_its_size_and_can_be_projected():
    system, state = carom.System(1.0, weight, constraints=circle), carom.State([1.0, 0.0], [0.5, -1.0])
    with pytest.raises(ValueError, match=r"d/dt g\(q\) or k\(q, v\)\| = 0.5 .*carom.consistent"):
        run(system, state)
    assert np.allclose(carom.consistent(system, state).v, [0.0, -1.0], atol=1e-14)


def test_a_velocity_across_the_blade_is_refused():
    system, _ = carom.models.knife_edge()
    with pytest.raises(ValueError, match="does not fulfil the constraints"):
        run(system, carom.State([0.0, 0.0, 0.0], [0.0, 0.3, 1.0]))


def test_consistent_refuses_where_there_is_no_manifold():
    system = carom.System(1.0, weight, constraints=lambda q: q[0] ** 2 + q[1] ** 2 + 1.0)
    with pytest.raises(ValueError, match="found no state near the given one"):
        carom.consistent(system, carom.State([0.3, 0.2], [0.0, 0.0]))


@pytest.mark.slow
def test_a_singular_position_that_a_step_lands_on_is_passed():
    crossing = lambda q: jnp.array([q[2], q[1] * (q[0] - 1.0)])  # noqa: E731
    sol = run(carom.System(1.0, constraints=crossing), carom.State(np.zeros(3), [1.0, 0.0, 0.0]), t1=2.0)
    assert np.allclose(sol.q[:, 0], 0.1 * np.arange(21), atol=1e-12)


@pytest.mark.slow
def test_a_singular_position_that_steps_do_not_get_over_is_named_with_time_and_rank():
    ends = lambda q: jnp.stack([q[:2], q[2:] - jnp.array([1.0, 0.0]), q[2:] - q[:2]])  # noqa: E731
    bars = lambda q: jnp.sum(ends(q) ** 2, 1) - 1.0  # noqa: E731
    system = carom.System(1.0, lambda q: 9.81 * (q[1] + q[3]), constraints=bars)
    aligned = r"step from t = 1\.25 .* rank 2 of 3 at or near t = 1\.3.*singular position"
    with pytest.raises(carom.SimulationError, match=aligned) as caught:
        run(system, carom.State([0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]), t1=2.0, h=0.05)
    assert len(caught.value.solution) > 10


def test_a_singular_mass_points_to_the_augmented_form():
    both = lambda q: jnp.array([q[0] - q[1]])  # noqa: E731
    system, state = carom.System(np.diag([1.0, 0.0]), weight, constraints=both), carom.State([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="mass is singular .*carom.augmented"):
        run(system, state)
    carom.check(*carom.augmented(system, state))


def test_the_augmented_form_refuses_motion_with_neither_mass_nor_constraint():
    system = carom.System(np.diag([1.0, 0.0, 1.0]), weight, constraints=lambda q: q[:1])
    with pytest.raises(ValueError, match="neither mass nor constraint"):
        carom.augmented(system, carom.State(np.zeros(3), np.zeros(3)))


def test_the_augmented_form_refuses_constraints_that_depend_on_others():
    twice = carom.System(
        np.diag([1.0, 0.0]), weight, constraints=lambda q: jnp.array([q[0] - q[1], 2 * q[1] - 2 * q[0]])
    )
    with pytest.raises(ValueError, match="1 of the 2 constraints depend on others"):
        carom.augmented(twice, carom.State(np.zeros(2), np.zeros(2)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"families": {"kinematic": "E"}}, "unknown family 'E' for 'kinematic'"),
        ({"families": {"kinematic": ["A", "X"]}}, r"unknown family 'X' for 'kinematic\[1\]'"),
        ({"families": {"constraint": "A"}}, "multiplier term 'constraint' cannot use Lobatto IIIA"),
        ({"families": {"constraint": ["B", "A"]}}, "multiplier term 'constraint' cannot use Lobatto IIIA"),
        ({"damping": {"conservative": 1.5}}, "must lie between 0 and 1"),
        ({"damping": {"conservative": 0.5}, "families": {"kinematic": "A"}}, "damping sets the family of 'kinematic'"),
        ({"multiplier": "last"}, "multiplier must be 'consistent'"),
    ],
)
def test_wrong_options_are_named_at_construction(options, words):
    with pytest.raises(ValueError, match=words):
        carom.Spark(3, **options)


def test_one_stage_is_refused():
    with pytest.raises(ValueError, match="stages must be an integer >= 2"):
        carom.Spark(1)


def test_families_of_parts_the_system_does_not_have_are_refused():
    with pytest.raises(ValueError, match="name 'motor', but this system has 'conservative', 'constraint'"):
        run(*carom.models.pendulum(), carom.Spark(3, families={"motor": "C"}))


def test_a_force_of_the_multipliers_cannot_use_lobatto_a():
    system = carom.System(1.0, weight, {"rub": lambda t, q, v, lam: -lam[0] * v}, constraints=circle)
    with pytest.raises(ValueError, match="force 'rub' depends on the multipliers"):
        run(system, carom.State([1.0, 0.0], [0.0, -1.0]), carom.Spark(3, families={"rub": "A"}))


def test_families_per_component_must_fit_the_state():
    with pytest.raises(ValueError, match="'kinematic' has 3 families, but the state has 2 velocities"):
        run(*carom.models.pendulum(), carom.Spark(3, families={"kinematic": ["A", "A", "A"]}))


def test_other_methods_refuse_constraints_by_name():
    with pytest.raises(ValueError, match="IRK does not handle 'constraints'"):
        run(*carom.models.pendulum(), carom.IRK(carom.gauss(2)))


def test_a_lagrangian_that_is_not_quadratic_is_refused():
    system = carom.System.from_lagrangian(lambda q, v: 0.25 * (v @ v) ** 2 + 0.5 * v @ v - q[1])
    with pytest.raises(ValueError, match="quadratic in v"):
        run(system, carom.State([1.0, 0.0], [0.0, 1.0]))


def test_a_tolerance_must_be_positive():
    with pytest.raises(ValueError, match="tol must be positive"):
        carom.Reversible(0.0)
