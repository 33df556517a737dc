"""A small broker: Kafka's delayed operations, and the parts of a broker that these operations need.

The parts are logs and partitions, a replica manager (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`), a
coordinator of classic consumer groups (joins, syncs, heartbeats), topics, share groups, reads from a remote tier, and
most other operations that wait in a purgatory. All data is in memory. The calling code plays the followers, the remote
tier and the controller. No module of this package reads a clock or starts a thread by itself: see
`purgatorio_broker.runtime`.

A thread takes locks in three levels: first the lock of an operation, then the lock of a group or a partition, then
locks inside the partition. While a thread holds a partition's lock, it never calls `check_and_complete`. The thread
adds this call to an `ActionQueue` instead. At the end of a request, its thread runs the queue. After a time-out, or at
the end of a remote read, there is no request. Then the thread of the time-out or read runs the queue.
"""
