"""Checks a folder again. Only new or changed files are read. The other results come from the tables of earlier
checks."""
