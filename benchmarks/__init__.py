"""Benchmarks that compare several timers in one run: `python -m benchmarks NAME`, from a checkout. Not installed."""
