"""Shared runs: every compiled program serves as many tests as possible."""

import warnings

import pytest

import carom


def extrapolated(order, atol=1e-8, **options):
    return carom.Extrapolated(carom.MoreauMidpoint(), max_order=order, atol=atol, rtol=0.0, **options)


@pytest.fixture(scope="session")
def falling():
    system, state = carom.models.falling_mass()
    return carom.simulate(system, state, extrapolated(4), t1=1.2, stepping=carom.Switching(1e-5, 0.05))


@pytest.fixture(scope="session")
def sliding():
    system, state = carom.models.sliding_mass()
    return carom.simulate(system, state, extrapolated(6), t1=4.5, stepping=carom.Switching(1e-6, 0.05))


@pytest.fixture(scope="session")
def toy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system, state = carom.models.woodpecker()
        return carom.simulate(system, state, extrapolated(6, 1e-9), t1=0.15, stepping=carom.Switching(1e-9, 5e-3))
