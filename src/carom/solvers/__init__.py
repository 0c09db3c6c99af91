"""Solvers: Newton's method, structured Jacobians, stage equations, contact problems."""
