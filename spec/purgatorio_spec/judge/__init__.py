"""Applies the clauses to the parts of a run, and combines the results."""
