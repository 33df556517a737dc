"""The clauses: pure functions that judge one part of a history. All verdicts come from them."""
