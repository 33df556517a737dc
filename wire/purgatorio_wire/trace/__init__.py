"""The trace format `purgatorio-wire/1`: records and files."""
