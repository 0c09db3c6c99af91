"""Andrews' squeezer: seven bodies, six constraints; constant steps, then reversible ones after the release."""

import carom


def main(t1: float = 0.03) -> carom.Solution:
    driven, start = carom.models.andrews_squeezer(torque=0.033)
    sol = carom.simulate(driven, start, carom.Spark(4), t1=t1, h=1e-4)
    print(f"beta = {sol.q[-1, 0]:.9f} after {sol.stats['accepted']} steps, {sol.stats['seconds'] * 1e3:.0f} ms")
    position, velocity = carom.measures.constraint_residuals(driven, sol)
    print(f"constraints: {position.max():.1e} in positions, {velocity[1:].max():.1e} in velocities")
    print(f"energy error: {carom.measures.energy_drift(sol).bound:.1e} J")

    released, _ = carom.models.andrews_squeezer(torque=0.0)
    free = carom.simulate(released, sol.state, carom.Spark(3), t1=2 * t1, stepping=carom.Reversible(1e-8))
    print(f"released: {len(free) - 1} reversible steps, energy error {carom.measures.energy_drift(free).bound:.1e} J")
    return free


if __name__ == "__main__":
    sol = main()
    carom.plots.overview(sol).savefig("squeezer.png")
    carom.report(sol, "squeezer.html")
