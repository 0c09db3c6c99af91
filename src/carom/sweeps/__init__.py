"""Sweeps: many runs of one system with other numbers, of which a few numbers each are kept."""
