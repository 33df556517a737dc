"""A history is one part of a run. The clauses judge each history alone.

A history is about one operation, one `check_and_complete`, or one reading of the gauges. A run is correct if and only
if every history is correct (locality: Herlihy and Wing, Linearizability, 1990). So several machines can check one large
set of runs.
"""
