"""Many disks in rigid contact: sweeps to a residual from a cold start, robustness, time of a sweep.

States are those of disks that fell into a box of 40 largest diameters, stopped while they fall (collapsing), when they
rest (settled), or in a turning drum (flowing). The residual is looked at every ten sweeps.
Usage: disks.py [sweep] [convergence] [robustness] [million] [large] [states] [spheres] [--small]; without a name the
first three, the others are meant for a GPU. Its memory is the largest so far: `million` alone tells that of a run.
"""

from __future__ import annotations

import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numba import njit
from timing import best_of

import carom
from carom.pairs import Capacity
from carom.solvers.accelerated import Search
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.solvers.gauss_seidel import sweeps_of
from carom.systems.first_lists import first_pairs

H = 0.02
SETTLE = 2000
TOLERANCES = (1e-3, 1e-4, 1e-6)


class History(AbstractContactSolver):
    """Gauss-Seidel as `AcceleratedGaussSeidel` does it, with the residuals of all looks, and of what is returned."""

    looks: int

    needs_matrix = False

    def solve(self, problem, guess):
        """Residuals of all looks in place of one."""
        sweeps = sweeps_of(problem)
        start = Search.of(sweeps, jnp.where(problem.taking_part, guess, 0.0))

        def ahead(search, _):
            return search.ahead(sweeps, 10 * self.looks), search.now

        search, seen = jax.lax.scan(ahead, start, None, length=self.looks)
        P = sweeps.impulses(search.best)
        seen = jnp.append(seen, jnp.stack([search.now, sweeps.residual(sweeps.start(P))]))
        return ContactResult(P, seen, search.k, jnp.zeros((), jnp.int32))


@eqx.filter_jit
def first_step(system, state, pairs, solver):
    """A step that starts without impulses: residuals, number of closed contacts."""
    method = carom.MoreauMidpoint(solver=solver)
    listed = system.since(0.0, pairs)
    info = method.step(listed, state, method.init(listed, state), jnp.asarray(H)).info
    return info.residual, info.extra["contacts"]


def moved(system, state, steps):
    """The state after some steps."""
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-3, max_iter=200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        end = carom.simulate(system, state, method, t1=steps * H, h=H, save_every=steps, progress=False).state
    return carom.State(end.q, end.v)


def histories(cases, looks):
    """Residuals from cold starts, all with the same room, so that one program serves for all of a size."""
    rooms = [first_pairs(system, state, 0.0).capacity for system, state in cases]
    room = tuple(own[0] and Capacity.largest(own) for own in zip(*rooms))
    found = [first_step(s, x, first_pairs(s, x, 0.0, room), History(looks)) for s, x in cases]
    return [(np.asarray(seen[:-1]), float(seen[-1]), int(contacts)) for seen, contacts in found]


def sweeps_to(seen, tol):
    """Sweeps until a residual was seen; infinite if never."""
    below = np.flatnonzero(seen <= tol)
    return 10 * int(below[0]) if below.size else np.inf


def convergence(seeds, more=2, count=1000, steps=SETTLE, looks=301):
    """Median over settled piles, with more friction over few of them."""
    for friction in (0.3, 0.5, 0.7, 1.0):
        cases = []
        for seed in range(seeds if friction == 0.3 else more):
            system, state = carom.models.disks_in_box(count, width=80.0, friction=friction, seed=seed)
            cases.append((system, moved(system, state, steps)))
        found = histories(cases, looks)
        numbers = [[sweeps_to(seen, tol) for seen, _, _ in found] for tol in TOLERANCES]
        told = ", ".join(f"{tol:g}: {np.median(n):g} (most {max(n):g})" for tol, n in zip(TOLERANCES, numbers))
        print(f"friction {friction}: {np.mean([c for _, _, c in found]):.0f} contacts; sweeps to {told}", flush=True)


