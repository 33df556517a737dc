"""Judges a Kafka-compatible broker's promises about waiting requests, from the recorded traffic of client connections.

`scene` sends the requests, in sequences called scenes. `trace.record` is the trace format `purgatorio-wire/1`.
`history` has the requests and responses of a scene. `history.bound` computes the time after which a response is late.
Each module of `clause` judges some clauses, and `clause.registry` has their texts. `judge` makes one verdict for each
clause of a trace.
"""
