"""`DelayedSync`: a generation waits for its members' syncs (Kafka's DelayedSync, KAFKA-13062).

One that joined and never syncs would hold a generation for ever; at the rebalance time-out it is removed. It does
nothing on completion: the syncs themselves are answered when the leader's comes. Clauses B501 to B504. For lock and
dialect see `purgatorio_broker.delayed_join`.
"""

from collections.abc import Callable

from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.group import Group, GroupState
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedSync"]


class DelayedSync(DelayedOperation):
    """Waits until all members of a generation have synced. `expire(group, generation)` runs at the time-out, without
    the lock."""

    __slots__ = ("_expire", "_generation", "_group")

    def __init__(
        self, timeout_ms: int, group: Group, expire: Callable[[Group, int], None], runtime: Runtime
    ) -> None:
        super().__init__(
            timeout_ms, dialect=LOCKED, lock=group.lock, faults=runtime.faults, sync=runtime.sync
        )
        self._group = group
        self._generation = group.generation()
        self._expire = expire

    def try_complete(self) -> bool:
        """The generation is over, or nobody's sync is missing."""
        over = self._generation != self._group.generation()
        settled = self._group.state() in (GroupState.COMPLETING, GroupState.STABLE)
        if settled and not over and self._group.pending_sync():
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Nothing."""

    def on_expiration(self) -> None:
        """Remove whose sync is missing."""
        self._expire(self._group, self._generation)
