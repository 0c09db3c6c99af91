"""What a run of ten steps costs: nearly all of it is the host's part, and the calls of compiled programs.

Once with records that were seen before, and once with a method and a start built anew for every run: what is remembered
of records (how they are taken apart, what they were asked) pays as long as the first is much cheaper.
"""

from __future__ import annotations

import warnings

from timing import in_turns

import carom

STEPS = 10


def ball():
    """A bouncing ball, its own functions and Moreau's midpoint rule."""
    system = carom.System(1.0, lambda q: 9.81 * q[0], contacts=carom.Contacts(gap=lambda q: q[:1], restitution=0.7))
    return system, lambda: carom.State([1.0], [0.0]), carom.MoreauMidpoint, 1e-3


def chain():
    """Twenty-five beads and a Runge-Kutta method."""
    system, start = carom.models.dimer_chain(25, 0.59, 0.06)
    return system, lambda: carom.State(start.q, start.v), lambda: carom.ExplicitRK(carom.explicit(4)), 0.2


def main() -> None:
    """Milliseconds of both, and their ratio."""
    warnings.simplefilter("ignore")
    for case in (ball, chain):
        system, state, method, h = case()
        known = state(), method()

        def run(start, way, system=system, h=h):
            return carom.simulate(system, start, way, t1=STEPS * h, h=h, progress=False)

        again, anew = in_turns({"again": lambda: run(*known), "anew": lambda: run(state(), method())}, 200).values()
        print(f"{case.__name__}, {STEPS} steps: {1e3 * again:.3f} ms with known records, anew {anew / again:.1f} x")


if __name__ == "__main__":
    main()
