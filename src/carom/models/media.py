"""Particles, springs and one-dimensional media [Marazzato2019 secs 3 and 4], with their exact facts as functions."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import is_traced, numbers, numpy_for, plain_numbers, real
from carom.models.granular import _count
from carom.models.registry import model
from carom.solvers.structure import Tridiagonal
from carom.state import State
from carom.systems.interactions import Interactions
from carom.systems.laws import positive_power
from carom.systems.system import System


def _square(a: Array, b: Array) -> Array:
    return (b - a) ** 2


def _square_to_wall(a: Array) -> Array:
    return a**2


def _quartic(a: Array, b: Array) -> Array:
    return (b - a) ** 4


def _quartic_to_wall(a: Array) -> Array:
    return a**4


# ---- one particle [sec. 3.1] -----------------------------------------------------------------------------------------


def _well(q: Array) -> Array:
    s = q[0] - 1.0
    return -8.0 * (positive_power(s, 1.5) - s * s)


@model(t1=20.0, h=0.02, method="IRK(gauss(2))")
def single_particle(t0: float = 0.5) -> tuple[System, State]:
    """One particle that moves as `q = 1 + sin(t)^4` [Marazzato2019 sec. 3.1, the sign of V corrected].

    The force is not Lipschitz at q = 1, which the motion reaches at multiples of pi: measure orders between them.

    Example:
        >>> system, state = carom.models.single_particle()
    """
    t, xp = plain_numbers(t0, "t0"), numpy_for(t0)
    return System(1.0, _well), State([1 + xp.sin(t) ** 4], [4 * xp.sin(t) ** 3 * xp.cos(t)], t)


# ---- Fermi-Pasta-Ulam chains [secs 3.2 and 4.3.1] --------------------------------------------------------------------


def _quartic_of_modes(x: Array, x_next: Array, stretch: Array, stretch_next: Array) -> Array:
    return 0.25 * (x_next - stretch_next - x - stretch) ** 4


def _first_quartic(x: Array, stretch: Array) -> Array:
    return 0.25 * (x - stretch) ** 4


def _last_quartic(x: Array, stretch: Array) -> Array:
    return 0.25 * (x + stretch) ** 4


@model(t1=20.0, method="PseudoEnergy()", h=0.005, save_every=4)
def fermi_pasta_ulam(m: int = 3, omega: float = 50.0) -> tuple[System, State]:
    """Stiff springs among soft quartic ones in the variables (19): m positions x_i, then m stretches x_{m+i}.

    Starts from x_1 = y_1 = 1, x_{m+1} = 1 / omega, y_{m+1} = 1, all else 0.

    Example:
        >>> chain, state = carom.models.fermi_pasta_ulam(3, omega=50.0)
    """
    m = _count(m, 1, "m")
    w = real(plain_numbers(omega, "omega", positive=True))
    potential = {
        "stiff": Interactions(_square_to_wall, stencil=(0,), where=slice(m, 2 * m), weight=0.5 * w * w),
        "first": Interactions(_first_quartic, stencil=(0, m), where=slice(0, 1)),
        "last": Interactions(_last_quartic, stencil=(0, m), where=slice(m - 1, m)),
    }
    if m > 1:
        potential["soft"] = Interactions(_quartic_of_modes, stencil=(0, 1, m, m + 1))
    first, stretched = np.eye(2 * m)[[0, m]]
    return System(1.0, potential), State(first + stretched / w, first + stretched)


def oscillatory_energy(omega: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """I_j = (y_{m+j}^2 + omega^2 x_{m+j}^2) / 2 of every stiff spring, rows of q and v along the first axis."""
    m = q.shape[-1] // 2
    return 0.5 * (v[..., m:] ** 2 + (omega * q[..., m:]) ** 2)


@model(t1=50.0, h=0.02, method="PseudoEnergy()")
def slow_fast_chain(m: int = 3, omega: float = np.sqrt(10.0)) -> tuple[System, State]:
    """Stiff springs (m), then m + 1 soft quartic ones, between walls [Marazzato2019 sec. 4.3.1].

    The parts "stiff" and "stiff end" are the fast ones: `AsynchronousPseudoEnergy(fast="stiff", ...)`. The start is
    carom's choice for m = 3, the paper prints none; other chains start with the first particle at 0.3.

    Example:
        >>> chain, state = carom.models.slow_fast_chain(3, omega=10**0.5)
    """
    m = _count(m, 2, "m")
    stiffness = 0.25 * real(plain_numbers(omega, "omega", positive=True)) ** 2
    n = 2 * m
    potential = {
        "stiff": Interactions(_square, stencil=(0, 1), where=slice(0, m - 1), weight=stiffness, relative=True),
        "stiff end": Interactions(_square_to_wall, stencil=(0,), where=slice(0, 1), weight=stiffness),
        "soft": Interactions(_quartic, stencil=(0, 1), where=slice(m - 1, n - 1), relative=True),
        "soft end": Interactions(_quartic_to_wall, stencil=(0,), where=slice(n - 1, n)),
    }
    if m == 3:
        return System(1.0, potential), State([0.3, -0.2, 0.5, 0.4, -0.1, 0.2], [0.1, 0.2, -0.3, 0.5, 0.0, -0.4])
    return System(1.0, potential), State(np.eye(n)[0] * 0.3, np.zeros(n))


# ---- the nonlinear string [sec. 3.3] ---------------------------------------------------------------------------------


class StringEnergy(eqx.Module):
    """Integral of V(u_x), V = |u|^2 / 2 - alpha (sqrt((1 + u_1)^2 + u_2^2) - (1 + u_1)), on P1 elements of size dx."""

    alpha: Array
    dx: Array

    def __call__(self, q: Array) -> Array:
        """Energy; q holds the nodes' first components, then the second ones, the ends are fixed."""
        ends = jnp.pad(q.reshape(2, -1), ((0, 0), (1, 1)))
        u1, u2 = jnp.diff(ends, axis=1) / self.dx
        stretch = jnp.sqrt((1 + u1) ** 2 + u2**2) - (1 + u1)
        return self.dx * jnp.sum(0.5 * (u1**2 + u2**2) - self.alpha * stretch)


