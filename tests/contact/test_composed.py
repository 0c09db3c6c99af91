"""Systems with several contacts and friction elements, each with its own law: in lists, named, in any order."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.plots.contacts import forces_and_impacts, law_names, laws_in, modes_in_words
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import contact_problem
from carom.solvers.directions import DenseDirections
from carom.solvers.interior_point import InteriorPoint
from carom.systems.contact_rows import laws_of

CAPTURE = carom.EventCapturing(carom.radau_iia(2))

# ---- ten bodies that fall side by side: height, then as many slips as friction has directions -----------------------

DIRECTIONS = (0, 1, 2, 1, 0, 0, 2, 2, 1, 0)
MU = np.where(np.array(DIRECTIONS) > 0, 0.05 + 0.06 * np.arange(10), 0.0)
EPS = 0.8 - 0.07 * np.arange(10)
FIRST = np.append(0, np.cumsum(1 + np.array(DIRECTIONS)))
METHODS = {
    "MoreauMidpoint": (carom.MoreauMidpoint(), 1e-2, 1e-12),
    "MoreauTheta": (carom.MoreauTheta(), 1e-2, 1e-12),
    "EventCapturing": (CAPTURE, 2.5e-2, 1e-5),
}


def weight(q, p):
    return p["weight"] @ q


def pull(t, q, v, p):
    return p["pull"]


def above_floor(k, first, directions):
    """The contact of body k, whose coordinates begin at `first`."""
    slip = (lambda q: q[None, first + 1 : first + 1 + directions]) if directions else None
    return carom.Contacts(
        lambda q: q[first : first + 1], slip=slip, friction=MU[k], restitution=EPS[k], names=f"body {k}"
    )


def falling(bodies, directions, order=None):
    """Some of the ten bodies as one system, one `Contacts` each, listed in some order."""
    first = np.append(0, np.cumsum([1 + d for d in directions]))
    join = lambda rows: np.concatenate([row[: 1 + d] for row, d in zip(rows, directions)])  # noqa: E731
    params = {"weight": join([[9.81, 0.0, 0.0]] * len(bodies)), "pull": join([[0.0, 0.7, 0.0]] * len(bodies))}
    contacts = [above_floor(k, int(i), d) for k, i, d in zip(bodies, first, directions)]
    listed = [contacts[i] for i in (range(len(bodies)) if order is None else order)]
    q = join([[0.1 + 0.03 * k, 0.0, 0.0] for k in bodies])
    v = join([[-0.1 * k, (-1.0) ** k * (0.5 + 0.2 * k), 0.3 * (DIRECTIONS[k] == 2)] for k in bodies])
    return carom.System(1.0, weight, {"pull": pull}, params=params, contacts=listed), carom.State(q, v)


@pytest.fixture(scope="module")
def ten():
    return falling(range(10), DIRECTIONS)


@pytest.fixture(scope="module")
def alone():
    """Every body alone, all in one program: friction in a plane, which those with fewer directions do not notice."""
    planar, _ = falling([0], [2])

    def of(k):
        law = (jnp.asarray(MU[k]), jnp.asarray(EPS[k]))
        system = eqx.tree_at(lambda s: (s.contacts.friction, s.contacts.restitution), planar, law)
        return system, falling([k], [2])[1]

    return of


def first_hit(sol, contact):
    return sol.events.time[(sol.events.contact == contact) & np.isin(sol.events.kind, ("closes", "bounces"))][0]


@pytest.mark.parametrize(
    "name", ["MoreauMidpoint", *(pytest.param(n, marks=pytest.mark.slow) for n in METHODS if n != "MoreauMidpoint")]
)
def test_ten_bodies_with_their_own_laws_move_as_each_alone(ten, alone, name):
    method, h, tol = METHODS[name]
    together = carom.simulate(*ten, method, t1=0.5, h=h)
    for k, d in enumerate(DIRECTIONS):
        single = carom.simulate(*alone(k), method, t1=0.5, h=h)
        own = slice(FIRST[k], FIRST[k + 1])
        np.testing.assert_allclose(together.q[-1, own], single.q[-1, : 1 + d], atol=tol)
        np.testing.assert_allclose(together.v[-1, own], single.v[-1, : 1 + d], atol=10 * tol)
        hits = [first_hit(together, k), first_hit(single, 0)]
        np.testing.assert_allclose(hits[0], hits[1], atol=tol)


def three_bodies(order=None):
    return carom.simulate(*falling((7, 8, 9), (2, 1, 0), order), carom.MoreauMidpoint(), t1=0.5, h=0.01)


@pytest.fixture(scope="module")
def in_order():
    return three_bodies()


@pytest.mark.slow
@pytest.mark.parametrize("order", [(2, 0, 1), (1, 2, 0)])
def test_another_order_of_the_list_gives_the_same_motion_with_columns_in_that_order(in_order, order):
    runs = [in_order, three_bodies(order)]
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-13)
    labels = [law_names(laws_in(run), run.impulse.shape[1]) for run in runs]
    columns = [labels[0].index(name) for name in labels[1]]
    assert sorted(columns) == list(range(6))
    np.testing.assert_allclose(runs[1].impulse, runs[0].impulse[:, columns], atol=1e-13)
    laws = [law_names(laws_in(run), run.mode.shape[1]) for run in runs]
    np.testing.assert_array_equal(runs[1].mode, runs[0].mode[:, [laws[0].index(name) for name in laws[1]]])


# ---- lists of one and of none ---------------------------------------------------------------------------------------


def floor(q):
    return q


def ceiling(q):
    return 1.0 - q


def test_a_list_of_one_is_that_one_and_an_empty_list_is_none():
    contacts = carom.Contacts(floor)
    assert carom.System(contacts=[contacts]).contacts is contacts
    assert carom.System(contacts=[], friction=[]).features == frozenset()


# ---- friction elements ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "tol"),
    [
        pytest.param(carom.MoreauMidpoint(), 2e-3, id="M"),
        pytest.param(CAPTURE, 1e-9, id="C", marks=pytest.mark.slow),
    ],
)
def test_friction_elements_along_a_line_and_in_a_plane_stop_where_they_must(method, tol):
    line = carom.FrictionElements(lambda q, v: v[:1], [[-0.5, 4.0]])
    plane = carom.FrictionElements(lambda q, v: v[None, 1:], 1.25)
    system = carom.System(2.0, friction=[line, plane])
    v = np.array([1.0, 0.6, -0.8])
    sol = carom.simulate(system, carom.State(np.zeros(3), v), method, t1=5.0, h=1e-2, save_every=100)
    stops = v * np.abs(v) * 2.0 / 2 / np.array([0.5, 0.75, 1.0])  # v^2 m / 2 = force times way
    np.testing.assert_allclose(sol.q[-1], stops, atol=tol)
    assert law_names(laws_in(sol), 2) == ["element 0", "element 1"]
    assert law_names(laws_in(sol), 3) == ["element 0", "element 1x", "element 1y"]


# ---- names ----------------------------------------------------------------------------------------------------------


def test_names_that_repeat_are_refused():
    twice = carom.Contacts(floor, names="wall"), carom.Contacts(ceiling, names=["wall"])
    with pytest.raises(ValueError, match="must differ within a system, but 'wall' occurs more than once"):
        carom.System(contacts=list(twice))


def test_names_must_be_as_many_as_contacts():
    system = carom.System(contacts=carom.Contacts(floor, names=("floor", "wall")))
    with pytest.raises(ValueError, match="names has 2 entries, but gap gives 1 contacts"):
        carom.check(system, carom.State([1.0], [0.0]))


def test_names_stand_in_warnings_and_in_plots(ten):
    named = [carom.Contacts(floor), carom.Contacts(ceiling, names="lid")]
    with pytest.warns(UserWarning, match="contact lid starts with penetration"):
        carom.check(carom.System(contacts=named), carom.State([1.5], [0.0]))
    laws = laws_of(*ten)
    labels = law_names(laws, laws.rows)
    assert labels[0] == "contact body 0"
    assert labels[10:14] == ["friction body 1", "friction body 2x", "friction body 2y", "friction body 3"]
    assert len(set(labels)) == laws.rows == 19


def test_forces_and_modes_of_mixed_contacts_are_told_by_their_own_contact(ten):
    sol = carom.simulate(*ten, carom.MoreauMidpoint(), t1=0.5, h=0.01)
    laws = laws_in(sol)
    assert laws is not None
    told = modes_in_words(laws, sol.mode)
    for law, contact in enumerate(laws.contact_of_law[10:], 10):
        open_then = sol.mode[:, contact] != 0
        assert (told[open_then, law] == 1).all()
        assert (told[~open_then, law] >= 2).all()
    _, impacts = forces_and_impacts(sol)
    np.testing.assert_array_equal(impacts["friction body 2x"][0], impacts["contact body 2"][0])


# ---- contact problems -----------------------------------------------------------------------------------------------

MIXED = Laws([(2, 1), (1, 0), (2, 2)], [(1, 2), (1, 1)], 1)
WITHOUT_ELEMENTS = Laws([(1, 2), (2, 1), (1, 0)], bilateral=1)


class Unformed(DenseDirections):
    """Directions of which no matrix may be formed."""

    has_matrix = False


def random_problem(laws, seed, kind=DenseDirections):
    rng = np.random.default_rng(seed)
    W, m = rng.normal(size=(laws.rows, 16)), rng.uniform(0.5, 2.0, 16)
    return contact_problem(
        kind(jnp.asarray(W)),
        kind(jnp.asarray(W / m)),
        laws,
        c=jnp.asarray(rng.normal(size=laws.rows)),
        active=jnp.ones(laws.contacts, bool),
        friction=jnp.asarray(rng.uniform(0.1, 0.5, laws.contacts)),
        limits=jnp.tile(jnp.array([[-0.3, 0.2]]), (laws.elements, 1)),
    )


def test_rows_of_mixed_laws_are_counted_as_documented():
    assert MIXED.rows == 5 + (2 + 0 + 4) + (2 + 1) + 1
    assert MIXED.count == 5 + 4 + 2
    assert MIXED.owners.tolist() == [0, 1, 3, 4]
    assert MIXED.contact_of_law.tolist() == [0, 1, 2, 3, 4, 0, 1, 3, 4, 5, 6]
    assert MIXED.law_of_row == (0, 2, 4, 5, 7, 1, 3, 6, 6, 8, 8, 9, 9, 10, 11)
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(MIXED.with_friction(MIXED.on_contacts(x)), x)


def test_neighbours_with_equally_many_directions_are_one_group():
    assert Laws([(1, 1), (2, 1), (0, 2), (1, 0)]) == Laws([(3, 1), (1, 0)])


@pytest.mark.slow
@pytest.mark.parametrize("laws", [MIXED, WITHOUT_ELEMENTS], ids=["mixed", "without elements"])
def test_all_solvers_find_the_same_impulses_of_mixed_laws(laws):
    solvers = [carom.SemismoothNewton(), carom.PSOR(), carom.PJOR(), *([] if laws.elements else [InteriorPoint()])]
    problem = random_problem(laws, 3)
    found = [jax.jit(lambda s=s: s(problem, jnp.zeros(laws.rows)))() for s in solvers]
    for result in found:
        assert float(result.residual) < 1e-8
        np.testing.assert_allclose(result.P, found[0].P, atol=1e-7)


def test_a_solver_that_needs_no_matrix_does_without_and_others_are_refused():
    problem = random_problem(MIXED, 3, Unformed)
    found = jax.jit(lambda: carom.PJOR()(problem, jnp.zeros(MIXED.rows)))()
    reference = jax.jit(lambda: carom.SemismoothNewton()(random_problem(MIXED, 3), jnp.zeros(MIXED.rows)))()
    np.testing.assert_allclose(found.P, reference.P, atol=1e-9)
    with pytest.raises(TypeError, match=r"PSOR needs the Delassus matrix, which is not formed here: use .*PJOR"):
        carom.PSOR()(problem, jnp.zeros(MIXED.rows))


# ---- one group or two -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(carom.MoreauMidpoint(), id="M"),
        pytest.param(carom.EventCapturing(carom.explicit(2)), id="C"),
    ],
)
def test_two_opposite_contacts_in_a_list_are_the_two_of_one_record(method):
    both = carom.Contacts(lambda q: jnp.concatenate([floor(q), ceiling(q)]), restitution=[0.8, 0.6])
    two = [carom.Contacts(floor, restitution=0.8), carom.Contacts(ceiling, restitution=0.6)]
    runs = [
        carom.simulate(carom.System(contacts=c), carom.State([0.5], [3.0]), method, t1=2.0, h=0.05) for c in (both, two)
    ]
    assert set(runs[0].events.contact) == {0, 1}
    for name in ("q", "v", "impulse", "mode", "event", "work"):
        np.testing.assert_array_equal(runs[0].columns[name], runs[1].columns[name])
