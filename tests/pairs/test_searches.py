import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.pairs import AllPairs, Capacity, CellList, Fixed, LeesEdwards, Periodic, grown, memory
from carom.pairs.lists import CANDIDATES, COLOURS, NOT_FINITE, PAIRS
from tests.pairs.states import (
    BOXES,
    KINDS,
    SKIN,
    N,
    all_near,
    box_of,
    colour,
    dense_gas,
    find,
    gas,
    listed_in,
    search_of,
)

AMPLE = Capacity(150_000, 60_000, (N // 2,) * 32)
ROOMY = Capacity(6_000, 4_000, (N // 2,) * 32)


QUICK = [("periodic", 2), ("sheared", 3)]
BOX_AND_DIMENSION = [
    pytest.param(kind, d, marks=[] if (kind, d) in QUICK else pytest.mark.slow) for kind in BOXES for d in (2, 3)
]


@pytest.mark.parametrize(("kind", "d"), BOX_AND_DIMENSION)
@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_lists_hold_the_pairs_that_comparing_all_bodies_finds(kind, d, rounds):
    rng = np.random.default_rng(d)
    for k in range(rounds * len(KINDS)):
        x, reach = KINDS[k % len(KINDS)](rng, d)
        t = rng.uniform(0, 50)
        pairs = find(search_of(kind, reach, d), jnp.asarray(x), t, AMPLE)
        assert not int(pairs.trouble)
        assert np.array_equal(listed_in(pairs), all_near(x, reach + SKIN, box_of(kind, d), t)), KINDS[k % len(KINDS)]


def test_bodies_at_opposite_sides_and_corners_of_a_periodic_box_are_neighbours():
    x = np.array([[0.1, 5.0], [13.9, 5.2], [7.0, 0.2], [7.2, 14.8], [0.0, 0.0], [14.0, 15.0], [-0.0, 30.0]])
    elsewhere = np.stack([np.full(N - 7, 3.0), np.linspace(2.0, 13.0, N - 7)], 1)
    search = search_of("periodic", np.ones(N), 2)
    pairs = find(search, jnp.asarray(np.concatenate([x, elsewhere])), 0.0, AMPLE)
    found = {(a, b) for a, b in listed_in(pairs).tolist() if b < 7}
    assert found == {(0, 1), (2, 3), (4, 5), (4, 6), (5, 6)}


@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow), 3000])
def test_any_number_of_bodies_is_searched(n):
    x = np.random.default_rng(n).uniform(0, 50, (n, 2))
    search = CellList(1.0, SKIN)
    pairs = find(search, jnp.asarray(x), 0.0, search.capacity(n, 2))
    assert np.array_equal(listed_in(pairs), all_near(x, np.full(n, 1.0 + SKIN)))
    assert int(pairs.count) == int(pairs.starts[-1]) == int(np.sum(pairs.valid))


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", ["open", "periodic"])
def test_a_hundred_thousand_bodies_have_the_pairs_of_a_tree_search(kind, d):
    spatial = pytest.importorskip("scipy.spatial")
    n = 100_000
    side = n ** (1 / d)
    x = np.random.default_rng(0).uniform(0, side, (n, d))
    search = CellList(0.8, SKIN, Periodic([side] * d) if kind == "periodic" else None)
    capacity = search.capacity(n, d)
    pairs = colour(find(search, jnp.asarray(x), 0.0, capacity), capacity)
    while int(pairs.trouble):
        capacity = grown(capacity, pairs)
        pairs = colour(find(search, jnp.asarray(x), 0.0, capacity), capacity)
    tree = spatial.cKDTree(x, boxsize=side if kind == "periodic" else None)
    wanted = np.sort(tree.query_pairs(0.8 + SKIN, output_type="ndarray"), 1)
    assert np.array_equal(listed_in(pairs), wanted[np.lexsort(wanted.T[::-1])])


@pytest.mark.slow
def test_a_batch_finds_what_single_systems_find():
    rng = np.random.default_rng(5)
    x = jnp.asarray(np.stack([dense_gas(rng, 2)[0] for _ in range(8)]))
    search, t = search_of("sheared", np.ones(N), 2), jnp.linspace(0.0, 9.0, 8)

    def both(x, t):
        return colour(search.find(x, t, ROOMY), ROOMY)

    lanes = jax.vmap(both)(x, t)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(jax.eval_shape(both, x[0], 0.0)))
    for k in range(8):
        alone = colour(find(search, x[k], t[k], ROOMY), ROOMY)
        assert all(np.array_equal(one[k], two) for one, two in zip(jax.tree.leaves(lanes), jax.tree.leaves(alone)))


