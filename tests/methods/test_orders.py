"""Order is a test: a nonlinear problem with a velocity-dependent force; a loop of bare steps compiles fastest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

STEPS = np.array([0.1, 0.05, 0.025, 0.0125])


def swing(q, p):
    return -jnp.sum(jnp.cos(q)) + 0.3 * (q[0] - q[1]) ** 4


def drag(t, q, v):
    return -0.2 * v * jnp.abs(v) ** 2 + 0.3 * jnp.sin(1.3 * t) * jnp.stack([v[1], -v[0]])


SYSTEM = carom.System([1.0, 0.7], swing, {"drag": drag})
STATE = carom.State([1.0, -0.4], [0.2, 0.9])
METHODS = [carom.ExplicitRK(carom.explicit(p)) for p in range(1, 6)] + [
    carom.IRK(carom.gauss(1)),
    carom.IRK(carom.gauss(2)),
    carom.IRK(carom.gauss(3)),
    carom.IRK(carom.radau_iia(2)),
    carom.IRK(carom.radau_iia(3)),
    carom.IRK(carom.lobatto_iiia(2)),
    carom.IRK(carom.lobatto_iiia(3)),
    carom.IRK(carom.lobatto_iiic(3)),
    carom.Theta(0.5),
    carom.Theta(0.8),
]


def ends(method, steps):
    """Positions and velocities at t = 2, a row for every step size."""

    @jax.jit
    def end(h):
        def step(_, at):
            new = method.step(SYSTEM, *at, h)
            return new.state, new.memory

        count = jnp.round(2.0 / h).astype(int)
        state, _ = jax.lax.fori_loop(0, count, step, (STATE, method.init(SYSTEM, STATE)))
        return jnp.concatenate([state.q, state.v])

    return np.array([end(h) for h in steps])


@pytest.fixture(scope="module")
def exact():
    return ends(carom.IRK(carom.gauss(4)), [0.01])[0]


def name(method):
    return method.tableau.name if hasattr(method, "tableau") else f"theta({method.theta})"


QUICK = (
    "explicit(1)",
    "explicit(2)",
    "explicit(4)",
    "explicit(5)",
    "gauss(2)",
    "radau_iia(2)",
    "lobatto_iiia(3)",
    "theta(0.5)",
)


@pytest.mark.parametrize(
    "method",
    [pytest.param(m, id=name(m), marks=[] if name(m) in QUICK else pytest.mark.slow) for m in METHODS],
)
def test_the_observed_order_is_the_declared_one(method, exact):
    steps = STEPS / (2 if name(method) == "explicit(5)" else 1)  # the next error term of Dormand-Prince is large
    errors = np.abs(ends(method, steps) - exact).max(axis=1)
    assert carom.measures.observed_order(steps, errors, floor=1e-12) == pytest.approx(method.order, abs=0.3)


@pytest.mark.slow
def test_shared_and_full_newton_find_the_same_step():
    chain, state = carom.models.newtons_cradle(5, stiffness=3.0, attachment=0.5)
    smooth = carom.regularise(chain)
    runs = [
        carom.simulate(smooth, state, carom.IRK(carom.gauss(2), newton=carom.Newton(strategy=s)), t1=5.0, h=0.25)
        for s in ("full", "shared")
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-12


def test_a_step_forwards_and_backwards_returns_for_a_symmetric_method():
    method = carom.IRK(carom.gauss(2))

    @jax.jit
    def there_and_back(state, h):
        def step(state, h):
            return method.step(SYSTEM, state, None, h).state, None

        return jax.lax.scan(step, state, jnp.stack([h, -h]))[0]

    back = there_and_back(STATE, jnp.asarray(0.3))
    assert np.abs(back.q - STATE.q).max() < 1e-13
    assert np.abs(back.v - STATE.v).max() < 1e-13
