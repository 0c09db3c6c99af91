"""A pressure relief valve that hits its seat: carom's sweep against an event-driven loop in Numba, per core.

Both run 512 flows at tolerances of 1e-10 over the same time, in which the loop counts a number of returns (maxima of
the lift). Processor time counts, so that threads gain nothing; compilation is left out. Maxima agree to 1e-7.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numba import njit

import carom

TOL = 1e-10
CASH_KARP = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [1 / 5, 0.0, 0.0, 0.0, 0.0],
        [3 / 40, 9 / 40, 0.0, 0.0, 0.0],
        [3 / 10, -9 / 10, 6 / 5, 0.0, 0.0],
        [-11 / 54, 5 / 2, -70 / 27, 35 / 27, 0.0],
        [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
    ]
)
WEIGHTS = np.array([37 / 378, 0.0, 250 / 621, 125 / 594, 0.0, 512 / 1771])
ERRORS = WEIGHTS - np.array([2825 / 27648, 0.0, 18575 / 48384, 13525 / 55296, 277 / 14336, 1 / 4])


@njit
def stepped(flow, y, h, k, new, error):
    """One step of Cash and Karp into `new`, and its error."""
    for s in range(6):
        for i in range(3):
            new[i] = y[i]
            for j in range(s):
                new[i] += h * CASH_KARP[s, j] * k[j, i]
        k[s, 0] = new[1]
        k[s, 1] = -1.25 * new[1] - new[0] - 10.0 + new[2]
        k[s, 2] = 20.0 * (flow - new[0] * np.sqrt(max(new[2], 0.0)))
    for i in range(3):
        new[i], error[i] = y[i], 0.0
        for s in range(6):
            new[i] += h * WEIGHTS[s] * k[s, i]
            error[i] += h * ERRORS[s] * k[s, i]


@njit
def cut(flow, y, h, which, k, new, error):
    """The length of the step at whose end y[which] has just become negative."""
    low, high = 0.0, h
    while high - low > 1e-13:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        stepped(flow, y, middle, k, new, error)
        if new[which] < 0:
            high = middle
        else:
            low = middle
    stepped(flow, y, high, k, new, error)
    return high


@njit
def highest(flow, returns):
    """The last maximum of the lift, and its time."""
    y, new, top = np.array([0.2, 0.0, 0.0]), np.zeros(3), np.zeros(3)
    k, error, h, t, count = np.zeros((6, 3)), np.zeros(3), 1e-3, 0.0, 0
    while True:
        stepped(flow, y, h, k, new, error)
        size = 0.0
        for i in range(3):
            size = max(size, abs(error[i]) / (TOL + TOL * max(abs(y[i]), abs(new[i]))))
        if size > 1:
            h *= max(0.1, 0.9 * size**-0.25)
            continue
        hit = new[0] < 0
        taken = cut(flow, y, h, 0, k, new, error) if hit else h
        if y[1] > 0 and new[1] < 0:
            top[:] = new
            until = cut(flow, y, taken, 1, k, new, error)
            count += 1
            if count == returns:
                return new[0], t + until
            new[:] = top
        y[:] = new
        t += taken
        if hit:
            y[0], y[1] = 0.0, -0.8 * y[1]
        else:
            h *= min(5.0, 0.9 * max(size, 1e-10) ** -0.2)


@njit
def loop(flows, returns):
    """All flows, one after the other."""
    found = np.zeros((flows.size, 2))
    for i in range(flows.size):
        found[i, 0], found[i, 1] = highest(flows[i], returns)
    return found


def valve(flow):
    """The valve at a flow."""
    return carom.models.relief_valve(flow=flow)


def speed(q, v):  # noqa: ARG001
    """Of the disk: zero where the lift is largest."""
    return v[0]


def swept(flows, ends):
    """The last maximum of the lift before the ends."""
    keep = {"top": carom.keep.section(speed, "falling", last=1)}
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(TOL, TOL)
    return carom.sweep(valve, carom.Grid(flow=flows), method, t1=ends, stepping=stepping, keep=keep, progress=False)


def spent(run):
    """Processor time of a run, and what it returned."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


if __name__ == "__main__":
    returns, flows = int(sys.argv[1]) if len(sys.argv) > 1 else 6, np.linspace(1.2, 6.8, 512)
    loop(flows[:1], 2)
    reference, (maxima, ends) = (lambda s, x: (s, x.T))(*spent(lambda: loop(flows, returns)))
    ends = ends + 1e-3
    swept(flows, np.full(512, 1e-3))
    seconds, data = spent(lambda: swept(flows, ends))
    away = np.abs(data.top_q.values[:, 0, 0] - maxima).max()
    print(f"512 flows, {returns} returns, 1e-10: maxima agree to {away:.1e}")
    ratio = seconds / reference
    print(f"Numba {1e3 * reference / 512:.3f} ms per flow, carom {1e3 * seconds / 512:.2f} ms: {ratio:.1f} x")
