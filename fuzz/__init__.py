"""Random systems, methods, arguments and files against oracles that know nothing of carom: `make fuzz`."""
