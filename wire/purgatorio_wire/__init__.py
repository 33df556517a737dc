"""Judges the promises of a Kafka-compatible broker about waiting requests, from the traffic of its connections
alone.

`record` is the trace format `purgatorio-wire/1`, `history` what was asked and answered, `bound` how late is late, the
modules of clauses say what is broken, `registry` has their sentences, and `judge` makes one verdict of a trace.
"""
