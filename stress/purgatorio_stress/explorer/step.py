"""A step (one use of one shared object by one task), and the rule for the order of two steps.

Between two steps a task uses no shared object. So every behavior can be reached with switches at steps alone. Two steps
are *dependent* if both use one object, and at least one of them is not a read. Runs that differ only in the order of
independent steps form a *class* (Mazurkiewicz). DPOR executes one run of each class.
"""

from typing import Final

READ: Final = 0
"""Changes nothing, so two reads may be swapped. A failed TRY counts as a READ after the failure is known."""

WRITE: Final = 1
"""Changes the object, or may change it."""

ACQUIRE: Final = 2
"""Acquires an object that only one task can have, or waits for the end of a task. It is never enabled together with
the step that releases the object. The take of an action from an executor is a WRITE that may wait: two submits may
precede it, so the take may be enabled together with a submit."""

RELEASE: Final = 3
"""Releases the object. Always enabled."""

TRY: Final = 4
"""A `try_lock`, or the end of a timed wait after its deadline: as ACQUIRE, but always enabled."""

KIND_NAMES: Final = ("read", "write", "acquire", "release", "try")

TIME: Final = -1
"""An entry of a schedule: no task can continue, so time passes to the next end of a wait."""
