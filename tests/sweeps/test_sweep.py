"""Sweeps: cells equal single runs, failed cells leave the others alone, and mistakes are told in one sentence."""

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.running import loop
from carom.sweeps.plan import plan
from carom.sweeps.sweep import question

KEEP = {
    "end": carom.keep.final(),
    "samples": carom.keep.strobe(2.0, last=3),
    "hits": carom.keep.count("closes"),
    "blow": carom.keep.peak("impulse"),
    "energy": carom.keep.mean(lambda q, v: 0.5 * (q @ q + v @ v), after=1.0),
    "where": carom.keep.histogram(lambda q: q[0], [-4.0, -1.0, 0.0]),
    "sums": carom.keep.reduce((0.0, jnp.zeros(2)), lambda s, t, q, v, h: (s[0] + h, s[1] + h), lambda s: {"t": s[0]}),
}
OPTIONS = {"t1": 6.0, "h": 0.02, "keep": KEEP, "batch": 8}
METHOD = carom.MoreauMidpoint()


def build(frequency, restitution):
    return carom.models.driven_oscillator(frequency=frequency, restitution=restitution)


@pytest.fixture(scope="module")
def grid():
    cells = carom.Grid(frequency=[2.4, 2.6, 2.8, 3.0], restitution=[0.5, 1.2, 0.8])
    return carom.sweep(build, cells, METHOD, **OPTIONS)


def test_cells_equal_single_runs_bit_for_bit(grid):
    for frequency, restitution in ((2.4, 0.5), (3.0, 0.8)):
        cell = grid.sel(frequency=frequency, restitution=restitution)
        sol = carom.simulate(*build(frequency, restitution), METHOD, t1=6.0, h=0.02, keep=KEEP)
        kept = sol.kept
        for name in ("end", "samples"):
            for part in ("t", "q", "v"):
                assert np.array_equal(cell[f"{name}_{part}"], getattr(kept[name], part))
        assert (float(cell.hits), float(cell.blow), float(cell.blow_t)) == (kept["hits"], *kept["blow"][:2])
        assert float(cell.energy) == kept["energy"]
        assert np.array_equal(cell["where"], kept["where"])
        assert float(cell.sums_t) == kept["sums"]["t"] == pytest.approx(6.0)
        assert int(cell.steps) == 300


def placed(k, c):
    """At rest, at places that take some arithmetic."""
    return carom.System(1.0), carom.State([2.4 + k / 5, (k / 3) * (c / 7), k + 0.1 + 0.3, 1 / k / c], np.zeros(4))


def test_a_builder_computes_as_python_does():
    k, c = np.random.default_rng(0).uniform(0.5, 3.0, (2, 200))
    data = carom.sweep(placed, carom.Cases(k=k, c=c), METHOD, t1=0.02, h=0.02, batch=200)
    assert np.array_equal(data.final_q, np.transpose([2.4 + k / 5, (k / 3) * (c / 7), k + 0.1 + 0.3, 1 / k / c]))


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_short_numbers_are_computed_with_as_pythons_are(kind):
    def product(k, c):
        return carom.System(1.0), carom.State([k * c], [0.0])

    cells = carom.Cases(k=np.array([200, 0.1, 7], kind), c=np.array([3, 0.7, 9], kind))
    data = carom.sweep(product, cells, METHOD, t1=0.02, h=0.02)
    assert data.final_q[:, 0].values.tolist() == [k * c for k, c in map(dict.values, map(cells.at, range(3)))]


def test_a_cell_whose_numbers_are_refused_has_nan_and_a_message(grid):
    bad, good = grid.sel(restitution=1.2), grid.drop_sel(restitution=1.2)
    assert (bad.status == -1).all()
    assert np.isnan(bad.end_q).all()
    assert set(bad.message.values) == {"restitution must lie in [0, 1], got 1.2"}
    assert (good.status == 0).all()
    assert np.isfinite(good.samples_q).all()
    assert (good.message == "").all()


def test_other_numbers_of_cells_and_a_last_batch_that_is_not_full_compile_nothing(grid):
    before = loop.traces
    cells = carom.Cases(frequency=np.linspace(2.4, 3.0, 11), restitution=0.8)
    data = carom.sweep(build, cells, METHOD, **OPTIONS)
    assert loop.traces == before
    assert dict(data.sizes)["case"] == 11
    assert data.end_q.values[0] == grid.end_q.sel(frequency=2.4, restitution=0.8)


