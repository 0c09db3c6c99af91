"""Explicit methods with a conserved pseudo-energy, synchronous and asynchronous (Marazzato2019)."""
