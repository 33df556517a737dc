"""A small broker: Kafka's delayed operations, and the parts of a broker that these operations need.

The parts are logs and partitions, a replica manager (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`), a
coordinator of classic consumer groups (joins, syncs, heartbeats), topics, share groups, reads from a remote tier, and
all other operations that wait in a purgatory. All data is in memory. The calling code acts as the followers, the
remote tier and the controller. No module of this package reads a clock or starts a thread by itself: see
`purgatorio_broker.runtime`.

Locks are taken in this order: operation, group or partition, objects of the partition. No key is checked while a
thread holds a partition's lock. Instead, the check is added to an `ActionQueue`, and the request runs the queue at its
end. A time-out, or the end of a read, runs the queue itself.
"""
