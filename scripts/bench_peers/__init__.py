"""Carafe beside other engines on the same models: see `scripts/bench-peers --help`."""
