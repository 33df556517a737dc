"""Scenarios: small programs that the explorer runs with the reference. Each scenario names the clauses that the
scenario tests."""
