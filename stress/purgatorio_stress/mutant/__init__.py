"""Bugs that are put in on purpose, in memory: patches, and files of them for `--mutant`."""
