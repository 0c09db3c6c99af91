"""Scenario files under the name users know; the code is in `carom.files.scenario`."""

from carom.files.scenario import read as read
