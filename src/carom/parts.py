"""Runs in parts under the name users know; the code is in `carom.files.parts`."""

from carom.files.parts import simulate_to as simulate_to
