"""SPARK methods for constrained mechanics (Jay1998)."""
