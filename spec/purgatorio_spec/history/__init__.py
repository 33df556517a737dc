"""Histories: the parts of a run that the clauses judge one by one.

A run is correct iff every part is (locality: Herlihy and Wing, Linearizability, 1990), which is why a check scales out:
operation clauses see one operation, the counting clause one `check_and_complete`, the gauge clauses one reading.
"""
