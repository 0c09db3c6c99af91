"""Derivatives of whole runs: of their last state, of sums and peaks along the way, forward and in reverse."""
