"""A ball on a shaken table: the branch of one bounce per period, through its fold and its flip."""

import numpy as np

import carom


def main(picture=None):
    ball, _ = carom.models.shaken_ball(shaking=0.8)
    guess = carom.State([0.14], [0.1], 0.5)  # half a period after the table has passed its middle, in flight
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-9, 1e-11)
    orbit = carom.periodic_orbit(ball, guess, period=1.0, method=method, stepping=stepping)
    print(orbit)
    branch = orbit.follow("shaking", within=(0.3, 1.2))
    print(branch)
    if picture is not None:
        carom.plots.branch(branch).savefig(picture)
    fold = np.pi * (1 - 0.8) / (1 + 0.8)
    return float(min(branch.values) - fold)


if __name__ == "__main__":
    main(picture="branch.png")
