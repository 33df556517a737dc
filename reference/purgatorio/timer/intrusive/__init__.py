"""The timing wheel for production use. It is *intrusive*: a waiting node is itself the link in the wheel's ring,
without a separate entry.

`node` has the links, `wheel` the data structure (no lock, no clock, no thread: testable alone), `timer` the `Timer`
around it: lock, clock, executor, and the alarm that wakes the sleeping thread.
"""
