"""`ActionQueue`: actions put off until no lock is held (Kafka's DelayedActionQueue).

Code that makes a condition true often holds locks, and must not check keys then (see `delayed.locked`). It puts
the check here, and the request's handler runs the queue at its end, and so does the thread that runs callbacks at
expiry.

It also bounds recursion: a callback that checks a key directly, whose operations' callbacks check the next, goes
as deep as the chain is long; through the queue the chain is a loop.

Promise: every action added is run once by some later `run_all`; one that raises loses none after it. Not
promised: that an action added *during* a `run_all` runs in that call. One call runs at most as many as were there
when it began, so that two threads cannot keep each other busy for ever.
"""

from collections.abc import Callable

from purgatorio.faults import CONTAIN, FaultPolicy
from purgatorio.owned import Uncopied
from purgatorio.sync import SharedQueue, Sync
from purgatorio.threads import THREADS


class ActionQueue(Uncopied):
    """Actions that wait until no lock is held: `add` puts one off, and each is run once by some later `run_all`."""

    __slots__ = ("_actions", "_faults")

    def __init__(self, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS) -> None:
        self._actions: SharedQueue[Callable[[], object]] = sync.queue("actions")
        self._faults = faults

    def add(self, action: Callable[[], object]) -> None:
        """Put `action` at the end; its result is dropped."""
        self._actions.append(action)

    def run_all(self) -> int:
        """Run what is queued now; returns how many ran."""
        ran = 0
        for _ in range(self._actions.size()):
            action = self._actions.poll()
            if action is None:
                break
            ran += 1
            try:
                action()
            except Exception as error:
                self._faults.caught(error, "action", action)
        return ran

    def size(self) -> int:
        """How many wait."""
        return self._actions.size()
