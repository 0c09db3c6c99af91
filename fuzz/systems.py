"""The systems of the campaign: few functions, many numbers through params, so that few programs are compiled."""

import jax.numpy as jnp
import numpy as np

import carom


def driven_potential(q, p):
    bump = jnp.exp(-(((q[0] - p["place"]) / p["breadth"]) ** 2))
    return 0.5 * p["k"] * q[0] ** 2 + 0.25 * p["k3"] * q[0] ** 4 + p["barrier"] * bump


def driven_force(t, q, v, p):
    s = t - p["t0"]
    pulse = p["pulse"] * jnp.exp(-(((s - p["when"]) / p["width"]) ** 2))
    return p["a"] * jnp.cos(p["w"] * s) + pulse - p["c"] * v


def driven_stop(t, q, v, p):
    return q[0] - p["low"]


def driven(n):
    names = ("k", "k3", "c", "a", "w", "pulse", "when", "width", "barrier", "place", "breadth", "low", "t0")
    params = {name: n[name] for name in names}
    system = carom.System(1.0, driven_potential, {"drive": driven_force}, params=params)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def kick(t, q, v, p):
    on = (t >= p["t0"] + p["on"]) & (t < p["t0"] + p["off"])
    return jnp.where(on, p["force"], 0.0) - 0.0 * v


def stiffness_energy(q, p):
    return 0.5 * p["k"] * q[0] ** 2


def kicked(n):
    params = {name: n[name] for name in ("k", "force", "on", "off", "t0")}
    jumps = [n["t0"] + n["on"], n["t0"] + n["off"]] if n["declared"] else ()
    system = carom.System(1.0, stiffness_energy, {"kick": kick}, params=params, jumps=jumps)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def spring_potential(q, p):
    return 0.5 * p["k"] * q[0] ** 2 + 0.25 * p["k3"] * q[0] ** 4


def spring(n):
    system = carom.System(1.0, spring_potential, params={"k": n["k"], "k3": n["k3"]})
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def weight_of_pendulum(q, p):
    return p["g"] * q[1]


def drag_of_pendulum(t, q, v, p):
    return -p["c"] * v


def circle(q, p):
    return 0.5 * (q @ q - p["l"] ** 2)


def pendulum(n):
    params = {name: n[name] for name in ("g", "c", "l")}
    system = carom.System([1.0, 1.0], weight_of_pendulum, {"drag": drag_of_pendulum}, constraints=circle, params=params)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def mass_of_double_pendulum(q, p):
    m, a, b = p["m1"] + p["m2"], p["l1"], p["l2"]
    off = p["m2"] * a * b * jnp.cos(q[0] - q[1])
    return jnp.array([[m * a**2, off], [off, p["m2"] * b**2]])


def weight_of_double_pendulum(q, p):
    m, a, b = p["m1"] + p["m2"], p["l1"], p["l2"]
    return -p["g"] * (m * a * jnp.cos(q[0]) + p["m2"] * b * jnp.cos(q[1]))


def double_pendulum(n):
    params = {name: n[name] for name in ("m1", "m2", "l1", "l2", "g")}
    system = carom.System(mass_of_double_pendulum, weight_of_double_pendulum, params=params)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def hertz_chain(n):
    system, _ = carom.models.granular_chain(n["masses"], n["stiffness"], n["gamma"])
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def linear_potential(q, p):
    return 0.5 * p["k"] * q[0] ** 2 - p["push"] * q[0]


def linear_force(t, q, v, p):
    return p["a"] * jnp.cos(p["w"] * (t - p["t0"])) - p["c"] * v


def belt_slip(t, q, v, p):
    return v - p["u0"] - p["b"] * jnp.sin(p["w"] * (t - p["t0"]))


def dry_friction(n):
    params = {name: n[name] for name in ("k", "push", "a", "w", "c", "u0", "b", "t0")}
    brake = carom.FrictionElements(belt_slip, n["limit"])
    system = carom.System(1.0, linear_potential, {"drive": linear_force}, params=params, friction=brake)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def table_gap(t, q, p):
    return q - p["floor"] - p["b"] * jnp.sin(p["w"] * (t - p["t0"]))


def hitting(n):
    params = {name: n[name] for name in ("k", "push", "a", "w", "c", "floor", "b", "t0")}
    table = carom.Contacts(table_gap, restitution=n["e"])
    system = carom.System(1.0, linear_potential, {"drive": linear_force}, params=params, contacts=table)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def height_energy(q, p):
    return p["g"] * q[1]


def ball_gap(q):
    return q[1:2]


def ball_slip(q, v, p):
    return v[:1] + p["r"] * v[2:]


def spinning_ball(n):
    floor = carom.Contacts(ball_gap, slip_velocity=ball_slip, friction=n["mu"], restitution=n["e"])
    inertia = n["j"] * n["r"] ** 2
    params = {"g": n["g"], "r": n["r"]}
    system = carom.System(np.array([1.0, 1.0, inertia]), height_energy, params=params, contacts=floor)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def rod_gap(q, p):
    return q[1] + jnp.array([-1.0, 1.0]) * p["l"] * jnp.sin(q[2])


def rod_slip(q, p):
    return q[0] + jnp.array([-1.0, 1.0]) * p["l"] * jnp.cos(q[2])


def rod(n):
    floor = carom.Contacts(rod_gap, slip=rod_slip, friction=n["mu"], restitution=n["e"])
    params = {"g": n["g"], "l": n["l"]}
    system = carom.System(np.array([1.0, 1.0, n["j"]]), height_energy, params=params, contacts=floor)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def plank_weight(q, p):
    return p["weight"] * q[1]


def plank_gap(q, p):
    return q[1] + p["x"] * q[2]


def plank_slip(q, v, p):
    return v[0] + p["depth"] * v[2] * jnp.ones_like(p["x"])


def plank(n):
    supports = carom.Contacts(plank_gap, slip_velocity=plank_slip, friction=n["mu"], restitution=n["e"])
    params = {"x": np.array(n["x"]), "depth": n["depth"], "weight": n["m"] * n["g"]}
    mass = np.array([n["m"], n["m"], n["m"] * n["j"]])
    system = carom.System(mass, plank_weight, params=params, contacts=supports)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def poisoned_energy(q, p):
    return jnp.where(q[0] < p["sick_energy"], jnp.nan, p["g"] * q[0])


def poisoned_force(t, q, v, p):
    return jnp.where(q < p["sick_force"], jnp.nan, 0.0 * v)


def poisoned_gap(q, p):
    return jnp.where(q < p["sick_gap"], jnp.nan, q)


def poisoned_stop(t, q, v, p):
    return jnp.where(q[0] < p["sick_stop"], jnp.nan, 1.0)


def poisoned(n):
    params = {name: n[name] for name in ("g", "sick_energy", "sick_force", "sick_gap", "sick_stop")}
    floor = carom.Contacts(poisoned_gap, restitution=n["e"])
    system = carom.System(1.0, poisoned_energy, {"f": poisoned_force}, params=params, contacts=floor)
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])


def runaway_energy(q, p):
    return -p["k"] * q[0] ** 4


def runaway(n):
    system = carom.System(1.0, runaway_energy, params={"k": n["k"]})
    return system, carom.State(q=n["q0"], v=n["v0"], t=n["t0"])
