"""Newton's cradle with dissipative contacts: after a transient all beads swing in phase [James2020 Fig. 5]."""

import numpy as np

import carom


def main(t1: float = 3000.0) -> carom.Solution:
    cradle, state = carom.models.newtons_cradle(10, stiffness=1.0, attachment=0.01, damping=0.3)
    sol = carom.simulate(cradle, state, carom.TailoredTheta(), t1=t1, h=0.5)
    late = sol.q[-200:]
    print(
        f"spread of the beads at the end: {np.ptp(late, axis=1).max():.3f} of an amplitude of {np.abs(late).max():.3f}"
    )
    return sol


if __name__ == "__main__":
    sol = main()
    carom.plots.space_time(sol).savefig("cradle.png")
    carom.report(sol, "cradle.html")
