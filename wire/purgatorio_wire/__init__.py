"""Judges the promises of a Kafka-compatible broker about waiting requests. The only input is the recorded traffic of
client connections.

`record` is the trace format `purgatorio-wire/1`. `history` has the requests and responses of a scene. `bound` computes
the time at which a response is late. The modules of `clause` judge, `registry` has the sentences of the clauses, and
`judge` makes one verdict from a trace.
"""