@pytest.mark.slow
def test_lists_are_the_same_whatever_room_they_have():
    x, reach = dense_gas(np.random.default_rng(1), 2)
    search = search_of("periodic", reach, 2)
    roomy = colour(find(search, jnp.asarray(x), 0.0, ROOMY), ROOMY)
    tight = Capacity(2_000, 900, (60,) * 6)
    while int((pairs := colour(find(search, jnp.asarray(x), 0.0, tight), tight)).trouble):
        tight = grown(tight, pairs)
    assert tight.pairs < ROOMY.pairs
    assert len(tight.colours) < len(ROOMY.colours)
    count, used = int(roomy.count), int(np.sum(np.diff(roomy.starts) > 0))
    assert used > 4
    for one, two in ((roomy.a, pairs.a), (roomy.b, pairs.b), (roomy.rank, pairs.rank)):
        assert np.array_equal(one[:count], two[:count])
    assert np.array_equal(roomy.starts[: used + 1], pairs.starts[: used + 1])


def test_whatever_is_lost_is_said():
    rng = np.random.default_rng(2)
    said = []
    for candidates, room, colours in ((300, 300, (40,) * 4), (2_000, 200, (100,) * 6), (1_000, 900, (150,) * 9)):
        capacity = Capacity(candidates, room, colours)
        for x, reach in (gas(rng, 2), dense_gas(rng, 2), KINDS[3](rng, 2)):
            search = search_of("open", reach, 2)
            pairs = colour(find(search, jnp.asarray(x), 0.0, capacity), capacity)
            wanted = all_near(x, reach + SKIN)
            complete = np.array_equal(listed_in(pairs), wanted) and int(pairs.starts[-1]) == len(wanted)
            assert int(pairs.trouble) or complete
            said.append(int(pairs.trouble))
    assert 0 in said
    assert all(any(s & bit for s in said) for bit in (CANDIDATES, PAIRS, COLOURS))


def test_positions_that_are_not_numbers_are_told():
    x, reach = dense_gas(np.random.default_rng(3), 2)
    for bad in (np.nan, np.inf):
        x[7, 1] = bad
        assert int(find(search_of("periodic", reach, 2), jnp.asarray(x), 0.0, AMPLE).trouble) == NOT_FINITE


@pytest.mark.parametrize(("kind", "d"), BOX_AND_DIMENSION)
def test_a_list_that_is_not_stale_holds_every_pair_that_touches(kind, d):
    rng = np.random.default_rng(4)
    box, fresh = box_of(kind, d), 0
    for _ in range(12):
        x, reach = dense_gas(rng, d)
        search = search_of(kind, reach, d)
        pairs = find(search, jnp.asarray(x), 2.0, AMPLE)
        common = rng.normal(size=d)
        later = x + common + rng.uniform(0, 0.1) * rng.uniform(-1, 1, (N, d))
        t = 2.0 + rng.choice([0.0, 0.01, 1.0])
        if not search.stale(pairs, jnp.asarray(later), t):
            fresh += 1
            touching = {tuple(pair) for pair in all_near(later, reach, box, t)}
            assert touching <= {tuple(pair) for pair in listed_in(pairs)}
    assert 2 < fresh < 12


def test_a_common_motion_leaves_a_list_fresh_and_half_the_skin_does_not():
    x, reach = dense_gas(np.random.default_rng(6), 2)
    search = search_of("open", reach, 2)
    pairs = find(search, jnp.asarray(x), 0.0, AMPLE)
    assert not search.stale(pairs, jnp.asarray(x + 5.0), 0.0)
    moved = x.copy()
    moved[0, 0] += 0.51 * SKIN
    assert not search.stale(pairs, jnp.asarray(moved), 0.0)
    moved[1, 0] -= 0.51 * SKIN
    assert search.stale(pairs, jnp.asarray(moved), 0.0)
    moved[1, 0] = np.nan
    assert search.stale(pairs, jnp.asarray(moved), 0.0)