@model(t1=1.0, method="PseudoEnergy()", h=0.0005, save_every=5)
def nonlinear_string(n: int = 100, alpha: float = 0.99, amplitude: float = 0.3) -> tuple[System, State]:
    """String in the plane, n P1 elements on [0, 1], consistent (tridiagonal) mass [Marazzato2019 (20)].

    At rest in the shape `(0, amplitude sin(2 pi x))`, which is inferred: the paper prints none.

    Example:
        >>> string, state = carom.models.nonlinear_string(100, alpha=0.99, amplitude=0.3)
    """
    dx = 1.0 / _count(n, 3)
    alpha = real(plain_numbers(alpha, "alpha", nonnegative=True))
    if not is_traced(alpha) and alpha >= 1:
        msg = f"alpha must lie in [0, 1), got alpha = {alpha}"
        raise ValueError(msg)
    beside = np.full(2 * n - 3, dx / 6)
    beside[n - 2] = 0.0
    mass = Tridiagonal.symmetric(jnp.full(2 * n - 2, 2 * dx / 3), jnp.asarray(beside))
    x = np.arange(1, n) * dx
    shape = real(plain_numbers(amplitude, "amplitude")) * np.concatenate([np.zeros(n - 1), np.sin(2 * np.pi * x)])
    return System(mass, StringEnergy(jnp.asarray(alpha), jnp.asarray(dx))), State(shape, np.zeros(2 * n - 2))


# ---- layered media [sec. 4.3.2] --------------------------------------------------------------------------------------


def _layered(n: int, speeds: Sequence[float]) -> System:
    """Springs `c^2 / (2 dx^2) (u_{i+1} - u_i)^2` of unit masses (28), n per layer, the ends fixed."""
    layers, size = len(speeds), n * len(speeds) - 1
    weight = [0.5 * (c * n * layers) ** 2 for c in speeds]
    potential = {}
    for i, w in enumerate(weight):
        where = slice(max(i * n - 1, 0), min(i * n + n - 1, size - 1))
        potential[f"layer {i}"] = Interactions(_square, stencil=(0, 1), where=where, weight=w, relative=True)
    potential["left end"] = Interactions(_square_to_wall, stencil=(0,), where=slice(0, 1), weight=weight[0])
    potential["right end"] = Interactions(_square_to_wall, stencil=(0,), where=slice(size - 1, size), weight=weight[-1])
    return System(1.0, potential)


