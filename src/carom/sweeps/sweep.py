"""`carom.sweep`: one call for many runs of one system with other numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from carom.arguments import texts
from carom.keep.places import Final
from carom.methods.base import AbstractMethod
from carom.running.progress import Progress, progress_bar
from carom.state import State
from carom.stepping.base import AbstractStepping
from carom.sweeps.cells import AbstractCells
from carom.sweeps.gathering import Gathered
from carom.sweeps.plan import Plan, plan
from carom.sweeps.storage import Store
from carom.sweeps.tables import widened
from carom.sweeps.template import Asked
from carom.sweeps.trajectories import chosen, store_trajectories, with_trajectories
from carom.sweeps.workers import by_client, in_threads, size, workers
from carom.systems.system import System

if TYPE_CHECKING:
    import xarray


def sweep(
    build: Callable[..., tuple[System, State]],
    cells: AbstractCells,
    method: AbstractMethod | None = None,
    *,
    t1: Any,
    h: Any = None,
    stepping: AbstractStepping | Callable[..., AbstractStepping] | None = None,
    rtol: float | None = None,
    atol: Any = 1e-9,
    keep: Any = None,
    static: Sequence[str] = (),
    batch: int | None = None,
    to: Any = None,
    client: Any = None,
    trajectories: Any = (),
    progress: bool | Progress | None = None,
) -> xarray.Dataset:
    """Run one system with many sets of numbers, and keep a few numbers of each run.

    `build` is traced once: its parameters are numbers that JAX does not know yet, so it uses `jax.numpy` where it
    computes with them, and hands them to functions through `System(params=...)`. Memory does not grow with the runs.

    In the dataset every number that was kept has the dimensions of the cells. A cell that failed has NaN, `status`
    (a `carom.Status`, or -1 where the numbers themselves were refused) and `message`; the other cells are unharmed.

    Args:
        build: function of the parameters that returns (system, state), such as those of `carom.models`.
        cells: `carom.Grid`, `carom.Cases` or `carom.Random`.
        method: one step, as in `carom.simulate`; left out, `rtol` decides as in `carom.solve`.
        t1: end of the runs: a number, an array with one per cell, or a function of the parameters.
        h: constant step size, likewise.
        stepping: who chooses the step size; it may be a function of the parameters. Give this, `h` or `rtol`.
        rtol: relative tolerance, in place of method and stepping; the method is that for the first cell that can run.
        atol: absolute tolerance beside it.
        keep: list or dict of keeps (`carom.keep`), or a function of the parameters that returns one; by default the
            last state.
        static: parameters that decide on shapes or on which functions there are; each combination compiles once more.
        batch: cells that run together; by default as many as gain something and fit into memory.
        to: folder to store the sweep in, such as "sweep.zarr"; a sweep that was killed goes on there with the missing
            batches, and `carom.load_sweep` reads it at any time.
        client: who runs the batches in place of the threads of this process: a `concurrent.futures` executor of spawned
            processes, or a `dask.distributed.Client`.
        trajectories: cells of which the whole run is stored in `to` as well: numbers of cells, or dicts of parameters,
            of which the nearest cell is taken. Reports of the sweep play them; `trajectory` has their files.
        progress: as in `carom.simulate`.

    Example:
        >>> period = lambda frequency: 2 * np.pi / frequency
        >>> data = carom.sweep(
        ...     carom.models.driven_oscillator,
        ...     carom.Grid(frequency=np.linspace(2.4, 3.2, 500)),
        ...     carom.MoreauMidpoint(),
        ...     t1=lambda frequency: 300 * period(frequency),
        ...     h=lambda frequency: period(frequency) / 200,
        ...     keep=lambda frequency: [carom.keep.strobe(period(frequency), last=50)],
        ... )
        >>> data.strobe_q.sel(coordinate=0)
    """
    asked = question(build, method, t1, h, stepping, rtol, keep, static)
    count = len(workers()) if client is None else size(client)
    made = plan(cells, asked, None if rtol is None else (rtol, atol), batch, count)
    numbers = chosen(cells, trajectories)
    if numbers and to is None:
        msg = "trajectories are stored with the sweep: give its folder, to='sweep.zarr'"
        raise ValueError(msg)
    data = run(made, to, client, progress).dataset()
    if to is None:
        return data
    store_trajectories(made, numbers, to)
    return with_trajectories(data, to)


def question(
    build: Any, method: Any, t1: Any, h: Any, stepping: Any, rtol: Any, keep: Any, static: Sequence[str]
) -> Asked:
    """What is asked, refused where arguments contradict each other."""
    if not callable(build):
        msg = f"build must be a function of the parameters that returns (system, state), got {type(build).__name__}"
        raise TypeError(msg)
    if sum(x is not None for x in (h, stepping, rtol)) != 1:
        msg = "give one of h= (a constant step), stepping= and rtol="
        raise ValueError(msg)
    if (method is None) != (rtol is not None):
        msg = "give a method with h= or stepping=, or rtol= without a method"
        raise ValueError(msg)
    static = (static,) if isinstance(static, str) else static
    names = texts(static, "static", "a list of names of parameters")
    return Asked(build, method, t1, h, stepping, [Final()] if keep is None else keep, names)  # pyright: ignore


def run(made: Plan, to: Any = None, client: Any = None, progress: bool | Progress | None = None) -> Gathered:
    """Run all batches of a plan that are not stored yet, and gather what all of them gave."""
    gathered, store, batches = Gathered.of(made), None, made.batches
    if to is not None:
        store = Store(to, made)
        batches = store.missing()
        for batch, part in store.done():
            gathered.take(batch, part)
    with progress_bar(progress, 0, made.cells.count, "cells") as bar:
        for batch, part in in_threads(made, batches) if client is None else by_client(made, batches, client):
            part = part._replace(tables={name: widened(table, made.sizes) for name, table in part.tables.items()})
            if store is not None:
                store.put(batch, part)
            gathered.take(batch, part)
            bar.update(gathered.done, gathered.steps)
    return gathered.finish()
