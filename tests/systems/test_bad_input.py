"""Bad input fails at once, in the user's words."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom import models


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: models.granular_chain([1.0, -2.0, 1.0]), r"masses must be positive, got masses\[1\] = -2.0"),
        (lambda: models.granular_chain([1.0, np.nan]), r"masses must be positive, got masses\[1\] = nan"),
        (lambda: models.granular_chain([1.0]), "at least two numbers"),
        (lambda: models.granular_chain([1.0, 1.0], stiffness=-1.0), "stiffness must be positive"),
        (lambda: models.granular_chain([1.0, 1.0], stiffness=np.nan), "stiffness must be positive"),
        (
            lambda: models.granular_chain([1.0, 1.0, 1.0], damping=[0.1, -0.1]),
            r"damping must be zero or positive, got damping\[1\]",
        ),
        (lambda: models.granular_chain([1.0, 1.0], damping=np.inf), "damping must be zero or positive"),
        (lambda: models.granular_chain([1.0, 1.0, 1.0], stiffness=[1.0, 1.0, 1.0]), r"one number per contact \(2\)"),
        (
            lambda: models.granular_chain([1.0, 1.0, 1.0], stiffness=[1.0]),
            r"one number per contact \(2\), got shape \(1,\)",
        ),
        (lambda: models.granular_chain([1.0, 1.0], attachment=[1.0, 1.0, 1.0]), r"one number per bead \(2\)"),
        (lambda: models.granular_chain([1.0, 1.0], exponent=0.5), "exponent must be at least 1"),
        (lambda: models.granular_chain([1.0, 1.0], impact_velocity=np.nan), "impact_velocity must be finite"),
        (lambda: models.dimer_chain(2.5), "n must be a whole number"),
        (lambda: models.dimer_chain(10, mass_ratio=0.0), "mass_ratio must be positive"),
        (lambda: models.bead_chain(radii=[0.01, -0.01]), r"radii must be positive, got radii\[1\]"),
        (lambda: models.bead_chain(young=-1.0), "young must be positive"),
        (lambda: models.bead_chain(poisson=0.7), "poisson must lie in"),
        (lambda: models.binary_collision(-0.1), "damping must be zero or positive"),
        (lambda: models.damping_from_restitution(1.2), r"restitution must lie in \(0, 1\]"),
        (lambda: carom.System(mass=[1.0, 0.0]), r"mass must be positive, got mass\[1\] = 0.0"),
        (lambda: carom.System(mass=np.nan), "mass must be finite"),
        (lambda: carom.System(mass=[[1.0, 0.5], [0.2, 1.0]]), r"mass must be symmetric, got mass\[0,1\] = 0.5"),
        (lambda: carom.System(rate_damping={"contact": 0.1}), "the potential has the parts none"),
        (
            lambda: carom.System(potential=lambda q: q[0], rate_damping={"conservative": -1.0}),
            "must be zero or positive",
        ),
        (lambda: carom.Interactions(lambda a: a), "either stencil= or indices="),
        (lambda: carom.Constant(0.0), "h must be positive"),
        (lambda: carom.Constant(np.nan), "h must be positive"),
        (lambda: carom.Prescribed([0.1, -0.1]), r"steps\[1\] = -0.1"),
        (lambda: carom.Theta(1.5), r"theta must lie in \(0, 1\]"),
        (lambda: carom.IRK(carom.explicit(4)), "use carom.ExplicitRK"),
        (lambda: carom.ExplicitRK(carom.gauss(2)), "must be an explicit"),
        (lambda: carom.Newton(strategy="magic"), "strategy must be"),
        (lambda: carom.State([[1.0]], [0.0]), "q and v must be vectors"),
    ],
)
def test_wrong_numbers_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"t1": 1.0}, "give either h="),
        ({"t1": 1.0, "h": 0.1, "stepping": carom.Constant(0.1)}, "give either h="),
        ({"t1": 1.0, "h": -0.1}, "h must be positive"),
        ({"t1": -1.0, "h": 0.1}, "TailoredIRK runs forward in time only: t1 = -1 lies before the start, 0"),
        ({"t1": np.nan, "h": 0.1}, "t1 must be finite"),
        ({"t1": 1.0, "h": 0.1, "save_every": 0}, "save_every must be a whole number"),
        ({"t1": 1.0, "h": 0.1, "save_at": [2.0]}, "save_at must be times between 0 and 1"),
        ({"t1": 1.0, "stepping": carom.Prescribed([0.1])}, "the steps add up to 0.1, but t1 - t0 = 1"),
    ],
)
def test_wrong_arguments_of_simulate_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        carom.simulate(*models.trimer(), carom.TailoredIRK(), **arguments)


@pytest.mark.parametrize(
    ("system", "method", "message"),
    [
        (
            models.newtons_cradle(4)[0],
            carom.TailoredIRK(),
            "damps every part of the potential alike, but the system declares",
        ),
        (
            models.trimer(damping=0.1)[0],
            carom.TailoredIRK(damping=0.2),
            r"TailoredIRK\(damping=0.2\) differs from the system's rate damping 0.1",
        ),
        (models.granular_chain([1.0] * 3, damping=[0.1, 0.2])[0], carom.TailoredIRK(), "varies between interactions"),
        (
            models.granular_chain([1.0] * 3, damping=0.1, exponent=1.0)[0],
            carom.TailoredIRK(),
            "is not of this form. Use carom.AdditiveTailoredIRK",
        ),
        (
            models.granular_chain([1.0] * 3, damping=[0.1, 0.2])[0],
            carom.TailoredTheta(damping=0.1),
            r"TailoredTheta\(damping=0.1\) differs from the system's rate damping 0.2",
        ),
        (
            carom.System(forces={"drag": lambda t, q, v: -v}),
            carom.TailoredIRK(),
            "TailoredIRK takes forces of t and q, but the force 'drag' depends on v",
        ),
        (
            carom.System(lambda q: 1 + q[0] ** 2, rate_damping={"own": lambda q: 0.1 * q @ q}),
            carom.AdditiveTailoredIRK(),
            "AdditiveTailoredIRK does not handle 'mass of q'",
        ),
        (carom.System(constraints=lambda q: q[0] - 1), carom.Theta(), "Theta does not handle 'constraints'"),
    ],
)
def test_what_a_method_cannot_do_is_refused_by_name(system, method, message):
    n = 1 if "'" in message else system.mass.size
    with pytest.raises(ValueError, match=message):
        carom.simulate(system, carom.State(jnp.zeros(n), jnp.ones(n)), method, t1=1.0, h=0.1)


def test_a_start_of_the_wrong_length_is_named():
    with pytest.raises(ValueError, match="mass has 3 entries, but the state has 2 velocities"):
        carom.simulate(models.trimer()[0], carom.State([0.0, 0.0], [1.0, 0.0]), carom.Theta(), t1=1.0, h=0.1)


def test_a_force_that_is_nan_at_the_start_is_named():
    system = carom.System(forces={"lift": lambda t, q, v: jnp.log(q - 1)})
    with pytest.raises(ValueError, match="NaN or infinity at the start .* in 'force lift'"):
        carom.simulate(system, carom.State([0.0], [0.0]), carom.Theta(), t1=1.0, h=0.1)


def test_a_function_with_the_wrong_arguments_is_named():
    with pytest.raises(TypeError, match=r"force 'drag' must be a function of \(t, q, v\)"):
        carom.System(forces={"drag": lambda v: -v})


@pytest.mark.slow
def test_a_step_too_large_for_newton_keeps_what_was_computed():
    chain, state = models.granular_chain([1.0, 1.0, 1.0], stiffness=1e6, damping=0.0)
    method = carom.IRK(carom.gauss(2), newton=carom.Newton(max_iter=3))
    with pytest.raises(
        carom.SimulationError, match=r"Newton's method did not converge in the step from t = .* Take smaller steps"
    ):
        carom.simulate(chain, state, method, t1=10.0, h=0.5)


def test_kinematics_that_are_not_affine_are_refused():
    bent = carom.System(kinematics=lambda t, q, v: v**2)
    with pytest.raises(ValueError, match="kinematics must be affine in v"):
        carom.simulate(bent, carom.State([0.0], [1.0]), carom.Theta(), t1=1.0, h=0.1)


def test_an_unknown_model_or_parameter_is_named():
    with pytest.raises(ValueError, match="unknown model 'cradle'"):
        models.build("cradle", {})
    with pytest.raises(ValueError, match="newtons_cradle has no parameter 'beads'"):
        models.build("newtons_cradle", {"beads": 3})
