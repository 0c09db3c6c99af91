"""Nothing crashes, nothing is ignored: every method with every stepping on every feature, traced or refused.

One small system per feature. What is not refused by name is traced (`begin` and one attempt, nothing is compiled), and
an attempt must leave the carry with the shapes and types it had: that is all a compiled loop asks for.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.capabilities import public_methods, public_steppings
from carom.running import loop
from carom.running.asking import refuse_features, segment_ends
from carom.running.loop import Problem, Start
from carom.systems.features import Feature
from carom.systems.first_lists import first_pairs

PLANE = carom.State([0.5, 0.5], [0.1, 0.1], t=2.0)
TURNING = carom.State([0.0, 0.0, 0.0, 0.9, 0.1, 0.0], [0.1] * 6, t=2.0)


def bowl(q):
    return 0.5 * q @ q


def floor(q):
    return q[1:2]


def rod(q):
    return q[:1] - q[1:2]


BEADS, SPACED = carom.Bodies(2, dof=1), carom.Shape(lambda a, b: b[0] - a[0] + 0.1, dimension=1)
ROUGH = carom.Interactions.between(
    carom.Bodies(2, dof=3),
    carom.laws.hertz_pair,
    data=(0.5, 1.0),
    search=carom.Fixed([[0, 1]]),
    friction=carom.laws.CundallStrack(0.5, 1.0),
)

SYSTEMS = {
    "smooth": carom.System(1.0, bowl),
    "interactions": carom.System(1.0, carom.Interactions(lambda x: 0.5 * x * x, stencil=(0,))),
    "forces": carom.System(1.0, bowl, {"drag": lambda t, q, v: -v}),
    "explicit time": carom.System(1.0, lambda t, q: (1 + t) * bowl(q)),
    "mass matrix": carom.System([[2.0, 0.1], [0.1, 1.0]], bowl),
    "mass of q": carom.System(lambda q: jnp.eye(2) * (1 + q[0] ** 2), bowl),
    "kinematics": carom.System(1.0, bowl, kinematics=lambda t, q, v: 2 * v),
    "rate damping": carom.System(1.0, bowl, rate_damping={"conservative": 0.1}),
    "constraints": carom.System(1.0, bowl, constraints=rod),
    "nonholonomic constraints": carom.System(1.0, bowl, nonholonomic=lambda q, v: v[:1] - v[1:2]),
    "hamiltonian": carom.System.from_hamiltonian(lambda q, p: 0.5 * p @ p + bowl(q)),
    "multiplier forces": carom.System(1.0, bowl, {"f": lambda t, q, v, lam: -v * lam[0]}, constraints=rod),
    "lagrangian": carom.System.from_lagrangian(lambda q, v: 0.5 * v @ v - bowl(q)),
    "contacts": carom.System(1.0, bowl, contacts=carom.Contacts(floor, restitution=0.5)),
    "friction": carom.System(1.0, bowl, contacts=carom.Contacts(floor, slip=lambda q: q[:1], friction=0.3)),
    "friction elements": carom.System(1.0, bowl, friction=carom.FrictionElements(lambda q, v: v[:1], 0.2)),
    "friction in a plane": carom.System(
        1.0, bowl, contacts=carom.Contacts(floor, slip=lambda q: jnp.stack([q[:1], 2 * q[:1]], 1), friction=0.3)
    ),
    "listed pairs": carom.System(
        1.0, bowl, contacts=carom.Contacts.between(BEADS, SPACED, search=carom.Fixed([[0, 1]]))
    ),
    "moving pairs": carom.System(
        1.0,
        carom.Interactions.between(BEADS, carom.laws.spring_pair, data=(0.1, 1.0), search=carom.CellList(0.2, 0.1)),
    ),
    "friction with memory": carom.System(1.0, ROUGH),
    "jumps": carom.System(1.0, bowl, {"f": lambda t, q, v: jnp.where(t > 2.05, 1.0, 0.0) - v}, jumps=[2.05]),
}

SPECIAL = {
    "IRK": lambda: carom.IRK(carom.radau_iia(2)),
    "ExplicitRK": lambda: carom.ExplicitRK(carom.explicit(2)),
    "AsynchronousPseudoEnergy": lambda: carom.AsynchronousPseudoEnergy([0], 2),
    "Composed": lambda: carom.Composed(carom.PseudoEnergy()),
    "Spark": lambda: carom.Spark(2),
    "EventCapturing": lambda: carom.EventCapturing(carom.radau_iia(2)),
    "Extrapolated": lambda: carom.Extrapolated(carom.MoreauMidpoint(), max_order=2),
}
METHODS = {name: SPECIAL.get(name, kind)() for name, kind in public_methods().items()}
METHODS["MoreauMidpoint of many"] = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel())

STEPPINGS = {
    "Constant": carom.Constant(0.1),
    "Prescribed": carom.Prescribed([0.1] * 10),
    "Adaptive": carom.Adaptive(1e-3, 1e-6),
    "StepHalving": carom.StepHalving(1e-3, inspect=True),
    "Switching": carom.Switching(1e-3, 0.1),
    "EnergyGap": carom.EnergyGap(1e-3, 0.1),
    "Reversible": carom.Reversible(1e-3),
}


def test_the_table_is_complete():
    assert set(public_methods()) <= set(METHODS)
    assert set(public_steppings()) == set(STEPPINGS)
    assert set(Feature) <= frozenset().union(*(system.features for system in SYSTEMS.values()))


@pytest.fixture(scope="module", autouse=True)
def _a_step_is_traced_once_for_all_steppings():
    with pytest.MonkeyPatch.context() as patch:
        for kind in {type(method) for method in METHODS.values()}:
            patch.setattr(kind, "step", eqx.filter_jit(kind.step))
        yield


def kinds(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype), tree)


def traced(system, method, stepping):
    """Whether the pair runs this system: its carry before and after one attempt, or None and the refusal."""
    state = TURNING if Feature.PAIR_MEMORY in system.features else PLANE
    instants = segment_ends(system, state, 3.0)
    try:
        refuse_features(system, state, method, stepping, instants)
        method = method.tuned(system, state, stepping.longest)
        problem = Problem(system, method, stepping, None, np.int64(1))
        carry = (loop.begin if method.concrete_init else loop.blank_carry)(
            problem, Start(state, instants, first_pairs(system, state, instants[0]))
        )
    except ValueError as refusal:
        return None, str(refusal)
    return carry, jax.eval_shape(lambda c: loop.attempt(problem, c)[0], carry)


FEW = ("jumps", "constraints", "contacts")
LONG = ("EventCapturing", "Spark")  # take seconds to trace, on the following alike
ALIKE = ("smooth", "interactions", "forces", "explicit time", "mass matrix", "lagrangian")


def assert_traced_or_refused_by_name(method, stepping, features):
    for feature in features:
        before, after = traced(SYSTEMS[feature], METHODS[method], STEPPINGS[stepping])
        if before is None:
            name = type(METHODS[method]).__name__
            assert name in after or stepping in after or "Gauss" in after, (feature, after)
        else:
            assert kinds(before) == kinds(after), feature


@pytest.mark.parametrize("method", METHODS)
def test_constant_steps_of_every_method_are_traced_on_every_feature_or_refused_by_name(method):
    features = [feature for feature in SYSTEMS if method not in LONG or feature not in ALIKE]
    assert_traced_or_refused_by_name(method, "Constant", features)


@pytest.mark.parametrize("stepping", [name for name in STEPPINGS if name != "Constant"])
@pytest.mark.parametrize("method", METHODS)
def test_every_stepping_is_traced_with_every_method_or_refused_by_name(method, stepping):
    assert_traced_or_refused_by_name(method, stepping, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("method", METHODS)
def test_every_feature_is_traced_or_refused_by_name(method, stepping):
    assert_traced_or_refused_by_name(method, stepping, SYSTEMS)


def two_lanes(x):
    return jnp.stack([x, x])


@pytest.mark.parametrize(
    ("method", "stepping", "feature"),
    [
        ("IRK", "Constant", "jumps"),
        ("StormerVerlet", "Prescribed", "smooth"),
        ("ExplicitRK", "Adaptive", "forces"),
        ("MoreauTheta", "StepHalving", "friction"),
        ("Extrapolated", "Switching", "contacts"),
        ("PseudoEnergy", "EnergyGap", "smooth"),
        ("Spark", "Reversible", "constraints"),
        ("EventCapturing", "Adaptive", "contacts"),
    ],
)
def test_a_batch_leaves_the_carry_as_it_was(method, stepping, feature):
    system, instants = SYSTEMS[feature], segment_ends(SYSTEMS[feature], PLANE, 3.0)
    problem = Problem(system, METHODS[method].tuned(system, PLANE, 0.1), STEPPINGS[stepping], None, np.int64(1))
    axes = jax.tree.map(lambda _: None, problem)
    start = jax.tree.map(two_lanes, Start(PLANE, jnp.asarray(instants)))
    carry = loop.blank_carry(problem, start, axes)
    lanes = eqx.filter_vmap(loop.masked_attempt, in_axes=(None, eqx.if_array(0)))
    assert kinds(jax.eval_shape(lambda c: lanes(problem, c)[0], carry)) == kinds(carry)


@pytest.mark.parametrize("stepping", ["Switching", "StepHalving", "EnergyGap", "Reversible"])
def test_a_method_that_stops_short_is_refused_where_whole_steps_are_needed(stepping):
    with pytest.raises(ValueError, match=f"{stepping} needs .*'steps that never stop short'.* which EventCapturing"):
        carom.simulate(SYSTEMS["contacts"], PLANE, METHODS["EventCapturing"], t1=3.0, stepping=STEPPINGS[stepping])


def test_a_method_that_stops_short_is_no_base_of_extrapolation():
    with pytest.raises(ValueError, match="base must give 'steps that never stop short', EventCapturing does not"):
        carom.Extrapolated(METHODS["EventCapturing"])


def test_an_error_in_units_of_a_tolerance_is_not_a_symmetric_one():
    with pytest.raises(ValueError, match="Reversible needs 'symmetric error estimate', which Extrapolated does not"):
        carom.simulate(SYSTEMS["contacts"], PLANE, METHODS["Extrapolated"], t1=3.0, stepping=STEPPINGS["Reversible"])
