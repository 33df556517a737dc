"""The clauses: pure functions that judge one part of a trace, such as one operation. All verdicts come from clauses."""
