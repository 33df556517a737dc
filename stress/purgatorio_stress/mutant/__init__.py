"""Mutants (known bugs) for tests: patches that change the code in memory, and files of patches for `--mutant`."""
