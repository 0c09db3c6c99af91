"""Suite-wide set-up: count compiled programs and print them with the slowest tests."""

import pytest

from carom.running import loop

_compiled: dict[str, int] = {}


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
