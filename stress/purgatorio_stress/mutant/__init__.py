"""Mutants: bugs that were really made, each brought back into the reference in memory, and who finds them."""