def test_a_cell_that_fails_on_its_way_leaves_the_others_unharmed():
    def explode(stiffness):
        system = carom.System(1.0, None, {"f": lambda t, q, v, p: p["k"] * q**3}, params={"k": stiffness})
        return system, carom.State([1.0], [0.0])

    cells = carom.Grid(stiffness=[-1.0, 50.0, -2.0])
    data = carom.sweep(explode, cells, carom.ExplicitRK(carom.explicit(4)), t1=4.0, h=0.01)
    assert data.status.values.tolist() == [0, carom.Status.NOT_FINITE, 0]
    assert np.isnan(data.final_q.values[1])
    assert "became NaN or infinite in the step from t =" in str(data.message.values[1])
    assert np.isfinite(data.final_q.values[[0, 2]]).all()


@pytest.mark.slow
def test_static_parameters_choose_shapes_and_shorter_states_end_in_nan():
    def bar(elements, velocity):
        return carom.models.elastic_bar(elements, velocity=velocity)

    cells = carom.Grid(elements=[2, 1], velocity=[-1.0, -2.0])
    data = carom.sweep(bar, cells, METHOD, t1=0.1, h=0.01, static=("elements",))
    assert data.final_q.shape == (2, 2, 3)
    assert np.isnan(data.final_q.sel(elements=1).values[:, 2]).all()
    assert np.allclose(data.final_q.sel(elements=2, velocity=-2.0), 0.5 - 0.2)


@pytest.mark.slow
def test_times_and_steps_may_be_arrays_or_functions_of_the_parameters():
    def spring(k):
        system = carom.System(1.0, lambda q, p: 0.5 * p["k"] * q @ q, params={"k": k})
        return system, carom.State([1.0], [0.0])

    cells, method = carom.Grid(k=[1.0, 4.0, 9.0]), carom.ExplicitRK(carom.explicit(4))
    period = lambda k: 2 * jnp.pi / jnp.sqrt(k)
    keep = {
        "final": carom.keep.final(),
        "square": carom.keep.mean(lambda q: q @ q),
        "side": carom.keep.histogram(lambda q: q[0], [-2.0, 0.0, 2.0]),
    }
    data = carom.sweep(spring, cells, method, t1=period, h=lambda k: period(k) / 100, keep=keep)
    assert np.allclose(data.final_q, 1.0, atol=1e-6)
    assert np.allclose(data.square, 0.5, atol=1e-6)
    assert np.allclose(data.side, 0.5, atol=0.011)
    assert data.steps.values.tolist() == [100] * 3
    ends = 2 * np.pi / np.sqrt(cells.values["k"])
    again = carom.sweep(spring, cells, method, t1=ends, h=ends / 100, keep=keep)
    assert np.allclose(again.final_q, data.final_q, atol=1e-12)
    with pytest.raises(ValueError, match=r"t1 must be a number, a function .* or an array of shape \(3,\)"):
        carom.sweep(spring, cells, method, t1=ends[:2], h=0.01)
    refused = carom.sweep(spring, cells, method, t1=lambda k: 2.0 - k, h=0.01, batch=1)
    assert refused.status.values.tolist() == [0, -1, -1]
    assert refused.end_time.values.tolist() == [1.0, -2.0, -7.0]


@pytest.mark.slow
def test_the_core_of_a_sweep_imports_without_xarray_and_without_scipy():
    code = "import sys; sys.modules['xarray'] = None; import carom.sweeps.sweep; assert 'scipy' not in sys.modules"
    code += "; import carom.sweeps.tools"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


DEVICES = """
import jax, numpy as np, carom
from tests.sweeps.test_sweep import METHOD, build
assert len(jax.devices()) == 4
cells = carom.Cases(frequency=np.linspace(2.4, 3.0, 11), restitution=0.8)
data = carom.sweep(build, cells, METHOD, t1=2.0, h=0.02, batch=2)
single = carom.simulate(*build(cells.values["frequency"][6], 0.8), METHOD, t1=2.0, h=0.02, keep=[carom.keep.final()])
assert (data.status == 0).all()
assert np.array_equal(data.final_q[6], single.kept["final 0"].q)
"""


@pytest.mark.slow
def test_batches_go_to_all_devices():
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert subprocess.run([sys.executable, "-c", DEVICES], env=flags, check=False).returncode == 0


def spring(k):
    system = carom.System(1.0, None, {"f": lambda t, q, v, p: -p["k"] * q}, params={"k": k})
    return system, carom.State([1.0], [0.0])


