"""The fast path, for large traces: finds the few operations that may break a clause, and judges only these operations
event by event.

The trace comes in batches of columns. Between batches, the fast path stores only numbers, such as a summary of each
operation. At the end, rules over these numbers select the *candidates*: every operation that may break a clause. Then
the clauses judge the events of the candidates, and of a sample of the other operations. A rule may select too many
candidates, but never too few. The rules count occasions (cases that could break a clause) exactly as the clauses do.
"""
