"""Runs timers and purgatories under many interleavings, and records their calls. The package has the explorer, the
stress harness, random programs and mutants."""
