"""Judges a Kafka-compatible broker by its promises about waiting requests. The evidence is the recorded traffic of
client connections.

The package `scene` sends the requests, in sequences called *scenes*. `trace.record` defines the trace format
`purgatorio-wire/1`. `history` has the requests and responses of a scene. `history.bound` computes the time after which
a response is late. Each module of `clause` judges some clauses, and `clause.registry` has their texts. `judge` gives
one verdict for each clause of a trace.
"""
