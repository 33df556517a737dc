"""The clauses about a broker, one module for each subject. A judging function returns one *row* (a result) for each
occasion (a case that could break the clause)."""
