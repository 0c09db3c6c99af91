"""Records as plain data, which files hold, and as the text of a call, which people read."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from carom.names import registered
from carom.tableaux import Tableau, from_name

_MOST_STAGES = 64
_FOUND = "found before a run"


def found_field() -> Any:
    """A field that chooses the program and is found anew before every run, so that no file and no call tells it."""
    return eqx.field(static=True, metadata={_FOUND: True})


def _found(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind) if _FOUND in field.metadata}


def describe(value: Any) -> Any:
    """A record as plain data: class name and fields."""
    if isinstance(tableau := getattr(value, "made_of", value), Tableau):
        return _plain_tableau(tableau)
    if isinstance(value, eqx.Module):
        told = {name: x for name, x in vars(value).items() if name not in _found(type(value))}
        return {"class": type(value).__name__, "fields": {name: describe(x) for name, x in told.items()}}
    if isinstance(value, (tuple, list)):
        return [describe(x) for x in value]
    if isinstance(value, dict):
        return {"dictionary": {name: describe(x) for name, x in value.items()}}
    if eqx.is_array_like(value) and value is not None:
        return np.asarray(value).tolist()
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _plain_tableau(tableau: Tableau) -> dict[str, Any]:
    """The name of a tableau, and the numbers of one that carom does not have under this name."""
    try:
        known = from_name(tableau.name) == tableau
    except ValueError:
        known = False
    own = {field.name: describe(getattr(tableau, field.name)) for field in dataclasses.fields(tableau)}
    return {"tableau": tableau.name} | ({} if known else {"own": own})


def spelt(plain: Any, place: str = "") -> str:
    """The record that `describe` made plain as a call such as `IRK(gauss(2))`; what has its usual value is left out.

    With `place="carom."` the names are those of Python code.
    """
    if isinstance(plain, dict) and "tableau" in plain:
        return re.sub(r"([a-z_]+)\(", rf"{place and place + 'tableaux.'}\1(", plain["tableau"])
    if isinstance(plain, dict) and "dictionary" in plain:
        return "{" + ", ".join(f"{name!r}: {spelt(x, place)}" for name, x in plain["dictionary"].items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(spelt(x, place) for x in plain) + "]"
    if not isinstance(plain, dict):
        return repr(plain)
    needed, usual = _usual(plain)
    fields = plain["fields"]
    others = [name for name in fields if name not in needed and _text(fields[name]) != usual.get(name)]
    shown = [spelt(fields[name], place) for name in needed]
    shown += [f"{name}={spelt(fields[name], place)}" for name in others]
    return f"{place}{plain['class']}({', '.join(shown)})"


def call(self: Any) -> str:
    """The call that makes this record, such as `IRK(gauss(2))`; inside a transformation of JAX its fields."""
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(self)):
        return eqx.tree_pformat(self)
    return spelt(describe(self))


def _usual(plain: Any) -> tuple[list[str], dict[str, str]]:
    """The arguments that a record needs, and the values of its fields if it is given no others, as text."""
    kind = registered.get(plain["class"])
    if kind is None:
        return [], {}
    parameters = inspect.signature(kind).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    made = describe(kind(**{name: rebuild(plain["fields"][name], "record") for name in needed}))
    return needed, {name: _text(x) for name, x in made["fields"].items()}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


def rebuild(plain: Any, role: str) -> Any:
    """The record that `describe` made plain."""
    if isinstance(plain, dict) and "tableau" in plain:
        return Tableau(**plain["own"]) if "own" in plain else _tableau(plain["tableau"])
    if isinstance(plain, dict) and "dictionary" in plain:
        return {name: rebuild(x, role) for name, x in plain["dictionary"].items()}
    if isinstance(plain, dict):
        kind = registered.get(plain["class"])
        if kind is None:
            msg = f"the stored {role} {plain['class']} is not one of carom's: pass it again as {role}="
            raise ValueError(msg)
        return kind(**{name: rebuild(x, role) for name, x in plain["fields"].items()})
    if isinstance(plain, list):
        return [rebuild(x, role) for x in plain]
    return plain


def _tableau(name: str) -> Tableau:
    if any(int(number) > _MOST_STAGES for number in re.findall(r"(?<![.\d])\d+(?![.\d])", name)):
        msg = f"the file asks for the tableau {name[:80]}, which has too many stages"
        raise ValueError(msg)
    return from_name(name)
