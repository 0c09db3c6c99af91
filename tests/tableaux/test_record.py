"""The record itself: what it refuses, how it compares, how it is rebuilt from its name."""

from dataclasses import replace

import numpy as np
import pytest

from carom import tableaux
from carom.tableaux import Tableau, damped, explicit, from_name, gauss, lobatto_iiib, lobatto_iiic, tailored

NAMED = [
    gauss(2),
    tableaux.radau_iia(3),
    tableaux.lobatto_iiia(4),
    lobatto_iiib(2),
    lobatto_iiic(3),
    tableaux.lobatto_iiic_star(3),
    tableaux.lobatto_iiid(3),
    explicit(5),
    tableaux.half_explicit(4),
    tailored(1e-5),
    damped(tableaux.lobatto_iiid(3), 0.2),
    tableaux.conjugate(lobatto_iiic(3)),
    tableaux.adjoint(explicit(4)),
]


@pytest.mark.parametrize("tableau", NAMED, ids=lambda t: t.name)
def test_name_is_the_call_that_rebuilds_the_tableau(tableau):
    assert from_name(tableau.name) == tableau
    assert hash(from_name(tableau.name)) == hash(tableau)


@pytest.mark.parametrize(
    "name", ["", "gauss", "gauss(2", "gauss(s=2)", "2", "__import__('os')", "gauss(True)", "euler(1)", "gauss(1, 2)"]
)
def test_a_name_that_is_no_tableau_is_refused(name):
    with pytest.raises(ValueError, match="must be"):
        from_name(name)


def test_tableaux_with_different_content_differ():
    tableau = gauss(2)
    assert tableau != replace(tableau, name="other")
    assert tableau != replace(tableau, A=tableau.A + np.array([[1e-15, -1e-15], [0, 0]]))
    assert tableau != "gauss(2)"


def test_coefficients_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        gauss(2).A[0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": np.array([0.5, 0.6])}, "b must sum to 1"),
        ({"b_hat": np.array([0.5, 0.6])}, "b_hat must sum to 1"),
        ({"b_hat": np.array([1.0])}, "b_hat needs shape"),
        ({"c": np.array([0.0, 1.0])}, "rows of A must sum to c"),
        ({"A": np.eye(3)}, "need shapes"),
        ({"A": np.full((2, 2), np.nan)}, "A must be finite"),
        ({"order": 0}, "order must be"),
    ],
)
def test_a_record_that_is_no_method_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(gauss(2), **change)


@pytest.mark.parametrize("bad", [0, -1, 1.5, 2.0, "2", True, None])
def test_a_bad_number_of_stages_is_named(bad):
    with pytest.raises(ValueError, match=r"gauss\(s\): s must be an integer >= 1"):
        gauss(bad)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"lobatto_iiic\(s\): s must be an integer >= 2; got 1"):
        lobatto_iiic(1)
    with pytest.raises(ValueError, match="from 1 to 5"):
        explicit(6)
    with pytest.raises(ValueError, match="base must be lobatto_iiid"):
        damped(lobatto_iiib(3), 0.1)
    with pytest.raises(ValueError, match=r"beta must lie in \[0, 1\]"):
        damped(tableaux.lobatto_iiid(3), 1.1)
    with pytest.raises(ValueError, match="C11"):
        tailored(-0.1)
    with pytest.raises(ValueError, match="rho_inf"):
        tableaux.beta_for(2.0)
    with pytest.raises(ValueError, match="weights without zeros"):
        tableaux.conjugate(explicit(5))


def test_predicates_are_computed_from_the_coefficients():
    assert explicit(4).is_explicit
    assert explicit(4).first_stage_explicit
    assert not gauss(1).is_explicit
    assert explicit(5).is_stiffly_accurate
    assert tableaux.radau_iia(3).is_stiffly_accurate
    assert not gauss(3).is_stiffly_accurate
    assert gauss(5).is_invertible
    assert not tableaux.lobatto_iiia(5).is_invertible
    assert repr(gauss(2)) == "<gauss(2): 2 stages, order 4>"
    assert Tableau([[0.5]], [1.0], [0.5], 2, "midpoint").stages == 1
