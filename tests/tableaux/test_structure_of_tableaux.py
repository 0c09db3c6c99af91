"""Symplecticity, symmetry, W-transforms, stability and damping as Jay1998 states them."""

from math import comb, factorial

import numpy as np
import pytest

from carom import tableaux
from carom.tableaux import (
    adjoint,
    beta_for,
    conjugate,
    damped,
    explicit,
    gauss,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    order,
    radau_iia,
    structure,
)

STAGES = pytest.mark.parametrize("s", range(2, 7))


def close(left, right, tol=1e-15):
    return np.abs(left - right).max() < tol


@STAGES
def test_iiia_and_iiib_are_a_symplectic_pair(s):
    assert structure.is_symplectic_pair(lobatto_iiia(s), lobatto_iiib(s))
    assert structure.is_symplectic_pair(lobatto_iiib(s), lobatto_iiia(s))
    assert not structure.is_symplectic_pair(lobatto_iiia(s), lobatto_iiic(s))
    assert close(conjugate(lobatto_iiia(s)).A, lobatto_iiib(s).A)
    assert conjugate(lobatto_iiia(s)).order == 2 * s - 2


@STAGES
def test_symplectic_and_symmetric_methods_are_those_of_the_paper(s):
    families = [gauss, radau_iia, lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star, lobatto_iiid]
    assert [f(s).is_symplectic for f in families] == [True, False, False, False, False, False, True]
    assert [f(s).is_symmetric for f in families] == [True, False, True, True, False, False, True]


@STAGES
def test_iiic_star_is_both_conjugates_of_iiic(s):
    assert structure.are_symmetrically_conjugate(lobatto_iiic(s), lobatto_iiic_star(s))
    assert close(adjoint(lobatto_iiic(s)).A, lobatto_iiic_star(s).A)
    assert close(conjugate(lobatto_iiic(s)).A, lobatto_iiic_star(s).A)


@STAGES
def test_iiid_is_the_mean_of_iiic_and_iiic_star(s):
    assert close((lobatto_iiic(s).A + lobatto_iiic_star(s).A) / 2, lobatto_iiid(s).A)


@STAGES
def test_conjugate_and_adjoint_are_involutions(s):
    for tableau in (radau_iia(s), lobatto_iiic(s)):
        assert close(conjugate(conjugate(tableau)).A, tableau.A)
        assert close(adjoint(adjoint(tableau)).A, tableau.A)
        assert order.verified_order(adjoint(tableau)) == tableau.order


def test_the_conjugate_of_explicit_euler_is_implicit():
    assert conjugate(explicit(1)).A.tolist() == [[1.0]]


def printed_w_transform(s, below, beside, corner):
    """The matrices X^(1)...X^(5) of Lemma 8.1 and sec. 8.1; the arguments are factors in the last row and column."""
    zeta = 1 / (2 * np.sqrt(4 * np.arange(1, s) ** 2 - 1))
    sigma = (2 * s - 1) / (s - 1)
    X = np.diag(zeta, -1) - np.diag(zeta, 1)
    X[0, 0] = 0.5
    X[-1, -2] *= sigma * below
    X[-2, -1] *= sigma * beside
    X[-1, -1] += corner * sigma / (2 * s - 2)
    return X


@STAGES
def test_w_transforms_are_those_of_lemma_8_1(s):
    printed = {lobatto_iiia: (1, 0, 0), lobatto_iiib: (0, 1, 0), lobatto_iiic: (1, 1, 1), lobatto_iiid: (1, 1, 0)}
    printed[lobatto_iiic_star] = (1, 1, -1)
    for family, entries in printed.items():
        assert close(structure.w_transform(family(s)), printed_w_transform(s, *entries), 1e-14)
    W = structure.legendre_matrix(lobatto_iiia(s))
    sigma = (2 * s - 1) / (s - 1)
    assert close((W.T * lobatto_iiia(s).b) @ W, np.diag([1.0] * (s - 1) + [sigma]), 1e-14)


def pade(k, j, z):
    """The (k, j) approximation of Pade to exp(z)."""

    def polynomial(m, n, x):
        return sum(comb(m, i) * factorial(m + n - i) / factorial(m + n) * x**i for i in range(m + 1))

    return polynomial(k, j, z) / polynomial(j, k, -z)


@STAGES
def test_stability_functions_are_pade_approximations(s):
    z = np.array([[0.3 + 1j, -2.1], [1.3, -4 - 3j]])
    for tableau, k, j in [
        (gauss(s), s, s),
        (radau_iia(s), s - 1, s),
        (lobatto_iiia(s), s - 1, s - 1),
        (lobatto_iiib(s), s - 1, s - 1),
        (lobatto_iiic(s), s - 2, s),
        (lobatto_iiic_star(s), s, s - 2),
    ]:
        assert close(tableau.stability_function(z) / pade(k, j, z), 1, 1e-11)


