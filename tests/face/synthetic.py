"""Made-up motions of every model that has a drawing, with the model's own number of coordinates."""

import numpy as np

COORDINATES = {
    "granular_chain": 6,
    "dimer_chain": 9,
    "bead_chain": 10,
    "binary_collision": 2,
    "trimer": 3,
    "newtons_cradle": 5,
    "fermi_pasta_ulam": 6,
    "slow_fast_chain": 6,
    "nonlinear_string": 38,
    "inhomogeneous_wave": 99,
    "layered_string": 59,
    "falling_mass": 1,
    "bouncing_ball": 1,
    "shaken_ball": 1,
    "driven_oscillator": 1,
    "friction_oscillator": 1,
    "relief_valve": 2,
    "impact_oscillator": 1,
    "oscillator_with_stop": 1,
    "mass_on_sphere": 2,
    "elastic_bar": 3,
    "sliding_mass": 2,
    "super_ball": 3,
    "rocking_block": 3,
    "block_on_belt": 1,
    "painleve_rod": 3,
    "impacting_stick": 3,
    "woodpecker": 3,
    "pendulum": 2,
    "double_pendulum": 4,
    "stiff_spring_pendulum": 4,
    "spherical_pendulum": 3,
    "slider_crank": 2,
    "slider_crank_clearance": 3,
    "four_bar": 3,
    "knife_edge": 3,
    "chaplygin_sleigh": 3,
    "andrews_squeezer": 7,
    "single_particle": 1,
    "structural_frame": 8,
    "disks_in_drum": 30,
    "disks_in_box": 30,
    "column_collapse": 30,
    "heap": 30,
    "hopper": 30,
    "spheres_in_box": 30,
}


def motion(model: str, frames: int = 50) -> np.ndarray:
    """A smooth motion of the right shape."""
    t = np.linspace(0.0, 1.0, frames)[:, None]
    n = COORDINATES[model]
    return 0.5 + 0.3 * np.sin(2 * np.pi * (t + np.arange(n) / n)) + 0.2 * t
