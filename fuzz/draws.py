"""Random numbers for the systems of the campaign: what is drawn, how long a run lasts, and its fastest rate."""

from __future__ import annotations

import numpy as np

from fuzz.motion import Numbers


def _u(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def _far(rng: np.random.Generator) -> float:
    return float(10.0 ** rng.uniform(6, 12)) if rng.random() < 0.2 else 0.0


def driven(rng: np.random.Generator) -> Numbers:
    """An oscillator, linear or Duffing's; or a quiet run with a pulse or a barrier in it."""
    kind = rng.choice(["linear", "duffing", "pulse", "barrier", "free decay"], p=[0.2, 0.25, 0.2, 0.2, 0.15])
    n = dict.fromkeys(("k3", "c", "a", "pulse", "barrier"), 0.0) | {"w": 1.0, "when": 0.0, "width": 1.0, "place": 0.0}
    n |= {"breadth": 1.0, "low": -1e9, "k": _u(rng, 0.2, 5.0), "span": _u(rng, 2.0, 20.0)}
    n |= {"q0": [_u(rng, -1, 1)], "v0": [_u(rng, -1, 1)]}
    rate = np.sqrt(n["k"])
    if kind in ("linear", "duffing"):
        n |= {"c": _u(rng, 0, 0.5), "a": _u(rng, 0, 2), "w": _u(rng, 0.3, 3)}
        if kind == "duffing":
            n |= {"k3": _u(rng, 0.1, 2), "span": _u(rng, 2, 10)}
        rate = np.sqrt(n["k"] + 3 * n["k3"] * 4) + n["w"] + n["c"]
    elif kind == "pulse":
        width = _u(rng, 0.01, 0.05) * n["span"] / 1.6651
        n |= {"q0": [0.0], "v0": [0.0], "k": float(rng.choice([0.0, 0.3])), "pulse": _u(rng, 0.3, 3), "width": width}
        n["when"] = _u(rng, 0.15, 0.85) * n["span"]
        rate = 2 / width
    elif kind == "barrier":
        speed, part = _u(rng, 0.5, 2), _u(rng, 0.01, 0.05)
        height = 0.5 * speed**2 * float(rng.choice([_u(rng, 0.2, 0.8), _u(rng, 1.25, 4)]))
        n |= {"q0": [0.0], "v0": [speed], "k": 0.0, "barrier": height, "breadth": part * speed * n["span"] / 1.6651}
        n["place"] = _u(rng, 0.2, 0.8) * speed * n["span"]
        rate = 2 * speed / n["breadth"]
    else:
        n |= {"c": _u(rng, 0, 0.5), "t0": _far(rng), "stop": bool(rng.random() < 0.3)}
        if n["stop"]:
            n |= {"low": _u(rng, -1.0, 0.2), "q0": [_u(rng, 0.5, 1)], "t0": 0.0}
    return n | {"rate": float(rate)}


def kicked(rng: np.random.Generator) -> Numbers:
    """A force that is switched on and off, declared as jumps or not, in a run that is otherwise quiet."""
    n = {"k": float(rng.choice([0.0, _u(rng, 0.1, 2)])), "force": _u(rng, -2, 2), "span": _u(rng, 3, 15), "t0": 0.0}
    on = _u(rng, 0.1, 0.8) * n["span"]
    n |= {"on": on, "off": on + _u(rng, 0.01, 0.19) * n["span"], "declared": bool(rng.random() < 0.5)}
    n |= {"q0": [float(rng.choice([0.0, _u(rng, -1, 1)]))], "v0": [0.0]}
    return n | {"rate": 1.5 + 2 / n["span"]}


def spring(rng: np.random.Generator) -> Numbers:
    """A conservative oscillator."""
    n = {"k": _u(rng, 0.2, 5), "k3": _u(rng, 0, 1), "span": _u(rng, 2, 20), "t0": _far(rng)}
    n |= {"q0": [_u(rng, -1, 1)], "v0": [_u(rng, -1, 1)]}
    return n | {"rate": float(np.sqrt(n["k"] + 9 * n["k3"]))}


def pendulum(rng: np.random.Generator) -> Numbers:
    """A pendulum that swings or turns over."""
    length, angle, spin = _u(rng, 0.3, 2), _u(rng, -2.5, 2.5), _u(rng, -3, 3)
    n = {"g": _u(rng, 1, 10), "l": length, "c": _u(rng, 0, 0.3), "span": _u(rng, 1, 5)}
    n["q0"] = [length * np.sin(angle), -length * np.cos(angle)]
    n["v0"] = [length * np.cos(angle) * spin, length * np.sin(angle) * spin]
    n = {k: [float(x) for x in v] if isinstance(v, list) else v for k, v in n.items()}
    return n | {"rate": float(np.sqrt(n["g"] / length) + abs(spin) + 1)}


def double_pendulum(rng: np.random.Generator) -> Numbers:
    """A double pendulum, for a time in which it does not become chaotic."""
    n = {name: _u(rng, 0.5, 2) for name in ("m1", "m2", "l1", "l2")}
    n |= {"g": _u(rng, 1, 10), "span": _u(rng, 0.5, 2.5)}
    n |= {"q0": rng.uniform(-1.5, 1.5, 2).tolist(), "v0": rng.uniform(-1, 1, 2).tolist()}
    return n | {"rate": float(4 * np.sqrt(n["g"] / min(n["l1"], n["l2"])) + 2)}


def hertz_chain(rng: np.random.Generator) -> Numbers:
    """Six beads, the first one thrown at the others."""
    n = {"masses": rng.uniform(0.3, 2, 6).tolist(), "stiffness": rng.uniform(0.5, 5, 5).tolist()}
    n |= {"gamma": float(rng.choice([0.0, _u(rng, 0, 0.1)])), "span": _u(rng, 2, 12)}
    n |= {"q0": [0.0] * 6, "v0": [_u(rng, 0.2, 2), 0.0, 0.0, 0.0, 0.0, 0.0]}
    return n | {"rate": 6.0}


def dry_friction(rng: np.random.Generator) -> Numbers:
    """A Coulomb oscillator with drive, or a block on an incline or a belt."""
    n = {"c": 0.0, "u0": 0.0, "b": 0.0, "push": 0.0, "w": _u(rng, 0.3, 3), "span": _u(rng, 3, 15)}
    if rng.random() < 0.7:
        n |= {"k": float(rng.choice([4.0, _u(rng, 1, 9)])), "a": _u(rng, 0, 4), "limit": _u(rng, 0.1, 2)}
        n |= {"q0": [_u(rng, -2, 2)], "v0": [float(rng.choice([0.0, _u(rng, -1, 1)]))]}
    else:
        slope = _u(rng, -0.6, 0.6)
        n |= {
            "k": 0.0,
            "a": 0.0,
            "push": float(9.81 * np.sin(slope)),
            "limit": float(9.81 * np.cos(slope)) * _u(rng, 0.1, 0.9),
        }
        n |= {"u0": _u(rng, -1, 1), "b": float(rng.choice([0.0, _u(rng, 0, 2)])), "q0": [0.0], "v0": [_u(rng, -2, 2)]}
        n |= {"span": _u(rng, 1, 6), "t0": _far(rng) if n["b"] == 0.0 else 0.0}
    return n | {"rate": float(n["w"] + np.sqrt(n["k"]) + 0.5)}


def hitting(rng: np.random.Generator) -> Numbers:
    """A bouncing ball, perhaps on a moving table, or an impact oscillator."""
    e = float(rng.choice([0.0, _u(rng, 0.1, 0.95), _u(rng, 0.3, 0.8), 1.0], p=[0.1, 0.4, 0.4, 0.1]))
    n = {"k": 0.0, "c": 0.0, "a": 0.0, "b": 0.0, "w": _u(rng, 1, 5), "floor": 0.0, "e": e, "push": -_u(rng, 1, 10)}
    kind = rng.choice(["ball", "table", "oscillator"])
    if kind == "oscillator":
        n |= {"k": _u(rng, 1, 9), "c": _u(rng, 0, 0.5), "a": _u(rng, 0, 2), "push": 0.0, "floor": _u(rng, -0.5, 0.3)}
        n |= {"q0": [n["floor"] + _u(rng, 0.1, 1)], "v0": [_u(rng, -1, 1)], "span": _u(rng, 2, 8)}
        return n | {"rate": float(n["w"] + np.sqrt(n["k"]))}
    height = _u(rng, 0.1, 2)
    fall = float(np.sqrt(2 * height / -n["push"]))
    n |= {"q0": [height], "v0": [_u(rng, -1, 1)], "span": fall * _u(rng, 0.5, 8)}
    if kind == "table":
        n |= {"b": _u(rng, 0.01, 0.2)}
    else:
        n["t0"] = _far(rng)
    return n | {"rate": n["w"] + 1 / fall}


def spinning_ball(rng: np.random.Generator) -> Numbers:
    """A ball thrown with spin on a rough floor."""
    n = {
        "g": _u(rng, 1, 10),
        "r": _u(rng, 0.1, 0.5),
        "j": _u(rng, 0.2, 0.9),
        "e": _u(rng, 0.1, 0.9),
        "mu": _u(rng, 0.05, 1),
    }
    n |= {"q0": [0.0, _u(rng, 0.05, 1), 0.0], "v0": [_u(rng, -3, 3), _u(rng, -1, 2), _u(rng, -20, 20)]}
    fall = float(np.sqrt(2 * n["q0"][1] / n["g"]))
    return n | {"span": _u(rng, 1, 10) * fall, "rate": 2 / fall}


def rod(rng: np.random.Generator) -> Numbers:
    """A tumbling rod."""
    n = {
        "g": _u(rng, 2, 10),
        "l": _u(rng, 0.3, 1),
        "e": _u(rng, 0.3, 0.9),
        "mu": float(rng.choice([0.0, _u(rng, 0, 0.4)])),
    }
    n |= {"j": n["l"] ** 2 * _u(rng, 0.3, 1), "q0": [0.0, n["l"] + _u(rng, 0.1, 0.5), _u(rng, -1.2, 1.2)]}
    n |= {"v0": [_u(rng, -1, 1), _u(rng, -1, 0.5), _u(rng, -3, 3)]}
    fall = float(np.sqrt(2 * n["q0"][1] / n["g"]))
    return n | {"span": _u(rng, 0.5, 1.6) * fall, "rate": 2 / fall + 3}
