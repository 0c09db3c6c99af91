"""Rest, stick, moving tables, several contacts at once, and contacts next to bilateral constraints."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import carom

G = 9.81


def weight_on_incline(q, p):
    return G * (p[0] * q[0] + p[1] * q[1])


def across(q):
    return q[1:]


def along(q):
    return q[:1]


def block(angle, friction):
    """A point mass on an incline, coordinates along and across it."""
    contacts = carom.Contacts(across, slip=along, friction=friction, restitution=0.3)
    system = carom.System(1.0, weight_on_incline, contacts=contacts, params=[np.sin(angle), np.cos(angle)])
    return system, carom.State([0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("angle", [0.0, np.deg2rad(20.0)], ids=["plane", "incline"])
def test_a_mass_at_rest_stays_at_rest_for_1e5_steps(angle):
    system, state = block(angle, 0.5)
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=100.0, h=1e-3, save_every=1000)
    assert sol.stats["accepted"] == 100_000
    assert np.abs(sol.q).max() < 1e-12
    assert np.abs(sol.v).max() < 1e-12


def test_a_mass_on_too_steep_an_incline_slides_with_the_right_acceleration():
    angle = np.deg2rad(30.0)
    system, state = block(angle, 0.5)
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=1.0, h=1e-2)
    assert sol.v[-1, 0] == pytest.approx(-G * (np.sin(angle) - 0.5 * np.cos(angle)), rel=1e-12)
    assert sol.mode[-1].tolist() == [0, -1]


def impacts_on_shaken_table(count, e=0.5):
    """Instants at which a ball hits a table at .01 sin 20 t, by root finding on the parabola."""
    t, q, v, hits = 0.0, 0.1, 0.0, []
    for _ in range(count):
        gap = lambda x: q + v * (x - t) - G / 2 * (x - t) ** 2 - 0.01 * np.sin(20 * x)  # noqa: B023, E731
        grid = t + 1e-6 + np.arange(0, 1, 1e-5)
        k = np.argmax(gap(grid) < 0)
        low, high = grid[k - 1], grid[k]
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if gap(middle) > 0 else (low, middle)
        q, v, t = q + v * (high - t) - G / 2 * (high - t) ** 2, v - G * (high - t), high
        table = 0.2 * np.cos(20 * t)
        v = table - e * (v - table)
        hits.append(t)
    return np.array(hits)


@pytest.mark.slow
def test_first_three_impacts_on_a_shaken_table():
    h_min = 1e-6
    system = carom.System(
        1.0,
        lambda q: G * q[0],
        contacts=carom.Contacts(lambda t, q: q - 0.01 * jnp.sin(20 * t), restitution=0.5),
    )
    method = carom.Extrapolated(carom.MoreauMidpoint(), 4, atol=1e-9, rtol=0.0)
    sol = carom.simulate(system, carom.State([0.1], [0.0]), method, t1=0.4, stepping=carom.Switching(h_min, 0.01))
    closes = sol.events.time[sol.events.kind == "closes"][:3]
    np.testing.assert_allclose(closes, impacts_on_shaken_table(3), atol=2 * h_min, rtol=0)


@pytest.mark.slow
def test_super_ball_with_tangential_restitution_comes_back():
    method = carom.Extrapolated(carom.MoreauMidpoint(), 4, atol=1e-9, rtol=0.0)
    runs = {}
    for eps in (1.0, 0.0):
        ball, state = carom.models.super_ball(tangential_restitution=eps)
        runs[eps] = carom.simulate(ball, state, method, t1=1.2, stepping=carom.Switching(1e-7, 0.05))
    back, on = runs[1.0], runs[0.0]
    assert back.v[-1, 0] < -0.9
    assert abs(back.q[-1, 0]) < 0.05
    assert np.ptp(back.account.energy) < 1e-8
    assert on.v[-1, 0] > 0
    assert on.account.energy[-1] < on.account.energy[0] - 0.1


@pytest.mark.slow
def test_several_contacts_close_in_one_step():
    """Three balls of different height thrown so that all hit the floor at t = 0.1: each bounces as if alone."""
    v = np.array([-1.0, -2.0, -3.0])
    system = carom.System([1.0, 2.0, 3.0], contacts=carom.Contacts(lambda q: q, restitution=jnp.array([0.9, 0.5, 0.1])))
    sol = carom.simulate(system, carom.State(-0.1 * v, v), carom.MoreauMidpoint(), t1=0.2, h=0.03)
    assert sorted(sol.events.contact[sol.events.kind == "closes"]) == [0, 1, 2]
    assert len(set(sol.events.time[sol.events.kind == "closes"])) == 1
    np.testing.assert_allclose(sol.v[-1], -v * [0.9, 0.5, 0.1], rtol=1e-14)


@pytest.mark.slow
def test_newtons_cradle_of_two_simultaneous_contacts_keeps_energy_and_momentum():
    """A ball between two others, both gaps closed at once, elastic: Newton's law keeps both invariants."""
    system = carom.System(1.0, contacts=carom.Contacts(lambda q: jnp.diff(q) - 1.0, restitution=1.0))
    state = carom.State([0.0, 1.01, 2.02], [1.0, 0.0, -1.0])
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=0.1, h=1e-3)
    assert np.ptp(sol.account.energy) < 1e-14
    np.testing.assert_allclose(sol.v[-1], [-1.0, 0.0, 1.0], atol=1e-14)


