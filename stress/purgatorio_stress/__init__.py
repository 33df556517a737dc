"""Drives and records implementations: the explorer, the stress harness, random programs and mutants."""
