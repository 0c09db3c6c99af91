"""What a stored run belongs to: system, method and stepping by all that they read."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

import equinox as eqx
import jax
import numpy as np

from carom._config import __version__
from carom.methods.base import AbstractMethod
from carom.plain import describe
from carom.running.functions import reading
from carom.stepping.base import AbstractStepping
from carom.systems.system import System
from carom.systems.terms import CONSERVATIVE

_WRITTEN_OUT = 4  # numbers


def description(system: System, method: AbstractMethod, stepping: AbstractStepping) -> dict[str, dict[str, str]]:
    """All that decides how a run goes on, by role and name: numbers, and what each function reads."""
    leaves = jax.tree_util.tree_leaves_with_path(system, is_leaf=_is_function)
    found = {
        _role(path): {name: str(value) for name, value in reading(leaf).items()}
        if callable(leaf)
        else {"": _number(leaf)}
        for path, leaf in leaves
    }
    records = {"method": method, "stepping": stepping}
    return found | {role: dict(flat(describe(record))) for role, record in records.items()}


def _is_function(leaf: Any) -> bool:
    return callable(leaf) and not isinstance(leaf, eqx.Module)


def _role(path: Any) -> str:
    """A place in a system in the user's words."""
    text = jax.tree_util.keystr(path).removeprefix(".").removesuffix(".fn")
    text = text.replace(f"potential['{CONSERVATIVE}']", "potential")
    return re.sub(r"^(force|potential|rate_damping)s?\['(.*?)'\]", r"\1 '\2'", text)


def _number(leaf: Any) -> str:
    array = np.asarray(leaf)
    if array.size <= _WRITTEN_OUT:
        return str(array.tolist())
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:32]}"


def flat(plain: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A record made plain, field by field."""
    if isinstance(plain, dict) and "class" in plain:
        yield name, plain["class"]
        for field, value in plain["fields"].items():
            yield from flat(value, f"{name}.{field}".removeprefix("."))
    elif isinstance(plain, dict) and "dictionary" in plain:
        for key, value in plain["dictionary"].items():
            yield from flat(value, f"{name}[{key}]")
    else:
        yield name, str(plain).split(" at 0x")[0]


def refuse_another(now: dict[str, dict[str, str]], attributes: dict[str, Any]) -> None:
    """Raise, saying what differs, unless system, method and stepping are those that were stored."""
    stored = json.loads(attributes["reads"])
    for role in (*now, *(r for r in stored if r not in now)):
        which = role if role in ("method", "stepping") else "system"
        here, there = ("has" if role in side else "has not" for side in (now, stored))
        apart = difference(role, now.get(role, {}), stored.get(role, {}))
        apart = apart if here == there else f"this one {here} {role}, the stored one {there}"
        if apart is not None:
            msg = f"the {which} is not the one that was stored: {apart}{versions(attributes)}"
            raise ValueError(msg)


def versions(attributes: dict[str, Any]) -> str:
    """Which versions stored the run, if they are not those of now."""
    now = {"carom": __version__, "jax": metadata.version("jax"), "Python": platform.python_version()}
    other = [f"{n} {attributes.get(n.lower())}, now {v}" for n, v in now.items() if attributes.get(n.lower()) != v]
    return f" (stored with {'; '.join(other)})" if other else ""


def difference(role: str, now: Mapping[str, Any], stored: Mapping[str, Any]) -> str | None:
    """What a function reads otherwise than the stored one did, in words; None if nothing.

    Example:
        >>> difference("potential", {"code": "code a", "k": "50.0"}, {"code": "code a", "k": "1.0"})
        'potential reads k = 50.0, stored was k = 1.0'
    """
    for name in (*now, *(n for n in stored if n not in now)):
        here, there = (str(side[name]) if name in side else None for side in (now, stored))
        if here == there:
            continue
        outer = name.removesuffix("code").removesuffix(".")
        if name.rpartition(".")[2] == "code" and here is not None and there is not None:
            return f"the code of {f'{outer} in ' if outer else ''}{role} differs"
        if here is None or there is None:
            which = "did, and this one does not" if here is None else "did not"
            return f"{role} reads {name}{'' if here is None else f' = {here}'}, the stored one {which}"
        if not name:
            return f"{role} is {here}, stored was {there}"
        return f"{role} reads {name} = {here}, stored was {name} = {there}"
    return None
