"""Generated families against published tables, defining conditions and rooted trees."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from carom import tableaux
from carom.tableaux import explicit, gauss, half_explicit, lobatto_iiia, lobatto_iiib, order, radau_iia, trees

SQRT15 = 15**0.5
SQRT6 = 6**0.5
LOBATTO = ["lobatto_iiia", "lobatto_iiib", "lobatto_iiic", "lobatto_iiic_star", "lobatto_iiid"]

#: Jay1998 Tables 1, 2 and 3; the third row of the 3-stage IIID as corrected in ERRATA.
TABLES = {
    "lobatto_iiia(2)": "0 0; 1/2 1/2",
    "lobatto_iiib(2)": "1/2 0; 1/2 0",
    "lobatto_iiic(2)": "1/2 -1/2; 1/2 1/2",
    "lobatto_iiic_star(2)": "0 0; 1 0",
    "lobatto_iiid(2)": "1/4 -1/4; 3/4 1/4",
    "lobatto_iiia(3)": "0 0 0; 5/24 1/3 -1/24; 1/6 2/3 1/6",
    "lobatto_iiib(3)": "1/6 -1/6 0; 1/6 1/3 0; 1/6 5/6 0",
    "lobatto_iiic(3)": "1/6 -1/3 1/6; 1/6 5/12 -1/12; 1/6 2/3 1/6",
    "lobatto_iiic_star(3)": "0 0 0; 1/4 1/4 0; 0 1 0",
    "lobatto_iiid(3)": "1/12 -1/6 1/12; 5/24 1/3 -1/24; 1/12 5/6 1/12",
}
WEIGHTS = {2: "1/2 1/2", 3: "1/6 2/3 1/6"}
NODES = {2: "0 1", 3: "0 1/2 1"}

#: Family: the largest p, q, r of B(p), C(q), D(r) (Jay1998 sec. 8 and 8.1; Hairer and Wanner, ODEs II, Table IV.5.13).
ASSUMPTIONS = {
    "gauss": lambda s: (2 * s, s, s),
    "radau_iia": lambda s: (2 * s - 1, s, s - 1),
    "lobatto_iiia": lambda s: (2 * s - 2, s, s - 2),
    "lobatto_iiib": lambda s: (2 * s - 2, s - 2, s),
    "lobatto_iiic": lambda s: (2 * s - 2, s - 1, s - 1),
    "lobatto_iiic_star": lambda s: (2 * s - 2, s - 1, s - 1),
    "lobatto_iiid": lambda s: (2 * s - 2, s - 1, s - 1),
}
BUILDERS = {name: getattr(tableaux, name) for name in ASSUMPTIONS}


def fractions(row):
    return [float(Fraction(entry)) for entry in row.split()]


@pytest.mark.parametrize("name", TABLES)
def test_lobatto_matches_the_tables_of_jay1998_to_the_last_bit(name):
    tableau = tableaux.from_name(name)
    assert tableau.A.tolist() == [fractions(row) for row in TABLES[name].split(";")]
    assert tableau.b.tolist() == fractions(WEIGHTS[tableau.stages])
    assert tableau.c.tolist() == fractions(NODES[tableau.stages])


def test_gauss_and_radau_match_published_tables():
    third = [5 / 36, 2 / 9 - SQRT15 / 15, 5 / 36 - SQRT15 / 30]
    np.testing.assert_allclose(gauss(3).A[0], third, rtol=0, atol=1e-16)
    np.testing.assert_allclose(
        gauss(2).A, [[1 / 4, 1 / 4 - 3**0.5 / 6], [1 / 4 + 3**0.5 / 6, 1 / 4]], rtol=0, atol=1e-16
    )
    assert gauss(1).A.tolist() == [[0.5]]
    assert radau_iia(1).A.tolist() == [[1.0]]
    assert radau_iia(2).A.tolist() == [[5 / 12, -1 / 12], [3 / 4, 1 / 4]]
    row = [(88 - 7 * SQRT6) / 360, (296 - 169 * SQRT6) / 1800, (-2 + 3 * SQRT6) / 225]
    np.testing.assert_allclose(radau_iia(3).A[0], row, rtol=0, atol=1e-16)


@pytest.mark.parametrize("s", range(2, 9))
@pytest.mark.parametrize("family", BUILDERS)
def test_simplifying_assumptions_hold_to_rounding_and_no_further(family, s):
    tableau = BUILDERS[family](s)
    p, q, r = ASSUMPTIONS[family](s)
    assert max(tableau.B(p), tableau.C(q), tableau.D(r)) < 2e-15
    assert min(tableau.B(p + 1), tableau.C(q + 1), tableau.D(r + 1)) > 1e-11


@pytest.mark.parametrize("s", range(2, 9))
def test_lobatto_families_have_their_structural_zeros_and_equal_entries_exactly(s):
    A, B, C, star, _ = (BUILDERS[family](s) for family in LOBATTO)
    assert A.first_stage_explicit
    assert star.first_stage_explicit
    assert A.A[-1].tolist() == A.b.tolist() == C.A[-1].tolist()
    assert not B.A[:, -1].any()
    assert not star.A[:, -1].any()
    assert (B.A[:, 0] == B.b[0]).all()
    assert (C.A[:, 0] == C.b[0]).all()


STAGES_OF_FAMILIES = [(family, s) for family in BUILDERS for s in range(2 if family in LOBATTO else 1, 7)]


@pytest.mark.parametrize(("family", "s"), STAGES_OF_FAMILIES)
def test_declared_order_is_the_order_by_trees(family, s):
    tableau = BUILDERS[family](s)
    assert order.verified_order(tableau) == tableau.order
    assert order.order_by_trees(tableau) == min(8, tableau.order)


@pytest.mark.parametrize(
    "tableau", [*map(explicit, range(1, 6)), *map(half_explicit, range(1, 5))], ids=lambda t: t.name
)
def test_explicit_tables_have_their_declared_order(tableau):
    assert tableau.is_explicit
    assert order.order_by_trees(tableau) == tableau.order


def test_embedded_weights_of_dormand_prince_have_order_four():
    tableau = explicit(5)
    assert order.order_by_trees(replace(tableau, b=tableau.b_hat, order=4, name="embedded")) == 4


def test_numbers_of_rooted_trees_are_those_of_cayley():
    assert [len(trees.rooted_trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    assert [len(trees.rooted_trees(n, 2)) for n in range(1, 4)] == [1, 2, 7]


def test_density_of_the_tall_tree_is_a_factorial():
    tall = ()
    for _ in range(5):
        tall = ((0, tall),)
    assert trees.tree_order(tall) == 6
    assert trees.density(tall) == 720


def test_lobatto_iiib_with_two_stages_has_row_sums_one_half():
    tableau = lobatto_iiib(2)
    assert not tableau.row_sums_are_c
    assert tableau.A.sum(axis=1).tolist() == [0.5, 0.5]
    assert tableau.c.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("s", range(2, 7))
def test_theorem_4_5_gives_2s_minus_2_for_lobatto_spark(s):
    others = [BUILDERS[family](s) for family in LOBATTO[1:]]
    assert order.satisfies_21(lobatto_iiia(s), others)
    assert order.theorem_4_5_order(lobatto_iiia(s), others) == (2 * s - 2, 2 * s - 2)
    for other in others:
        assert order.CC(lobatto_iiia(s), other, s) < 1e-15
        assert order.DD(lobatto_iiia(s), other, s) < 1e-15
    assert order.largest_CC(lobatto_iiia(s), others[0]) == s


def test_theorem_4_5_names_the_hypothesis_that_fails():
    with pytest.raises(ValueError, match="S1"):
        order.theorem_4_5_order(lobatto_iiib(3), [lobatto_iiia(3)])
    with pytest.raises(ValueError, match=r"\(21\)"):
        order.theorem_4_5_order(lobatto_iiia(3), [lobatto_iiib(3), lobatto_iiia(3)])
    with pytest.raises(ValueError, match="share weights and nodes"):
        order.theorem_4_5_order(lobatto_iiia(3), [gauss(3)])


@pytest.mark.parametrize("s", [2, 3])
def test_five_lobatto_families_used_together_keep_order_2s_minus_2(s):
    assert order.additive_order_by_trees([BUILDERS[family](s) for family in LOBATTO], max_order=2 * s - 1) == 2 * s - 2


def test_additive_trees_see_a_partner_that_lowers_the_order():
    wrong = replace(lobatto_iiia(3), A=np.outer(lobatto_iiia(3).c, lobatto_iiia(3).b), name="wrong")
    assert order.additive_order_by_trees([lobatto_iiia(3), wrong]) == 2


def _half_explicit_pendulum(tableau, steps):
    """One second of a pendulum in index-2 form: q' = v, v' = gravity - q lambda, q . v = 0, solved half-explicitly."""
    h, (A, b, s) = 1.0 / steps, (tableau.A, tableau.b, tableau.stages)
    rows = np.vstack([A[1:], b])
    y = np.array([1.0, 0.0, 0.0, -0.3])
    for _ in range(steps):
        stage, slopes = y, np.zeros((s, 4))
        for i in range(s):
            slopes[i] = [*stage[2:], 0.0, -1.0]
            free = y + h * rows[i, : i + 1] @ slopes[: i + 1]
            multiplier = free[:2] @ free[2:] / (h * rows[i, i] * free[:2] @ stage[:2]) if rows[i, i] else 0.0
            slopes[i, 2:] -= multiplier * stage[:2]
            stage = y + h * rows[i, : i + 1] @ slopes[: i + 1]
        y = stage
    return y


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_half_explicit_tables_keep_their_order_on_a_pendulum_of_index_two(p):
    reference = _half_explicit_pendulum(half_explicit(4), 800)
    errors = [np.abs(_half_explicit_pendulum(half_explicit(p), n) - reference).max() for n in (20, 40, 80)]
    slopes = np.log2(np.divide(errors[:-1], errors[1:]))
    assert slopes == pytest.approx([p, p], abs=0.3)
