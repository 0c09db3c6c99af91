"""Stored runs, runs in parts, scenarios."""
