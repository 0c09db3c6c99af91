"""One bounce, differentiated: what several simulators say about dy(T)/dy0, beside the closed form.

A ball with y0 = 1, v0 = 0.3, e = 0.8, g = 9.81 bounces once before T = 0.9. carom locates the impact; Moreau's scheme
steps over it; diffrax ends a solve at the event and begins another one; MuJoCo's MJX has a soft contact, of which the
stiffness is chosen for the same restitution (run where it is installed).
"""

from __future__ import annotations

import importlib.util
import math

import jax
import jax.numpy as jnp

import carom

Y0, V0, E, G, T = 1.0, 0.3, 0.8, 9.81, 0.9
_PER_STEP = 0.2  # of the soft contact's oscillation, in radians


def truth(y0):
    """Closed form."""
    w = jnp.sqrt(V0**2 + 2 * G * y0)
    s = T - (V0 + w) / G
    return E * w * s - 0.5 * G * s**2


def by_carom(method, h, **more):
    """The last height of a run."""

    def height(y0):
        ball, state = carom.models.bouncing_ball(height=y0, velocity=V0, restitution=E, gravity=G)
        return carom.final_state(ball, state, method, t1=T, h=h, **more).state.q[0]

    return height


def by_diffrax(adjoint):
    """A solve up to the event, and one from there."""
    import diffrax as dfx
    import optimistix as optx

    term = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -G]))  # noqa: ARG005
    tight = {"stepsize_controller": dfx.PIDController(1e-10, 1e-10), "max_steps": 1024, "adjoint": adjoint}

    def height(y0):
        event = dfx.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-12, 1e-12))  # noqa: ARG005
        start = jnp.stack([y0, V0])
        first = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, T, 0.01, start, event=event, **tight)
        hit = first.ys[-1]
        after = jnp.stack([hit[0], -E * hit[1]])
        return dfx.diffeqsolve(term, dfx.Tsit5(), first.ts[-1], T, 0.01, after, **tight).ys[-1][0]

    return height


def by_mjx(h):
    """A sphere on a plane; the contact's damping ratio is that of the restitution."""
    import mujoco
    from mujoco import mjx

    ratio = -math.log(E) / math.hypot(math.pi, math.log(E))
    soft = f"{h / (_PER_STEP * ratio)} {ratio}"
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco><option timestep="{h}" gravity="0 0 -{G}" integrator="Euler"/>
      <worldbody><geom type="plane" size="5 5 .1" solref="{soft}"/>
        <body><joint type="slide" axis="0 0 1"/>
          <geom type="sphere" size=".1" mass="1" pos="0 0 .1" solref="{soft}"/></body></worldbody>
    </mujoco>""")
    model = mjx.put_model(model)

    def height(y0):
        data = mjx.make_data(model).replace(qpos=jnp.stack([y0]), qvel=jnp.asarray([V0]))
        return jax.lax.scan(lambda d, _: (mjx.step(model, d), None), data, None, length=round(T / h))[0].qpos[0]

    return height


def tell(name, height, derivative=jax.jacfwd):
    """Print value and derivative."""
    try:
        value, slope = jax.jit(lambda y: (height(y), derivative(height)(y)))(Y0)
        print(f"{name:45s} y(T) = {float(value):9.6f}   dy(T)/dy0 = {float(slope):9.6f}")
    except Exception as error:  # noqa: BLE001
        print(f"{name:45s} {type(error).__name__}: {str(error).strip().splitlines()[0][:90]}")


def main() -> None:
    """All of them."""
    tell("truth", truth)
    for order in (4, 5):
        tell(
            f"carom EventCapturing(explicit({order})), h = .01",
            by_carom(carom.EventCapturing(carom.explicit(order)), 0.01),
        )
    for h in (1e-2, 1e-3):
        more = {"allow_biased": True, "max_steps": 1024}
        tell(f"carom MoreauMidpoint, differentiated, h = {h:g}", by_carom(carom.MoreauMidpoint(), h, **more))
    if importlib.util.find_spec("diffrax"):
        import diffrax as dfx

        tell("diffrax, event and restart, reverse", by_diffrax(dfx.RecursiveCheckpointAdjoint()), jax.grad)
        tell("diffrax, event and restart, forward", by_diffrax(dfx.ForwardMode()))
    if importlib.util.find_spec("mujoco"):
        for h in (2e-3, 5e-4):
            tell(f"MuJoCo MJX, soft contact, h = {h:g}", by_mjx(h))


if __name__ == "__main__":
    main()
