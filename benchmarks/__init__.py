"""Benchmarks, peers side by side: `python -m benchmarks NAME`, from a checkout. Not installed."""
