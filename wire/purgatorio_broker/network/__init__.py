"""The reference's broker and group coordinator behind a socket, for clients of Kafka's protocol: a test instrument.

The messages are kio's (Kafka's own definitions, a dataclass a version); what waits is `purgatorio_broker`'s delayed
operations, in real threads and real time. Nothing is kept on disk. What is here: frames and versions (`wire_format`,
`fields`, `api`), record batches as bytes (`record_batch`), what idempotent producers have appended (`sequences`), who
writes in a transaction (`transactions`), the topics and who leads them (`cluster`), what each request does
(`*_requests`), connections (`server`), a second broker that follows (`follower`), and the bugs that can be put in
(`mutants`).

Not here: access control, TLS and SASL, quotas, compaction, retention.
"""
