"""Judges the promises of a Kafka-compatible broker about waiting requests. The only input is the recorded traffic of
client connections.

`record` is the trace format `purgatorio-wire/1`. `history` has the requests and responses of a scene. `bound` computes
the time at which a response is late. Each module of the package `clause` has functions that judge some clauses.
`registry` has the text of each clause. `judge` combines the results of a trace to one verdict.
"""
