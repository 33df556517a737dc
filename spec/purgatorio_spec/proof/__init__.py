"""Arithmetic proved for all integers (z3), and contracts searched for counterexamples (CrossHair)."""
