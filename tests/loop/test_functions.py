"""Functions are what they read: programs, stored runs and memory follow it."""

import functools
import gc
import os
import subprocess
import sys
import textwrap
import types
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.files.identity import difference
from carom.running.compiled import compiled
from carom.running.functions import reading

START = carom.State([1.0], [0.0])
stiffness = 1.0
table = np.ones(3)
settings = types.ModuleType("settings_of_a_user")


class Spring:
    factor = 1.0

    def __init__(self, k=1.0):
        self.k = k

    def potential(self, q):
        return 0.5 * self.k * self.size(q)

    def size(self, q):
        return self.factor * q @ q

    def __call__(self, q):
        return self.potential(q)


def doubled(k):
    return 2.0 * k * stiffness


@jax.jit
def stiff_square(q):
    return stiffness * q @ q


def end(system):
    return float(carom.simulate(system, START, carom.StormerVerlet(), t1=1.0, h=0.1).q[-1, 0])


def change_global(monkeypatch):
    monkeypatch.setitem(globals(), "stiffness", 50.0)


class Entry:
    """An entry of the table as an attribute, which monkeypatch sets back."""

    value = property(lambda self: table[1], lambda self, value: table.__setitem__(1, value))


def change_array(monkeypatch):
    monkeypatch.setattr(Entry(), "value", 50.0)


def change_module(monkeypatch):
    monkeypatch.setattr(settings, "k", 50.0)


def change_class(monkeypatch):
    monkeypatch.setattr(Spring, "factor", 50.0)


CHANGED = {
    "a global": (lambda q: 0.5 * stiffness * q @ q, change_global),
    "a global of a function it calls": (lambda q: 0.25 * doubled(1.0) * q @ q, change_global),
    "a global of a compiled function it calls": (
        lambda q: 0.5 * stiff_square(q),
        change_global,
    ),
    "an array": (lambda q: 0.5 * table[1] * q @ q, change_array),
    "an attribute of a module": (lambda q: 0.5 * settings.k * q @ q, change_module),
    "a class attribute of a callable object": (Spring(), change_class),
    "a class attribute of a bound method": (Spring().potential, change_class),
    "what a partial function calls": (functools.partial(lambda c, q: c * doubled(0.5) * q @ q, 0.5), change_global),
}


QUICK = (
    "a global of a compiled function it calls",
    "an array",
    "a class attribute of a bound method",
)


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[] if what in QUICK else pytest.mark.slow) for what in CHANGED]
)
def test_the_next_run_of_a_system_uses_what_was_changed(what, monkeypatch):
    settings.k = 1.0
    potential, change = CHANGED[what]
    system = carom.System(1.0, potential)
    before = end(system)
    with monkeypatch.context() as patch:
        change(patch)
        stiff = end(system)
    assert before == end(carom.System(1.0, lambda q: 0.5 * q @ q))
    assert stiff == end(carom.System(1.0, lambda q: 0.5 * 50.0 * q @ q))
    assert end(system) == before


def test_a_changed_attribute_is_checked_and_accounted_for_too():
    spring = Spring()
    system = carom.System(1.0, spring.potential)
    sol = carom.simulate(system, START, carom.StormerVerlet(), t1=1.0, h=0.1)
    assert sol.account.energy[0] == 0.5
    spring.k = 50.0
    assert carom.simulate(system, START, carom.StormerVerlet(), t1=1.0, h=0.1).account.energy[0] == 25.0
    spring.k = np.nan
    with pytest.raises(ValueError, match="NaN or infinity at the start"):
        end(system)


def made(k):
    return carom.System(1.0, lambda q: 0.5 * k * q @ q)


def test_equal_functions_share_a_program_and_other_numbers_do_not():
    kept = made(3.0)
    sols = [carom.simulate(s, START, carom.StormerVerlet(), t1=1.0, h=0.1) for s in (kept, made(3.0), made(4.0))]
    assert [sol.stats["traces"] for sol in sols][1:] == [0, 1]


OTHERS = {
    "the code of potential differs": (lambda: made(1.0), lambda: carom.System(1.0, lambda q: jnp.sin(q[0]))),
    "potential reads k = 50.0, stored was k = 1.0": (lambda: made(1.0), lambda: made(50.0)),
    "potential reads self.k = 2.0, stored was self.k = 1.0": (
        lambda: carom.System(1.0, Spring().potential),
        lambda: carom.System(1.0, Spring(2.0).potential),
    ),
    "mass is 2.0, stored was 1.0": (lambda: made(1.0), lambda: carom.System(2.0, made(1.0).potential["conservative"])),
    "params\\['k'\\] is 2.0, stored was 1.0": (
        lambda: carom.System(1.0, lambda q, p: p["k"] * q @ q, params={"k": 1.0}),
        lambda: carom.System(1.0, lambda q, p: p["k"] * q @ q, params={"k": 2.0}),
    ),
    "this one has force 'push', the stored one has not": (
        lambda: made(1.0),
        lambda: carom.System(1.0, made(1.0).potential["conservative"], {"push": lambda t, q, v: -v}),
    ),
}


