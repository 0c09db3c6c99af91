"""James2020 section 3 and appendix A.1: tailored dissipation and the modified equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from carom.tableaux import (
    explicit,
    gauss,
    lobatto_iiib,
    modified,
    order,
    radau_iia,
    stability,
    tailored,
    tailored_coefficients,
    tailored_part,
)

C11S = st.floats(0.0, 1.0)


@settings(max_examples=100, deadline=None)
@given(C11=C11S)
def test_order_conditions_59_hold_to_rounding(C11):
    tableau = tailored(C11)
    c = tableau.A.sum(axis=1)
    terms = 2 * np.abs(tableau.b) @ np.abs(tableau.A) @ np.abs(c)  # size of what cancels: 315 for C11 = 1
    tol = max(1e-14 if C11 <= 0.5 else 0.0, np.finfo(float).eps * terms)
    assert modified.C11(tableau) == pytest.approx(C11, abs=tol)
    assert abs(modified.C22(tableau) - 2 * C11 - C11**2) < tol
    assert abs(modified.C21(tableau) - C11 + C11**2) < tol
    assert abs(modified.lambda1(tableau)) < tol
    assert abs(modified.lambda2(tableau)) < tol


@settings(max_examples=50, deadline=None)
@given(C11=C11S)
def test_stability_polynomials_are_those_of_75(C11):
    P, Q = stability.polynomials(tailored(C11).A, tailored(C11).b)
    a_minus, a_plus = (1 / 12 + sign * C11 / 2 + 3 / 2 * C11**2 for sign in (-1, 1))
    np.testing.assert_allclose(polynomial.polysub(P, [1, 1 / 2 - 2 * C11, a_minus]), 0, atol=3e-14)
    np.testing.assert_allclose(polynomial.polysub(Q, [1, -1 / 2 - 2 * C11, a_plus]), 0, atol=3e-14)


@pytest.mark.parametrize("C11", [0.0, 1e-6, 0.01, 0.236, 1.0, 10.0])
def test_tailored_is_A_stable_and_dissipative_on_the_imaginary_axis(C11):
    tableau = tailored(C11)
    assert tableau.is_A_stable
    omega = np.array([0.5, 1.0, 4.0])
    R = np.abs(tableau.stability_function(1j * omega))
    P, Q = ([1, 1 / 2 - 2 * C11, tableau_a(C11, -1)], [1, -1 / 2 - 2 * C11, tableau_a(C11, 1)])
    gap = C11 * omega**2 * (2 + omega**2 * (1 / 6 + 3 * C11**2))  # A.1, |Q|^2 - |P|^2
    np.testing.assert_allclose(np.abs(polynomial.polyval(1j * omega, Q)) ** 2 * (1 - R**2), gap, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(R, np.abs(polynomial.polyval(1j * omega, P) / polynomial.polyval(1j * omega, Q)))


def tableau_a(C11, sign):
    return 1 / 12 + sign * C11 / 2 + 3 / 2 * C11**2


def test_damping_of_stiff_components_is_strongest_at_one_over_three_root_two():
    best = 1 / (3 * 2**0.5)
    assert tailored(best).stability_at_infinity == pytest.approx(3 - 2 * 2**0.5, abs=1e-14)
    for C11 in (0.9 * best, 1.1 * best):
        assert tailored(C11).stability_at_infinity > 3 - 2 * 2**0.5


def test_without_dissipation_tailored_is_gauss():
    np.testing.assert_allclose(tailored(0.0).A, gauss(2).A, rtol=0, atol=1e-16)
    assert order.order_by_trees(tailored(0.0)) == tailored(0.0).order == 4
    assert order.order_by_trees(tailored(0.1)) == tailored(0.1).order == 1


def test_tailored_coefficients_accept_traced_numbers():
    with jax.enable_x64(True):
        A, b = jax.jit(tailored_coefficients)(0.2)
        assert np.abs(np.array(A) - tailored(0.2).A).max() < 1e-15
        assert np.abs(np.array(b) - tailored(0.2).b).max() < 1e-15
        slope = jax.grad(lambda C11: tailored_part(C11, 0.1)[0][1])(0.2)
        numeric = (tailored_part(0.2 + 1e-6, 0.1)[0][1] - tailored_part(0.2 - 1e-6, 0.1)[0][1]) / 2e-6
        assert slope == pytest.approx(numeric, rel=1e-8)


@settings(max_examples=100, deadline=None)
@given(C11=C11S, eta=st.floats(0.0, 2.0))
def test_additive_conditions_hold_for_a_part_with_its_own_damping(C11, eta):
    A, b = (np.array(values) for values in tailored_coefficients(C11))
    part = np.array(tailored_part(C11, eta))
    c, c_part = A.sum(axis=1), part.sum(axis=1)
    alpha, beta = b @ c_part - 1 / 2, b @ c - 1 / 2
    tol = {"rel": 1e-13, "abs": 2e-14}
    assert alpha + beta == pytest.approx(eta, **tol)
    assert b @ A @ c == pytest.approx(1 / 6 + beta + beta**2 / 2, **tol)
    assert b @ c**2 / 2 == pytest.approx(1 / 6 + beta / 2 - beta**2 / 2, **tol)
    assert b @ part @ c == pytest.approx(1 / 6 + (alpha + beta) / 2 + beta**2 / 2, **tol)
    assert b @ A @ c_part == pytest.approx(1 / 6 + (alpha + beta) / 2 + alpha * beta - beta**2 / 2, **tol)


def test_a_part_with_the_common_damping_uses_the_common_matrix():
    assert np.array(tailored_part(0.3, 0.6)) == pytest.approx(tailored(0.3).A, abs=1e-15)


def _eigenvalue_errors(C11, eta, h):
    """Eigenvalues of log(step) / h against those of x'' = -(K + L) x - (2 C11 h K + eta h L) x', K L != L K."""
    K, L = np.array([[2.0, -0.5], [-0.5, 1.0]]), np.diag([0.3, 1.4])
    Z, I = np.zeros((2, 2)), np.eye(2)
    forces, part = np.block([[Z, I], [-K, Z]]), np.block([[Z, Z], [-L, Z]])
    A, b = (np.array(values) for values in tailored_coefficients(C11))
    stages = np.eye(8) - h * (np.kron(A, forces) + np.kron(np.array(tailored_part(C11, eta)), part))
    step = np.eye(4) + h * np.kron(b, forces + part) @ np.linalg.solve(stages, np.kron(np.ones((2, 1)), np.eye(4)))
    exact = np.linalg.eigvals(np.block([[Z, I], [-(K + L), -h * (2 * C11 * K + eta * L)]]))
    return np.abs(np.sort_complex(np.log(np.linalg.eigvals(step)) / h) - np.sort_complex(exact)).max()


