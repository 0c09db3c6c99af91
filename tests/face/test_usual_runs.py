"""`carom run MODEL` without options: a run that fits the model, and an alarm where energy comes from nowhere."""

import numpy as np
import pytest

import carom
from carom.cli import runs
from carom.files.scenario import from_options
from carom.models.registry import registry, usual_runs
from carom.reports.curves import contacts
from carom.reports.data import payload

from .test_cli import called

ASSEMBLED = ("bricard", "dominoes", "rolling_disk")  # take seconds to build


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=pytest.mark.slow if m in ASSEMBLED else []) for m in sorted(registry)]
)
def test_every_model_comes_with_a_run_of_moderate_size(model):
    usual = usual_runs[model]
    steps = usual["t1"] / usual["h"]
    assert 100 <= steps <= 30_000
    system, state = registry[model]()
    assert steps / usual.get("save_every", 1) * state.q.size < 2e6
    method = carom.files.text.record(usual["method"])
    assert system.features <= method.handles
    assert method.objection(system) is None


@pytest.mark.parametrize("model", sorted(registry))
def test_every_model_is_a_name_of_carom_models(model):
    assert getattr(carom.models, model) is registry[model]


def test_a_run_of_many_numbers_is_announced_with_what_to_do(tmp_path):
    runs.announce_size(from_options("woodpecker", {}, {}, tmp_path))
    with pytest.warns(UserWarning, match=r"1e\+08 rows of 14 numbers or more, 11 GB .* --save-every 100 keeps fewer"):
        runs.announce_size(from_options("woodpecker", {"t1": 1.0, "h": 1e-8, "save_every": 1}, {}, tmp_path))


def test_options_replace_what_the_model_brings(tmp_path):
    assert from_options("trimer", {}, {}, tmp_path).t1 == usual_runs["trimer"]["t1"]
    plan = from_options("trimer", {"stepping": "Constant(0.5)", "t1": 2.0}, {}, tmp_path)
    assert (float(plan.stepping.h), plan.t1) == (0.5, 2.0)


@pytest.fixture(scope="module")
def oscillations():
    spring = carom.System(1.0, lambda q: 0.5 * 100.0 * q @ q, {"drag": lambda t, q, v: -0.01 * v}, labels=("a",))
    runs = [
        carom.simulate(spring, carom.State([1.0], [0.0]), carom.ExplicitRK(carom.explicit(2)), t1=2.0, h=h)
        for h in (0.002, 0.2)
    ]
    return spring, *runs


def test_energy_from_nowhere_is_an_alarm_and_work_of_forces_is_not(oscillations):
    spring, good, bad = oscillations
    assert carom.measures.created_energy(good) < 1e-3
    assert carom.measures.created_energy(bad) > 1.0
    runs.refuse_created_energy(good)
    with pytest.raises(carom.SimulationError, match="do not trust this run: the energy rose from 50"):
        runs.refuse_created_energy(bad)


def test_a_stored_run_of_own_functions_gets_its_account_from_the_system(oscillations, tmp_path):
    spring, good, _ = oscillations
    good.save(tmp_path / "run.nc")
    stored = carom.load(tmp_path / "run.nc")
    with pytest.raises(AttributeError, match=r"use carom.load\(path, system=system\)"):
        stored.account  # noqa: B018
    assert carom.load(tmp_path / "run.nc", system=spring).account.worst == good.account.worst
    assert "unknown: the system is made of user functions" in str(payload(stored, 10)["evidence"])
    page = carom.report(stored, tmp_path / "my_spring.html", system=spring)
    assert "energies" in page.read_text()
    assert "<title>my spring</title>" in page.read_text()
    assert len(carom.plots.overview(stored, system=spring).axes) == 3


def test_a_run_is_not_written_under_another_ending_nor_reported_by_its_path(oscillations, tmp_path):
    with pytest.raises(ValueError, match="name it .nc"):
        oscillations[1].save(tmp_path / "run.csv")
    with pytest.raises(TypeError, match="carom.load"):
        carom.report("run.nc", tmp_path / "run.html")


class Bounces:
    """A made-up run of a block over a rough floor: open, hits in a tiny step, slides back, sticks."""

    system = carom.System(1.0, contacts=carom.Contacts(lambda q: q[1:], slip=lambda q: q[:1], friction=0.3))
    labels, units = (), ()
    columns = {
        "t": np.array([0.0, 0.5, 0.500001, 1.0, 1.5]),
        "h": np.array([0.0, 0.5, 1e-6, 0.499999, 0.5]),
        "q": np.zeros((5, 2)),
        "v": np.zeros((5, 2)),
        "impulse": np.array([[0, 0], [0, 0], [2.0, 0.6], [5.0, 1.5], [5.0, 0.1]]),
        "mode": np.array([[0, 0], [1, 1], [0, -1], [0, -1], [0, 0]]),
        "event": np.array([[0, 0], [0, 0], [1, 0], [0, 0], [0, 3]]),
    }


def test_an_impact_does_not_hide_the_forces_and_modes_are_named_by_contact():
    forces, impacts, modes = contacts(Bounces())
    values = np.concatenate([s["y"] for s in forces["series"]])
    assert np.abs(values).max() < 11.0
    assert [s["name"] for s in impacts["series"]] == ["contact 0", "friction 0"]
    assert modes["names"] == ["contact 0", "friction 0"]
    told = [[modes["words"][str(code)] for _, _, code in strip] for strip in modes["strips"]]
    assert told == [["open", "closed"], ["open", "slips −", "sticks"]]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("run", "newton_cradle"), "newtons_cradle"),
        (("run", "trimer", "--set", "dampin=1"), "damping"),
        (("run", "trimer", "--method", "TailoredTeta()"), "TailoredTheta"),
        (("paper", "james2002"), "james2020"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_one_meant(monkeypatch, capsys, tmp_path, arguments, meant):
    monkeypatch.chdir(tmp_path)
    code, _, err = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert f"did you mean '{meant}'?" in err


def test_the_method_meant_is_told_before_all_that_there_are(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    _, _, err = called(monkeypatch, capsys, "run", "trimer", "--method", "TailoredTeta()")
    assert err.index("did you mean 'TailoredTheta'?") < err.index("Allowed are")
