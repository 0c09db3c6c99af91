"""Suite-wide set-up: compile in a hurry, count compiled programs and print them with the slowest tests."""

import gc
import os
import signal

import jax
import jaxlib
import pytest

# Nearly all of the suite's time is compilation. One program of event capturing takes 15.3 s of CPU time as shipped,
# 10.9 s without the newer emitters of XLA, less with LLVM at its first level. (Level 0 would take another quarter off,
# but copies of one number then round differently within one kernel: the derivative of `jnp.maximum` asks which argument
# equals the larger one, finds none and is 0, and a ball leaves its bowl.) Collecting garbage is a tenth of the tracing.
# `XLA_FLAGS= pytest` runs programs as users get them, and so does `make slow`. XLA aborts on a flag that it does not
# know, hence the version.
_HURRY = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"
if jaxlib.__version__.startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", _HURRY)
gc.set_threshold(100_000, 20, 20)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored

from carom.running import loop, memory  # noqa: E402

_compiled: dict[str, int] = {}

# The files that take longest come first, so that no worker is left alone with one of them at the end.
LONGEST = (
    "test_every_pair",
    "test_orbits",
    "test_documentation",
    "test_story",
    "test_loop",
    "test_keeps",
    "test_conservation",
    "test_orders",
    "test_searches",
    "test_functions",
    "test_many_bodies",
    "test_mechanisms",
    "test_contact_problems",
    "test_composed",
    "test_against_references",
    "test_solvers",
    "test_against_reference",
    "test_storage",
    "test_solve",
    "test_redundant_constraints",
    "test_backward",
    "test_derivatives",
    "test_system",
    "test_friction",
    "test_structure",
    "test_problem_of_a_step",
    "test_cli",
)


def pytest_collection_modifyitems(items):
    rank = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(autouse=True)
def _drop_programs_of_tests_that_crowd_the_process(request):
    """As carom does with its own: the compiler aborts where there are too many."""
    yield
    if request.node.get_closest_marker("slow") and memory.is_crowded():
        jax.clear_caches()
        gc.collect()


def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _compiled["this process"] = loop.traces
    else:
        output["traces"] = loop.traces


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    _compiled[node.gateway.id] = getattr(node, "workeroutput", {}).get("traces", 0)


def pytest_terminal_summary(terminalreporter):
    counts = ", ".join(f"{name}: {count}" for name, count in _compiled.items() if count)
    terminalreporter.write_line(f"compiled loops: {sum(_compiled.values())} ({counts})")
