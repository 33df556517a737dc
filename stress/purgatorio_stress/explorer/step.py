"""A step: one use of one shared object by one task. This module decides whether two steps may be swapped.

Between two steps a task uses no shared object, so switching tasks only at steps loses no behavior. Two steps are
*dependent* if both use one object, and at least one step is not a read. Runs that differ only in the order of
independent steps are one *class* (Mazurkiewicz), and a reduction runs one run of each class.
"""

from typing import Final

READ: Final = 0
"""Changes nothing: swaps with other reads. A TRY that failed counts as one once that is known."""

WRITE: Final = 1
"""Changes the object, or may."""

ACQUIRE: Final = 2
"""Acquires an object that only one task can have, or waits for the end of a task. It is never enabled together with
the step that releases the object. (Work can be put in twice before it is taken out. So it is used by WRITE steps,
which may have to wait too.)"""

RELEASE: Final = 3
"""Gives it back; always enabled."""

TRY: Final = 4
"""A `try_lock`, or the end of a timed wait that is due: as ACQUIRE, but always enabled."""

KIND_NAMES: Final = ("read", "write", "acquire", "release", "try")

TIME: Final = -1
"""Stands in a schedule for "no task can continue, so time passes to the next end of a wait"."""