@pytest.mark.parametrize(
    "said",
    [pytest.param(said, marks=[] if "code" in said or "k'" in said else pytest.mark.slow) for said in OTHERS],
)
def test_a_stored_run_refuses_another_system_and_says_what_differs(said, tmp_path):
    path = tmp_path / "run.nc"
    stored, other = (make() for make in OTHERS[said])
    carom.simulate(stored, START, carom.StormerVerlet(), t1=1.0, h=0.1).save(path)
    for use in (lambda: carom.resume(path, system=other, t1=2.0), lambda: carom.load(path, system=other)):
        with pytest.raises(ValueError, match=f"run.nc: the system is not the one that was stored: {said}"):
            use()
    assert carom.resume(path, system=OTHERS[said][0](), t1=2.0).t[-1] == 2.0


def test_sine_is_not_cosine():
    assert difference("f", reading(lambda q: jnp.sin(q)), reading(lambda q: jnp.cos(q))) == "the code of f differs"


def test_functions_of_libraries_are_known_by_their_names():
    assert reading(jnp.sin) == {"": "jax.numpy.sin"}
    assert "jnp" in reading(lambda q: jnp.sin(q))
    assert not any("jnp." in name for name in reading(lambda q: jnp.sin(q)))


def test_a_function_that_calls_itself_and_an_object_that_refers_to_itself_are_read():
    def fall(n):
        return fall(n - 1)

    spring = Spring()
    spring.me = spring
    assert reading(fall)["fall"] == "as itself"
    assert reading(spring.potential)["self.me"] == "as self"


def test_a_compiled_function_refuses_keyword_arguments():
    add = compiled(lambda a, b=1.0: a + b)
    assert float(add(1.0, 5.0)) == 6.0
    with pytest.raises(TypeError, match="keyword"):
        add(1.0, b=5.0)


def test_what_a_function_captured_is_freed_with_it():
    def run():
        captured = np.ones(1_000_000)
        end(carom.System(1.0, lambda q: 0.5 * jnp.asarray(captured)[:1] @ q * q[0]))
        return weakref.ref(captured)

    gone = run()
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_an_object_that_holds_its_own_system_is_freed():
    class Model:
        def __init__(self):
            self.system = carom.System(1.0, self.potential)

        def potential(self, q):
            return q @ q

    model = Model()
    end(model.system)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


FRESH = """
    import ctypes, gc, sys
    import carom

    def used():
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])

    state = carom.State([1.0], [0.0])
    for i in range(int(sys.argv[1])):
        system = carom.System(1.0, eval(f"lambda q: 0.5 * {i + 1.5} * q @ q"))
        carom.simulate(system, state, carom.StormerVerlet(), t1=1.0, h=0.1)
        del system
        if i == 4:
            before = used()
    print(used() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("count", [9, 105])
def test_fresh_functions_do_not_pile_up_in_memory(count):
    command = [sys.executable, "-c", textwrap.dedent(FRESH), str(count)]
    one_arena = os.environ | {"MALLOC_ARENA_MAX": "1"}  # C's library keeps freed pieces for each thread of the compiler
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=one_arena)
    assert float(out.stdout) < 20e3, "kB for all functions but the first five"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_crowded_process_drops_the_programs_used_longest_ago(monkeypatch):
    """The compiler aborts where a process holds more pieces of memory than Linux allows; a program holds hundreds."""
    monkeypatch.setattr("carom.running.compiled._programs", programs := {})
    ways = [compiled(eval(f"lambda x: x + {i}")) for i in range(25)]
    one = jnp.asarray(1.0)
    assert [float(way(one)) for way in ways] == [1.0 + i for i in range(25)]
    assert len(programs) == 25
    monkeypatch.setattr("carom.running.memory._CROWDED", 0.0)
    more = [compiled(eval(f"lambda x: x - {i}")) for i in range(9)]
    assert [float(way(one)) for way in more] == [1.0 - i for i in range(9)]
    assert 9 <= len(programs) < 25
    assert [float(way(one)) for way in ways] == [1.0 + i for i in range(25)]


def test_a_compiled_function_inside_another_is_the_function_itself():
    square = compiled(lambda x: x * x)
    assert jax.jit(lambda x: 2.0 * square(x))(jnp.asarray(3.0)) == 18.0
    assert jax.grad(square)(jnp.asarray(3.0)) == 6.0


def test_a_compiler_that_does_not_know_the_options_compiles_without_them(monkeypatch):
    monkeypatch.setattr("carom.running.compiled._OPTIONS", {"xla_cpu_no_such_option": False})
    assert compiled(lambda x: x + 1.0)(jnp.asarray(3.0)) == 4.0
