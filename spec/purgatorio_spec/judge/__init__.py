"""Judging: applies clauses to histories and combines the results."""
