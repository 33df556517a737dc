"""The timing wheel for production use. The wheel is *intrusive*: a waiting node is itself the link in the ring of a
bucket, without a separate entry.

The module `node` has the links. The module `wheel` has the data structure without lock, clock or thread, so that tests
can use the structure alone. The module `timer` has the `Timer` around the wheel: the lock, the clock, the executor,
and the alarm that wakes the sleeping thread.
"""
