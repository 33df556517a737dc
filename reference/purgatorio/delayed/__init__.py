"""Delayed operations, and the purgatory in which they wait. Read the module `operation` first, then `purgatory`."""
