"""`DelayedHeartbeat`: a member's session; its expiry removes the member (Kafka's DelayedHeartbeat).

The idiom of a heartbeat: set the member's `satisfied`, check its key, which completes the operation that waits; take
`satisfied` back, and register the next operation. Were it not taken back, the next one would complete as soon as it
is registered, and nobody would watch the member any more (KAFKA-9752). It does nothing on completion.

Clauses B601 to B608. For lock and dialect see `purgatorio_broker.delayed_join`.
"""

from collections.abc import Callable

from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.group import Group, GroupState
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedHeartbeat"]


class DelayedHeartbeat(DelayedOperation):
    """A member's session: completed by a sign of life, and its expiry removes the member. `pending`: of a member that
    has an id and has not joined. `expire(group, member, pending)` runs at the time-out, without the lock."""

    __slots__ = ("_expire", "_group", "_member", "_pending")

    def __init__(
        self,
        timeout_ms: int,
        group: Group,
        member: str,
        expire: Callable[[Group, str, bool], None],
        runtime: Runtime,
        *,
        pending: bool = False,
    ) -> None:
        super().__init__(
            timeout_ms, dialect=LOCKED, lock=group.lock, faults=runtime.faults, sync=runtime.sync
        )
        self._group = group
        self._member = member
        self._pending = pending
        self._expire = expire

    def try_complete(self) -> bool:
        """The session needs no watching (any more), or the member has been heard of."""
        member = self._group.get(self._member)
        if self._group.state() is GroupState.DEAD:
            return self.force_complete()
        if self._pending:
            return member is not None and self.force_complete()
        return (member is None or member.has_satisfied_heartbeat()) and self.force_complete()

    def on_complete(self) -> None:
        """Nothing."""

    def on_expiration(self) -> None:
        """The session is over."""
        self._expire(self._group, self._member, self._pending)
