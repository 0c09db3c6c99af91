import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carom.pairs import Capacity, LeesEdwards, Periodic, padded
from carom.pairs.lists import COLOURS, Need, listed
from tests.pairs.states import N, colour, dense_gas, find, listed_in, move, search_of

BODIES = 24
ROOM = Capacity(1, 350, (BODIES // 2,) * 40)
edges = st.sets(st.tuples(st.integers(0, BODIES - 1), st.integers(0, BODIES - 1)).filter(lambda e: e[0] < e[1]))


def list_of(edges):
    a, b = (np.full(ROOM.pairs, BODIES, np.int32) for _ in range(2))
    a[: len(edges)], b[: len(edges)] = np.array(sorted(edges), int).reshape(-1, 2).T
    need = Need(jnp.zeros(()), jnp.asarray(len(edges), float), jnp.zeros(0, jnp.int32))
    return listed(jnp.asarray(a), jnp.asarray(b), len(edges), jnp.zeros((BODIES, 2)), 0.0, 0, need)


@settings(max_examples=60, deadline=None)
@given(edges)
def test_no_body_appears_twice_in_a_colour(edges):
    pairs = colour(list_of(edges), ROOM)
    assert not int(pairs.trouble)
    assert {tuple(pair) for pair in listed_in(pairs)} == edges
    starts = np.asarray(pairs.starts)
    for begin, end in zip(starts[:-1], starts[1:]):
        a, b = (np.asarray(x)[begin:end] for x in (pairs.a, pairs.b))
        assert len(np.unique([a, b])) == 2 * (end - begin)
        assert np.array_equal(a, np.sort(a))
    degrees = np.bincount(np.array(list(edges), int).ravel(), minlength=1)
    assert max(degrees) <= np.sum(np.diff(starts) > 0) <= max(1, 2 * max(degrees) - 1)


@settings(max_examples=60, deadline=None)
@given(edges, edges)
def test_data_follow_their_pairs_from_list_to_list(before, after):
    old, new = (colour(list_of(e), ROOM) for e in (before, after))
    data = {"impulse": np.random.default_rng(0).normal(size=(ROOM.pairs, 2)), "mode": np.arange(1, ROOM.pairs + 1)}
    kept = move(old, new, jax.tree.map(jnp.asarray, data))
    place = {pair: k for k, pair in enumerate(zip(np.asarray(old.a).tolist(), np.asarray(old.b).tolist()))}
    wanted = jax.tree.map(np.zeros_like, data)
    for k, pair in enumerate(zip(np.asarray(new.a).tolist(), np.asarray(new.b).tolist())):
        if pair in before & after:
            wanted["impulse"][k], wanted["mode"][k] = data["impulse"][place[pair]], data["mode"][place[pair]]
    assert all(np.array_equal(kept[name], wanted[name]) for name in wanted)


@pytest.mark.slow
def test_data_follow_their_pairs_between_lists_of_different_room():
    x, reach = dense_gas(np.random.default_rng(0), 2)
    search, capacity = search_of("open", reach, 2), Capacity(6_000, 4_000, (N // 2,) * 32)
    small = capacity._replace(pairs=3_000)
    old = find(search, jnp.asarray(x), 0.0, capacity)
    new = colour(find(search, jnp.asarray(x + 0.05), 0.0, small), small)
    index = move(old, new, jnp.arange(capacity.pairs) + 1)
    assert np.array_equal(index, np.where(new.valid, new.rank + 1, 0))


def test_a_list_with_more_room_keeps_its_entries_and_their_data():
    pairs = colour(list_of({(0, 1), (1, 2), (5, 9)}), ROOM)
    larger = ROOM._replace(pairs=500, colours=(BODIES // 2,) * 70)
    longer, data = padded(pairs, jnp.arange(350.0), larger)
    assert np.array_equal(listed_in(longer), listed_in(pairs))
    assert np.array_equal(data, np.pad(np.arange(350.0), (0, 150)))
    assert np.array_equal(np.sort(longer.rank), np.arange(500))
    again = jax.eval_shape(lambda pairs: colour(pairs, larger), padded(list_of(set()), None, larger)[0])
    assert jax.tree.map(lambda x: (x.shape, x.dtype), longer) == jax.tree.map(lambda x: (x.shape, x.dtype), again)
    assert not any(x.weak_type for x in jax.tree.leaves(again))


def test_more_colours_than_there_is_room_for_are_counted():
    star = {(0, k) for k in range(1, BODIES)}
    few = ROOM._replace(colours=(BODIES // 2,) * 5)
    pairs = colour(list_of(star), few)
    assert int(pairs.trouble) == COLOURS
    assert np.array_equal(np.flatnonzero(pairs.need.colours), np.arange(BODIES - 1))


def test_the_image_above_is_displaced_by_the_shear():
    box = LeesEdwards([10.0, 8.0], offset=lambda t: 3.0 * t)
    away = np.array([[1.0, 7.0], [9.0, 1.0], [0.5, -7.5]])
    assert np.allclose(box.nearest(jnp.asarray(away), 0.5), [[-0.5, -1.0], [-1.0, 1.0], [2.0, 0.5]])
    velocity = jax.jacfwd(lambda t: box.nearest(jnp.asarray(away[2]), t))(0.5)
    assert np.allclose(velocity, [3.0, 0.0])
    assert np.allclose(Periodic([10.0, None]).nearest(jnp.array([9.0, 9.0])), [-1.0, 9.0])


def test_images_are_as_near_as_the_nearest_of_all_shifts():
    box = LeesEdwards([10.0, 9.0, 8.0], rate=0.7)
    x = np.random.default_rng(0).uniform(-30, 30, (40, 3))
    i, j, k = (n.reshape(-1, 1) for n in np.meshgrid(*[np.arange(-6, 7)] * 3))
    images = i * [10.0, 0.0, 0.0] + j * [0.7 * 9.0 * 1.3 % 10.0, 9.0, 0.0] + k * [0.0, 0.0, 8.0]
    nearest = np.min(np.linalg.norm(x[:, None] + images, axis=-1), 1)
    found = np.linalg.norm(box.nearest(jnp.asarray(x), 1.3), axis=-1)
    within = nearest < 4.0
    assert within.sum() > 5
    assert np.allclose(found[within], nearest[within])
