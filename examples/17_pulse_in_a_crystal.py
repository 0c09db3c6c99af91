"""A steel ball hits a hexagonal crystal of steel balls: where the pulse goes, and how fast."""

import numpy as np

import carom


def main(columns: int = 16) -> carom.Solution:
    """Run, and tell how fast the front moves and what contacts carry."""
    crystal, state = carom.models.hexagonal_crystal(columns, 15)
    sol = carom.simulate(crystal, state, carom.StormerVerlet(), t1=3e-4, h=1e-6, save_every=5)
    front = carom.measures.wave_front(sol)
    moving = (front > 0.05) & (front < 0.2)
    print(f"the front moves at {np.polyfit(sol.t[moving], front[moving], 1)[0]:.0f} m/s")
    network = carom.measures.bond_forces(sol, t=1.5e-4)
    print(f"{len(network.a)} contacts carry up to {network.size.max():.0f} N")
    return sol


if __name__ == "__main__":
    main()
