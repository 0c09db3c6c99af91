"""What a gradient costs: time over that of a warm `carom.final_state` of the same run, and time of the first call.

"stored" is `jax.grad` of `final_state`, "checkpointed" is `carom.gradient`, with its coarser run for the error figure
switched off. Chains: all masses and stiffnesses, 2 n - 1 numbers; the woodpecker: friction and restitution.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from timing import in_turns

import carom


def first_call(run: Callable[[], Any]) -> float:
    """Seconds of a run that compiles."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def compared(
    name: str, build: Callable[..., Any], numbers: dict[str, Any], method: Any, steps: int, h: float, most: int
) -> None:
    """One problem, by both ways."""
    asked: dict[str, Any] = {"t1": steps * h, "h": h}

    def last(numbers: dict[str, Any]) -> jax.Array:
        return carom.final_state(*build(**numbers), method, max_steps=most, **asked).state.v.sum()

    plain, stored = jax.jit(last), jax.jit(jax.grad(last))
    runs = {
        "final_state": lambda: plain(numbers).block_until_ready(),
        "stored": lambda: jax.block_until_ready(stored(numbers)),
        "checkpointed": lambda: carom.gradient(
            lambda state: state.v.sum(), build, numbers, method, check=False, progress=False, **asked
        ),
    }
    compiling = {kind: first_call(run) for kind, run in runs.items()}
    best = in_turns(runs, 2)
    one = best["final_state"]
    print(
        f"{name:34}{1e3 * one:9.2f} ms; stored {best['stored'] / one:5.2f}, checkpointed "
        f"{best['checkpointed'] / one:5.2f} times; first calls {', '.join(f'{s:.1f}' for s in compiling.values())} s",
        flush=True,
    )


def damped(mass: jax.Array, stiffness: jax.Array) -> tuple[carom.System, carom.State]:
    """Hertz beads, the first of which strikes."""
    return carom.models.granular_chain(mass, stiffness, 0.06)


def regular(mass: jax.Array, stiffness: jax.Array) -> tuple[carom.System, carom.State]:
    """The same without jumps of the damping force."""
    system, state = damped(mass, stiffness)
    return carom.regularise(system), state


def elastic(mass: jax.Array, stiffness: jax.Array) -> tuple[carom.System, carom.State]:
    """The same without damping."""
    system, state = damped(mass, stiffness)
    return carom.System(system.mass, system.potential), state


def main() -> None:
    """Chains and the woodpecker."""
    methods = {
        "explicit(4)": (carom.ExplicitRK(carom.explicit(4)), regular),
        "TailoredIRK": (carom.TailoredIRK(), damped),
        "StormerVerlet, no damping": (carom.StormerVerlet(), elastic),
    }
    for n, steps in ((1000, 3000), (25, 30_000)):
        numbers = {"mass": jnp.linspace(1.0, 1.5, n), "stiffness": jnp.linspace(1.0, 2.0, n - 1)}
        for name, (method, build) in methods.items():
            compared(f"{n} beads, {name}", build, numbers, method, steps, 0.01, steps)
    for tableau in (carom.explicit(5), carom.radau_iia(2)):
        numbers, method = {"friction": 0.3, "beak_restitution": 0.5}, carom.EventCapturing(tableau)
        compared(f"woodpecker, {tableau.name}", carom.models.woodpecker, numbers, method, 3000, 1e-3, 4096)


if __name__ == "__main__":
    main()