def test_bodies_that_follow_the_shear_many_boxes_away_count_as_at_rest():
    box = LeesEdwards([10.0, 10.0], rate=0.1)
    search = CellList(1.0, 0.2, box)
    boxes_above = np.where(np.arange(50) < 25, 0.0, 7.0)
    x = np.random.default_rng(7).uniform(0, 10, (50, 2)) + np.stack([np.zeros(50), 10 * boxes_above], 1)
    capacity = search.capacity(50, 2)
    pairs = find(search, jnp.asarray(x), 0.0, capacity)
    later = x + np.stack([0.1 * 10.0 * 0.1 * boxes_above, np.zeros(50)], 1)
    assert not search.stale(pairs, jnp.asarray(later), 0.1)
    assert search.stale(pairs, jnp.asarray(x), 0.1)


def test_few_bodies_and_given_edges_are_lists_too():
    x = jnp.asarray(np.random.default_rng(8).uniform(0, 3, (6, 2)))
    edges = [[4, 1], [0, 1], [5, 2]]
    for search, wanted in (
        (AllPairs(), np.stack(np.triu_indices(6, 1), 1)),
        (Fixed(edges), np.array([[0, 1], [1, 4], [2, 5]])),
    ):
        capacity = search.capacity(6, 2)
        pairs = colour(search.find(x, 0.0, capacity), capacity)
        assert not int(pairs.trouble)
        assert np.array_equal(listed_in(pairs), wanted)
        assert not search.stale(pairs, x + 100.0, 1.0)
        short = search.find(x, 0.0, capacity._replace(pairs=2))
        assert (int(short.trouble), int(short.need.pairs)) == (PAIRS, len(wanted))


@pytest.mark.slow
def test_the_memory_stated_is_what_a_search_takes_at_most():
    x, reach = dense_gas(np.random.default_rng(1), 3)
    search = search_of("periodic", reach, 3)
    both = jax.jit(lambda search, x: colour(find(search, x, 0.0, ROOMY), ROOMY))
    taken = both.lower(search, jnp.asarray(x)).compile().memory_analysis()
    assert 0.5 < (taken.temp_size_in_bytes + taken.output_size_in_bytes) / memory(ROOMY, N, 3) <= 1.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CellList(0.0, 0.1), "reach must be positive"),
        (lambda: CellList([1.0, -1.0], 0.1), r"reach\[1\] = -1.0"),
        (lambda: CellList(1.0, 0.0), "skin must be positive"),
        (lambda: CellList(1.0, 0.1, box=[10.0, 10.0]), "box must be None, carom.Periodic"),
        (lambda: CellList(1.0, 0.1, Periodic([2.0, 9.0])), r"lengths\[0\] = 2 of the box must be at least twice"),
        (lambda: Periodic(10.0), "one length per axis"),
        (lambda: Periodic([10.0, -1.0]), r"lengths\[1\] must be a positive number"),
        (lambda: LeesEdwards([10.0, None], rate=1.0), "both need a length"),
        (lambda: LeesEdwards([10.0, 10.0]), "either rate= or offset="),
        (lambda: Fixed([[0, 0]]), "the same body twice"),
        (lambda: Fixed([[0, 1], [1, 0]]), r"the pair \[0, 1\] more than once"),
        (lambda: Fixed([0, 1]), "rows of two whole numbers"),
        (lambda: Fixed([[0, 5]]).capacity(3, 2), "name body 5, but there are 3 bodies"),
        (lambda: CellList(np.ones(4), 0.1).find(jnp.ones((3, 2)), 0.0, AMPLE), "reach has 4 entries"),
        (lambda: CellList(1.0, 0.1, Periodic([9.0, 9.0])).find(jnp.ones((3, 3)), 0.0, AMPLE), "the box has 2 lengths"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_sentence(build, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build()
