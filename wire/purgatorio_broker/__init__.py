"""A broker small enough to read: the concrete delayed operations, with just enough around them to be judged.

Logs and partitions, a replica manager (`DelayedProduce`, `DelayedFetch`, `DelayedDeleteRecords`), a coordinator of
classic consumer groups (joins, syncs, heartbeats), topics, share groups, reads from a remote tier, and whatever else
waits in a purgatory. Everything is in memory; followers, the tier and the controller are the caller that calls.
Nothing here reads a clock or starts a thread by itself: see `purgatorio_broker.runtime`.

The rule of locks in this package: operation > group or partition > the objects of the partition. No key is checked
while a partition's lock is held: the check is put on an `ActionQueue`, which the request runs at its end. A
time-out, or the end of a read, is no request and runs the queue itself.
"""
