"""The delayed operations of a consumer group of the classic protocol (Kafka's DelayedJoin, DelayedSync and
DelayedHeartbeat).

* A rebalance waits for the joins of the members. Its time-out is the group's rebalance time-out. A member that has not
  rejoined by then is removed, and the rebalance ends with the other members. The first rebalance of an empty group
  cannot know the number of members that will join. So it waits for the initial delay, and waits again as long as new
  members join, up to the rebalance time-out. Clauses B401 to B407.
* A generation waits for the syncs of its members (KAFKA-12890). A member that joins and never syncs would block the
  generation for ever. So such a member is removed at the rebalance time-out. The completion of the operation has no
  effect, because the SyncGroup requests are answered when the leader's SyncGroup comes. Clauses B501 to B504.
* The session of a member waits for a heartbeat or another request of the member. The expiry removes the member. A
  heartbeat does three things. It sets `satisfied` of the member and checks the member's key, which completes the
  waiting operation. It resets `satisfied`. It registers the next operation. Without the reset, the next operation
  would complete at once, and no operation would watch the session (KAFKA-9752). The completion of the operation has no
  effect. Clauses B601 to B608.

These operations use the group's lock, which other code holds too. So these operations need the dialect `locked`. With
`pending-flag`, an event would be lost while other code holds the lock (KAFKA-8334).
"""

from collections.abc import Callable

from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.group import Group, GroupState
from purgatorio_broker.runtime import Runtime


class _InGroup(DelayedOperation):
    """What waits under the group's lock; it does nothing on completion unless it says so."""

    def __init__(self, timeout_ms: int, group: Group, runtime: Runtime) -> None:
        super().__init__(
            timeout_ms, dialect=LOCKED, lock=group.lock, faults=runtime.faults, sync=runtime.sync
        )
        self._group = group

    def on_complete(self) -> None:
        """Nothing."""


class DelayedJoin(_InGroup):
    """Waits until all members have joined; its expiry continues without the others. `end`: ends the rebalance, under
    the lock. `run_actions`: what that has queued; run at expiry too, where no request does it (KAFKA-8334) [B408]."""

    def __init__(
        self,
        timeout_ms: int,
        group: Group,
        end: Callable[[Group], None],
        run_actions: Callable[[], object],
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, group, runtime)
        self._end = end
        self._run_actions = run_actions

    def try_complete(self) -> bool:
        """Every member has joined, and no member is pending."""
        return self._group.all_have_joined() and self.force_complete()  # [B401] [B402] [B403]

    def on_complete(self) -> None:
        self._end(self._group)

    def on_expiration(self) -> None:
        """Run what the end has queued."""
        self._run_actions()  # [B408]


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group: waits its delay out, and once more where somebody joined meanwhile.
    `remaining_ms`: how long it may still be put off after this delay. `again(delay, remaining)`
    registers its successor."""

    def __init__(
        self,
        delay_ms: int,
        configured_ms: int,
        remaining_ms: int,
        group: Group,
        end: Callable[[Group], None],
        again: Callable[[Group, int, int], None],
        run_actions: Callable[[], object],
        runtime: Runtime,
    ) -> None:
        super().__init__(delay_ms, group, end, run_actions, runtime)
        self._configured_ms = configured_ms
        self._remaining_ms = remaining_ms
        self._again = again

    def try_complete(self) -> bool:
        """Never by an event: only the time-out knows that the delay has ended."""
        return False

    def on_complete(self) -> None:
        """Wait on if somebody came meanwhile and there is time left, else end the rebalance."""
        if self._group.new_member_added.get() and self._remaining_ms > 0:
            self._group.new_member_added.set(False)
            delay_ms = min(self._configured_ms, self._remaining_ms)
            self._again(self._group, delay_ms, max(self._remaining_ms - delay_ms, 0))
        else:
            self._end(self._group)


class DelayedSync(_InGroup):
    """Waits until all members of a generation have synced. `expire(group, generation)` runs at the time-out, without
    the lock."""

    def __init__(
        self, timeout_ms: int, group: Group, expire: Callable[[Group, int], None], runtime: Runtime
    ) -> None:
        super().__init__(timeout_ms, group, runtime)
        self._generation = group.generation()
        self._expire = expire

    def try_complete(self) -> bool:
        """The generation has ended, or no sync is missing."""
        over = self._generation != self._group.generation()  # [B501]
        settled = self._group.state() in (GroupState.COMPLETING, GroupState.STABLE)  # [B502]
        if settled and not over and self._group.pending_sync():  # [B503] [B504]
            return False
        return self.force_complete()

    def on_expiration(self) -> None:
        """Remove whose sync is missing."""
        self._expire(self._group, self._generation)


class DelayedHeartbeat(_InGroup):
    """A member's session: completed by a sign of life, and its expiry removes the member. `pending`: of a member that
    has an id and has not joined. `expire(group, member, pending)` runs at the time-out, without the lock."""

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
        super().__init__(timeout_ms, group, runtime)
        self._member = member
        self._pending = pending
        self._expire = expire

    def try_complete(self) -> bool:
        """The session need not be watched (any more), or a request of the member has arrived."""
        member = self._group.get(self._member)
        if self._group.state() is GroupState.DEAD:  # [B601]
            return self.force_complete()
        if self._pending:
            return member is not None and self.force_complete()  # [B602] [B603]
        return (member is None or member.has_satisfied_heartbeat()) and self.force_complete()  # [B604]

    def on_expiration(self) -> None:
        """The session has ended."""
        self._expire(self._group, self._member, self._pending)
