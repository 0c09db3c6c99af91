"""Bodies that push and pull each other in the plane: forces, lists, blocks of pairs."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.runge_kutta.jacobians import neighbour_jacobian
from carom.pairs import Capacity
from carom.running.listing import warn_of_overlaps
from carom.systems import first_lists

OFFSETS = [(1, 0), (0, 1), (1, -1)]
VECTORS = np.array([[1.0, 0.0], [0.5, 0.75**0.5]])
MODULUS = 3.0  # of beads of radius 1/2: k = 1


def hexagonal(shape, overlap=0.0, periodic=False):
    lattice = carom.Lattice(shape, (1 - overlap) * VECTORS, OFFSETS, periodic)
    return lattice, carom.Bodies(shape[0] * shape[1], dof=2)


def by_hand(lattice, u):
    x, force = lattice.places + u, np.zeros_like(u)
    for a, b in lattice.edges:
        w = x[b] - x[a]
        d = np.linalg.norm(w)
        f = max(1 - d, 0.0) ** 1.5 * w / d
        force[a] -= f
        force[b] += f
    return force


@eqx.filter_jit
def gradient(part, u):
    return part.gradient(jnp.asarray(u))


def turned(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


@pytest.mark.parametrize("found", ["slices", "edges", "all"])
def test_forces_of_a_crystal_are_those_by_hand_however_pairs_are_found(found):
    lattice, beads = hexagonal((5, 4), 0.03)
    search = {"slices": lattice, "edges": carom.Fixed(lattice.edges), "all": carom.AllPairs()}[found]
    places = None if found == "slices" else lattice.places
    part = carom.Interactions.between(beads, carom.laws.hertz_pair, data=(0.5, MODULUS), search=search, places=places)
    x, rng = lattice.places, np.random.default_rng(0)
    motions = [0.05 * rng.normal(size=x.shape), x @ [[-0.01, 0.003], [0.002, -0.02]], x @ (turned(0.7) - np.eye(2))]
    for u in motions:
        force = -np.asarray(gradient(part, u.ravel())).reshape(-1, 2)
        assert np.abs(force - by_hand(lattice, u)).max() <= 1e-13
        assert np.abs(force.sum(0)).max() <= 1e-15
        assert np.abs(np.sum((x + u) * force[:, ::-1] * [1, -1])) <= 1e-14


def test_energies_and_forces_have_derivatives_by_the_data_of_bodies():
    beads, u = carom.Bodies(2, dof=2), jnp.asarray([0.0, 0.0, -0.1, 0.02])

    def energy(stiffness, u):
        given = {"data": (0.5, stiffness), "search": carom.Fixed([[0, 1]]), "places": [[0.0, 0.0], [1.0, 0.0]]}
        return carom.Interactions.between(beads, carom.laws.power_pair(1.0), **given)(u)

    slope, force = jax.jit(lambda k: (jax.grad(energy)(k, u), jax.jacfwd(jax.grad(energy, 1))(k, u)))(3.0)
    overlap = 1 - np.hypot(0.9, 0.02)
    assert slope == pytest.approx(overlap**2 / 2, rel=1e-12)
    assert np.allclose(force[2:], -overlap * np.array([0.9, 0.02]) / np.hypot(0.9, 0.02), rtol=1e-12)


def test_a_displacement_far_below_rounding_of_positions_keeps_its_digits():
    beads = carom.Bodies(2, dof=2)
    part = carom.Interactions.between(
        beads,
        carom.laws.hertz_pair,
        data=(0.5, MODULUS),
        search=carom.Fixed([[0, 1]]),
        places=[[0.0, 0.0], [0.6, 0.8]],
    )
    u = 1e-20 * np.array([0.6, 0.8])
    force = -np.asarray(gradient(part, np.array([*u, 0.0, 0.0])))[:2]
    assert np.allclose(force, -(1e-20**1.5) * np.array([0.6, 0.8]), rtol=1e-14, atol=0)


def test_blocks_of_a_precompressed_lattice_have_the_eigenvalues_of_its_dispersion():
    n, overlap = 6, 0.02
    lattice, beads = hexagonal((n, n), overlap, periodic=True)
    part = carom.Interactions.between(beads, carom.laws.hertz_pair, data=(0.5, MODULUS), search=lattice)
    matrix = whole_matrix(carom.System(1.0, part), jnp.zeros(2 * n * n))
    F, k, d, found = overlap**1.5, 1.5 * overlap**0.5, 1 - overlap, []
    waves = 2 * np.pi * np.linalg.inv(lattice.vectors).T / n
    for i, j in np.ndindex(n, n):
        D = np.zeros((2, 2))
        for offset in OFFSETS:
            bond = np.asarray(offset) @ lattice.vectors
            along = np.outer(bond, bond) / d**2
            D += 2 * (1 - np.cos((i * waves[0] + j * waves[1]) @ bond)) * (k * along - F / d * (np.eye(2) - along))
        found += np.linalg.eigvalsh(D).tolist()
    assert np.allclose(np.sort(found), np.linalg.eigvalsh(-np.asarray(matrix)), rtol=0, atol=1e-12)


@eqx.filter_jit
def whole_matrix(system, q):
    return neighbour_jacobian(system)(q).dense()  # pyright: ignore


def _quartic(q, m):
    return 0.1 * m * jnp.sum(q**4)


def mixed_system(structure="auto", damping=None):
    """A crystal of unequal beads, springs between some of them, an energy of each."""
    rng, (lattice, beads) = np.random.default_rng(1), hexagonal((4, 3))
    m = rng.uniform(1, 2, len(beads))
    contact = carom.Interactions.between(
        beads, carom.laws.hertz_pair, data=(rng.uniform(0.5, 0.55, len(beads)), MODULUS), search=lattice
    )
    some = carom.Fixed([[0, 4], [1, 5]])
    springs = carom.Interactions.between(
        beads[:6], carom.laws.spring_pair, data=(0.5, 0.3), search=some, places=lattice.places[:6]
    )
    potential = {"contact": contact, "springs": springs, "own": beads.each(_quartic, data=m)}
    return carom.System(beads.mass(m, m), potential, rate_damping=damping, structure=structure)


def test_blocks_multiply_and_solve_like_the_matrix_that_is_never_formed():
    system, rng = mixed_system(), np.random.default_rng(2)
    q, b = jnp.asarray(0.05 * rng.normal(size=24)), jnp.asarray(rng.normal(size=24))
    shifts = (-3.0, -2.0 - 1.0j)

    @jax.jit
    def found(q, b):
        blocks = neighbour_jacobian(system)(q)  # pyright: ignore
        solved = [blocks.scaled(jnp.asarray(s)).plus_diagonal(jnp.ones(24)).solve(b) for s in shifts]
        return jax.jacfwd(lambda x: system.acceleration(jnp.zeros(()), x, x))(q), blocks @ b, solved

    whole, product, solved = found(q, b)
    assert np.allclose(product, whole @ b, rtol=0, atol=1e-14)
    for s, x in zip(shifts, solved):
        assert np.abs(x + s * (whole @ x) - b).max() <= 1e-3 * np.abs(b).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "damped", "regular"),
    [
        (carom.Theta(), None, False),
        (carom.Theta(), {"contact": 0.1, "springs": 0.02}, False),
        (carom.IRK(carom.gauss(2)), {"contact": 0.1, "springs": 0.02}, False),
        (carom.IRK(carom.gauss(2)), {"contact": 0.1, "springs": 0.02}, True),
        (carom.TailoredIRK(), {"contact": 0.1, "springs": 0.1, "own": 0.1}, False),
        (carom.TailoredTheta(), {"contact": 0.1}, False),
    ],
)
def test_implicit_methods_step_alike_with_blocks_and_with_whole_matrices(method, damped, regular):
    rng, ends = np.random.default_rng(3), []
    state = carom.State(0.05 * rng.normal(size=24), 0.3 * rng.normal(size=24))
    for structure in ("auto", "dense"):
        system = mixed_system(structure, damped)
        system = carom.regularise(system) if regular else system
        ends.append(carom.simulate(system, state, method, t1=2.0, h=0.2).q[-1])
    assert np.abs(ends[0] - ends[1]).max() <= 1e-12


def test_a_straight_line_of_beads_in_the_plane_moves_like_the_chain():
    masses, n = np.random.default_rng(4).uniform(0.5, 2, 12), 12
    chain, start = carom.models.granular_chain(masses, damping=0.06)
    beads, row = carom.Bodies(n, dof=2), np.column_stack([100.0 * np.arange(n), np.zeros(n)])
    edges = carom.Fixed(np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    contact = carom.Interactions.between(beads, carom.laws.hertz_pair, data=(50.0, 0.3), search=edges, places=row)
    plane = carom.System(beads.mass(masses, masses), {"contact": contact}, rate_damping={"contact": 0.06})
    state = carom.State(np.zeros(2 * n), np.column_stack([start.v, np.zeros(n)]).ravel())
    ends = [carom.simulate(*given, carom.TailoredTheta(), t1=8.0, h=0.1) for given in ((chain, start), (plane, state))]
    assert np.abs(ends[1].q[:, 0::2] - ends[0].q).max() <= 1e-12
    assert np.abs(ends[1].q[:, 1::2]).max() == 0


def bowl(q):
    return 0.5 * jnp.sum((q - 3.0) ** 2)


def gas(search):
    rng, beads = np.random.default_rng(5), carom.Bodies(16, dof=2)
    x = 1.6 * np.moveaxis(np.indices((4, 4)), 0, -1).reshape(-1, 2) + 0.1 * rng.normal(size=(16, 2))
    part = carom.Interactions.between(
        beads, carom.laws.hertz_pair, data=(rng.uniform(0.5, 0.8, 16), 10.0), search=search
    )
    return carom.System(1.0, {"contact": part, "bowl": bowl}), carom.State(x.ravel(), rng.normal(size=32))


def test_neighbours_that_come_and_go_act_like_all_pairs(monkeypatch):
    monkeypatch.setattr(first_lists, "tight", lambda pairs: Capacity(120, 120, ()))
    near, far = (
        carom.simulate(*gas(search), carom.StormerVerlet(), t1=4.0, h=0.01, save_every=40)
        for search in (carom.CellList(reach=1.6, skin=0.2), carom.AllPairs())
    )
    assert np.abs(near.q - far.q).max() <= 1e-10
    assert np.abs(near.account.energy - far.account.energy).max() <= 1e-10


def test_the_stability_limit_is_seen_with_neighbours_that_come_and_go():
    near, far = gas(carom.CellList(reach=1.6, skin=0.2)), gas(carom.AllPairs())
    assert carom.stability_limit(*near) == pytest.approx(carom.stability_limit(*far), rel=1e-9)
    with pytest.raises(ValueError, match="above the stability limit"):
        carom.simulate(*near, carom.StormerVerlet(), t1=4.0, h=2.0)


def between(**changes):
    bodies = carom.Bodies(3, dof=2)
    given = {"law": carom.laws.hertz_pair, "data": (0.5, 1.0), "search": carom.Fixed([[0, 1]])}
    given |= changes
    return carom.Interactions.between(bodies, given.pop("law"), **given)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: between(search=carom.Fixed([[0, 3]])), "edges name body 3, but there are 3 bodies"),
        (lambda: carom.Fixed([[0, 1], [1, 0]]), "name the pair .* more than once"),
        (lambda: between(search=carom.CellList(reach=0.9, skin=0.1)), "reach = 0.9 is less than the diameter 1"),
        (lambda: carom.laws.power_pair(0.5), "exponent must be a plain number of at least 1"),
        (lambda: between(search=carom.Lattice((2, 2), VECTORS, OFFSETS)), "has 4 places for 3 bodies"),
        (lambda: carom.Lattice((3, 3), VECTORS, [(1, 0), (-1, 0)]), "name a pair twice"),
        (lambda: between(friction=carom.laws.CundallStrack(0.5, 1.0)), "needs bodies that turn"),
        (lambda: between(data=([0.5, 0.5], 1.0)), "one per body"),
        (lambda: between(data=([0.5, np.nan, 0.5], 1.0)), r"data\[0\] must be finite numbers, that of body 1"),
        (
            lambda: between(data=([0.5, 0.0, -1.0], 1.0)),
            r"data\[0\] \(the radius\) must be positive, that of body 1 is 0",
        ),
        (lambda: between(places=[[0, 0]]), "one row of coordinates per body"),
        (
            lambda: between(search=carom.CellList(1.0, 0.1, carom.LeesEdwards([9.0, 9.0], rate=0.1))),
            "a sheared one moves with time",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        wrong()


def test_grains_that_begin_deep_inside_each_other_are_warned_of():
    system, state = carom.System(1.0, between()), carom.State([0.0, 0.0, 0.3, 0.0, 9.0, 0.0], np.zeros(6))
    with pytest.warns(UserWarning, match="bodies 0 and 1 overlap at the start by 0.7, more than a radius"):
        warn_of_overlaps(system, state, None, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_overlaps(system, carom.State([0.0, 0.0, 0.8, 0.0, 9.0, 0.0], np.zeros(6)), None, 0.0)


@pytest.mark.slow
def test_a_pulse_in_a_crystal_is_seen_by_its_forces_and_its_front():
    crystal, state = carom.models.hexagonal_crystal(8, 7)
    sol = carom.simulate(crystal, state, carom.StormerVerlet(), t1=1e-4, h=1e-6, save_every=10)
    network, total = carom.measures.bond_forces(sol), np.zeros((56, 2))
    np.add.at(total, network.a, network.force)
    np.add.at(total, network.b, -network.force)
    force = crystal.conservative_force(jnp.zeros(()), jnp.asarray(sol.q[-1]))
    assert np.allclose(total.ravel(), force, rtol=0, atol=1e-12 * network.size.max())
    front = carom.measures.wave_front(sol)
    assert front[0] == 0
    assert (np.diff(front) >= 0).all()
    assert 0.04 < front[-1] < 0.3


@pytest.mark.slow
def test_small_steps_of_the_stiff_contacts_alone_serve_a_layer_on_a_medium():
    layer, state = carom.models.granular_layer(8, 5)
    whole = carom.simulate(layer, state, carom.PseudoEnergy(), t1=2e-4, h=1e-6)
    parted = carom.simulate(
        layer, state, carom.AsynchronousPseudoEnergy(("beads", "support"), ratio=10), t1=2e-4, h=1e-5
    )
    assert np.abs(parted.q[-1] - whole.q[-1]).max() <= 1e-3 * np.abs(whole.q[-1]).max()
    assert parted.stats["evaluations"] < 0.5 * whole.stats["evaluations"]
