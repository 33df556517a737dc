"""Scenarios: small programs for the reference, run by the explorer or on real threads. Each scenario names the clauses
that it tests."""
