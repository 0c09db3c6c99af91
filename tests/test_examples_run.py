"""Every example runs, in a reduced mode."""

import importlib.util
import inspect
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
REDUCED = {"t1": lambda usual: min(usual, 20.0), "finest": lambda usual: 16 * usual}


SLOW = (
    "02_order_study",
    "04_woodpecker",
    "05_two_rates",
    "06_squeezer",
    "07_other_constraints",
    "08_event_capturing",
    "09_shaken_block",
    "10_mechanism",
    "11_gradients",
    "12_identify_a_bouncing_ball",
    "13_identify_the_woodpecker",
    "14_granular_protector",
    "15_branch_of_a_shaken_ball",
    "16_beads_in_free_flight",
    "17_pulse_in_a_crystal",
)


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in EXAMPLES]
)
def test_the_example_runs_and_returns_its_result(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parameters = inspect.signature(module.main).parameters
    result = module.main(**{name: REDUCED[name](p.default) for name, p in parameters.items() if name in REDUCED})
    assert result is not None
