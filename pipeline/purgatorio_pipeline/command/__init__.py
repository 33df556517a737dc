"""The commands of `purgatorio`, one module for each command. Each module has `command`, a click command."""
