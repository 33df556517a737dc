"""Histories: the parts of a run that the clauses judge separately. A part is about one operation, one
`check_and_complete`, or one reading of the gauges.

A run is correct if and only if every history is correct (locality: Herlihy and Wing, Linearizability, 1990). So several
machines can judge the histories of one run.
"""
