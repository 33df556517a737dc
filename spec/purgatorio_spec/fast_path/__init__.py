"""The check as a fold over batches of columns: begin with the header, feed the batches, conclude.

What is carried between batches is numbers: an aggregate of each operation, the calls that are open, the checks that an
operation still waits for, the readings of the gauges. At the end rules over these columns mark every operation that
might break a clause, and the clauses themselves check the events of those, and of a sample of the others. A rule may
select too many candidates and must never select too few; what it does not mark it must count as the clauses would.
"""
