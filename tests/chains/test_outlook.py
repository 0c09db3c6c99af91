"""Beyond the paper's case: other exponents, uneven dampings, sums, driving, adaptive steps, spring-dashpots."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom
from carom.measures import observed_order
from carom.papers.james2020 import outlook
from carom.systems.interactions import Interactions
from carom.systems.laws import OverlapPower, hertz, spring

H = [0.05, 0.025, 0.0125]
MASSES, K, LOCAL = np.array([1.0, 0.6, 1.2, 0.8]), np.array([1.0, 1.4, 0.8]), np.array([0.3, 0.5, 0.2, 0.4])
GAMMAS, BETA, NEXT = np.array([0.5, 0.2, 0.7]), 2.0, np.array([0.1, 0.2])
START = carom.State([1.2, 0.7, 0.3, -0.2], [0.3, 0.2, 0.1, -0.1])


def shake(t, q, v):
    return 0.3 * jnp.sin(2.0 * t + jnp.arange(q.size))


def drive(t, q):
    return 0.2 * (q[0] - 0.5 * jnp.sin(3.0 * t)) ** 2


def second(a, b, k):
    return 0.5 * k * (a - b) ** 2 + 0.25 * k * (a - b) ** 4


def chain(gamma):
    """Contacts damped by d/dt d^2, uneven attachments, second neighbours, a driven end: each with its own damping."""
    potential = {
        "contact": Interactions(hertz, stencil=(0, 1), data=K),
        "local": Interactions(spring, stencil=(0,), data=LOCAL),
        "second": Interactions(second, stencil=(0, 2), data=NEXT),
        "drive": drive,
    }
    rates = {
        "contact": Interactions(OverlapPower(BETA), stencil=(0, 1), data=K, weight=gamma * GAMMAS),
        "local": gamma * np.array([0.1, 0.4, 0.2, 0.3]),
        "second": 0.6 * gamma,
        "drive": 0.3 * gamma,
    }
    return carom.System(MASSES, potential, {"shake": shake}, rate_damping=rates)


def pair_force(f, d):
    return np.concatenate([-f, np.zeros(d)]) + np.concatenate([np.zeros(d), f])


def exact(gamma, t1=1.0):
    """The end of the same motion by SciPy, on (10)-(11)."""

    def forces(t, x):
        d, e = np.maximum(x[:-1] - x[1:], 0.0), x[:-2] - x[2:]
        pull = np.array([-0.4 * (x[0] - 0.5 * np.sin(3 * t)), 0, 0, 0])
        return d, pair_force(K * d**1.5, 1), -LOCAL * x, pair_force(NEXT * (e + e**3), 2), pull

    def r(t, x):
        d, _, local, far, pull = forces(t, x)
        even = 0.6 * far + 0.3 * pull + np.array([0.1, 0.4, 0.2, 0.3]) * local
        return gamma * (pair_force(K * GAMMAS * d**BETA, 1) + even) / MASSES

    def rates(t, y):
        total = sum(forces(t, y[:4])[1:]) + 0.3 * np.sin(2 * t + np.arange(4))
        return np.concatenate([y[4:] + r(t, y[:4]), total / MASSES])

    x0, v0 = np.asarray(START.q), np.asarray(START.v)
    start = np.concatenate([x0, v0 - r(0.0, x0)])
    y = solve_ivp(rates, (0, t1), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return np.concatenate([y[:4], y[4:] + r(t1, y[:4])])


METHODS = {"theta": (carom.TailoredTheta(), 2), "IRK": (carom.AdditiveTailoredIRK(), 3)}


@pytest.mark.parametrize("name", METHODS)
def test_a_sum_of_dampings_of_any_form_is_imitated_in_a_driven_and_shaken_chain(name):
    method, order = METHODS[name]
    sols = carom.simulate_batch([chain(h) for h in H], START, method, t1=1.0, h=H)
    errors = [np.abs(np.concatenate([s.q[-1], s.v[-1]]) - exact(h)).max() for s, h in zip(sols, H)]
    assert observed_order(H, errors) == pytest.approx(order, abs=0.15)
    assert errors[-1] < 4.0 * H[-1] ** order


def test_the_convergent_theta_method_reaches_a_fixed_damping_and_the_papers_does_not():
    damped, gamma = chain(0.3), 0.3
    kinds = {c: carom.TailoredTheta(convergent=c) for c in (False, True)}
    errors = {
        c: [
            np.abs(s.q[-1] - exact(gamma)[:4]).max()
            for s in carom.simulate_batch(damped, START, m, t1=1.0, h=[0.02, 0.01])
        ]
        for c, m in kinds.items()
    }
    assert errors[False][1] > 0.8 * errors[False][0]
    assert errors[True][1] < 0.3 * errors[True][0]


def test_the_damping_of_a_driven_part_is_the_whole_time_derivative_of_its_force():
    system, t, q, v = chain(0.5), jnp.asarray(0.7), START.q, START.v
    before, after = (np.asarray(system.damped_impulse(t + s, q + s * v)) for s in (-1e-5, 1e-5))
    assert np.asarray(system.damping_force(t, q, v)) == pytest.approx((after - before) / 2e-5, abs=1e-8)


@pytest.fixture(scope="module")
def case():
    return outlook.flights(60.0)


def test_adaptive_steps_need_a_fraction_of_the_constant_ones_where_beads_fly(case):
    assert case.closed < 0.2
    run = outlook.adaptive_run(case, 3e-3)
    steps = outlook.attempts(run) / 0.6
    assert outlook.constant_work(case, [case.t1 / steps]).errors[0] > case.error(run)


def test_adaptive_steps_stay_constant_for_stretches(case):
    steps = np.diff(outlook.adaptive_run(case, 1e-3).t)
    changes = np.abs(steps[1:] / steps[:-1] - 1) > 1e-6
    assert np.mean(changes) < 0.35


def test_a_contact_by_spring_and_dashpot_ends_when_its_force_vanishes():
    duration, restitution = outlook.dashpot_collision(100.0, 4.0)
    runs = [outlook.dashpot_run(h) for h in (0.02, 0.01)]
    errors = [abs(run.v[-1, 0] - restitution) for run in runs]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.15)
    assert errors[1] < 3e-7
    law = carom.SpringDashpot(outlook.wall_gap, 100.0, 4.0)
    push = np.array([law.push(q, v)[1][0] for q, v in zip(runs[1].q, runs[1].v)])
    ends = (push[:-1] > 1e-9) & (push[1:] <= 1e-9) & (runs[1].q[1:, 0] < 0)
    assert runs[1].t[1:][ends][0] == pytest.approx(0.05 + duration, abs=1e-6)


def test_stages_at_the_ends_of_a_step_are_warned_of_where_a_force_jumps():
    law = carom.SpringDashpot(outlook.wall_gap, 100.0, 4.0)
    ball, state = carom.System(1.0, None, {"wall": law.force}, friction=law.switches), carom.State([0.05], [-1.0])
    for tableau, warned in ((carom.radau_iia(2), 1), (carom.explicit(4), 1), (carom.gauss(2), 0)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            carom.EventCapturing(tableau).caution(ball, state, 0.02, 1.0)
        assert sum("loses its order with this tableau" in str(w.message) for w in told) == warned


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: carom.SpringDashpot(1.0, 1.0, 0.1), "gap must be a function"),  # pyright: ignore
        (lambda: carom.SpringDashpot(outlook.wall_gap, -1.0, 0.1), "stiffness"),
        (lambda: carom.SpringDashpot(outlook.wall_gap, 1.0, -0.1), "damping"),
        (lambda: carom.SpringDashpot(outlook.wall_gap, 1.0, 0.1, exponent=0.5), "exponent must be at least 1"),
    ],
)
def test_what_is_no_spring_dashpot_is_refused_by_name(build, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build()


def test_the_tailored_methods_refuse_a_spring_dashpot_whose_contacts_are_located():
    law = carom.SpringDashpot(outlook.wall_gap, 100.0, 4.0)
    ball = carom.System(1.0, None, {"wall": law.force}, friction=law.switches)
    with pytest.raises(ValueError, match="TailoredTheta does not handle 'friction'"):
        carom.simulate(ball, carom.State([0.05], [-1.0]), carom.TailoredTheta(), t1=0.8, h=0.02)