def robustness(count, steps, frictions=(0.0, 0.3, 1.0), smallest_radii=(0.8, 1.0), flowing=True, looks=81):
    """Residuals of what is returned and of the last sweep over the smallest seen."""
    piles, flows = {}, {}
    for smallest in smallest_radii:
        for friction in frictions:
            system, state = carom.models.disks_in_box(count, friction=friction, smallest=smallest)
            falling = moved(system, state, steps // 5)
            piles[f"collapsing, smallest {smallest}, mu {friction}"] = system, falling
            piles[f"settled, smallest {smallest}, mu {friction}"] = system, moved(system, falling, steps)
        if flowing:
            system, state = carom.models.disks_in_drum(count, friction=0.5, smallest=smallest)
            flows[f"flowing, smallest {smallest}, mu 0.5"] = system, moved(system, state, steps)
    for cases in filter(None, (piles, flows)):
        for name, (seen, back, contacts) in zip(cases, histories(list(cases.values()), looks)):
            least = seen.min()
            ratios = f"smallest {least:.1e}, returned {back / least:.2f} times, last {seen[-1] / least:.2f} times"
            print(f"{count:7} {name}: {contacts} contacts, {ratios}", flush=True)


def time_of_sweep(counts, steps):
    """Nanoseconds per contact, and how the time per disk with twenty sweeps grows."""
    times = []
    for count in counts:
        system, state = carom.models.disks_in_box(count, width=2.0 * count / 25, smallest=0.8)
        state = moved(system, state, steps)
        pairs = first_pairs(system, state, 0.0)
        fast, slow = (carom.AcceleratedGaussSeidel(tol=1e-300, max_iter=k) for k in (20, 60))
        contacts = int(first_step(system, state, pairs, fast)[1])
        t = [best_of(lambda s=s: jax.block_until_ready(first_step(system, state, pairs, s))) for s in (fast, slow)]
        times.append(t[0] / count)
        per_contact = 1e9 * (t[1] - t[0]) / 40 / contacts
        print(
            f"{count:8} disks, {contacts} contacts: {per_contact:.1f} ns per contact and extrapolated sweep, "
            f"{1e9 * time_of_a_loop(system, state, pairs):.1f} ns in a plain one of a loop in Numba, "
            f"{1e6 * t[0] / count:.2f} us per disk with 20 sweeps",
            flush=True,
        )
    if len(counts) > 1:
        slope = np.polyfit(np.log(counts), np.log(np.array(times) * counts), 1)[0]
        print(f"exponent of the cost of a step with 20 sweeps: {slope:.2f}")


@njit(fastmath=True)
def sweeps_of_a_loop(i, j, normal, free, weight, friction, P, u, count):
    """Plain sweeps over disks of equal kind, one contact after the other; velocities (x, y, rim), j < 0: the world."""
    for _ in range(count):
        for c in range(i.size):
            a, b, x, y = i[c], j[c], normal[c, 0], normal[c, 1]
            vx, vy, rim, m = -u[a, 0], -u[a, 1], u[a, 2], weight[a]
            if b >= 0:
                vx, vy, rim, m = vx + u[b, 0], vy + u[b, 1], rim + u[b, 2], m + weight[b]
            N = max(P[c, 0] - (x * vx + y * vy + free[c]) / m, 0.0)
            T = min(max(P[c, 1] - (x * vy - y * vx - rim) / (3 * m), -friction * N), friction * N)
            dN, dT = N - P[c, 0], T - P[c, 1]
            P[c, 0], P[c, 1] = N, T
            fx, fy = dN * x - dT * y, dN * y + dT * x
            u[a, 0] -= weight[a] * fx
            u[a, 1] -= weight[a] * fy
            u[a, 2] -= 2 * weight[a] * dT
            if b >= 0:
                u[b, 0] += weight[b] * fx
                u[b, 1] += weight[b] * fy
                u[b, 2] -= 2 * weight[b] * dT


def time_of_a_loop(system, state, pairs):
    """Seconds of a plain sweep of the same closed contacts in Numba."""
    X, r = np.asarray(state.q).reshape(-1, 3)[:, :2], np.asarray(system.contact_groups[0].data)
    i, j = (np.asarray(x) for x in (pairs.found[0].a, pairs.found[0].b))
    i, j = i[(i < r.size) & (j < r.size)], j[(i < r.size) & (j < r.size)]
    shut = np.linalg.norm(X[j] - X[i], axis=1) <= r[i] + r[j]
    floor = np.flatnonzero(X[:, 1] <= r)
    i, j = np.append(i[shut], floor), np.append(j[shut], np.full(floor.size, -1))
    order = np.argsort(i, kind="stable")
    i, j = i[order].astype(np.int32), j[order].astype(np.int32)
    apart = np.where((j < 0)[:, None], [0.0, -1.0], X[j] - X[i])
    normal = apart / np.linalg.norm(apart, axis=1)[:, None]
    given = i, j, normal, np.full(i.size, -H), 1 / r**2, 0.3, np.zeros((i.size, 2)), np.zeros((r.size, 3))
    return (best_of(lambda: sweeps_of_a_loop(*given, 60)) - best_of(lambda: sweeps_of_a_loop(*given, 20))) / 40 / i.size


def large(build, count, parts):
    """A run to 1e-3 in parts of some steps: time, sweeps, contacts and memory of each, compilation apart."""
    system, state = build(count)
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-3, max_iter=1000))
    for steps in parts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sol = carom.simulate(system, state, method, t1=steps * H, h=H, save_every=steps, progress=False)
        state, told = carom.State(sol.state.q, sol.state.v), sol.stats
        memory = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
        print(
            f"{count:8}, {steps:4} steps: {1e3 * told['seconds'] / steps:.1f} ms per step, "
            f"{count * steps / told['seconds']:.3g} body-steps/s, {told['iterations'] / steps:.0f} sweeps per step, "
            f"{1e3 * told['seconds'] / max(1, told['iterations']):.2f} ms per sweep with all else, "
            f"{told['unsolved']} unsolved, {touching(system, state)} contacts at the end, "
            f"at most {memory / 1e9:.2f} GB, {told['traces']} programs in {told['compile_seconds']:.0f} s",
            flush=True,
        )


def touching(system, state):
    """Closed contacts."""
    seen = system.since(0.0, first_pairs(system, state, 0.0))
    return sum(int(np.sum(np.asarray(g.gaps(seen.given, 0.0, state.q)) <= 0)) for g in seen.contact_groups)


if __name__ == "__main__":
    names = [a for a in sys.argv[1:] if not a.startswith("--")] or ["sweep", "convergence", "robustness"]
    small = "--small" in sys.argv
    if "sweep" in names:
        time_of_sweep([1000] if small else [1000, 10_000, 100_000], 100 if small else 400)
    if "convergence" in names:
        convergence(2 if small else 10)
    if "robustness" in names:
        for count in (200,) if small else (1000, 10_000):
            robustness(count, 300 if small else 1000)
    if "million" in names:
        million = 10_000 if small else 1_000_000
        large(lambda count: carom.models.disks_in_box(count, width=2.0 * count / 25), million, (80, 100, 400, 100))
    if "large" in names:
        time_of_sweep([1_000_000], 400)
        large(lambda count: carom.models.column_collapse(count, columns=400), 100_000, (80, 100, 400, 100))
    if "states" in names:
        robustness(1000 if small else 100_000, 1000, (0.3,), (0.8,), flowing=False)
    if "spheres" in names:
        large(carom.models.spheres_in_box, 1000 if small else 100_000, (40, 260, 100))
        large(carom.models.spheres_in_box, 3000 if small else 1_000_000, (40, 160, 40))
