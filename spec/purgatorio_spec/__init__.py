"""The executable specification: trace format, clauses, verdicts, models and proofs. Never imports `purgatorio`."""
