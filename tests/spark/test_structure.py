import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.spark.spark import stiffness
from carom.tableaux import lobatto_iiic, lobatto_iiid

from .problems import bent_system

measures = carom.measures


def gravity(q):
    return q[1] + q[3]


def extra(q):
    return jnp.sin(q[0] * q[3]) + q[2] ** 4


def mass(q):
    return jnp.eye(4) + 0.3 * jnp.outer(jnp.sin(q), jnp.sin(q))


def tangled_double_pendulum():
    """Double pendulum with a nonlinear extra force and a mass matrix that depends on q."""
    plain, state = carom.models.double_pendulum(angles=(1.0, 2.0), rates=(0.5, -1.0))
    return carom.System(mass, {"gravity": gravity, "extra": extra}, constraints=plain.constraints), state


@pytest.mark.parametrize(("kinematic", "letter"), [("A", "B"), ("C", "C"), ("D", "D"), ("A", "C")])
def test_only_lobatto_a_b_keeps_the_symplectic_form_on_the_manifold(kinematic, letter):
    system, state = tangled_double_pendulum()
    families = {"kinematic": kinematic, **dict.fromkeys(("inertia", "constraint", "gravity", "extra"), letter)}
    method = carom.Spark(3, families=families, newton=carom.Newton(1e-15, 60, "full"))
    defect = measures.symplectic_defect(system, state, method, h=0.3)
    assert defect < 1e-13 if letter == "B" else defect > 1e-6


def test_reversible_steps_return_to_the_start_after_200_steps_each_way():
    system, state = carom.models.pendulum(rate=0.0)
    defect = measures.reversibility_defect(system, state, carom.Spark(3), carom.Reversible(1e-6), steps=200)
    assert defect < 1e-10


@pytest.mark.slow
def test_energy_of_the_pendulum_shows_no_drift_over_1e5_steps():
    system, state = carom.models.pendulum(rate=0.0)
    sol = carom.simulate(system, state, carom.Spark(3), t1=1e4, h=0.1, save_every=97)
    slope, bound = measures.energy_drift(sol)
    assert sol.stats["accepted"] == 100_000
    assert bound < 7e-7
    assert abs(slope) * 1e4 < 1e-2 * bound
    assert np.abs(np.sum(sol.q**2, 1) - 1.0).max() < 1e-13
    assert np.abs(np.sum(sol.q * sol.v, 1)).max() < 1e-13


@pytest.mark.slow
def test_backward_steps_undo_damped_and_driven_steps():
    system, state = bent_system()
    method = carom.Spark(3)
    step = jax.jit(lambda state, memory, h: method.step(system, state, memory, h))
    there = step(state, method.init(system, state), jnp.asarray(0.2))
    end = step(there.state, there.memory, jnp.asarray(-0.2)).state
    assert np.abs(end.q - state.q).max() < 1e-13
    assert np.abs(end.v - state.v).max() < 1e-13


@pytest.mark.slow
def test_spherical_pendulum_keeps_angular_momentum_about_the_vertical():
    system, state = carom.models.spherical_pendulum(angle=1.2, rate=0.4, spin=0.7)
    sol = carom.simulate(system, state, carom.Spark(3), t1=20.0, h=0.1)
    about_z = measures.angular_momentum(system, sol, dim=3)[:, 2]
    S = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.abs(about_z - about_z[0]).max() < 1e-13
    assert np.allclose(measures.quadratic_invariant(system, sol, S), about_z, atol=1e-15)
    projected = measures.project_energy(system, sol)
    energies = 0.5 * np.sum(projected**2, 1) + sol.q[:, 2]
    assert np.abs(energies - energies[0]).max() < 1e-14


@pytest.mark.parametrize("s", [2, 3, 4])
@pytest.mark.parametrize("beta", [0.0, 0.2, 0.7])
def test_damping_split_has_spectral_radius_1_minus_beta_over_1_plus_beta_at_infinity(s, beta):
    method = carom.Spark(s, damping={"conservative": beta})
    A, b = np.asarray(method.families["conservative"]), lobatto_iiid(s).b
    assert np.allclose(A, (1 - beta) * lobatto_iiid(s).A + beta * lobatto_iiic(s).A)
    assert np.allclose(method.families["kinematic"], A)
    assert abs(abs(1 - b @ np.linalg.solve(A, np.ones(s))) - (1 - beta) / (1 + beta)) < 1e-12


@pytest.mark.slow
def test_numerical_damping_of_the_frame_keeps_its_ties():
    system, state = carom.models.structural_frame()
    method = carom.Spark(3, damping={"conservative": 0.2})
    sol = carom.simulate(system, state, method, t1=1.0, h=0.05)
    assert np.abs(sol.q[:, 3] - sol.q[:, 7]).max() < 1e-13
    assert np.abs(sol.v[:, 3] - sol.v[:, 7]).max() < 1e-13


@pytest.mark.slow
def test_the_solver_is_chosen_by_the_stiffness_of_the_forces():
    squeezer, squeezed = carom.models.andrews_squeezer()
    stiff, start = carom.models.stiff_spring_pendulum()
    assert carom.Spark(3).tuned(squeezer, squeezed, 5e-5).newton.strategy == "shared"
    assert carom.Spark(3).tuned(stiff, start, 0.12).newton.strategy == "full"
    assert stiffness(stiff, start, 0.12) > 1e9


def test_rattle_is_lobatto_a_b_with_two_stages():
    assert carom.RATTLE().order == 2
    assert carom.LobattoIIIAB(4).order == 6
    assert np.array_equal(carom.RATTLE().families["dissipative"], [[0.5, 0.0], [0.5, 0.0]])


def test_the_damping_split_damps_a_stiff_mode_by_its_radius_in_every_step():
    system, state = carom.System(1.0, lambda q: 0.5 * 1e12 * q @ q), carom.State([1e-6], [0.0])
    sol = carom.simulate(system, state, carom.Spark(3, damping={"conservative": 0.2}), t1=1.0, h=0.1)
    size = np.abs(sol.q[:, 0])
    assert np.allclose(size[1:] / size[:-1], 0.8 / 1.2, rtol=1e-4)
