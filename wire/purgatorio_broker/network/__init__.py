"""The broker on a socket, for tests of Kafka clients and of `purgatorio wire`.

The messages are dataclasses of the package `kio`. Waiting requests are the delayed operations of `purgatorio_broker`,
with real threads in real time. Nothing is stored on disk. The modules are:

- `wire_format`, `fields`, `api`: frames and versions;
- `record_batch`: record batches as bytes;
- `sequences`: the sequence numbers of idempotent producers;
- `transactions`: transactional producers;
- `cluster`: the topics and their leaders;
- `*_requests`: the action of each request;
- `server`: connections;
- `follower`: a second broker that replicates from the first;
- `mutants`: known bugs for tests.

Not implemented: access control, TLS and SASL, quotas, compaction, retention.
"""