@model(t1=0.2, method="PseudoEnergy()", h=2e-05, save_every=25)
def inhomogeneous_wave(n: int = 2000) -> tuple[System, State]:
    """Wave equation on (0, 1), speed 10 left of 0.5 and 1 right of it, n springs [Marazzato2019 (27), (28)].

    The unknowns are the n - 1 inner nodes; "layer 0" is the fast medium. A pulse runs to the right (the paper's v^0
    with the factor 80 that makes it do so).

    Example:
        >>> wave, state = carom.models.inhomogeneous_wave(2000)
        >>> method = carom.AsynchronousPseudoEnergy("layer 0", ratio=10)
    """
    if _count(n, 4) % 2:
        msg = f"n must be even, so that a node lies at x = 0.5, got n = {n}"
        raise ValueError(msg)
    x = np.arange(1, n) / n
    pulse = np.where(x < 0.5, np.exp(-((20 * (x - 0.2)) ** 2)), 0.0)
    return _layered(n // 2, (10.0, 1.0)), State(1e-2 * pulse, 80.0 * (x - 0.2) * pulse)


def inhomogeneous_wave_exact(x: ArrayLike, t: float, reflections: int = 20) -> np.ndarray:
    """The exact displacement: reflected and transmitted pulses summed [Marazzato2019 sec. 4.3.2].

    Valid until the slow pulses reach the right wall (t < 0.5 + 0.03).
    """
    x = np.asarray(x, float)
    c1, c2 = 10.0, 1.0

    def u0(s: np.ndarray) -> np.ndarray:
        return 1e-2 * np.exp(-((20 * (s - 0.2)) ** 2))

    k = np.arange(reflections)[:, None]
    factor = ((c2 - c1) / (c1 + c2)) ** k
    fast = np.sum(factor * (u0(x + k - c1 * t) - u0(k - x - c1 * t)), 0)
    slow = 2 * c1 / (c1 + c2) * np.sum(factor * u0(c1 / c2 * (x - 0.5) + k + 0.5 - c1 * t), 0)
    return np.where(x < 0.5, fast, slow)


@model(t1=1.0, method="PseudoEnergy()", h=0.0001, save_every=10)
def layered_string(
    n: int = 100, speeds: Sequence[float] = (1.0, 4.0, 16.0), width: float = 0.03
) -> tuple[System, State]:
    """String on (0, 1) of equal layers with given wave speeds, n springs each; a pulse starts to the right in layer 0.

    Example:
        >>> string, state = carom.models.layered_string(100, speeds=(1.0, 4.0, 16.0))
        >>> fast = [("layer 1", "layer 2"), "layer 2"]
        >>> method = carom.AsynchronousPseudoEnergy(fast, ratio=(4, 4))
    """
    c, xp = plain_numbers(speeds, "speeds", positive=True), numpy_for(width)
    numbers(width, "width", positive=True)
    size = _count(n, 4) * c.size
    x = np.arange(1, size) / size
    shape = xp.exp(-(((x - 0.5 / c.size) / width) ** 2))
    return _layered(n, list(c)), State(shape, c[0] * 2 * (x - 0.5 / c.size) / width**2 * shape)


def layered_string_exact(
    t: float, n: int = 100, speeds: Sequence[float] = (1.0, 4.0, 16.0), width: float = 0.03
) -> np.ndarray:
    """The exact displacement of `layered_string` at its nodes, for speeds that are multiples of the slowest.

    Right- and left-going waves move by one cell of a grid of equal travel times per step, and are split at interfaces
    with transmission 2 c_a / (c_a + c_b) and reflection (c_a - c_b) / (c_a + c_b).
    """
    c = np.asarray(speeds, float)
    cells = np.round(n * c.max() / c).astype(int)
    steps = t * c.max() * n * c.size
    if abs(steps - round(steps)) > 1e-9 * steps or not np.allclose(cells * c, n * c.max()):
        msg = f"t must be a multiple of the travel time {1 / (c.max() * n * c.size):g} of a cell of the fastest layer"
        raise ValueError(msg)
    speed, width_of = np.repeat(c, cells), np.repeat(1 / (c.size * cells), cells)
    a, b = speed[:-1], speed[1:]
    right = np.exp(-(((np.cumsum(width_of) - width_of - 0.5 / c.size) / width) ** 2))  # leaving each cell's left node
    left = np.zeros(speed.size)  # leaving each cell's right node
    u = right[1:]
    for _ in range(round(steps)):
        out_right = (2 * a * right[:-1] + (b - a) * left[1:]) / (a + b)
        out_left = (2 * b * left[1:] + (a - b) * right[:-1]) / (a + b)
        u = out_right + left[1:]
        right, left = np.insert(out_right, 0, -left[0]), np.append(out_left, -right[-1])
    starts = np.cumsum(cells) - cells
    nodes = np.concatenate([start + size // n * np.arange(1, n + 1) for start, size in zip(starts, cells)])
    return u[nodes[:-1] - 1]
