"""Histories: the parts of a run. The clauses judge each part alone.

A part is one operation, one `check_and_complete`, or one reading of the gauges. A run is correct if and only if every
part is correct (locality: Herlihy and Wing, Linearizability, 1990). So several machines can check one large set of
runs.
"""
