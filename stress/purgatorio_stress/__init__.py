"""Runs implementations under many interleavings, and records their calls: explorer, stress harness, random programs,
mutants.
"""
