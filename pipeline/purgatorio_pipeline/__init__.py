"""The data pipeline: ingest, check, aggregate and report recorded runs, on Spark."""
