"""Methods whose numerical dissipation is the physical one (James2020)."""
