"""Sweeps of scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def sweep(what: str, out: Path, client: str | None, progress: bool | None = None) -> Path:
    """Carry out the sweep of a scenario file: a folder with its numbers and a report, whose path is returned."""
    from carom.files import scenario
    from carom.reports.sweeps import sweep_report
    from carom.sweeps.cells import Grid
    from carom.sweeps.sweep import sweep as swept
    from carom.sweeps.workers import cluster

    plan = scenario.read(what, out)
    if plan.sweep is None:
        msg = f"{what} has no table [sweep]: use carom run {what}, or name values under [sweep.grid]"
        raise ValueError(msg)
    options: dict[str, Any] = {"t1": plan.t1, "stepping": plan.stepping, "keep": plan.sweep.keep}
    path = plan.path.with_suffix(".zarr")
    data = swept(
        plan.sweep.build,
        Grid(**plan.sweep.grid),
        plan.method,
        **options,
        batch=plan.sweep.batch,
        to=path,
        client=None if client is None else cluster(client),
        progress=progress,
    )
    failed = int((data.status != 0).sum())
    print(f"{data.status.size - failed} cells in {path}" + (f", {failed} failed" if failed else ""))
    page = sweep_report(data, path.with_suffix(".html"), plan.title)
    print(page)
    return page
