"""A check over a lake that is there already: only files that are new or changed are read."""
