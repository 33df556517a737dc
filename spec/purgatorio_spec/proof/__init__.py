"""Proofs: z3 proves the arithmetic of the wheel for all integers, and CrossHair searches for inputs that break a
contract."""
