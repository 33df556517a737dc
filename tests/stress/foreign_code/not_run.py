"""A package that an adapter names, and need not use."""

LIMIT = 3


def limit() -> int:
    """One line to be run."""
    return LIMIT
