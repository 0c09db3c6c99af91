"""carom in an editor: names that complete, types that know them, reprs that can be typed back."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import carom
from carom.files.text import record
from carom.solution import Column

EXAMPLE = Path(__file__).parents[2] / "examples" / "09_shaken_block.py"
PUBLIC = [name for name in carom.__all__ if not name.startswith("__")]
OF_SOLUTIONS = [name for name, value in vars(carom.Solution).items() if isinstance(value, Column | property)]


def problems(folder: Path) -> dict[str, set[int]]:
    """Lines of the files of a folder that basedpyright's strict mode objects to."""
    settings = {"typeCheckingMode": "strict", "reportUnusedExpression": False, "include": ["."]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    found: dict[str, set[int]] = {}
    for one in told["generalDiagnostics"]:
        found.setdefault(Path(one["file"]).name, set()).add(one["range"]["start"]["line"])
    return found


@pytest.mark.slow
def test_type_checkers_know_every_public_name_and_no_other(tmp_path):
    (tmp_path / "user.py").write_text(EXAMPLE.read_text())
    misspelt = [f"carom.{name}x" for name in PUBLIC] + [f"sol.{name}x" for name in OF_SOLUTIONS]
    head = ["import carom", "def look(sol: carom.Solution) -> None:"]
    (tmp_path / "misspelt.py").write_text("\n".join([*head, *(f"    {line}" for line in misspelt)]))
    found = problems(tmp_path)
    assert "user.py" not in found
    assert found["misspelt.py"] == set(range(2, 2 + len(misspelt)))


def test_completion_offers_what_there_is_and_nothing_else():
    assert dir(carom) == sorted(carom.__all__)
    assert all(hasattr(carom, name) for name in carom.__all__)
    sol = carom.simulate(*carom.models.bouncing_ball(), carom.MoreauTheta(), t1=0.1, h=0.05)
    assert {"t", "q", "v", "h", "impulse", "mode", "account", "events"} <= set(dir(sol))
    assert "multiplier" not in dir(sol)
    with pytest.raises(AttributeError, match="MoreauTheta records no 'multiplier'"):
        sol.multiplier  # noqa: B018


@pytest.mark.parametrize(
    "written",
    [
        "IRK(gauss(2))",
        "Constant(0.1)",
        "Spark(3)",
        "EventCapturing(explicit(4))",
        "MoreauMidpoint(solver=PSOR())",
        "Theta(theta=0.75)",
        "TailoredIRK()",
        "Adaptive(rtol=1e-08)",
        "Extrapolated(MoreauMidpoint(), max_order=6)",
        "Newton(tol=1e-10)",
        "ExplicitRK(explicit(5))",
    ],
)
def test_the_repr_of_a_record_is_the_call_that_makes_it(written):
    assert repr(record(written)) == written


def test_reprs_are_short():
    system, state = carom.models.bouncing_ball(restitution=0.25)
    assert repr(system).startswith("<System of carom.models.bouncing_ball(height=1.0, velocity=0.0, restitution=0.25")
    own = carom.System(2.0, lambda q: q @ q, {"drag": lambda t, q, v: -v}, contacts=carom.Contacts(lambda q: q))
    assert repr(own) == "<System with potential conservative; forces drag; contacts>"
    assert repr(carom.System()) == "<System with masses only>"
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=0.1, h=0.05)
    assert repr(sol.account).startswith("<Account of 3 rows, worst residual ")
    texts = []
    jax.eval_shape(lambda h: texts.append(repr(carom.Constant(h))), np.float64(0.1))
    assert texts[0].startswith("Constant(")
