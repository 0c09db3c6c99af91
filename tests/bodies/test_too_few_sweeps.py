"""A rigid chain solved by too few sweeps looks elastic [Unger2002]; solved to a tolerance it is rigid."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.solvers.gauss_seidel import sweeps_of
from carom.systems.first_lists import first_pairs

N, H, STEPS = 128, 0.01, 400
RING = carom.Bodies(N, dof=3)
K = 2 * np.pi / N


class Relaxed(AbstractContactSolver):
    """So many sweeps from the guess, and no more."""

    sweeps: jax.Array
    needs_matrix = False

    def __call__(self, problem, guess):
        return self.solve(problem, guess)

    def solve(self, problem, guess):
        P = jax.lax.fori_loop(0, self.sweeps, lambda _, P: self.swept(problem, P), guess)
        none = jnp.zeros((), jnp.int32)
        return ContactResult(P, jnp.zeros(()), none, none)


class Coloured(Relaxed):
    def swept(self, problem, P):
        by_colours = sweeps_of(problem)
        x = by_colours.start(P)
        return by_colours.impulses(by_colours.sweep(x, x, jnp.zeros(()))[0])


class Jacobi(Relaxed):
    def swept(self, problem, P):
        return P - problem.equation(P)


@eqx.filter_jit
def amplitudes(system, state, solver):
    """The velocities of the longest wave, step by step."""
    method = carom.MoreauMidpoint(solver=solver)

    def one(carry, _):
        state, pairs = carry
        step = method.step(system.since(0.0, pairs), state, method.init(system.since(0.0, pairs), state), H)
        return (step.state, step.pairs), jnp.vdot(jnp.cos(K * np.arange(N)), step.state.v[::3])

    return jax.lax.scan(one, (state, system.pairs), length=STEPS)[1]


@pytest.fixture(scope="module")
def ring():
    """Disks in a channel that closes on itself, pressed together, with a wave of small velocities."""
    search = carom.CellList(2.0, 0.2, box=carom.Periodic([N * 1.999, None]))
    q = np.column_stack([1.999 * np.arange(N), np.zeros(N), np.zeros(N)])
    v = np.column_stack([1e-6 * np.cos(K * np.arange(N)), np.zeros(N), np.zeros(N)])
    system = carom.System(1.0, contacts=carom.Contacts.between(RING, carom.shapes.disk, data=1.0, search=search))
    state = carom.State(q.ravel(), v.ravel())
    pairs = first_pairs(system, state, 0.0)
    pressed = eqx.tree_at(lambda p: p.force[0], pairs, pairs.force[0].at[0].set(pairs.found[0].valid * 1.0))
    return system.since(0.0, pressed), state


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "q", "seen"), [(Coloured, 1.0, slice(20, None)), (Jacobi, 0.5, slice(0, 40))])
@pytest.mark.parametrize("sweeps", [1, 4, 16])
def test_long_waves_run_through_a_chain_that_is_swept_too_little(ring, kind, q, seen, sweeps):
    """F'' + (q n D / h) F' + (q n D / h^2) F = 0 with n sweeps and D = 2 - 2 cos k.

    A sweep by colours brings about a short wave first, which dies out; with Jacobi's the shortest ones grow in time.
    """
    A = np.asarray(amplitudes(*ring, kind(jnp.asarray(sweeps))))[seen]
    ahead, now, before = A[2:], A[1:-1], A[:-2]
    rates = np.log(np.roots([1.0, *-np.linalg.lstsq(np.column_stack([now, before]), ahead)[0]]).astype(complex)) / H
    stiffness = q * sweeps * (2 - 2 * np.cos(K)) / H**2
    assert np.prod(rates).real == pytest.approx(stiffness, rel=1e-2)
    assert -np.sum(rates).real == pytest.approx(stiffness * H, rel=1e-2)


@pytest.mark.slow
def test_no_wave_runs_through_a_chain_that_is_solved(ring):
    A = amplitudes(*ring, carom.AcceleratedGaussSeidel(tol=1e-12, max_iter=100_000))
    assert np.abs(A).max() < 1e-6 * 0.5e-6 * N
