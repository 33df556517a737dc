"""A small broker: Kafka's delayed operations, and the parts of a broker that these operations need.

The parts are logs and partitions, a replica manager (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`), a
coordinator of classic consumer groups (joins, syncs, heartbeats), topics, share groups, and reads from a remote tier.
All data is in memory. The calling code simulates the followers, the remote tier and the controller. Only the module
`runtime` reads a clock or starts a thread. The file `clauses.txt` has the clauses, B101 to B955.

Lock order: first the lock of an operation, then the lock of a group or a partition, then locks inside the partition. A
thread that holds a partition's lock never calls `check_and_complete`. It adds this call to an `ActionQueue`. A thread
runs the queue at the end of a request, of a time-out, or of a remote read.
"""