def hinged_rod():
    """A rod of length 2 and mass 1, hinged at the origin; its tip hits a floor at y = -1.5. Coordinates x, y, phi."""
    system = carom.System(
        [1.0, 1.0, 1 / 3],
        lambda q: G * q[1],
        constraints=lambda q: jnp.stack([q[0] - jnp.cos(q[2]), q[1] - jnp.sin(q[2])]),
        contacts=carom.Contacts(lambda q: (q[1] + jnp.sin(q[2]) + 1.5)[None], restitution=0.5),
    )
    return system, carom.State([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


def reduced_rod():
    """The same rod with the angle as its only coordinate."""
    system = carom.System(
        4 / 3,
        lambda q: G * jnp.sin(q[0]),
        contacts=carom.Contacts(lambda q: 2 * jnp.sin(q) + 1.5, restitution=0.5),
    )
    return system, carom.State([0.0], [0.0])


@pytest.mark.slow
def test_rod_on_a_hinge_hits_a_stop_like_its_reduced_model():
    method = carom.Extrapolated(carom.MoreauMidpoint(), 4, atol=1e-8, rtol=0.0)
    stepping = carom.Switching(1e-7, 0.01)
    full = carom.simulate(*hinged_rod(), method, t1=1.0, stepping=stepping)
    reduced = carom.simulate(*reduced_rod(), method, t1=1.0, stepping=stepping)
    assert full.q[-1, 2] == pytest.approx(reduced.q[-1, 0], abs=1e-6)
    np.testing.assert_allclose(full.events.time[:4], reduced.events.time[:4], atol=5e-7)
    assert full.account.worst["drift"] < 1e-7


def test_a_hinge_does_not_drift_in_many_constant_steps():
    sol = carom.simulate(*hinged_rod(), carom.MoreauMidpoint(), t1=5.0, h=1e-3)
    assert sol.account.worst["drift"] < 1e-14
    assert sol.account.worst["energy rise"] < 1e-3


@pytest.mark.slow
def test_a_hinge_carries_the_rod():
    at_rest = carom.State([0.0, -1.0, -np.pi / 2], np.zeros(3))
    system, _ = hinged_rod()
    free = carom.System(system.mass, lambda q: G * q[1], constraints=system.constraints)
    hanging = carom.simulate(free, at_rest, carom.MoreauMidpoint(), t1=0.1, h=1e-2)
    np.testing.assert_allclose(hanging.multiplier[-1], [0.0, -G], atol=1e-9)  # M v' = f - G^T multiplier


@pytest.mark.slow
def test_a_block_held_by_a_wall_and_by_friction_is_held_with_large_steps():
    block = carom.System(
        1.0,
        {"weight": lambda q: 9.81 * q[1], "spring": lambda q: 5.0 * (q[0] - 2.0) ** 2},
        contacts=carom.Contacts(
            gap=lambda q: jnp.array([q[1], 1.0 - q[0]]), slip=lambda q: jnp.array([q[0], q[1]]), friction=[0.4, 0.0]
        ),
    )
    method = carom.Extrapolated(carom.MoreauMidpoint())
    start = carom.State([1.0, 0.0], [0.0, 0.0])
    sol = carom.simulate(block, start, method, t1=1.0, stepping=carom.Switching(1e-4, 0.02))
    assert sol.stats["accepted"] < 100
    assert np.abs(sol.q - np.asarray(start.q)).max() < 1e-12
    wall, friction = sol.force[-1, 1], sol.force[-1, 2]
    assert wall - friction == pytest.approx(10.0)
    assert abs(friction) <= 0.4 * 9.81 * (1 + 1e-12)


@pytest.mark.slow
def test_a_banded_mass_moves_like_the_same_matrix_written_out():
    system, state = carom.models.nonlinear_string(8, 0.8, 0.1)
    dense = eqx.tree_at(lambda s: s.mass, system, system.mass.dense())
    banded, full = (carom.simulate(s, state, carom.MoreauMidpoint(), t1=0.2, h=1e-3) for s in (system, dense))
    assert np.abs(banded.q - full.q).max() < 1e-14
