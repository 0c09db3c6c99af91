"""James2020: one number per statement of the paper; the full curves are in `carom paper james2020`.

Here the trimer, binary collisions and appendix A.1; the longer chains are in test_james2020_chains.py.
"""

import numpy as np
import pytest

from carom.measures import observed_order
from carom.papers.james2020 import common, items, theory, trimer

# ---- the trimer: orders of convergence (Figs 2, 3, 6) ---------------------------------------------------------------

H = np.array([0.01, 0.005, 0.002, 0.001, 5e-4, 2.5e-4])
COARSE = np.array([0.15, 0.1, 0.075, 0.05, 0.025, 0.0125])
CN_V, CN_W, GL_V, GL_W = common.DIRECT


@pytest.fixture(scope="module")
def impact_errors():
    return trimer.direct_errors(trimer.with_impact(), H, node=2.5e-4, fine=2.5e-5)


@pytest.fixture(scope="module")
def unbroken_errors():
    return trimer.direct_errors(trimer.without_breaking(), COARSE, node=0.0125, fine=2.5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "order", "tol"), [(CN_W, 2.0, 0.05), (CN_V, 1.6, 0.15), (GL_V, 1.6, 0.2), (GL_W, 2.5, 0.2)]
)
def test_impacts_reduce_the_order_except_for_crank_nicolson_on_regular_variables(impact_errors, scheme, order, tol):
    assert observed_order(H, impact_errors[scheme]) == pytest.approx(order, abs=tol)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "order"), [(CN_W, 2), (CN_V, 2), (GL_V, 4), (GL_W, 4)])
def test_full_order_is_kept_while_no_contact_breaks(unbroken_errors, scheme, order):
    assert observed_order(COARSE, unbroken_errors[scheme]) == pytest.approx(order, abs=0.05)


@pytest.mark.slow
def test_tailored_methods_have_orders_2_and_3_without_breaking_for_damping_equal_to_h():
    errors = trimer.tailored_errors(trimer.without_breaking(), H, node=2.5e-4, fine=2.5e-5)
    assert observed_order(H, errors["theta"]) == pytest.approx(2.0, abs=0.05)
    assert observed_order(H, errors["IRK"]) == pytest.approx(3.0, abs=0.05)


@pytest.mark.slow
def test_tailored_methods_have_orders_2_and_five_halves_with_impacts_for_damping_equal_to_h():
    errors = trimer.tailored_errors(trimer.with_impact(), H, node=2.5e-4, fine=2.5e-5)
    assert observed_order(H, errors["theta"]) == pytest.approx(2.0, abs=0.05)
    assert observed_order(H, errors["IRK"]) == pytest.approx(2.5, abs=0.2)


# ---- binary collisions (7)-(9), appendix A.1, and the list of items --------------------------------------------------


def test_restitution_of_a_binary_collision_at_damping_06():
    e, _ = theory.collisions([0.06, 0.0, 0.01, 0.17])
    assert e[0] == pytest.approx(0.902295964, abs=1e-8)
    assert e[1] == pytest.approx(1.0, abs=1e-8)


def test_damping_over_lost_velocity_tends_to_the_slope_of_9():
    assert theory.slope_of_9() == pytest.approx(0.57797679, abs=2e-8)


def test_order_conditions_and_stability_of_the_appendix():
    claims, figure = theory.a1()
    assert all(claim.agrees for claim in claims)
    assert figure is not None


def test_every_figure_and_table_of_the_paper_is_an_item_with_a_title():
    assert set(items) == {"restitution", "table1", "a1", "outlook", "crystals", *(f"fig{n}" for n in range(2, 12))}
    assert all((item.__doc__ or "").strip().splitlines()[0].endswith(".") for item in items.values())
