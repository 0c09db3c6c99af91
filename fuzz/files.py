"""Families of files: scenarios with mistakes, damaged and interrupted runs; and batches."""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import carom
import carom.scenario
from fuzz.motion import Motion, Numbers, Way, adaptive, constant
from fuzz.motions import MOTIONS
from fuzz.verdicts import CRASH, FINDINGS, REFUSED, RIGHT, WRONG, Verdict, of_error

SCENARIOS = Path(__file__).parents[1] / "examples" / "scenarios"
_VALUES = [
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    '"x"',
    "[]",
    "[[1]]",
    "{}",
    "true",
    "9" * 400,
    "1979-05-27",
    "''",
    "1e-320",
]
_VALUES += [
    f'"{"-" * 3000}1"',
    f'"{".".join("a" * 3000)}"',
    '"IRK()"',
    '"Adaptive()"',
    '"../../x"',
    "1000000000",
    "9" * 5000,
]
_DAMAGE = ("bits", "truncated", "number", "attribute", "no variable", "no attribute")


class Family:
    """A family whose case is told by its numbers alone."""

    name = ""

    def program(self, n: Numbers) -> str:
        """Hardly anything is compiled."""
        del n
        return self.name


class Scenario(Family):
    """A scenario file with mistakes: a plan, or one line with the file and the line."""

    name = "scenario"

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """An example with one to three changes."""
        path = sorted(SCENARIOS.glob("*.toml"))[rng.integers(8)]
        text = path.read_text()
        for _ in range(rng.integers(1, 4)):
            text = mutated(text, rng)
        return {"text": text}

    def run(self, n: Numbers) -> Verdict:
        """Read it; nothing is run."""
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "case.toml"
            path.write_bytes(n["text"].encode("utf-8", "surrogateescape"))
            try:
                carom.scenario.read(path, folder)
            except Exception as error:
                found = of_error(error, due=True)
                placed = re.match(rf"{re.escape(str(path))}:\d+: ", str(error))
                if found.kind == REFUSED and not (placed and "\n" not in str(error)):
                    return Verdict(CRASH, f"no file and line, or several lines: {found.detail}")
                return found
        return Verdict(RIGHT)

    def script(self, n: Numbers) -> str:
        """The file and the call."""
        head = "from pathlib import Path\n\nimport carom.scenario\n\n"
        return f"{head}Path('case.toml').write_text({n['text']!r})\ncarom.scenario.read('case.toml')"


