"""The fast check of large traces: finds the few operations that may break a clause, and judges only these operations
event by event.

The trace comes in batches of columns. Between batches, the fast check stores only numbers, such as a summary of each
operation. At the end, rules over these numbers select every operation that may break a clause. A selected operation is
called a *candidate*. Then the clauses judge the events of the candidates, and of a sample of the other operations. A
rule may select too many candidates, but never too few. An occasion is a case that could break a clause. The rules count
occasions exactly as the clauses do.
"""
