"""The wheel for use, *intrusive*: what waits is itself the place in the wheel's ring, without an object for that.

`node` has the links, `wheel` the data structure (no lock, no clock, no thread: testable alone), `timer` the `Timer`
around it: lock, clock, executor, and the alarm that wakes who sleeps for it.
"""