@STAGES
def test_stability_classes_are_those_of_section_5(s):
    assert radau_iia(s).is_L_stable
    assert lobatto_iiic(s).is_L_stable
    for symmetric in (gauss(s), lobatto_iiia(s), lobatto_iiib(s), lobatto_iiid(s)):
        assert symmetric.is_A_stable
        assert not symmetric.is_L_stable
        assert abs(symmetric.stability_at_infinity) == pytest.approx(1, abs=1e-10)
    assert not lobatto_iiic_star(s).is_A_stable
    assert structure.is_unconditionally_explosive(lobatto_iiic_star(s))
    assert not structure.is_explosive(lobatto_iiic(s))
    assert structure.is_explosive(gauss(s))
    assert not structure.is_unconditionally_explosive(gauss(s))


def test_explicit_methods_are_not_A_stable_and_grow_at_infinity():
    assert not explicit(4).is_A_stable
    assert explicit(4).stability_at_infinity == float("inf")
    assert explicit(4).stability_function(-1.0) == pytest.approx(1 - 1 + 1 / 2 - 1 / 6 + 1 / 24)


@STAGES
def test_algebraic_stability_and_dilatation_are_those_of_section_6_4(s):
    assert structure.is_algebraically_stable(lobatto_iiic(s))
    assert structure.is_dilatative(lobatto_iiic_star(s))
    assert not structure.is_algebraically_stable(lobatto_iiic_star(s))
    assert not structure.is_dilatative(lobatto_iiic(s))
    assert structure.is_dilatative(lobatto_iiid(s))
    assert not structure.is_algebraically_stable(lobatto_iiia(s))


@pytest.mark.parametrize(("s", "end"), [(2, 2.0), (3, 8**0.5), (4, 3.112717648), (5, 3.140445101)])
def test_the_pair_iiia_iiib_has_a_bounded_interval_of_periodicity(s, end):
    assert structure.interval_of_periodicity(lobatto_iiia(s), lobatto_iiib(s)) == pytest.approx(end, abs=1e-8)
    assert not structure.is_P_stable(lobatto_iiia(s), lobatto_iiib(s))


def test_the_end_of_the_interval_of_periodicity_is_where_powers_start_to_grow():
    pair = lobatto_iiia(5), lobatto_iiib(5)
    end = structure.interval_of_periodicity(*pair)
    inside, outside = structure.oscillator_matrix(*pair, [end - 5e-4, end + 5e-4])
    assert np.abs(np.linalg.eigvals(inside)).max() == pytest.approx(1, abs=1e-12)
    assert np.abs(np.linalg.eigvals(outside)).max() > 1 + 1e-4


@pytest.mark.parametrize("s", [2, 3, 4])
def test_symmetric_methods_are_P_stable_and_damped_ones_are_not(s):
    for family in (gauss, lobatto_iiia, lobatto_iiib, lobatto_iiid):
        assert structure.is_P_stable(family(s))
    assert not structure.is_P_stable(lobatto_iiic(s))


def test_one_step_of_the_oscillator_approximates_a_rotation():
    mu = 0.1
    rotation = np.array([[np.cos(mu), np.sin(mu)], [-np.sin(mu), np.cos(mu)]])
    assert close(structure.oscillator_matrix(lobatto_iiia(4), lobatto_iiib(4), mu), rotation, 1e-10)


@pytest.mark.parametrize("s", [2, 3, 4, 5])
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_damping_split_of_iiid_has_the_stated_limit_and_keeps_the_order(s, beta):
    tableau = damped(lobatto_iiid(s), beta)
    assert abs(tableau.stability_at_infinity) == pytest.approx((1 - beta) / (1 + beta), abs=1e-12)
    assert tableau.is_A_stable
    assert structure.is_algebraically_stable(tableau)
    assert order.order_by_trees(tableau) == tableau.order == 2 * s - 2


@pytest.mark.parametrize("s", [2, 3, 4])
def test_damping_split_of_iiia_is_L_stable_for_every_positive_fraction(s):
    tableau = damped(lobatto_iiia(s), 0.05)
    assert tableau.is_stiffly_accurate
    assert tableau.is_L_stable
    assert order.order_by_trees(tableau) == 2 * s - 2


def test_full_damping_is_lobatto_iiic():
    assert close(damped(lobatto_iiid(3), 1.0).A, lobatto_iiic(3).A)


def test_beta_for_inverts_the_limit():
    tableau = damped(lobatto_iiid(3), beta_for(0.8))
    assert abs(tableau.stability_at_infinity) == pytest.approx(0.8)


def test_pairs_on_different_nodes_are_refused():
    with pytest.raises(ValueError, match="share weights and nodes"):
        structure.is_symplectic_pair(gauss(3), tableaux.lobatto_iiia(3))
