"""Benchmarks of timers and purgatories: workloads, candidates, and the method that sets them side by side."""
