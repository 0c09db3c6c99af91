"""The stability limit: found without matrices, kept by refusing, warned about when it falls."""

import jax
import numpy as np
import pytest

import carom
from carom.models.media import inhomogeneous_wave_exact, layered_string_exact


def test_limit_of_the_chain_is_that_of_its_dense_hessian():
    system, state = carom.models.fermi_pasta_ulam(3, omega=50.0)
    hessian = jax.jit(jax.hessian(lambda q: system.potential_energy(0.0, q)))(state.q)
    assert carom.stability_limit(system, state) == pytest.approx(
        2 / np.sqrt(np.linalg.eigvalsh(hessian)[-1]), rel=1e-10
    )


def test_limit_of_a_long_wave_is_dx_over_c_within_a_part_in_a_thousand():
    assert carom.stability_limit(*carom.models.inhomogeneous_wave(2000)) == pytest.approx(0.1 / 2000, rel=1e-3)


def test_limit_of_the_string_with_its_consistent_mass_is_near_the_paper_s_largest_step():
    assert carom.stability_limit(*carom.models.nonlinear_string(100, 0.99, 0.3)) == pytest.approx(0.0055, rel=0.06)


@pytest.fixture(scope="module")
def oscillator():
    return carom.System(1.0, lambda q: 50.0 * q[0] ** 2), carom.State([1.0], [0.0])


@pytest.mark.parametrize("method", [carom.PseudoEnergy(), carom.StormerVerlet()])
def test_a_step_above_the_limit_is_refused_with_the_limit(oscillator, method):
    with pytest.raises(ValueError, match=r"above the stability limit 0\.2 .*beyond_limit=True"):
        carom.simulate(*oscillator, method, t1=1.0, h=0.21)


def test_a_step_above_the_limit_runs_when_told(oscillator):
    with pytest.warns(carom.StabilityWarning, match="above the pseudo-energy"):
        solution = carom.simulate(*oscillator, carom.PseudoEnergy(beyond_limit=True), t1=10.0, h=0.21)
    assert abs(solution.q[-1, 0]) > 10


def test_a_step_at_the_limit_is_warned_about(oscillator):
    with pytest.warns(carom.StabilityWarning, match="at the stability limit"):
        carom.simulate(*oscillator, carom.StormerVerlet(), t1=1.0, h=0.2)


def test_a_limit_that_falls_during_the_run_is_warned_about():
    hardening = carom.System(1.0, lambda q: 0.25 * q[0] ** 4)
    with pytest.warns(carom.StabilityWarning, match="lies above the stability limit there"):
        carom.simulate(hardening, carom.State([0.0], [40.0]), carom.PseudoEnergy("gauss-2"), t1=0.8, h=0.2)


def test_exact_solutions_of_the_layered_media_agree():
    n = 60
    x = np.arange(1, 2 * n) / (2 * n)
    left = inhomogeneous_wave_exact(x, 0.0)
    assert np.argmax(left) == np.argmin(np.abs(x - 0.2))
    assert np.max(np.abs(layered_string_exact(0.25, 20) - layered_string_exact(0.25, 40)[1::2])) < 1e-12


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: carom.PseudoEnergy("simpson"), "quadrature"),
        (lambda: carom.PseudoEnergy("lobatto-1"), "quadrature"),
        (lambda: carom.PseudoEnergy(start="cold"), "start"),
        (lambda: carom.models.nonlinear_string(100, alpha=1.0), "alpha"),
        (lambda: carom.models.inhomogeneous_wave(7), "even"),
        (lambda: carom.System(np.array([[1.0, 0.2], [0.1, 1.0]])), "symmetric"),
        (lambda: carom.System(carom.Tridiagonal(np.array([0.0, 0.2]), np.ones(2), np.array([0.1, 0.0]))), "symmetric"),
    ],
)
def test_bad_arguments_are_refused_by_name(build, word):
    with pytest.raises(ValueError, match=word):
        build()


def test_forces_declared_opposite_must_be_so():
    tilted = carom.Interactions(lambda a, b: (b - a) ** 2 + a * b, stencil=(0, 1), relative=True)
    with pytest.raises(ValueError, match="relative=True, but the forces"):
        carom.check(carom.System(1.0, tilted), carom.State([0.1, 0.4, 0.2], [0.0, 0.0, 0.0]))
