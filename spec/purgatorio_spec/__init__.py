"""The executable specification: trace format, clauses, verdicts, models, proofs.

It never imports `purgatorio`: an oracle that shares code with what it judges is none.
"""
