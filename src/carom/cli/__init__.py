"""What the commands of `carom` do; the commands themselves are in `carom_cli`."""
