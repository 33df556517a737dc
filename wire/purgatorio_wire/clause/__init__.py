"""The clauses of the wire, one module for each subject. A clause returns a row for each occasion (each case that could
break the clause)."""
