"""The timing wheel for production use. The wheel is *intrusive*: a bucket is a ring of linked nodes, and each node has
its own links. So a task needs no separate list entry.

The module `node` has the links. The module `wheel` has the data structure. It has no lock, clock or thread, so tests
can use it alone. The module `timer` adds the lock, the clock, the executor, and the alarm that wakes the sleeping
thread.
"""
