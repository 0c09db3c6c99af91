"""Derivatives through a bounce: exact ones, and those of a scheme that steps over the impact; a ball identified."""

import jax
import jax.numpy as jnp
import numpy as np

import carom

TRUE = {"height": 1.0, "velocity": 0.3, "restitution": 0.8, "gravity": 9.81}
CAPTURING = carom.EventCapturing(carom.explicit(4))


def height(p, method, t1, h, **more):
    """The height of the ball at t1."""
    return carom.final_state(*carom.models.bouncing_ball(**p), method, t1=t1, h=h, max_steps=1024, **more).state.q[0]


def exact(p, t1):
    """The same after one bounce, in closed form."""
    w = jnp.sqrt(p["velocity"] ** 2 + 2 * p["gravity"] * p["height"])
    s = t1 - (p["velocity"] + w) / p["gravity"]
    return p["restitution"] * w * s - 0.5 * p["gravity"] * s**2


def compared(sizes) -> dict[str, np.ndarray]:
    """Derivatives of the height at 0.9 by the first height, at several step sizes."""

    def slope(p, method, h, **more):
        return jax.grad(lambda p: height(p, method, 0.9, h, **more))(p)["height"]

    ours = jax.jit(lambda h: slope(TRUE, CAPTURING, h))
    stepped_over = jax.jit(lambda h: slope(TRUE, carom.MoreauMidpoint(), h, allow_biased=True))
    return {
        "carom, EventCapturing": np.array([ours(h) for h in sizes]),
        "Moreau, differentiated": np.array([stepped_over(h) for h in sizes]),
        "truth": np.full(len(sizes), jax.grad(lambda p: exact(p, 0.9))(TRUE)["height"]),
    }


def main() -> float:
    """Compare derivatives, then find restitution and gravity from noisy heights by Gauss and Newton."""
    sizes = np.array([0.05, 0.02, 0.01, 0.005, 0.002])
    slopes = compared(sizes)
    for name, values in slopes.items():
        print(f"{name:25s}", values)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=20)
    times = np.linspace(0.05, 0.9, 20)

    def heights(x):
        ball, state = carom.models.bouncing_ball(height=1.0, restitution=x[0], gravity=x[1])
        return carom.final_state(ball, state, CAPTURING, t1=0.9, h=0.02, save_at=times, max_steps=128).saved.q[:, 0]

    model = jax.jit(lambda x: (heights(x), jax.jacfwd(heights)(x)))
    measured = np.asarray(model(jnp.array([0.8, 9.81]))[0]) + noise
    x = jnp.array([0.7, 9.0])
    for _ in range(6):
        found, slope = model(x)
        x = x + jnp.linalg.lstsq(slope, measured - found)[0]
        print("restitution, gravity:", x)
    return float(np.max(np.abs(slopes["carom, EventCapturing"] - slopes["truth"])))


if __name__ == "__main__":
    main()
