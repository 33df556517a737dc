"""The trace format `purgatorio-trace/1`: records, schemas, reading, writing, validating."""
