"""The clauses of the wire, one module for each subject. A clause returns a row (its result) for each occasion (case
that could break it)."""
