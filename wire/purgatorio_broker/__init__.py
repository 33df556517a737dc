"""A small broker: the concrete delayed operations of Kafka, and the parts of a broker that they need.

Logs and partitions, a replica manager (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`), a coordinator of
classic consumer groups (joins, syncs, heartbeats), topics, share groups, reads from a remote tier, and whatever else
waits in a purgatory. Everything is in memory. The calling code plays the followers, the remote tier and the
controller. Nothing here reads a clock or starts a thread by itself: see `purgatorio_broker.runtime`.

Locks are taken in this order: operation, group or partition, objects of the partition. No key is checked while a
partition's lock is held. Instead, the check is added to an `ActionQueue`, which the request runs when it ends. A
time-out, or the end of a read, runs the queue itself.
"""
