"""Families of short pieces of code: wrong arguments, clocks that stand still, other systems, changed objects.

A case is the code itself, run after the same prelude that a user reads in the printed script.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.verdicts import RIGHT, WARNED, WRONG, Verdict, of_error

Numbers = dict[str, Any]
PRELUDE = """\
import jax.numpy as jnp
import numpy as np

import carom


def V(q, p):
    return 0.5 * p["k"] * q @ q


def weight(q):
    return 9.81 * q[0]


def floor(q):
    return q[:1]


osc = carom.System(mass=1.0, potential=V, params={"k": 1.0})
ball = carom.System(mass=1.0, potential=weight, contacts=carom.Contacts(floor, restitution=0.5))
S = carom.State(q=[1.0], v=[0.0])
nan, inf = float("nan"), float("inf")


class Spring:
    def __init__(self, k):
        self.k = k

    def V(self, q):
        return 0.5 * self.k * q @ q


def swing(k):
    return carom.System(mass=1.0, potential=lambda q: k * jnp.cos(q[0]))
"""
_WRONG = {
    "t1": ["None", "[1.0]", "np.array([1.0, 2.0, 3.0])", "1j", "10**400", "'x'", "nan", "inf", "-inf", "{}"],
    "h": ["0.0", "-0.1", "nan", "inf", "'x'", "1j", "[0.1]", "None"],
    "save_every": ["0", "-1", "2.5", "'x'", "10**30", "[1]", "nan"],
    "save_at": ["[]", "'x'", "[1j]", "[nan]", "[2.0]", "[-0.5]", "[None]", "{}"],
    "stop": [
        "1.0",
        "lambda q: q[0]",
        "lambda t, q, v: None",
        "lambda t, q, v: [q, v]",
        "'x'",
        "lambda t, q, v: q['a']",
    ],
    "state": [
        "None",
        "[1.0]",
        "osc",
        "carom.State",
        "carom.State(q=None, v=[0.0])",
        "carom.State(q='a', v=[0.0])",
        "carom.State(q=[1j], v=[0.0])",
        "carom.State(q=[1.0], v=[0.0], t=[0.0])",
        "carom.State(q=[1.0], v=[0.0], t='x')",
        "carom.State(q=[], v=[])",
        "carom.State(q=[1.0, 2.0], v=[0.0])",
        "carom.State(q=[nan], v=[0.0])",
        "carom.State(q=[1.0], v=[inf])",
        "carom.State(q=[1.0], v=[0.0], t=nan)",
        "carom.State(q=[[1.0]], v=[0.0])",
        "carom.State(q={}, v=[0.0])",
    ],
    "method": [
        "None",
        "'IRK'",
        "carom.IRK",
        "carom.gauss(2)",
        "carom.IRK(2)",
        "carom.IRK('gauss')",
        "carom.IRK(carom.gauss(0))",
        "carom.IRK(carom.gauss(2.5))",
        "carom.ExplicitRK(carom.gauss(2))",
        "carom.Spark(0)",
        "carom.Spark(2.5)",
        "carom.Spark('3')",
        "carom.MoreauMidpoint(solver=0)",
        "carom.MoreauMidpoint(solver='PSOR')",
        "carom.Extrapolated(True)",
        "carom.Extrapolated(carom.MoreauMidpoint(), max_order=2.5)",
        "carom.Extrapolated(carom.MoreauMidpoint(), atol=None)",
        "carom.TailoredIRK([1.0])",
        "carom.Composed(carom.IRK(carom.gauss(2)))",
        "carom.EventCapturing(3)",
        "carom.Theta(theta='x')",
    ],
    "stepping": [
        "0.1",
        "'Constant'",
        "carom.Constant",
        "carom.Constant(0)",
        "carom.Constant('x')",
        "carom.Constant(1j)",
        "carom.Adaptive(0)",
        "carom.Adaptive('x')",
        "carom.Adaptive(1e-6, -1)",
        "carom.Adaptive(1e-6, [1e-9, 1e-9])",
        "carom.Adaptive(1e-6, None)",
        "carom.Adaptive(1e-6, 1e-9, h_max=0)",
        "carom.Switching(1e-3, 1e-4)",
        "carom.Switching('a', 'b')",
        "carom.Prescribed([])",
        "carom.Prescribed([-1.0])",
        "carom.Prescribed('x')",
        "carom.Prescribed([nan])",
        "carom.StepHalving(None)",
        "carom.StepHalving(-1.0)",
    ],
    "system": [
        "None",
        "S",
        "carom.System",
        "carom.models.pendulum()",
        "carom.System(mass='2', potential=V, params={'k': 1.0})",
        "carom.System(mass=-1.0, potential=V, params={'k': 1.0})",
        "carom.System(mass=nan, potential=V, params={'k': 1.0})",
        "carom.System(mass=[1.0, 2.0], potential=V, params={'k': 1.0})",
        "carom.System(mass=1j, potential=V, params={'k': 1.0})",
        "carom.System(mass=1.0, potential=V)",
        "carom.System(mass=1.0, potential=V, params={'j': 1.0})",
        "carom.System(mass=1.0, potential=V, params={'k': 'x'})",
        "carom.System(mass=1.0, potential=V, params={'k': 1j})",
        "carom.System(mass=1.0, potential=V, params={'k': [1.0, 2.0]})",
        "carom.System(mass=1.0, potential=V, params={'k': nan})",
        "carom.System(mass=1.0, potential=lambda q: np.sin(q[0]))",
        "carom.System(mass=1.0, potential=lambda q: q[0] if q[0] > 0 else -q[0])",
        "carom.System(mass=1.0, potential=lambda q: float(q[0]))",
        "carom.System(mass=1.0, potential=lambda q: jnp.stack([q[0], q[0]]))",
        "carom.System(mass=1.0, potential=lambda q: None)",
        "carom.System(mass=1.0, potential=lambda q: 'x')",
        "carom.System(mass=1.0, potential=lambda q, v: q[0])",
        "carom.System(mass=1.0, potential='x')",
        "carom.System(mass=1.0, potential=lambda q: q @ jnp.ones(3))",
        "carom.System(mass=1.0, potential=lambda q: 1j * q[0])",
        "carom.System(mass=1.0, potential=lambda q: undefined(q))",
        "carom.System(mass=1.0, forces=lambda t, q, v: -v)",
        "carom.System(mass=1.0, forces={'f': lambda t, q, v: jnp.ones(2)})",
        "carom.System(mass=1.0, forces={'f': lambda t, q, v: None})",
        "carom.System(mass=1.0, forces={'f': lambda t, q, v: np.asarray(q)})",
        "carom.System(mass=1.0, forces={'f': lambda v: -v})",
        "carom.System(mass=1.0, forces={'f': 1.0})",
        "carom.System(mass=lambda q: jnp.ones((2, 2)))",
        "carom.System(mass=lambda q: None)",
        "carom.System(mass=1.0, kinematics=lambda t, q, v: jnp.ones(2))",
        "carom.System(mass=1.0, constraints=lambda q: None)",
        "carom.System(mass=1.0, constraints=lambda q: q[0])",
        "carom.System(mass=1.0, jumps='x')",
        "carom.System(mass=1.0, jumps=[nan])",
        "carom.System(mass=1.0, structure='banded')",
        "carom.System(mass=1.0, contacts=floor)",
        "carom.System(mass=1.0, contacts=carom.Contacts(lambda q: jnp.ones((2, 2))))",
        "carom.System(mass=1.0, contacts=carom.Contacts(lambda q: None))",
        "carom.System(mass=1.0, contacts=carom.Contacts(floor, restitution=1.5))",
        "carom.System(mass=1.0, contacts=carom.Contacts(floor, restitution=[0.1, 0.2]))",
        "carom.System(mass=1.0, contacts=carom.Contacts(floor, friction=0.3))",
        "carom.System(mass=1.0, contacts=carom.Contacts(floor, slip=lambda q: None, friction=0.3))",
        "carom.System(mass=1.0, contacts=carom.Contacts(floor, slip=lambda q: jnp.ones((1, 3)), friction=0.3))",
        "carom.System(mass=1.0, friction=carom.FrictionElements(lambda q, v: v, limit=-1.0))",
        "carom.System(mass=1.0, friction=carom.FrictionElements(lambda q, v: v, limit='x'))",
        "carom.System(mass=1.0, friction=carom.FrictionElements(lambda q, v: v**2, limit=1.0))",
        "carom.System(mass=1.0, friction=carom.FrictionElements(lambda q, v: None, limit=1.0))",
    ],
    "rtol": ["0.0", "-1.0", "'x'", "1.5", "nan", "1e-20", "None", "[1e-6, 1e-6]", "1j"],
    "atol": ["-1.0", "0.0", "'x'", "[1e-9] * 3", "nan", "None"],
}
_USUAL = {"system": "osc", "state": "S", "method": "carom.IRK(carom.gauss(2))", "t1": "1.0", "h": "0.1"}
_OF = {
    "carom.simulate": ("system", "state", "method", "t1", "h", "stepping", "save_every", "save_at", "stop"),
    "carom.solve": ("system", "state", "t1", "rtol", "atol", "save_at", "stop"),
    "carom.simulate_batch": ("system", "state", "method", "t1", "h", "stepping", "save_every"),
}


@dataclass(frozen=True)
class Snippet:
    """A family of pieces of code; `due` says whether an error has to come, `right` what `result` has to be."""

    name: str
    draw: Callable[[np.random.Generator], Numbers]
    due: bool

    def numbers(self, rng: np.random.Generator) -> Numbers:
        """A case: its code, and perhaps the result."""
        return self.draw(rng)

    def program(self, n: Numbers) -> str:
        """Hardly anything is compiled."""
        del n
        return self.name

    def run(self, n: Numbers) -> Verdict:
        """Run the code."""
        with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("always")
            names = dict(prelude(), folder=folder)
            try:
                exec(n["code"], names)
            except Exception as error:
                return of_error(error, due=self.due or "right" not in n)
        said = [str(w.message) for w in caught if w.category in (UserWarning, RuntimeWarning)]
        if "right" not in n:
            return Verdict(WARNED if said else WRONG, "accepted without an error")
        found = float(np.ravel(names["result"])[0])
        if abs(found - n["right"]) <= n["within"]:
            return Verdict(RIGHT)
        return Verdict(WARNED if said else WRONG, f"got {found!r}, right {n['right']!r}")

    def script(self, n: Numbers) -> str:
        """The prelude and the code."""
        right = f"\nprint(result)  # right: {n['right']!r}" if "right" in n else "  # must be refused in one sentence"
        return f"{PRELUDE}\n\nfolder = '.'\n{n['code']}{right}"


_namespace: dict[str, Any] = {}


def prelude() -> dict[str, Any]:
    """The names of the prelude, defined once so that programs are shared."""
    if not _namespace:
        exec(PRELUDE, _namespace)
    return _namespace


def draw_argument(rng: np.random.Generator) -> Numbers:
    """A usual call with one argument that is wrong."""
    call = str(rng.choice(list(_OF), p=[0.5, 0.4, 0.1]))
    name = str(rng.choice(_OF[call]))
    if name != "system" and rng.random() < 0.3:
        name = "system"
    usual = {k: v for k, v in _USUAL.items() if k in _OF[call]}
    usual[name] = str(rng.choice(_WRONG[name]))
    if name == "stepping":
        usual.pop("h", None)
    if call == "carom.simulate_batch" and name != "state":
        usual["state"] = "[S, S]"
    if "solver" in usual.get("method", ""):
        usual["system"] = "ball"
    if "constraints" in usual["system"] or "contacts" in usual["system"] or "friction=" in usual["system"]:
        usual |= {"method": "carom.MoreauMidpoint()"} if "method" in usual else {}
    first = [usual.pop(k) for k in ("system", "state", "method") if k in usual]
    return {"code": f"{call}({', '.join([*first, *(f'{k}={v}' for k, v in usual.items())])})"}


def draw_mismatch(rng: np.random.Generator) -> Numbers:
    """Good parts that do not fit together."""
    return {
        "code": str(
            rng.choice(
                [
                    "carom.simulate(ball, S, carom.EventCapturing(carom.radau_iia(2)), t1=1.0, "
                    "stepping=carom.Switching(1e-4, 1e-2))",
                    "carom.simulate(ball, S, carom.IRK(carom.gauss(2)), t1=1.0, h=0.1)",
                    "carom.simulate(osc, S, carom.StormerVerlet(), t1=1.0, stepping=carom.Adaptive())",
                    "carom.simulate(osc, S, carom.IRK(carom.gauss(2)), t1=1.0, stepping=carom.Switching(1e-3, 0.1))",
                    "carom.simulate(osc, S, carom.StormerVerlet(), t1=1.0, stepping=carom.Prescribed([0.1, 0.2]))",
                    "carom.simulate(ball, S, carom.MoreauMidpoint(), t1=1.0, h=0.1, stepping=carom.Constant(0.1))",
                    "carom.simulate(ball, S, carom.TailoredTheta(), t1=1.0, h=0.1)",
                    "carom.simulate(ball, S, carom.MoreauMidpoint(), t1=-1.0, h=0.1)",
                    "carom.simulate_batch(osc, S, carom.StormerVerlet(), t1=1.0, h=0.1)",
                    "carom.simulate_batch([osc, ball], [S, S], carom.MoreauMidpoint(), t1=1.0, h=0.1)",
                    "carom.simulate_batch(osc, [S, S], carom.StormerVerlet(), t1=[1.0, 2.0, 3.0], h=0.1)",
                ]
            )
        )
    }


def draw_standstill(rng: np.random.Generator) -> Numbers:
    """Steps so small that the clock cannot move; from a start at a turning point nothing moves in so short a time."""
    t0 = float(10.0 ** rng.uniform(0, 6))
    tiny = float(np.spacing(t0) * 10.0 ** rng.uniform(-2, -0.5))
    short = float(t0 + np.spacing(t0) * int(rng.integers(1, 4)))
    count = int((short - t0) / tiny) + 1
    state = f"carom.State(q=[1.0], v=[0.0], t={t0!r})"
    verlet = f"carom.simulate(osc, {state}, carom.StormerVerlet()"
    calls = [
        f"{verlet}, t1={short!r}, stepping=carom.Prescribed([{tiny!r}] * {count}))",
        f"{verlet}, t1={short!r}, h={tiny!r})",
        f"carom.solve(osc, {state}, t1={short!r})",
        "carom.solve(osc, carom.State(q=[1.0], v=[0.0], t=1e16), t1=1e16 + 4.0)",
    ]
    code = str(rng.choice(calls, p=[0.3, 0.3, 0.3, 0.1]))
    return {"code": f"result = {code}.q[-1]", "right": float(np.cos(4.0)) if "1e16" in code else 1.0, "within": 1e-5}


def draw_other_system(rng: np.random.Generator) -> Numbers:
    """A stored run that is resumed with another system."""
    k = float(np.round(rng.uniform(0.5, 3), 3))
    plain = "carom.System(mass=1.0, potential=lambda q: jnp.{}(q[0]))"
    pairs = [(f"swing({k})", f"swing({2 * k})"), (plain.format("cos"), plain.format("sin")), (f"swing({k})", "osc")]
    one, other = pairs[rng.integers(len(pairs))]
    code = f"carom.simulate({one}, S, carom.StormerVerlet(), t1=1.0, h=0.1).save(folder + '/r.nc')\n"
    use = ("carom.resume(folder + '/r.nc', system={}, t1=2.0)", "carom.load(folder + '/r.nc', system={})")
    return {"code": code + use[rng.integers(2)].format(other)}


def draw_changed_object(rng: np.random.Generator) -> Numbers:
    """An object that a system's functions look at is changed between two runs."""
    one, two = (float(np.round(rng.uniform(0.5, 20), 3)) for _ in range(2))
    code = f"""\
spring = Spring({one})
run = lambda: carom.simulate(carom.System(mass=1.0, potential=spring.V), S, carom.StormerVerlet(), t1=1.0, h=1e-3)
run()
spring.k = {two}
result = run().q[-1]"""
    return {"code": code, "right": float(np.cos(np.sqrt(two))), "within": 1e-3}


SNIPPETS = {
    family.name: family
    for family in (
        Snippet("argument", draw_argument, due=True),
        Snippet("mismatch", draw_mismatch, due=True),
        Snippet("standstill", draw_standstill, due=True),
        Snippet("other system", draw_other_system, due=True),
        Snippet("changed object", draw_changed_object, due=False),
    )
}
