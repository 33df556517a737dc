"""Delayed operations and the purgatory that they wait in: start with `operation`, then `purgatory`."""
