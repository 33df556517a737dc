"""Bugs that are put in on purpose, and who finds them."""
