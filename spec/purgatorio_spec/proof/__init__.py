"""Proofs about the arithmetic of the wheel. z3 proves lemmas for all integers. CrossHair searches for broken
contracts."""
