"""What users get wrong, and what carom answers."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom


def gap(q):
    return q[:1]


def test_friction_without_slip_directions():
    with pytest.raises(ValueError, match="friction = 0.3 needs slip directions: give slip= or slip_velocity="):
        carom.Contacts(gap, friction=0.3)


@pytest.mark.parametrize("name", ["restitution", "tangential_restitution"])
@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_restitution_outside_0_and_1(name, value):
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\], got {value}"):
        carom.Contacts(gap, slip=gap, **{name: value})


def test_negative_friction():
    with pytest.raises(ValueError, match="friction must be zero or positive, got friction = -0.3"):
        carom.Contacts(gap, slip=gap, friction=-0.3)


def test_negative_limit_of_a_friction_element():
    with pytest.raises(ValueError, match="limit must be zero or positive"):
        carom.FrictionElements(lambda _q, v: v, limit=-1.0)


@pytest.mark.parametrize("sizes", [(1e-2, 1e-3), (0.0, 1e-3), (1e-3, np.inf)])
def test_step_bounds_in_the_wrong_order(sizes):
    with pytest.raises(ValueError, match="needs 0 < h_min <= h_max"):
        carom.Switching(*sizes)


def test_a_gap_that_is_nan_at_the_start():
    system = carom.System(1.0, contacts=carom.Contacts(lambda q: jnp.sqrt(q)))
    with pytest.raises(ValueError, match="NaN or infinity at the start .* in 'gap'"):
        carom.simulate(system, carom.State([-1.0], [0.0]), carom.MoreauMidpoint(), t1=1.0, h=0.1)


@pytest.mark.slow
def test_a_gap_that_becomes_nan_keeps_what_came_before():
    system = carom.System(1.0, contacts=carom.Contacts(lambda q: jnp.sqrt(q)))
    with pytest.raises(carom.SimulationError, match="NaN") as error:
        carom.simulate(system, carom.State([1.0], [-2.0]), carom.MoreauMidpoint(), t1=1.0, h=0.09)
    assert 4 <= len(error.value.solution) <= 7


@pytest.mark.slow
def test_initial_penetration_warns_and_goes_on():
    system, _ = carom.models.falling_mass()
    with pytest.warns(UserWarning, match="contact 0 starts with penetration: gap = -0.01"):
        sol = carom.simulate(system, carom.State([-0.01], [0.0]), carom.MoreauMidpoint(), t1=0.1, h=1e-2)
    assert sol.q[-1, 0] == pytest.approx(-0.01, abs=1e-15)


def test_numbers_that_do_not_fit_the_gaps():
    system = carom.System(1.0, contacts=carom.Contacts(lambda q: q[:2], restitution=[0.1, 0.2, 0.3]))
    with pytest.raises(ValueError, match="one number per contact, and restitution fit it"):
        carom.check(system, carom.State(np.ones(2), np.zeros(2)))


def test_slip_directions_of_another_number_of_contacts():
    contacts = carom.Contacts(lambda q: q[:2], slip=lambda q: q[:1], friction=0.1)
    with pytest.raises(ValueError, match="2 contacts, but the slip directions are those of 1"):
        carom.simulate(
            carom.System(1.0, contacts=contacts),
            carom.State(np.ones(2), np.zeros(2)),
            carom.MoreauMidpoint(),
            t1=1.0,
            h=0.1,
        )


@pytest.mark.slow
def test_dependent_contacts_go_on():
    """A ball on a floor that was declared three times."""
    floor = carom.Contacts(lambda q: jnp.repeat(q, 3), restitution=0.5)
    system = carom.System(1.0, lambda q: 9.81 * q[0], contacts=floor)
    sol = carom.simulate(system, carom.State([0.1], [0.0]), carom.MoreauMidpoint(), t1=1.0, h=1e-3)
    assert abs(sol.q[-1, 0]) < 1e-3
    assert sol.impulse[-1].sum() == pytest.approx(9.81e-3, rel=1e-9)


def test_a_method_without_contacts_refuses_them_by_name():
    with pytest.raises(ValueError, match="Theta does not handle 'contacts'"):
        carom.simulate(*carom.models.falling_mass(), carom.Theta(), t1=1.0, h=0.1)


def test_switching_needs_a_method_with_modes():
    chain, state = carom.models.newtons_cradle(3)
    with pytest.raises(ValueError, match="Switching needs 'modes', which Theta does not give"):
        carom.simulate(chain, state, carom.Theta(), t1=1.0, stepping=carom.Switching(1e-4, 1e-2))


def test_extrapolation_needs_a_base_with_modes():
    with pytest.raises(ValueError, match="the base must give 'modes', Theta does not"):
        carom.Extrapolated(carom.Theta())


@pytest.mark.parametrize("order", [0, 7])
def test_a_fixed_order_that_does_not_fit(order):
    with pytest.raises(ValueError, match="fixed_order must lie between 1 and max_order = 6"):
        carom.Extrapolated(carom.MoreauMidpoint(), 6, fixed_order=order)
