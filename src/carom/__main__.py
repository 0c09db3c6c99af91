"""`python -m carom`: the command line."""

from carom_cli import main

main()
