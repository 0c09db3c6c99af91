"""Observed orders through impacts: the regularised variables keep the order that (x, v) loses [James2020 Fig. 2]."""

import numpy as np

import carom


def main(finest: float = 2.5e-4) -> tuple[np.ndarray, dict[str, list[float]]]:
    steps = np.array([8, 4, 2, 1]) * 4 * finest
    chain, state = carom.models.trimer()
    smooth = carom.regularise(chain)
    reference = carom.simulate(smooth, state, carom.ExplicitRK(carom.explicit(5)), t1=5.0, h=finest / 4)
    errors = {}
    for name, system in (("(x, v)", chain), ("(x, w)", smooth)):
        runs = carom.simulate_batch(system, state, carom.IRK(carom.gauss(2)), t1=5.0, h=list(steps))
        errors[name] = [np.abs(run.q - reference.at(run.t)[0]).max() for run in runs]
        print(f"Gauss-Legendre on {name}: observed order {carom.measures.observed_order(steps, errors[name]):.2f}")
    return steps, errors


if __name__ == "__main__":
    carom.plots.convergence(*main(), slopes={"(x, w)": 4}).savefig("orders.png")
