"""One module a command of `purgatorio`; each exposes `command`, a click command."""
