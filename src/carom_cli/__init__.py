"""The `carom` command. It stands outside the library, so that `carom --help` answers without importing JAX."""

from carom_cli.app import main as main
