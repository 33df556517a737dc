"""The benchmarks of `purgatorio bench`: one module each, exposing `command`."""
