"""Scenarios: small programs of the reference for the explorer. Each scenario names the clauses that it can break."""
