"""Event capturing of any order (Acary2012)."""
