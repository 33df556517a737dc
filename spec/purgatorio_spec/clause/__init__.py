"""The clauses: each a small pure function over one part of a history. The only source of verdicts."""
