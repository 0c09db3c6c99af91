"""Time-stepping for contact: Moreau's midpoint rule, the theta rule, extrapolation (Studer2008, Acary2012)."""
