"""The clauses of the wire, one module for each subject. A clause yields a row for each occasion (chance to fail)."""
