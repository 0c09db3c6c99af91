"""The register of ready-made models: names, arguments, a run to begin with, and rebuilding a model from them."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from carom.arguments import did_you_mean, is_traced
from carom.state import State
from carom.systems.system import System, with_origin

Model = Callable[..., tuple[System, State]]
registry: dict[str, Model] = {}
#: What `carom run MODEL` does where nothing else is said: t1, method, h or stepping, written as in a scenario file.
usual_runs: dict[str, dict[str, Any]] = {}


def model(*, t1: float, method: str, **steps: float | str) -> Callable[[Model], Model]:
    """Register a model with its usual run (`h=` or `stepping=`, `save_every=`); it remembers name and arguments."""

    def enter(fn: Model) -> Model:
        @functools.wraps(fn)
        def build_model(*args: Any, **kwargs: Any) -> tuple[System, State]:
            system, state = fn(*args, **kwargs)
            bound = inspect.signature(fn).bind(*args, **kwargs)
            bound.apply_defaults()
            return _remember(system, fn.__name__, bound.arguments), state

        registry[fn.__name__] = build_model
        usual_runs[fn.__name__] = {"t1": t1, "method": method, **steps}
        return build_model

    return enter


def build(name: str, arguments: dict[str, Any]) -> tuple[System, State]:
    """A registered model by name."""
    refuse_unknown(name)
    known = inspect.signature(registry[name]).parameters
    wrong = [key for key in arguments if key not in known]
    if wrong:
        msg = f"{name} has no parameter '{wrong[0]}'; it has {', '.join(known)}{did_you_mean(wrong[0], known)}"
        raise ValueError(msg)
    return registry[name](**arguments)


def refuse_unknown(name: str) -> None:
    """Raise unless there is a model of this name."""
    if name not in registry:
        meant = did_you_mean(name, registry)
        msg = f"unknown model '{name}'{meant}{' There' if meant else '; there'} are {', '.join(sorted(registry))}"
        raise ValueError(msg)


def _remember(system: System, name: str, arguments: dict[str, Any]) -> System:
    if is_traced(arguments):
        return system
    plain = {
        key: np.asarray(v).tolist() if not isinstance(v, (str, bool, type(None))) else v for key, v in arguments.items()
    }
    try:
        return with_origin(system, name, json.dumps(plain))
    except TypeError:
        return system


@dataclass(frozen=True)
class Builder:
    """The builder of a model with some of its parameters given; workers can be sent it."""

    model: str
    keywords: dict[str, Any]

    @property
    def func(self) -> Any:
        """The model itself, as `functools.partial` calls it."""
        return registry[self.model]

    def __call__(self, **more: Any) -> tuple[System, State]:
        """The model with these parameters too."""
        return self.func(**self.keywords, **more)
