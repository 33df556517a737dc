"""The trace format `purgatorio-trace/2`: records, schemas, reading, writing and validation."""
