"""`python -m carom_cli`."""

from carom_cli.app import main

main()
