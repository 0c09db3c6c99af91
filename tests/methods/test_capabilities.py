"""Nothing is silently ignored: every method states what it handles and refuses the rest by name."""

from pathlib import Path

import jax.numpy as jnp
import pytest

import carom
from carom.capabilities import declared, matrix, needs, public_methods
from carom.methods.base import AbstractMethod
from carom.systems.features import Feature

FEATURES = {
    "mass of q": {"mass": lambda q: jnp.eye(2) * (1 + q[0] ** 2)},
    "mass matrix": {"mass": [[2.0, 0.1], [0.1, 1.0]]},
    "explicit time": {"potential": lambda t, q: (1 + t) * q @ q},
    "forces": {"forces": {"drag": lambda t, q, v: -v}},
    "rate damping": {"potential": lambda q: q @ q, "rate_damping": {"conservative": 0.1}},
    "kinematics": {"kinematics": lambda t, q, v: 2 * v},
    "constraints": {"constraints": lambda q: q[0] - q[1]},
    "nonholonomic constraints": {"nonholonomic": lambda q, v: v[0] - v[1]},
    "hamiltonian": {"hamiltonian": lambda q, v: v @ v + q @ q},
}


def instance(kind: type[AbstractMethod]) -> AbstractMethod:
    special = {
        "IRK": lambda: carom.IRK(carom.gauss(2)),
        "ExplicitRK": lambda: carom.ExplicitRK(carom.explicit(2)),
        "AsynchronousPseudoEnergy": lambda: carom.AsynchronousPseudoEnergy([0], 2),
        "Composed": lambda: carom.Composed(carom.PseudoEnergy()),
        "Extrapolated": lambda: carom.Extrapolated(carom.MoreauMidpoint()),
        "Spark": lambda: carom.Spark(2),
        "EventCapturing": lambda: carom.EventCapturing(carom.gauss(2)),
    }
    return special.get(kind.__name__, kind)()


def test_methods_handle_what_a_system_may_have():
    assert all((declared(kind) or frozenset()) <= set(Feature) for kind in public_methods().values())


@pytest.mark.parametrize("feature", FEATURES)
def test_a_system_knows_its_features(feature):
    assert feature in carom.System(**FEATURES[feature]).features


UNHANDLED = [
    (name, feature)
    for name, kind in public_methods().items()
    for feature in FEATURES
    if declared(kind) is not None and feature not in declared(kind)
]


@pytest.mark.parametrize(("name", "feature"), UNHANDLED)
def test_a_method_refuses_by_name_what_it_does_not_handle(name, feature):
    system = carom.System(**FEATURES[feature])
    with pytest.raises(ValueError, match=f"{name} does not handle .*'{feature}'"):
        carom.simulate(system, carom.State([0.5, 0.5], [0.0, 0.0]), instance(public_methods()[name]), t1=0.1, h=0.1)


def test_the_tables_in_the_documentation_are_the_declared_ones():
    page = Path(__file__).parents[2] / "docs" / "choosing_a_method.md"
    assert matrix() in page.read_text()
    assert needs() in page.read_text()
