"""The data pipeline: reads, judges, aggregates and reports recorded runs, on Spark or in one process."""
