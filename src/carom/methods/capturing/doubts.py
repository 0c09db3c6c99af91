"""What the message of a failed run says about its contacts, from numbers on the host."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from jaxtyping import Array

from carom.arguments import users_frame
from carom.methods.capturing.active_set import Point
from carom.state import Status
from carom.systems.features import NONSMOOTH


def explained(at: Point, closed: Array, located: Array, status: Status) -> str:
    """Which law is about to have an event, or cannot be satisfied."""
    if status in (Status.NO_CONSISTENT_MODE, Status.SEVERAL_CONSISTENT_MODES):
        return most_doubtful(at, closed | located)
    return next_to_fall(at, closed) if status is Status.EVENT_NOT_LOCATED else ""


def warn_of_end_stages(system: Any, c: Array) -> None:
    """Say so where forces jump at located switches and stages at the ends of a piece see them from the wrong side."""
    watched = any(group.only_watches for group in system.friction_groups)
    if watched and np.any((np.asarray(c) <= 0) | (np.asarray(c) >= 1)):
        told = "its stages at the ends of a step see a force that jumps there from the wrong side: use carom.gauss(s)"
        warnings.warn(f"EventCapturing loses its order with this tableau: {told}", stacklevel=users_frame())


def warn_of_redundancy(solution: Any) -> None:
    """Say so where active constraints depended on each other."""
    redundant = solution.columns.get("extra.redundant", np.zeros(1)) > 0
    if redundant.any() and NONSMOOTH & solution.system.features:
        when = float(solution.t[np.argmax(redundant)])
        msg = f"active constraints were redundant at t = {when:.6g}: their multipliers are those of least squares"
        warnings.warn(msg, stacklevel=5)


def most_doubtful(at: Point, taking_part: Array) -> str:
    """The contact whose normal force pushes it open least while friction drags against it, and by how much."""
    G, push = np.asarray(at.G), np.diag(np.asarray(at.G))[: at.laws.contacts].copy()
    for block in at.laws.tangential:
        owners = np.arange(push.size)[block.laws]
        cross = G[owners[:, None], np.arange(len(G))[block.rows].reshape(len(owners), -1)]
        push[owners] -= np.asarray(at.friction)[owners] * np.linalg.norm(cross, axis=1)
    i = int(np.argmin(np.where(np.asarray(taking_part), push, np.inf)))
    pushed = f"is pushed open by {push[i]:.3g} per unit of normal force."
    return f"Contact {at.laws.called(i)} with friction {at.friction[i]:g} {pushed}"


def next_to_fall(at: Point, closed: Array) -> str:
    """The open contact that would reach the surface first, if there are contacts."""
    n = at.laws.contacts
    if not n:
        return ""
    gap, rate = np.asarray(at.gap), np.asarray(at.gamma)[:n]
    falls = ~np.asarray(closed) & (rate < 0)
    i = int(np.argmin(np.where(falls, gap / np.where(falls, -rate, 1.0), np.inf)))
    found = f"has the gap {gap[i]:.6g} and the rate {rate[i]:.6g} there; is its gap continuous?"
    return f"Contact {at.laws.called(i)} {found}"
