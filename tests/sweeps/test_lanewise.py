"""Sweeps computed number by number: operations give what JAX gives, lanes leave each other alone, bits stay."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import carom
from carom.running.fused import Kernel, platform
from carom.running.lanewise import evaluated, shaped, wide
from carom.running.loop import begin
from carom.sweeps import engine, template
from carom.sweeps.plan import plan
from carom.sweeps.sweep import question

LANES = 8
ONE = [
    "abs",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "is_finite",
    "log1p",
    "logistic",
    "neg",
    "sign",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "exp2",
    "cbrt",
    "round",
]
TWO = ["add", "sub", "mul", "div", "max", "min", "atan2", "rem", "eq", "ne", "lt", "le", "gt", "ge", "nextafter"]


def halves(x):
    """Numbers of which some lie just between two whole ones."""
    return jnp.round(4 * x) / 2


def looped(x, a, i, k):
    return {
        "while": lax.while_loop(lambda s: s[0] < x[0] + 3, lambda s: (s[0] + 0.7, s[1] * a @ x), (0.0, x)),
        "fori": lax.fori_loop(0, k, lambda j, s: s + j * x, x),
        "scan": lax.scan(lambda s, row: (s + row, s * row), x, a),
        "scan backward": lax.scan(lambda s, row: (0.5 * s - row, s), x, a, reverse=True),
        "long scan": lax.fori_loop(0, 70, lambda _, s: jnp.cos(s), x),
        "cond": lax.cond(x[0] > 0, lambda x: (jnp.sin(x), i), lambda x: (x * x, k), x),
        "long cond": lax.cond(k > 0, lambda x: lax.fori_loop(0, k, lambda _, s: s / 2, x), lambda x: -x, x),
        "switch": lax.switch(k, [jnp.sin, jnp.cos, lambda x: lax.fori_loop(0, k, lambda _, s: 2 * s, x)], x),
        "linear": jnp.linalg.solve(a, x),
        "custom": jax.nn.relu(x),
    }


def placed(x, a, i, k):
    return {
        "transpose": jnp.flip(a.T, 1)[:, ::2],
        "pad": lax.pad(a, 7.0, ((1, -1, 1), (-1, 2, 0))),
        "split": jnp.split(a, [1], axis=1),
        "stack": jnp.stack([x, 2 * x], axis=1),
        "iota": a + lax.broadcasted_iota(float, (3, 3), 1),
        "sums": (a.sum(0), a.prod(1), a.max(), a.min(0), (a > 0).any(0), (a > 0).all(1)),
        "cumsum": (jnp.cumsum(x), lax.cumsum(a, 1, reverse=True)),
        "arg": (jnp.argmax(a, 0), jnp.argmin(x)),
        "dot": (a @ a, x @ a, jnp.einsum("ij,ik->ijk", a, a), a[None] @ a[None]),
        "dynamic_slice": lax.dynamic_slice(a, (k, i), (2, 1)),
        "dynamic_update_slice": lax.dynamic_update_slice(a, x[None, :2], (k, i)),
        "gather": (a[k], x[i], a.at[k, i].get(mode="fill"), a.at[i].get(mode="clip"), a[jnp.stack([i, k])]),
        "take_along_axis": jnp.take_along_axis(a, jnp.stack([i, k, i])[None] % 3, 0),
        "scatter": (a.at[k].set(x, mode="drop"), x.at[i].add(2.0), a.at[jnp.stack([k, i])].set(1.0, mode="clip")),
        "triangular": lax.linalg.triangular_solve(a, a, left_side=False, lower=True, transpose_a=True),
        "lu": lax.linalg.lu(a),
        "sort": lax.sort((x, jnp.arange(3)), num_keys=1),
        "argsort": jnp.argsort(a[:, 0]),
    }


def numbers(x, a, i, k):
    y, found = a[0], {}
    for name in ONE:
        found[name] = getattr(lax, name)(x)
    for name in TWO:
        found[name] = getattr(lax, name)(halves(x) if name not in ("div", "rem") else x, halves(y) + 1 / 3)
    found["positive"] = tuple(fn(jnp.abs(x)) for fn in (lax.log, lax.sqrt, lax.rsqrt)), jnp.abs(x) ** y
    found["arcs"] = tuple(fn(jnp.tanh(x)) for fn in (lax.asin, lax.acos, lax.atan))
    found["halves"] = jnp.round(halves(x)), lax.round(halves(x), lax.RoundingMethod.AWAY_FROM_ZERO)
    found["whole"] = (i & k, i | k, i ^ k, ~i, i % 3, i // 2, x**3, jnp.clip(x, -0.5, 0.5), x.astype(int))
    found["choice"] = (jnp.where(x > y, x, y), lax.select_n(k % 3, x, y, x + y), (x > 0) & (y > 0) | ~(x > y))
    return found


HARD = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    1.0,
    -1.0,
    0.5,
    -2.5,
    0.49999999999999994,
    2.0**52 + 1,
    -(2.0**52) - 1,
    1e20,
]


def bordering(s, n, i, k):
    """Numbers that are none, infinite, halves, or too large to be whole; places outside; matrices that are singular."""
    whole, m = jnp.stack([n, n // 3, k]), jnp.stack([jnp.arange(3.0), k * jnp.arange(3.0), jnp.ones(3)])
    seen, none, short = {"mode": "fill"}, jnp.zeros((2, 0), int), jnp.uint8(n)
    return {
        "arg": (jnp.argmax(s), jnp.argmin(s), jnp.argmax(whole)),
        "sort": lax.sort((s, jnp.arange(5)), num_keys=1),
        "round": (jnp.round(s), lax.round(s, lax.RoundingMethod.AWAY_FROM_ZERO), lax.sign(s)),
        "dot": np.eye(5)[:2] @ s,
        "singular": (lax.linalg.lu(m), jnp.linalg.det(m)),
        "fill": (whole.at[i].get(**seen), (whole > 0).at[k].get(**seen), jnp.uint8(whole).at[k].get(**seen)),
        "whole": (n + 1, n * 3, n // 7, n % 7, -n, jnp.int32(n) * 2**30, n.astype(float), short - jnp.uint8(200)),
        "by zero": (lax.div(n, 0 * n), lax.rem(n, 0 * n)),
        "known": (jnp.array([np.nan, 1e20, -1e20, -1.5]).astype(jnp.int32), jnp.array([300, -1]).astype(jnp.uint8)),
        "signs": 1.0 / jnp.where(k > 0, jnp.zeros(2), jnp.array([-0.0, 0.0])),
        "empty": ((jnp.zeros((0, 5)) @ s).sum(), jnp.zeros((5, 0)) @ jnp.zeros(0) + s, lax.reduce_max(none, (1,))),
        "table": jnp.interp(1.3 * k, jnp.arange(5.0), jnp.cos(jnp.arange(5.0))),
        "no rounds": lax.scan(lambda c, row: (c + row, c * row), s, jnp.zeros((0, 5)))[1].sum(),
        "outside": lax.switch(k, [lambda s, j=j: lax.fori_loop(0, j + i, lambda _, x: x - j, s) for j in range(3)], s),
        "phases": lax.while_loop(
            lambda c: c[0] < 20, lambda c: lax.cond((c[0] + k) % 3 == 0, slowed, pushed, i, *c), (i, 1.0)
        ),
    }


def slowed(i, n, x):
    return n + 1 + 0 * i, lax.fori_loop(0, n % 4, lambda _, y: y * 0.5, x)


def pushed(i, n, x):
    return n + 2, x + i


def test_operations_give_what_jax_gives():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(LANES, 3)), rng.normal(size=(LANES, 3, 3))]
    arrays += [rng.integers(-2, 6, LANES), rng.integers(-1, 5, LANES)]
    arrays += [rng.choice(HARD, (LANES, 5)), rng.choice([2**63 - 1, -(2**63), 2**53 + 1, 7, -7, 0], LANES)]

    def every(x, a, i, k, s, n):
        return looped(x, a, i, k), placed(x, a, i, k), numbers(x, a, i, k), bordering(s, n, i, k)

    traced = jax.make_jaxpr(every)(*(x[0] for x in arrays))

    @jax.jit
    def lanewise(*arrays):
        rows = [row for x in arrays for row in x.reshape(LANES, -1).T]
        found = evaluated(traced, shaped(rows, traced.jaxpr.invars))
        each = [[wide(one, rows[0], v.aval.dtype) for one in x.ravel()] for x, v in zip(found, traced.jaxpr.outvars)]
        return [jnp.stack(x, 1).reshape(LANES, *v.aval.shape) for x, v in zip(each, traced.jaxpr.outvars)]

    expected = jax.jit(jax.vmap(every))(*arrays)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(expected), lanewise(*arrays), strict=True):
        assert x.dtype == y.dtype, path
        assert np.allclose(x, y, rtol=1e-11, atol=1e-12, equal_nan=True), path


UNKNOWN = {
    "a special function": lax.erf,
    "lists to sort": lambda a: lax.sort(a, dimension=1),
    "a batch of systems": lambda a: lax.linalg.lu(a[None]),
    "a function of places": lambda a: a.at[0].apply(jnp.sin),
    "products of places": lambda a: a.at[0].multiply(2.0),
    "short numbers": lambda a: lax.dynamic_index_in_dim(a, a[0, 0].astype(jnp.uint8), 0),
    "products of two kinds": lambda a: lax.dot(jnp.int8(a), jnp.int8(a), preferred_element_type=jnp.int32),
    "complex numbers": lambda a: jnp.abs(a + 1j),
    "brief numbers": lambda a: a.astype(jnp.bfloat16),
    "random numbers": lambda a: a + jax.random.normal(jax.random.key(0)),
    "bits": lambda a: lax.bitcast_convert_type(a, jnp.int64),
    "a batch of loops": lambda a: jax.vmap(lambda x: lax.while_loop(lambda s: s < 3, lambda s: s + x * x + 1, x))(a[0]),
    "a long table": lambda a: jnp.arange(3000.0)[a[0, 0].astype(int)],
    "long loops with rows": lambda a: lax.scan(lambda c, _: (c + 1, c), a, None, length=100),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_rule_is_refused(name):
    traced = jax.make_jaxpr(UNKNOWN[name])(np.eye(2))
    with pytest.raises(NotImplementedError):
        evaluated(traced, shaped([jnp.ones(4)] * 4, traced.jaxpr.invars))


# ---- sweeps ---------------------------------------------------------------------------------------------------------

METHOD = carom.ExplicitRK(carom.explicit(2))
CELLS = carom.Cases(stiffness=np.where(np.arange(70) == 40, 50.0, np.linspace(-2.0, -0.1, 70)))
OPTIONS = {"t1": lambda stiffness: 4.0 + 0.02 * stiffness, "h": 0.01, "progress": False}
CAPTURING = carom.EventCapturing(carom.explicit(4))
COUNTED = carom.keep.reduce(2**53 + 1, lambda n, t, q, v, h: n + 2, lambda n: n - 2**53)
OPTIONS["keep"] = [carom.keep.final(), carom.keep.strobe(1.0, last=2), COUNTED]


def cubic(stiffness):
    system = carom.System(1.0, None, {"f": lambda t, q, v, p: p["k"] * q**3}, params={"k": stiffness})
    return system, carom.State([1.0], [0.0])


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(template.Template, "choose", lambda self, _: setattr(self, "is_lanewise", True))


def test_lanes_in_different_phases_leave_each_other_alone_and_keep_their_bits_in_other_batches(always, monkeypatch):
    data = carom.sweep(cubic, CELLS, METHOD, **OPTIONS, batch=70)
    assert np.flatnonzero(data.status).tolist() == [40]
    assert "became NaN or infinite in the step from t =" in str(data.message.values[40])
    assert np.isnan(data.final_q[40]).all()
    assert np.isfinite(np.delete(data.final_q.values, 40, 0)).all()
    assert np.array_equal(np.delete(data["reduce"] - 2 * data.steps, 40), np.ones(69))
    assert carom.sweep(cubic, CELLS, METHOD, **OPTIONS, batch=33).identical(data)
    monkeypatch.undo()
    vmapped = carom.sweep(cubic, CELLS, METHOD, **OPTIONS, batch=70)
    for name in data.data_vars:
        if name != "message":
            assert np.allclose(data[name], vmapped[name], rtol=1e-11, atol=1e-12, equal_nan=True), name


def test_a_system_of_operations_without_a_rule_runs_as_before(always, monkeypatch):
    def bent(stiffness):
        force = {"f": lambda t, q, v, p: -p["k"] * lax.erf(q)}
        return carom.System(1.0, None, force, params={"k": stiffness}), carom.State([1.0], [0.0])

    cells = carom.Grid(stiffness=[1.0, 2.0])
    data = carom.sweep(bent, cells, METHOD, t1=1.0, h=0.1)
    monkeypatch.undo()
    assert data.identical(carom.sweep(bent, cells, METHOD, t1=1.0, h=0.1))


def test_the_device_that_holds_the_arrays_decides_how_lanes_run(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert platform() == "gpu"
    with jax.default_device(jax.devices("cpu")[0]):
        assert platform() == "cpu"


def planned(method, cells, keep, lanes=None):
    grid = carom.Grid(frequency=np.linspace(2.4, 3.2, cells))
    asked = question(carom.models.driven_oscillator, method, 10.0, 0.01, None, None, keep, ())
    return plan(grid, asked, None, lanes, 1)


def test_event_capturing_has_a_rule_for_all_its_operations():
    made = planned(CAPTURING, 64, [carom.keep.strobe(1.0, last=1), carom.keep.count("closes")], 64)
    lanes = made.template(made.batches[0]).lanes(made.numbers(made.batches[0].cells))
    carry = jax.eval_shape(lambda: begin(lanes.problem, lanes.start, lanes.axes))
    kernel = Kernel(lanes.problem, carry, lanes.axes)
    shapes = jax.eval_shape(lambda carry: kernel(lanes.problem, carry, 1)[0], carry)
    assert jax.tree.leaves(shapes) == jax.tree.leaves(carry)


def test_long_sweeps_of_waiting_lanes_run_number_by_number():
    def is_lanewise(method, cells, last=1):
        return planned(method, cells, [carom.keep.strobe(1.0, last=last)]).templates[0].is_lanewise

    assert is_lanewise(CAPTURING, 1000)
    assert not is_lanewise(CAPTURING, 10)
    assert not is_lanewise(CAPTURING, 1000, last=1000)
    assert not is_lanewise(carom.MoreauMidpoint(), 1000)


@pytest.mark.slow
def test_a_kernel_of_pallas_gives_what_blocks_in_turn_give():
    asked = question(cubic, METHOD, OPTIONS["t1"], 0.01, None, None, OPTIONS["keep"], ())
    made = plan(CELLS, asked, None, 64, 1)
    batch = made.batches[0]
    lanes = made.template(batch).lanes(made.numbers(batch.cells))
    carry = begin(lanes.problem, lanes.start, lanes.axes)
    kernel = Kernel(lanes.problem, carry, lanes.axes)
    found = kernel(lanes.problem, carry, 50)[0]
    kernel.run = lambda *given: kernel.at_once(*given, interpret=True)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(kernel(lanes.problem, carry, 50)[0])):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-13, equal_nan=True)


def exploding(frequency, push):
    """An oscillator beside a stop; a large push blows it up."""
    system = carom.System(
        1.0,
        lambda q: 0.5 * q @ q,
        {"f": lambda t, q, v, p: jnp.cos(p["w"] * t) - 0.1 * v + p["push"] * q**3},
        contacts=carom.Contacts(lambda q: 1.0 - q, restitution=0.8),
        params={"w": frequency, "push": push},
    )
    return system, carom.State([-0.5], [0.0])


@pytest.mark.slow
def test_one_failing_lane_of_a_thousand_leaves_999_and_other_workers_give_the_same_bits(monkeypatch):
    monkeypatch.setattr(engine, "_is_unknown", lambda _: False)
    cells = carom.Cases(frequency=np.linspace(0.8, 1.2, 1000), push=np.where(np.arange(1000) == 321, 1e3, 0.0))
    method, options = carom.EventCapturing(carom.explicit(4)), {"t1": 10.0, "h": 0.05, "progress": False}
    data = carom.sweep(exploding, cells, method, **options)
    assert np.flatnonzero(data.status).tolist() == [321]
    assert len(str(data.message.values[321])) > 20
    assert np.isfinite(np.delete(data.final_q.values, 321, 0)).all()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert carom.sweep(exploding, cells, method, **options, client=pool, batch=300).identical(data)
    for i in (0, 500, 999):
        single = carom.simulate(
            *exploding(cells.values["frequency"][i], 0.0), method, t1=10.0, h=0.05, keep=[carom.keep.final()]
        )
        assert np.allclose(single.kept["final 0"].q, data.final_q[i], atol=1e-10)
