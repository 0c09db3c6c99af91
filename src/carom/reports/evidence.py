"""The table of evidence: counters, energies, worst residuals, and what to make of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.account import Account
from carom.plain import spelt
from carom.reports.provenance import end_of, plain, shortened
from carom.running.evidence import CREATED, created_energy
from carom.solution import Solution


def evidence(run: Any) -> list[list[str]]:
    """Counters, energy account, worst residuals."""
    stats = run.stats
    rows = [[part, shortened(spelt(plain(run, part)))] for part in ("method", "stepping")]
    rows += chosen(run)
    if run.columns["t"][-1] < end_of(run):
        rows += [["ended early", f"at t = {run.columns['t'][-1]:.6g} of {end_of(run):.6g}"]]
    rows += [["steps", f"{stats['accepted']} accepted, {stats['rejected']} rejected"]]
    rows += [["warnings", text] for text in alarms(run)]
    rows += [["evaluations", f"{stats['evaluations']} of the forces, {stats['iterations']} solver iterations"]]
    if hasattr(run, "account"):
        energy = run.account.energy
        rows += [["energy", f"{energy[0]:.6g} at the start, {energy[-1]:.6g} at the end"]]
        rows += worst(run.account)
        rows += from_nowhere(run)
    else:
        rows += [
            ["energies, events", "unknown: the system is made of user functions; carom.report(..., system=system)"]
        ]
    if stats.get("seconds"):
        rows += [["seconds", f"{stats['seconds']:.3f} running, {stats['compile_seconds']:.2f} compiling"]]
    return rows


def alarms(run: Any) -> list[str]:
    """What a run warned of that can be told from its numbers."""
    found = []
    if run.stats.get("unsolved"):
        found.append(f"{run.stats['unsolved']} steps whose contact problem was not solved to the tolerance")
    start = np.max(getattr(getattr(run, "account", None), "extra", {}).get("penetration", np.zeros(1))[0], initial=0.0)
    if start > 0:
        found.append(f"it starts with a penetration of {start:.3g}")
    return found


def chosen(run: Any) -> list[list[str]]:
    """What `carom.solve` picked, why, and what it checked."""
    choice = getattr(run, "choice", None)
    if choice is None:
        return []
    checks = [f"{name} {value:.2g}" for name, value in choice.checks.items()]
    rows = {"because": "; ".join(choice.reasons), "checked": ", ".join(checks)}
    found = [["carom.solve chose", f"{choice.method} with {choice.stepping}"]]
    return found + [[name, text] for name, text in rows.items() if text]


def worst(account: Account) -> list[list[str]]:
    """`Account.worst` in words: all are extremes but the contact work, which is a total; energies also as a part."""
    part = exchanged(account)
    rows = [["energy exchanged", f"{part:.3g}: largest kinetic energy and range of the potential one"]]
    for name, value in account.worst.items():
        of = f", {100 * value / part:.3g} % of the energy exchanged" if name.startswith("energy ") else ""
        rows.append([f"total {name}" if name == "contact work" else f"worst {name}", f"{value:.3g}{of}"])
    return rows


def exchanged(account: Account) -> float:
    """The largest kinetic energy and the largest change of the potential one, in which changes are measured."""
    rows = np.isfinite(account.energy)
    if not rows.any():
        return 1.0
    return float(np.max(np.abs(account.kinetic[rows])) + np.ptp(account.potential[rows])) or 1.0


def from_nowhere(run: Solution) -> list[list[str]]:
    """The energy that no force explains, and what to think of it."""
    created = max(created_energy(run), 0.0)
    verdict = "do not trust this run: take smaller steps" if created > CREATED else "no alarm"
    return [["energy from nowhere", f"{100 * created:.2g} % of the energy exchanged; {verdict}"]]
