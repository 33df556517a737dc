"""Decision tables of the concrete delayed operations: clauses B..., one a case, each with its sentence."""
