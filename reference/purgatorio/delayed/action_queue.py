"""`ActionQueue`: actions that wait until the thread holds no lock (Kafka's DelayedActionQueue).

Code that makes a condition true often holds locks. It must not check keys under these locks (see `delayed.locked`), so
it adds the check to the queue. A thread that handles a request runs the queue at the end of the request. The thread
that runs time-outs runs the queue too.

The queue also prevents deep recursion. Without the queue, a callback checks a key, the check completes an operation,
and the callback of this operation checks the next key. So a chain of operations needs a deep stack. With the queue, the
chain is a loop.

Promise: each action runs once, in some later `run_all`, even if an earlier action raises an exception.

Not promised: that an action added *during* a `run_all` runs in the same call. One call runs at most as many actions as
were in the queue when it began.
"""

from collections.abc import Callable

from purgatorio.faults import CONTAIN, FaultPolicy, run_each
from purgatorio.given import given, require_function
from purgatorio.owned import Uncopied
from purgatorio.sync import SharedQueue, Sync
from purgatorio.threads import THREADS


class ActionQueue(Uncopied):
    """A queue of actions. `add` appends an action, and some later `run_all` runs it once."""

    __slots__ = ("_actions", "_faults")

    def __init__(self, *, faults: FaultPolicy = CONTAIN, sync: Sync = THREADS) -> None:
        self._actions: SharedQueue[Callable[[], object]] = sync.queue("actions")
        self._faults = given("a fault policy", faults)

    def add(self, action: Callable[[], object]) -> None:
        """Append `action`. Its result is ignored."""
        require_function(action)
        self._actions.append(action)

    def run_all(self) -> int:
        """Run the actions that are queued now. Returns their number. An exit of an action, or an exception of the fault
        policy, is raised after the last action."""
        polled = (self._actions.poll() for _ in range(self._actions.size()))
        return run_each((action for action in polled if action is not None), self._faults)

    def size(self) -> int:
        """The number of waiting actions."""
        return self._actions.size()
