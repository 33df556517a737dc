"""One module a command of `purgatorio`; each exposes `app`, a Typer application with one command."""
