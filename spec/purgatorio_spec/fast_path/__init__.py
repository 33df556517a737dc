"""The check as a fold over batches of columns: begin with the header, feed the batches, conclude.

Only numbers are kept between batches: an aggregate of each operation, the open calls, the checks that an operation
still waits for, the readings of the gauges. At the end, rules over these columns select every operation that might
break a clause as a candidate. The clauses recheck the events of the candidates, and of a sample of the other
operations. A rule may select too many candidates and must never select too few. For all other operations, the rules
count the occasions exactly as the clauses do.
"""
