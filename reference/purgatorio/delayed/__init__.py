"""Delayed operations and the purgatory in which the operations wait. Start reading at `operation`, then `purgatory`."""
