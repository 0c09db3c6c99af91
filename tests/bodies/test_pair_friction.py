"""Friction that remembers between pairs of bodies, in the plane and in space."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import carom


class Pull(eqx.Module):
    force: Array

    def __call__(self, q):
        return 10.0 * q[1] - self.force * q[0]


def disk_on_ground(force):
    """A disk of mass 1 and weight 10 on a heavy one so large that it is a plane; mu N = 4."""
    bodies, R = carom.Bodies(2, dof=3), 1e5
    rough = carom.laws.CundallStrack(friction=0.4, stiffness=5e3, damping=20.0, normal_damping=20.0)
    contact = carom.Interactions.between(
        bodies,
        carom.laws.power_pair(1.0),
        data=([0.5, R], 1e4),
        search=carom.Fixed([[0, 1]]),
        friction=rough,
    )
    mass = bodies.mass([1.0, 1e12], [1.0, 1e12], [1e9, 1e30])
    system = carom.System(mass, {"contact": contact, "pull": Pull(jnp.asarray(force))})
    return system, carom.State([0.0, 0.499, 0.0, 0.0, -R, 0.0], np.zeros(6))


def run_of_disk(force, t1=1.0):
    return carom.simulate(*disk_on_ground(force), carom.StormerVerlet(), t1=t1, h=2e-3, save_every=50)


def test_a_disk_pulled_below_the_coulomb_limit_sticks_and_its_spring_holds_the_energy():
    sol = run_of_disk(3.9, t1=2.0)
    assert np.abs(sol.v[-1, :2]).max() <= 1e-6
    assert sol.account.extra["spring"][-1] == pytest.approx(3.9**2 / (2 * 5e3), rel=1e-4)


def test_a_disk_pulled_above_the_coulomb_limit_slides_with_what_is_left_of_the_pull():
    sol = run_of_disk(4.4)
    late = sol.t >= 0.5
    assert np.polyfit(sol.t[late], sol.v[late, 0], 1)[0] == pytest.approx(0.4, rel=1e-4)
    energy = sol.account.energy
    assert energy[-1] - energy[0] == pytest.approx(sol.contact_work, rel=1e-6)


def test_a_run_with_history_that_was_stored_goes_on_as_if_it_had_not(tmp_path):
    whole, half = run_of_disk(3.9), run_of_disk(3.9, t1=0.1)
    half.save(tmp_path / "run.nc")
    on = carom.resume(tmp_path / "run.nc", system=disk_on_ground(3.9)[0], t1=1.0)
    assert np.array_equal(on.q[-1], whole.q[-1])
    assert np.array_equal(on.carry.pairs.force[0], whole.carry.pairs.force[0])


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def turning(W, n, t):
    """A pair of bodies that turns as one about a point beside it: coordinates and velocities in the plane."""
    normal = rotation(W * t) @ n
    x = [np.array([0.1, 0.2]), np.array([0.1, 0.2]) + 0.78 * normal]
    v = [W * np.array([-p[1], p[0]]) for p in x]
    return np.concatenate([[*p, 0.0] for p in x]), np.concatenate([[*p, W] for p in v])


def test_the_spring_of_a_pair_that_turns_as_one_body_turns_with_it_and_keeps_its_length():
    rough, n, h = carom.laws.CundallStrack(friction=0.4, stiffness=5e3), np.array([0.6, 0.8]), 0.05
    part = carom.Interactions.between(
        carom.Bodies(2, dof=3),
        carom.laws.power_pair(1.0),
        data=([0.5, 0.3], 1e4),
        search=carom.Fixed([[0, 1]]),
        friction=rough,
    )
    along = 1e-3 * np.array([-0.8, 0.6])
    memory, step = jnp.asarray([*along, 0.0])[:, None], jax.jit(lambda q, v, m: rough.step(part, q, v, m, h).history)
    for k in range(1, 41):
        memory = step(*map(jnp.asarray, turning(1.3, n, k * h)), memory)
    assert np.allclose(memory[:2, 0], rotation(1.3 * 40 * h) @ along, rtol=0, atol=1e-14)


def sphere_on_ground():
    """A sphere of mass 1, radius 1/2 and weight 10 on a heavy one so large that it is a plane, in space; mu = 0.2."""
    bodies, R = carom.Bodies(2, dof=6), 1e5
    rough = carom.laws.CundallStrack(friction=0.2, stiffness=5e4, damping=60.0, normal_damping=60.0)
    contact = carom.Interactions.between(
        bodies, carom.laws.power_pair(1.0), data=([0.5, R], 1e5), search=carom.Fixed([[0, 1]]), friction=rough
    )
    mass = bodies.mass(*[[1.0, 1e15]] * 3, *[[0.1, 1e30]] * 3)
    weight = lambda q: 10.0 * jnp.sqrt(jnp.sum((q[:3] - q[6:9]) ** 2))  # noqa: E731
    return carom.System(mass, {"contact": contact, "weight": weight}), np.array([0, 0, 0.4999, *[0.0] * 5, -R, 0, 0, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("v", "w", "rolls"), [([1.6, 1.2], [0.0, 0.0], 5 / 7), ([0.0, 0.0], [-2.4, 3.2], 2 / 7)], ids=["slides", "spins"]
)
def test_a_sphere_that_slides_or_spins_on_a_plane_ends_up_rolling(v, w, rolls):
    system, q = sphere_on_ground()
    start = carom.State(q, [*v, 0.0, *w, 0.0, *[0.0] * 6])
    sol = carom.simulate(system, start, carom.StormerVerlet(), t1=2.0, h=4e-4, save_every=100)
    speed = np.array(v) if any(v) else 0.5 * np.array([w[1], -w[0]])
    later = rolls * speed * 2.0 - (-1 if any(v) else 1) * 2 * np.linalg.norm(speed) * speed / (49 * 2.0)
    assert np.allclose(sol.v[-1, :2], rolls * speed, rtol=0, atol=1e-8)
    assert np.allclose(sol.q[-1, :2], later, rtol=0, atol=2e-5)
    energy = sol.account.energy
    assert energy[-1] - energy[0] == pytest.approx(sol.contact_work, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", [carom.TailoredTheta(), carom.TailoredIRK(), carom.AdditiveTailoredIRK()])
def test_tailored_methods_carry_friction_with_memory(method):
    plain, state = disk_on_ground(3.9)
    damped = carom.System(plain.mass, plain.potential, rate_damping={"contact": 1e-3, "pull": 1e-3})
    sol = carom.simulate(damped, state, method, t1=2.0, h=2e-3, save_every=100)
    assert np.abs(sol.v[-1, :2]).max() <= 1e-6
    assert sol.account.extra["spring"][-1] == pytest.approx(3.9**2 / (2 * 5e3), rel=1e-4)


def test_methods_that_cannot_carry_history_refuse_it_by_name():
    with pytest.raises(ValueError, match="Theta does not handle 'friction with memory'"):
        carom.simulate(*disk_on_ground(1.0), carom.Theta(), t1=1.0, h=0.1)


# ---- walls ----------------------------------------------------------------------------------------------------------


class Pulled(eqx.Module):
    """Weight, and a soft spring to a heavy body that swings along x."""

    weight: Array
    spring: Array
    swing: Array

    def __call__(self, q):
        x, puller = q.reshape(2, -1)
        along = 0.5 * self.spring * (puller[0] - x[0]) ** 2 + 0.5 * self.swing * puller[0] ** 2
        return self.weight * x[{3: 1, 6: 2}[x.size]] + along


def pulled_grain(d, seed):
    """A disk or a sphere on a rough floor, pulled to and fro beyond mu N; with the numbers of the closed form."""
    rng, dof = np.random.default_rng(seed), {2: 3, 3: 6}[d]
    m, r, mu, k_n = rng.uniform(0.5, 2.0), rng.uniform(0.2, 1.0), rng.uniform(0.1, 0.9), rng.uniform(5e3, 2e4)
    N, k = m * rng.uniform(5.0, 15.0), k_n * rng.uniform(0.3, 1.0)
    k_s = 0.1 * k
    bodies, floor = carom.Bodies(2, dof=dof), carom.shapes.half_plane([0.0] * (d - 1) + [1.0])
    damping = 0.5 * np.sqrt(k * m)
    rough = carom.laws.CundallStrack(friction=mu, stiffness=k, damping=damping, normal_damping=damping)
    law = carom.laws.power_pair(1.0)
    contact = carom.Interactions.against(bodies[:1], floor, law, data=(r, k_n), friction=rough)
    mass = bodies.mass(*[[m, 1e9]] * d, *[[1e9, 1e9]] * (dof - d))
    yields = mu * N * (k + k_s) / (k * k_s)
    far, slow = 1.5 * yields, 0.004 * np.sqrt(k_s / m)
    pull = Pulled(*map(jnp.asarray, (N, k_s, 1e9 * slow**2)))
    q, v = np.zeros(2 * dof), np.zeros(2 * dof)
    q[d - 1], v[dof] = r - N / k_n, far * slow
    numbers = {"mu N": mu * N, "k": k, "k_s": k_s, "slides": far - yields, "starts": np.arcsin(yields / far) / slow}
    back = (np.pi - np.arcsin((far - yields) / far)) / slow
    return carom.System(mass, {"floor": contact, "pull": pull}), carom.State(q, v), numbers, back


def run_of_grain(d, seed, parts=1.0):
    system, state, numbers, back = pulled_grain(d, seed)
    return carom.simulate(system, state, carom.StormerVerlet(), t1=parts * back, h=back / 2e4, save_every=20), numbers


@pytest.mark.parametrize(
    ("d", "seed"), [(2, 1), *(pytest.param(d, s, marks=pytest.mark.slow) for s in (2, 3) for d in (2, 3))]
)
def test_a_grain_on_a_rough_floor_starts_at_mu_n_sticks_again_and_its_spring_holds_the_energy(d, seed):
    sol, known = run_of_grain(d, seed)
    x, dof = sol.q[:, 0], sol.q.shape[1] // 2
    load = known["k_s"] * (sol.q[:, dof] - x)
    sticks = sol.t < 0.98 * known["starts"]
    assert load.max() == pytest.approx(known["mu N"], rel=1e-2)
    assert sol.account.extra["spring"].max() == pytest.approx(known["mu N"] ** 2 / (2 * known["k"]), rel=1e-12)
    assert np.abs(known["k"] * x - load)[sticks].max() <= 0.02 * known["mu N"]
    assert x[-1] == pytest.approx(known["slides"], rel=0.02)
    assert np.abs(sol.account.extra["spring"][-1]) <= 1e-3 * sol.account.extra["spring"].max()
    energy = sol.account.energy
    assert energy[-1] - energy[0] == pytest.approx(sol.contact_work, rel=1e-3)
    assert sol.contact_work == pytest.approx(-known["mu N"] * known["slides"], rel=0.03)


def test_what_a_rough_floor_remembers_is_stored_with_a_run(tmp_path):
    (whole, _), (half, _) = (run_of_grain(2, 1, parts) for parts in (0.4, 0.2))
    half.save(tmp_path / "run.nc")
    system, *_, back = pulled_grain(2, 1)
    on = carom.resume(tmp_path / "run.nc", system=system, t1=0.4 * back)
    assert np.array_equal(on.q[-1], whole.q[-1])
    assert np.array_equal(on.carry.pairs.force[0], whole.carry.pairs.force[0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bodies": carom.Bodies(2, dof=2)}, "needs bodies that turn"),
        ({"data": 0.5}, r"data must be a tuple \(radius"),
        ({"wall": carom.Wall(lambda q, r: q[1] - r)}, "give the wall a slip"),
        ({"wall": carom.Wall(lambda t, q, r: q[1] - r - t)}, "must be at rest"),
        ({"wall": "floor"}, "wall must be one of carom.shapes"),
    ],
)
def test_walls_that_make_no_sense_are_refused_by_name(change, says):
    rough = carom.laws.CundallStrack(0.5, 1.0)
    given = {"bodies": carom.Bodies(2, dof=3), "wall": carom.shapes.half_plane((0, 1)), "law": carom.laws.hertz_pair}
    with pytest.raises((ValueError, TypeError), match=says):
        carom.Interactions.against(**{**given, "data": (0.5, 1.0), "friction": rough, **change})


@pytest.mark.slow
def test_a_column_on_a_rough_floor_stays_at_rest():
    n, bodies, law = 4, carom.Bodies(4, dof=3), carom.laws.power_pair(1.0)
    rough = carom.laws.CundallStrack(0.5, 5e3, damping=10.0, normal_damping=10.0, rolling=0.05, rolling_stiffness=50.0)
    near, floor = carom.CellList(reach=1.0, skin=0.2), carom.shapes.half_plane((0, 1))
    potential = {
        "pairs": carom.Interactions.between(bodies, law, data=(0.5, 1e4), search=near, friction=rough),
        "floor": carom.Interactions.against(bodies, floor, law, data=(0.5, 1e4), friction=rough),
        "weight": bodies.each(lambda q: 10.0 * q[1]),
    }
    q = np.zeros((n, 3))
    q[:, 1] = np.arange(n) + 0.5 - 1e-3 * np.cumsum(n - np.arange(n))
    start = carom.State(q.ravel(), np.zeros(3 * n))
    sol = carom.simulate(
        carom.System(bodies.mass(1.0, 1.0, 0.1), potential),
        start,
        carom.StormerVerlet(),
        t1=200.0,
        h=2e-3,
        save_every=10**5,
    )
    assert np.abs(sol.q[-1] - q.ravel()).max() <= 1e-12
    assert np.abs(sol.v[-1]).max() <= 1e-10
