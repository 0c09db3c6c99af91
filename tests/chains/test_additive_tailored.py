"""The additive extension of sec. 3.3: every part of the potential with its own rate damping."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.systems.interactions import Interactions
from carom.systems.laws import hertz, spring
from carom.tableaux import tailored_coefficients, tailored_part

H = [0.1, 0.05, 0.025, 0.0125]
#: Contact and local damping in units of h.
PAIRS = [(0.5, 0.0), (0.5, 0.8), (0.2, 0.6)]


def chain(contact_damping, local_damping):
    """Four compressed beads on springs."""
    potential = {
        "contact": Interactions(hertz, stencil=(0, 1), data=jnp.array([1.0, 1.4, 0.8])),
        "local": Interactions(spring, stencil=(0,), data=jnp.array([0.3, 0.5, 0.2, 0.4])),
    }
    damping = {"contact": contact_damping, "local": local_damping}
    return carom.System([1.0, 0.6, 1.2, 0.8], potential, rate_damping=damping)


START = carom.State([1.2, 0.7, 0.3, -0.2], [0.3, 0.2, 0.1, -0.1])


@pytest.fixture(scope="module")
def errors():
    lanes = [(c * h, l * h, h) for c, l in PAIRS for h in H]
    systems = [chain(c, l) for c, l, _ in lanes]
    exact = carom.simulate_batch(
        [carom.regularise(s) for s in systems],
        START,
        carom.ExplicitRK(carom.explicit(5)),
        t1=1.0,
        h=[0.0025] * 12,
        save_every=5,
    )
    sols = carom.simulate_batch(systems, START, carom.AdditiveTailoredIRK(), t1=1.0, h=[h for *_, h in lanes])
    assert all(np.diff(sol.q, axis=1).max() < 0 for sol in exact)  # no contact breaks
    worst = []
    for sol, ref, (*_, h) in zip(sols, exact, lanes):
        rows = slice(None, None, round(h / 0.0125))
        worst.append(max(np.abs(sol.q - ref.q[rows]).max(), np.abs(sol.v - ref.v[rows]).max()))
    return np.reshape(worst, (len(PAIRS), len(H)))


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=[f"contact {c} h, local {l} h" for c, l in PAIRS])
def test_contact_and_local_damping_are_matched_independently_at_third_order(errors, pair):
    assert observed_order(H, errors[pair]) == pytest.approx(3.0, abs=0.15)
    assert errors[pair, -1] < 1e-6


def step_map(z, C11):
    """(x, V) -> (x, V) of one undamped attachment with h omega = z next to contacts damped by 2 C11 h."""
    A, b = (np.array(values) for values in tailored_coefficients(C11))
    part, one, zero = np.array(tailored_part(C11, 0.0)), np.ones((2, 1)), np.zeros((2, 1))
    stages = np.linalg.solve(
        np.block([[np.eye(2), -z * A], [z * part, np.eye(2)]]), np.block([[one, zero], [zero, one]])
    )
    return np.eye(2) + z * np.vstack([b @ stages[2:], -b @ stages[:2]])


def growth(z, C11):
    return np.abs(np.linalg.eigvals(step_map(z, C11))).max() - 1


@pytest.mark.parametrize("C11", [0.05, 0.25, 0.5, 1.0])
def test_an_undamped_attachment_changes_amplitude_by_a_known_fourth_order_term_per_step(C11):
    z = 0.05
    assert growth(z, C11) == pytest.approx((C11**3 / 2 - C11 / 12) * z**4, rel=0.02)


def test_an_undamped_attachment_is_stable_for_contact_damping_up_to_0_8_h():
    assert all(growth(z, 0.4) < 0 for z in (0.05, 0.2, 0.5, 1.0, 1.5))
    assert all(growth(z, 0.25) < 0 for z in np.linspace(0.05, 2.3, 46))
    assert growth(0.1, 0.42) > 0  # the limit is C11 = 1 / sqrt(6) for small h omega


@pytest.mark.slow
def test_the_method_grows_as_its_linear_map_says_where_it_is_unstable():
    h, steps = 0.5, 100
    nothing, attachment = (Interactions(spring, stencil=(0,), data=jnp.array([k])) for k in (0.0, 1.0))
    system = carom.System([1.0], {"contact": nothing, "local": attachment}, rate_damping={"contact": h})
    sol = carom.simulate(system, carom.State([1.0], [0.0]), carom.AdditiveTailoredIRK(), t1=h * steps, h=h)
    grown = np.sqrt(sol.account.energy[-1] / sol.account.energy[0])
    assert grown == pytest.approx((1 + growth(h, 0.5)) ** steps, rel=0.03)
    assert grown > 1.1
