"""Diagrams from sweeps: branches followed up and down, basins of attraction, and Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from carom.arguments import plain_numbers, whole
from carom.keep.places import Strobe
from carom.keep.totals import Peak
from carom.methods.base import AbstractMethod
from carom.running.progress import Progress
from carom.state import State, shortened
from carom.sweeps.cells import Grid, Random
from carom.sweeps.engine import run_batch
from carom.sweeps.gathering import Gathered
from carom.sweeps.plan import Plan, plan
from carom.sweeps.sweep import question, sweep
from carom.sweeps.template import arguments_of
from carom.systems.system import System

if TYPE_CHECKING:
    import xarray

_HARDLY = 1e-6  # relative size of differences that mean nothing
_LEAST, _MOST = 1e-2, 30.0  # of the size of motions: what last states range over, but for rests and outliers
_FAR = 1e15  # boxes: whole numbers that floats tell apart
_DIRECTIONS = {"up": 1, "down": -1}


def bifurcation(
    build: Callable[..., tuple[System, State]],
    cells: Grid,
    method: AbstractMethod,
    *,
    period: Any,
    transient: int = 200,
    kept: int = 50,
    steps: int = 200,
    follow: Sequence[str] = ("up", "down"),
    tolerance: float = 1e-4,
) -> xarray.Dataset:
    """Follow a driven system along the first parameter of a grid: every run begins where the one before ended.

    Each run takes `transient + kept` periods; the states at the last `kept` are the diagram. Followed up and down,
    branches that exist side by side are seen (hysteresis). `period` in the dataset is after how many periods of the
    drive the motion repeats, 0 where it does not within half of what is kept.

    Args:
        build: function of the parameters that returns (system, state).
        cells: the first axis is followed; along other axes branches are independent.
        method: one step.
        period: of the drive: a number, or a function of the parameters.
        transient: periods that are not kept.
        kept: periods that are kept.
        steps: steps per period.
        follow: "up", "down" or both.
        tolerance: how well a motion repeats itself, in units of the range of the diagram, which counts for a hundredth
            of the largest motion at least.

    Example:
        >>> data = carom.bifurcation(
        ...     carom.models.shaken_ball,
        ...     carom.Grid(shaking=np.linspace(0.8, 1.4, 200)),
        ...     carom.EventCapturing(carom.explicit(4)),
        ...     period=1.0,
        ... )
        >>> carom.plots.bifurcation(data).savefig("shaken_ball.png")
    """
    import xarray

    follow = (follow,) if isinstance(follow, str) else tuple(follow)
    if not follow or any(one not in _DIRECTIONS for one in follow):
        msg = f"follow must be 'up', 'down' or both, got {shortened(follow)}"
        raise ValueError(msg)
    if not isinstance(cells, Grid):
        msg = f"bifurcation follows the first axis of a carom.Grid, got {shortened(cells)}"
        raise TypeError(msg)
    _refuse_taken(cells, "direction", "period")
    asked = question(build, method, **strobed(build, period, transient, kept, steps), static=())
    lanes = cells.count // next(iter(cells.dims.values()))
    made = plan(cells, asked, None, lanes, 1)
    made.choose(lanes)
    with ThreadPoolExecutor(len(follow)) as pool:
        found = list(pool.map(lambda one: _followed(made, _DIRECTIONS[one]).finish().dataset(), follow))
    data = xarray.concat(found, xarray.Variable("direction", list(follow)), combine_attrs="override")
    data, sizes = _without_sizes(data, 1.0)  # runs that follow a branch hardly move
    data["period"] = ((*data.status.dims,), periods(data.strobe_q, data.strobe_v, tolerance, sizes))
    return data


def _refuse_taken(cells: Any, *results: str) -> None:
    """Raise where a parameter bears the name of what a tool adds to the dataset."""
    for name in results:
        if name in getattr(cells, "names", ()):
            msg = f"'{name}' is the name of a parameter and of a result: give the parameter another name"
            raise ValueError(msg)


def strobed(build: Callable[..., Any], period: Any, transient: int, kept: int, steps: int) -> dict[str, Any]:
    """The arguments of a sweep of a driven system that keeps its state once per period, from its start on."""
    count = whole(transient, "transient", 0) + whole(kept, "kept", 1)
    whole(steps, "steps", 1)

    def of(parameters: dict[str, Any]) -> Any:
        value = period(**arguments_of(period, "period", parameters)) if callable(period) else period
        return plain_numbers(value, "period", size=1, positive=True).reshape(())

    return {
        "t1": lambda **p: build(**p)[1].t + count * of(p),
        "h": lambda **p: of(p) / steps,
        "keep": lambda **p: {"strobe": Strobe(of(p), last=kept)} | {f"size_{x}": Peak(x) for x in "qv"},
        "stepping": None,
        "rtol": None,
    }


def _followed(made: Plan, direction: int) -> Gathered:
    """One chain of batches: each begins where the one before ended."""
    gathered, end = Gathered.of(made), None
    for batch in made.batches[::direction]:
        part = run_batch(made.template(batch), made.numbers(batch.cells), end)
        gathered.take(batch, part)
        end = part.end
    return gathered


def _without_sizes(data: xarray.Dataset, part: float) -> tuple[xarray.Dataset, np.ndarray]:
    """The data without the sizes of motions, and how far this part of them goes at most, one number per coordinate."""
    sizes = [np.full(data[f"strobe_{x}"].shape[-1], np.nanquantile(data[f"size_{x}"], part)) for x in "qv"]
    return data.drop_vars([name for name in data.data_vars if str(name).startswith("size_")]), np.concatenate(sizes)


def periods(q: Any, v: Any, tolerance: float, sizes: Any = 0.0) -> np.ndarray:
    """After how many samples motions repeat; 0 where they do not within half of the samples or failed.

    `q` and `v` have the samples in the last but one dimension; `sizes` are those of motions, 0 where not known.
    """
    points = np.concatenate([np.asarray(q), np.asarray(v)], axis=-1)
    flat = points.reshape(-1, points.shape[-1])
    apart = tolerance * _extent(flat, sizes)
    found = np.zeros(points.shape[:-2], int)
    for p in range(points.shape[-2] // 2, 0, -1):
        moved = np.abs(points[..., p:, :] - points[..., :-p, :])
        found = np.where((moved <= apart).all(axis=(-2, -1)), p, found)
    return found


def basins(
    build: Callable[..., tuple[System, State]],
    cells: Grid,
    method: AbstractMethod,
    *,
    period: Any,
    transient: int = 200,
    kept: int = 20,
    steps: int = 200,
    tolerance: float = 0.01,
    progress: bool | Progress | None = None,
) -> xarray.Dataset:
    """Which motion a driven system ends in, from where it starts; attractors need not be known.

    Motions whose last states, once per period, meet in the same boxes of phase space, or in neighbouring ones, end on
    the same attractor. The dataset has `label` (0 for the attractor with the largest basin, -1 where a run failed),
    `boundary` (cells beside one with another label), `fraction` of every attractor, and `period` of every motion.

    Args:
        build: function of the parameters that returns (system, state).
        cells: grid of starts, and of other parameters if wanted.
        method: one step.
        period: of the drive: a number, or a function of the parameters.
        transient: periods that are not looked at.
        kept: periods whose states are compared; chaotic attractors need more of them.
        steps: steps per period.
        tolerance: size of the boxes in units of the range of all last states. A range counts for between a hundredth
            and 30 times what a quarter of the motions reach at most, whatever comes to rest or escapes.
        progress: as in `carom.simulate`.

    Example:
        >>> starts = carom.Grid(position=np.linspace(-2, 0, 200), velocity=np.linspace(-2, 2, 200))
        >>> data = carom.basins(carom.models.driven_oscillator, starts, carom.MoreauMidpoint(), period=2 * np.pi / 2.8)
        >>> data.fraction
    """
    _refuse_taken(cells, "label", "boundary", "period", "fraction", "attractor")
    data = sweep(build, cells, method, **strobed(build, period, transient, kept, steps), progress=progress)
    data, sizes = _without_sizes(data, 0.25)
    points = np.concatenate([data.strobe_q.values, data.strobe_v.values], axis=-1)
    label = attractors(points.reshape(-1, *points.shape[-2:]), tolerance, sizes).reshape(data.status.shape)
    data["label"] = (data.status.dims, label)
    data["boundary"] = (data.status.dims, _boundary(label))
    data["period"] = (data.status.dims, periods(data.strobe_q, data.strobe_v, tolerance, sizes))
    data["fraction"] = ("attractor", np.bincount(label[label >= 0]) / label.size)
    return data


def attractors(points: np.ndarray, tolerance: float, sizes: Any = 0.0) -> np.ndarray:
    """Numbers of the attractors of motions, by recurrence: 0 for the one with most motions, -1 for failed ones.

    `points` has a motion per row, then its samples, then coordinates; `sizes` as in `periods`.
    """
    motions, samples, _ = points.shape
    good = np.isfinite(points).all(axis=(1, 2))
    flat = points[good].reshape(-1, points.shape[-1])
    boxes = np.clip(np.round(flat / (tolerance * _extent(flat, sizes))), -_FAR, _FAR).astype(int)
    known, box = np.unique(boxes, axis=0, return_inverse=True)
    first = np.repeat(box.reshape(-1, samples)[:, 0], samples)
    beside = KDTree(known).query_pairs(np.sqrt(known.shape[1]) + 0.1, output_type="ndarray")
    rows, columns = np.concatenate([first, beside[:, 0]]), np.concatenate([box.ravel(), beside[:, 1]])
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(known), len(known)))
    part = connected_components(graph, directed=False)[1][box.reshape(-1, samples)[:, 0]]
    order = np.argsort(np.argsort(-np.bincount(part), kind="stable"))
    label = np.full(motions, -1)
    label[good] = order[part]
    return label


def _extent(points: np.ndarray, sizes: Any) -> np.ndarray:
    """The range of every coordinate, or a little of the size of all where points hardly differ.

    What is left of motions that came to rest spans no range, and motions that escape do not widen it.
    """
    least = _HARDLY * max(np.nanmax(np.abs(points), initial=0.0), 1e-290)
    extent = np.maximum(np.nanmax(points, axis=0) - np.nanmin(points, axis=0), least)
    return np.where(np.asarray(sizes) > 0, np.clip(extent, _LEAST * sizes, _MOST * sizes), extent)


def _boundary(label: np.ndarray) -> np.ndarray:
    """Cells of a grid that lie beside one with another label."""
    edge = np.zeros(label.shape, bool)
    for axis in range(label.ndim):
        differs = np.diff(label, axis=axis) != 0
        before, after = ([(0, 0)] * label.ndim for _ in range(2))
        before[axis], after[axis] = (0, 1), (1, 0)
        edge |= np.pad(differs, before) | np.pad(differs, after)
    return edge


def monte_carlo(
    build: Callable[..., tuple[System, State]],
    cells: Random,
    method: AbstractMethod | None = None,
    *,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    **options: Any,
) -> xarray.Dataset:
    """Random draws, and of every number that was kept its quantiles, mean and the standard error of the mean.

    The dataset is that of `carom.sweep`, with `NAME_quantile`, `NAME_mean` and `NAME_error` beside every number; draws
    that failed do not count. The error falls like one over the root of the number of draws.

    Args:
        build: function of the parameters that returns (system, state).
        cells: the draws.
        method: as in `carom.sweep`.
        quantiles: between 0 and 1.
        options: all others of `carom.sweep`.

    Example:
        >>> draws = carom.Random(1000, restitution=(0.6, 0.9))
        >>> data = carom.monte_carlo(carom.models.bouncing_ball, draws, carom.MoreauMidpoint(), t1=2.0, h=1e-3)
        >>> data.final_q_mean, data.final_q_error
    """
    if not isinstance(cells, Random):
        msg = f"monte_carlo needs carom.Random(count, ...), got {shortened(cells)}"
        raise TypeError(msg)
    wanted = np.asarray(quantiles, float)
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        msg = f"quantiles must be a list of numbers between 0 and 1, got {shortened(quantiles)}"
        raise ValueError(msg)
    _refuse_taken(cells, "quantile")
    data = sweep(build, cells, method, **options)
    for name in [name for name, x in data.data_vars.items() if x.dtype.kind == "f"]:
        x = data[name]
        data[f"{name}_quantile"] = x.quantile(wanted, "draw")
        data[f"{name}_mean"] = x.mean("draw")
        data[f"{name}_error"] = x.std("draw", ddof=1) / np.sqrt(x.count("draw"))
    return data