def told(k, keep, **options):
    options = {"t1": 3.0, "h": 0.1} | options
    data = carom.sweep(spring, carom.Grid(k=k), carom.ExplicitRK(carom.explicit(4)), keep=keep, **options)
    return data, data.message.values.tolist()


def test_of_cells_whose_own_reduction_ends_in_an_error_the_others_remain():
    """One that is refused comes to no reduction at all."""
    total = carom.keep.reduce(0.0, lambda s, t, q, v, h: s + h * q[0], lambda s: 1 // int(s > 0.5))
    data, messages = told([1.0, 0.1, np.nan], [total])
    assert np.array_equal(data["reduce"], [np.nan, 1.0, np.nan], equal_nan=True)
    assert messages[0] == "reduce: finish ended with ZeroDivisionError: integer division or modulo by zero"
    assert messages[1] == ""
    assert data.status.values.tolist() == [-1, 0, -1]


def test_times_and_edges_follow_the_parameters_and_are_judged_in_every_cell():
    def keep(k):
        return [carom.keep.times([0.5 * k, 1.0]), carom.keep.histogram(lambda q: q[0], [-k, 0.0, 2.0])]

    data, messages = told([1.0, 4.0, 8.0, -1.0], keep)
    assert np.array_equal(data.times_t, [[0.5, 1.0], [1.0, 2.0], [np.nan] * 2, [np.nan] * 2], equal_nan=True)
    assert messages[2] == "times 0: times must lie between 0 and 3, got 4"
    assert "edges must be an ascending list of at least two numbers, got [1.0, 0.0, 2.0]" in messages[3]
    assert np.allclose(data.histogram[:2].sum("histogram_0"), 1.0)
    data, messages = told([1.0, 2.0], [carom.keep.times([2.5])], t1=lambda k: 3.0 / k)
    assert messages == ["", "times 0: times must lie between 0 and 1.5, got 2.5"]


def test_a_section_that_is_nan_is_named_in_its_cell():
    data, messages = told([0.1, 2.0], [carom.keep.section(lambda q: jnp.log(q[0] + 0.5), last=2)])
    assert data.status.values.tolist() == [0, carom.Status.NOT_FINITE]
    assert messages[1] == "section 0 is NaN at t = 1.4875: the run ends there"


def test_cells_that_can_run_are_found_wherever_they_lie():
    cells = carom.Grid(height=np.linspace(1.0, 2.0, 20), restitution=[1.5, 0.5])
    asked = question(carom.models.bouncing_ball, METHOD, 1.0, 0.01, None, None, None, ())
    assert plan(cells, asked, None, None, 1).refused == {}
    asked = question(carom.models.bouncing_ball, None, [[1.0, 9.0]] * 20, None, None, 1e-6, None, ())
    made = plan(cells, asked, (1e-6, 1e-9), None, 1)
    assert np.isnan(made.asked.stepping.h_max)  # a hundredth of the run of each cell
    assert isinstance(made.asked.method, carom.EventCapturing)


def test_a_million_cells_are_set_up_without_a_list():
    cells = carom.Grid(frequency=np.linspace(2.4, 3.2, 1000), restitution=np.linspace(0.1, 0.9, 1000))
    assert cells.count == 10**6
    assert cells.at(999_001) == {"frequency": 3.2, "restitution": pytest.approx(0.1 + 0.8 / 999)}


@pytest.mark.slow
def test_a_tolerance_in_place_of_a_method_chooses_as_solve_does():
    def spring(k):
        return carom.System(1.0, lambda q, p: 0.5 * p["k"] * q @ q, params={"k": k}), carom.State([1.0], [0.0])

    data = carom.sweep(spring, carom.Grid(k=[1.0, 4.0]), t1=3.0, rtol=1e-8, atol=1e-10)
    assert np.allclose(data.final_q[:, 0], np.cos([3.0, 6.0]), atol=1e-6)
    assert data.attrs["method"] == "carom.ExplicitRK(carom.tableaux.explicit(5))"


def closes_over(frequency, restitution):
    drive = lambda t, q, v: jnp.cos(frequency * t)[None]  # noqa: ARG005
    return carom.System(1.0, forces={"drive": drive}), carom.State([1.0], [restitution])


def shaped(frequency, restitution):
    return carom.models.elastic_bar(int(frequency)), restitution


def chosen(frequency, restitution):
    return build(frequency, 0.5 if restitution > 0.5 else 0.8)


def long(frequency, restitution):
    return carom.System(jnp.ones(frequency)), restitution


def counted(frequency, restitution):
    return carom.System([1.0 for _ in range(frequency)]), restitution


def listed(frequency, restitution):
    return carom.System([1.0] * frequency), restitution


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"build": closes_over}, TypeError, "reads 'frequency', a parameter of the sweep, from around it"),
        ({"build": shaped}, TypeError, r"name those parameters in static=\(...\)"),
        ({"build": chosen}, TypeError, r"name those parameters in static=\(...\)"),
        ({"build": long}, TypeError, r"name those parameters in static=\(...\) \(Shapes must be"),
        ({"build": listed}, TypeError, r"name those parameters in static=\(...\)"),
        (
            {"build": counted, "cells": carom.Grid(frequency=[2, 3], restitution=[0.8])},
            TypeError,
            r"name those parameters in static=\(...\)",
        ),
        ({"build": lambda frequency, restitution: frequency}, TypeError, r"build must return \(system, state\)"),  # noqa: ARG005
        ({"build": 3.0}, TypeError, "build must be a function of the parameters"),
        (
            {"cells": carom.Grid(frequncy=[2.5])},
            ValueError,
            "no parameter 'frequncy'; it has .* did you mean 'frequency'",
        ),
        ({"cells": carom.Grid(frequency=[2.5])}, ValueError, "build needs 'restitution'"),
        ({"cells": [1.0, 2.0]}, TypeError, "carom.Grid, carom.Cases or carom.Random"),
        ({"h": None}, ValueError, "give one of h="),
        ({"method": None}, ValueError, "give a method with h="),
        ({"static": ("frequncy",)}, ValueError, "no parameter 'frequncy'; did you mean 'frequency'"),
        ({"keep": [carom.keep.strobe(1.0)]}, ValueError, "say how many to keep, last="),
        ({"keep": [carom.keep.columns("q")]}, ValueError, "a sweep keeps no rows"),
        ({"keep": ["final"]}, TypeError, r"keep\[0\] must be a keep such as carom.keep.final\(\)"),
        ({"keep": lambda omega: []}, TypeError, "a function of the parameters frequency, restitution"),  # noqa: ARG005
        (
            {"keep": {"restitution": carom.keep.count("closes")}},
            ValueError,
            "give the keep another name",
        ),
        ({"keep": {"steps": carom.keep.count("closes")}}, ValueError, "there is another result 'steps'"),
        (
            {"keep": {"x": carom.keep.final(), "x_q": carom.keep.count("closes")}},
            ValueError,
            "there is another result 'x_q'",
        ),
        ({"keep": {"../x": carom.keep.count("closes")}}, ValueError, "a name must hold no '/'"),
        ({"batch": 0}, ValueError, "batch must be a whole number of at least 1"),
        (
            {"cells": carom.Grid(frequency=np.linspace(2.0, 3.0, 10**6), restitution=np.linspace(0.0, 1.0, 10**5))},
            ValueError,
            "100000000000 cells take at least .* GB of memory, .*: sweep parts of them",
        ),
        ({"cells": carom.Grid(frequency=[2.5], restitution=[1.5])}, ValueError, r"restitution must lie in \[0, 1\]"),
        ({"method": carom.StormerVerlet()}, ValueError, "StormerVerlet does not handle 'contacts'"),
    ],
)
def test_mistakes_are_told_in_one_sentence(change, error, told):
    cells = carom.Grid(frequency=[2.5, 2.6], restitution=[0.8])
    arguments = {"build": build, "cells": cells, "method": METHOD, "t1": 1.0, "h": 0.02} | change
    made, cells, method = (arguments.pop(name) for name in ("build", "cells", "method"))
    with pytest.raises(error, match=told):
        carom.sweep(made, cells, method, **arguments)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: carom.Grid(), "Grid needs at least one parameter"),
        (lambda: carom.Grid(a=[]), "Grid: a must be a list of at least one number"),
        (lambda: carom.Grid(a=[1.0], b=[[1.0], [2.0, 3.0]]), "Grid: b must be a list"),
        (lambda: carom.Cases(a=[1.0, 2.0], b=[1.0]), "all parameters need as many values, got a 2, b 1"),
        (lambda: carom.Random(5, a=(2.0, 1.0)), r"Random: a must be a pair \(low, high\)"),
        (lambda: carom.Random(0, a=(1.0, 2.0)), "Random: count must be a whole number"),
        (lambda: carom.Random(3, a=lambda draw, n: np.ones(n + 1)), "a must return as many numbers .*, 3, got 4"),
    ],
)
def test_cells_that_make_no_sense_are_refused(make, told):
    with pytest.raises(ValueError, match=told):
        make()
