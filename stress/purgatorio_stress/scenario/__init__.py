"""Scenarios: small programs over the reference for the explorer, each with what it can break."""