def mutated(text: str, rng: np.random.Generator) -> str:
    """One change: a character, a line, a value, a key."""
    lines = text.splitlines()
    kind = rng.integers(7)
    i = int(rng.integers(max(len(lines), 1)))
    if kind == 0 and text:
        at = int(rng.integers(len(text)))
        return text[:at] + chr(int(rng.integers(1, 0x250))) + text[at + 1 :]
    if kind == 1:
        return "\n".join(lines[:i] + lines[i + 1 :])
    if kind == 2:
        return "\n".join(lines + lines[i : i + 1])
    given = [k for k, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    if not given:
        return text
    i = given[rng.integers(len(given))]
    key, _, value = lines[i].partition("=")
    if kind == 3:
        lines[i] = f"{key[:-2] or 'x'} = {value}"
    elif kind == 4:
        number = re.search(r"[0-9.]+", value)
        lines[i] = f"{key}= {value.replace(number[0], f'{number[0]}e{rng.integers(-30, 30)}', 1) if number else 1}"
    else:
        lines[i] = f"{key}= {_VALUES[rng.integers(len(_VALUES))]}"
    return "\n".join(lines)


class Damage(Family):
    """A stored run that was damaged: refused in one sentence, or the same numbers."""

    name = "damaged file"

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "good.nc"
        self.rows: Any = None
        self.ahead: Any = None

    def good(self) -> Path:
        """The file that is damaged, and what it holds."""
        if self.rows is None:
            ball, state = carom.models.falling_mass()
            carom.simulate(ball, state, carom.MoreauMidpoint(), t1=0.3, h=0.01).save(self.path)
            self.rows, self.ahead = carom.load(self.path).columns, carom.resume(self.path, t1=0.4).columns
        return self.path

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """Where and how."""
        kind = str(rng.choice(_DAMAGE, p=[0.4, 0.1, 0.2, 0.1, 0.1, 0.1]))
        return {"damage": kind, "at": rng.random(int(rng.integers(1, 31)) if kind == "bits" else 3).tolist()}

    def run(self, n: Numbers) -> Verdict:
        """Damage a copy, load it and resume it."""
        path = Path(self.folder.name) / "case.nc"
        shutil.copy(self.good(), path)
        damage(path, n["damage"], n["at"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loaded = carom.load(path).columns
                ahead = carom.resume(path, t1=0.4).columns
            except Exception as error:
                return of_error(error, due=True)
        for name, one, other in (("load", loaded, self.rows), ("resume", ahead, self.ahead)):
            if bad := different(one, other):
                return Verdict(WRONG, f"{name} gives other numbers, of {bad}")
        return Verdict(RIGHT)

    def script(self, n: Numbers) -> str:
        """The damage in words; the function is `fuzz.files.damage`."""
        return f"""\
from pathlib import Path

import carom
from fuzz.files import damage

ball, state = carom.models.falling_mass()
carom.simulate(ball, state, carom.MoreauMidpoint(), t1=0.3, h=0.01).save("case.nc")
damage(Path("case.nc"), {n["damage"]!r}, {n["at"]!r})
carom.load("case.nc")
carom.resume("case.nc", t1=0.4)"""


def different(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> str | None:
    """The first column that differs."""
    if set(one) != set(other):
        return ", ".join(sorted(set(one) ^ set(other)))
    return next((k for k, x in one.items() if not np.array_equal(x, other[k], equal_nan=True)), None)


def damage(path: Path, kind: str, at: list[float]) -> None:
    """Flip bits, cut off, change one number or text, or take one away; `at` are fractions that say where."""
    raw = bytearray(path.read_bytes())
    if kind in ("bits", "truncated"):
        for x in at if kind == "bits" else ():
            raw[int(x * len(raw))] ^= 1 << int(x * len(raw) * 8) % 8
        path.write_bytes(raw if kind == "bits" else raw[: int(at[0] * len(raw))])
        return
    with h5py.File(path, "r+") as file:
        if kind.endswith("variable"):
            del file[pick(sorted(k for k in file if k not in ("q_0",)), at[0])]
        elif kind == "no attribute":
            del file.attrs[pick(sorted(k for k in file.attrs if not k.startswith("_")), at[0])]
        elif kind == "attribute":
            name = pick(["method", "stepping", "model", "stats", "ends", "fingerprint"], at[0])
            text = str(file.attrs[name])
            where = int(at[1] * len(text))
            file.attrs[name] = text[:where] + chr(33 + int(at[2] * 90)) + text[where + 1 :]
        else:
            data = file[pick(sorted(k for k in file if file[k].size and file[k].dtype.kind in "fi"), at[0])]
            values = np.array(data)
            values.reshape(-1)[int(at[1] * values.size)] += 1 + int(9 * at[2])
            data[...] = values


def pick(names: list[str], x: float) -> str:
    """The name at a fraction of a list."""
    return names[int(x * len(names))]


_LANES = (
    ("driven", constant("IRK(carom.gauss(2))", 4)),
    ("driven", adaptive("IRK(carom.radau_iia(3))")),
    ("spring", constant("StormerVerlet()", 2)),
    ("hitting", constant("MoreauMidpoint()")),
)
_RESUMED = (
    ("spring", constant("StormerVerlet()", 2)),
    ("hitting", constant("MoreauMidpoint()")),
    ("dry friction", constant("MoreauMidpoint()")),
)


def plain(motion: Motion, way: Way, rng: np.random.Generator) -> Numbers:
    """A case of a motion with this way and without more."""
    n = motion.numbers(rng) | {"method": way.method, "stepping": way.stepping, "order": way.order}
    n |= {"save_at": None, "save_every": 1, "stop": False, "low": -1e9}
    n["h"] = float(rng.uniform(5e-4, 5e-3) if way.order == 1 else rng.uniform(0.01, 0.1)) / n["rate"]
    return n


class Batch(Family):
    """Three lanes at once, each held against its own truth."""

    name = "batch"

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """Three cases of one motion."""
        family, way = _LANES[rng.integers(len(_LANES))]
        lanes = [plain(MOTIONS[family], way, rng) for _ in range(3)]
        for lane in lanes[1:]:
            lane |= {"rtol": lanes[0]["rtol"], "atol": lanes[0]["atol"]}
        return {"family": family, "lanes": lanes}

    def program(self, n: Numbers) -> str:
        """As of the motion."""
        return f"batch {MOTIONS[n['family']].program(n['lanes'][0])}"

    def call(self, n: Numbers) -> str:
        """The call as text."""
        lanes, first = n["lanes"], n["lanes"][0]
        steps = f"h={[x['h'] for x in lanes]!r}"
        if first["stepping"] == "adaptive":
            steps = f"stepping=carom.Adaptive({first['rtol']!r}, {first['atol']!r})"
        ends = [x["t0"] + x["span"] for x in lanes]
        return f"carom.simulate_batch(systems, states, {first['method']}, t1={ends!r}, {steps})"

    def run(self, n: Numbers) -> Verdict:
        """Run all lanes; the worst verdict counts."""
        motion = MOTIONS[n["family"]]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                systems, states = (list(x) for x in zip(*(motion.build(lane) for lane in n["lanes"])))
                found = eval(self.call(n), {"carom": carom, "systems": systems, "states": states})
            except Exception as error:
                return of_error(error, due=False)
        said = [str(w.message) for w in caught if w.category is not DeprecationWarning]
        verdicts = [motion.judged(lane, sol, said) for lane, sol in zip(n["lanes"], found)]
        return max(verdicts, key=lambda v: v.kind in FINDINGS)

    def script(self, n: Numbers) -> str:
        """The script of the first lane, with the batch in place of its run."""
        motion = MOTIONS[n["family"]]
        head = motion.script(n["lanes"][0]).rpartition("\nsystem, state = ")[0]
        keys = ("method", "stepping", "order", "rate")
        lanes = [{k: v for k, v in lane.items() if k not in keys} for lane in n["lanes"]]
        build = f"systems, states = (list(x) for x in zip(*({motion.build.__name__}(n) for n in {lanes!r})))"
        return f"{head}\n{build}\nsols = {self.call(n)}\nprint([sol.q[-1] for sol in sols])"


class Resumed(Family):
    """A run interrupted after its first chunk, stored and resumed: equal, bit for bit, to one that was not."""

    name = "resumed"

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """A run of more steps than the first chunk has."""
        family, way = _RESUMED[rng.integers(len(_RESUMED))]
        n = plain(MOTIONS[family], way, rng)
        return n | {"family": family, "h": n["span"] / float(rng.uniform(700, 3000)), "t0": 0.0}

    def program(self, n: Numbers) -> str:
        """As of the motion."""
        return MOTIONS[n["family"]].program(n)

    def run(self, n: Numbers) -> Verdict:
        """Interrupt, store, resume and compare."""
        system, state = MOTIONS[n["family"]].build(n)
        options = {"t1": n["span"], "h": n["h"], "save_every": n["save_every"]}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                whole = carom.simulate(system, state, eval(n["method"], {"carom": carom}), **options)
                part = interrupted(system, state, eval(n["method"], {"carom": carom}), options)
                part.save(Path(folder) / "run.nc")
                again = carom.resume(Path(folder) / "run.nc", system=system)
            except Exception as error:
                return of_error(error, due=False)
        if len(part) == len(whole):
            return Verdict(WRONG, "nothing was interrupted")
        bad = different(whole.columns, again.columns)
        return Verdict(WRONG, f"resumed after {len(part)} of {len(whole)} rows: other {bad}") if bad else Verdict(RIGHT)

    def script(self, n: Numbers) -> str:
        """The run, the interruption and the comparison."""
        motion = MOTIONS[n["family"]]
        head = motion.script(n).rpartition("\nsol = ")[0]
        call = f"carom.simulate(system, state, {n['method']}, t1={n['span']!r}, h={n['h']!r}"
        return f"""{head}


def stop(run):
    raise KeyboardInterrupt


whole = {call})
try:
    {call}, callback=stop)
except carom.Interrupted as stopped:
    stopped.solution.save("run.nc")
again = carom.resume("run.nc", system=system)
print(np.array_equal(whole.q, again.q))  # right: True"""


def interrupted(system: Any, state: Any, method: Any, options: dict[str, Any]) -> Any:
    """What a run had reached when it was interrupted after its first chunk."""

    def stop(run):
        raise KeyboardInterrupt

    try:
        return carom.simulate(system, state, method, callback=stop, **options)
    except carom.Interrupted as stopped:
        return stopped.solution
