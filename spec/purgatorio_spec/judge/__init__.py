"""Judging: clauses applied to histories, tallies, and what they add up to."""
