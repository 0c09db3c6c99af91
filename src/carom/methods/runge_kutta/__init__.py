"""Runge-Kutta methods: explicit, implicit, and the theta rule."""
