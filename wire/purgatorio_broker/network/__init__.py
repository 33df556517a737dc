"""The reference's broker and group coordinator on a socket, for clients of Kafka's protocol, for tests.

The messages are dataclasses of the package `kio`. Waiting requests are the delayed operations of `purgatorio_broker`,
with real threads in real time. Nothing is stored on disk. The modules are: frames and versions (`wire_format`,
`fields`, `api`), record batches as bytes (`record_batch`), the appends of idempotent producers (`sequences`),
transactional producers (`transactions`), the topics and their leaders (`cluster`), what each request does
(`*_requests`), connections (`server`), a second broker that follows (`follower`), and the bugs that can be put in
(`mutants`).

Not here: access control, TLS and SASL, quotas, compaction, retention.
"""