@pytest.mark.parametrize("eta", [0.0, 0.25, 1.0])
def test_two_parts_with_two_dampings_are_imitated_to_third_order(eta):
    errors = [_eigenvalue_errors(0.2, eta, h) for h in (0.04, 0.02, 0.01)]
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx([3, 3], abs=0.2)


def test_constants_of_the_modified_equation_vanish_up_to_the_order():
    for tableau in (gauss(2), radau_iia(3), explicit(4)):
        assert abs(modified.C11(tableau)) + abs(modified.C21(tableau)) + abs(modified.C22(tableau)) < 1e-15
    assert modified.C11(explicit(1)) == -1 / 2
    assert modified.C11(radau_iia(1)) == 1 / 2
    assert modified.C11(lobatto_iiib(2)) == 0
    assert modified.imitated_damping(tailored(0.25), 0.1) == pytest.approx(0.05)


def test_first_correction_explains_the_leading_error_of_implicit_euler():
    def f(y):
        return jnp.stack([y[1], -jnp.sin(y[0])])

    with jax.enable_x64(True):
        y = jnp.array([0.7, 0.2])
        correction = modified.first_correction(radau_iia(1), f, y)
    expected = 0.5 * np.array([-np.sin(0.7), -np.cos(0.7) * 0.2])
    np.testing.assert_allclose(correction, expected, rtol=1e-12)
