"""`DelayedJoin` and `InitialDelayedJoin`: a rebalance waits for the members' joins (Kafka's, until 3.x).

Its time-out is the group's rebalance time-out: who has not rejoined by then is removed, and the rebalance ends with
the others. The first rebalance of an empty group cannot know how many members are on their way. It waits for the
initial delay, and again as long as members keep coming, up to the rebalance time-out.

Both have the group's lock as their own, so they need the dialect `locked`: another thread may hold the lock for
reasons of its own, and under `pending-flag` an event that meets such a holder is lost (KAFKA-8334).

Clauses B401 to B407.
"""

from collections.abc import Callable

from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio_broker.group import Group
from purgatorio_broker.runtime import Runtime

__all__ = ["DelayedJoin", "InitialDelayedJoin"]


class DelayedJoin(DelayedOperation):
    """Waits until all members have joined; its expiry goes on without the others. `end`: ends the rebalance, under the
    lock. `run_actions`: what that has queued; run at expiry too, where no request is there to do it (KAFKA-8334)."""

    __slots__ = ("_end", "_group", "_run_actions")

    def __init__(
        self,
        timeout_ms: int,
        group: Group,
        end: Callable[[Group], None],
        run_actions: Callable[[], object],
        runtime: Runtime,
    ) -> None:
        super().__init__(
            timeout_ms, dialect=LOCKED, lock=group.lock, faults=runtime.faults, sync=runtime.sync
        )
        self._group = group
        self._end = end
        self._run_actions = run_actions

    def try_complete(self) -> bool:
        """Every member has joined, and nobody is pending."""
        return self._group.all_have_joined() and self.force_complete()

    def on_complete(self) -> None:
        """End the rebalance."""
        self._end(self._group)

    def on_expiration(self) -> None:
        """Run what the end has queued."""
        self._run_actions()


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group: waits its delay out, and once more where somebody joined meanwhile.
    `remaining_ms`: how long it may still be put off after this delay. `again(delay, remaining)`
    registers its successor."""

    __slots__ = ("_again", "_configured_ms", "_remaining_ms")

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
        """Never by an event: only the time-out knows that the delay is over."""
        return False

    def on_complete(self) -> None:
        """Wait on if somebody came meanwhile and there is time left, else end the rebalance."""
        if self._group.new_member_added() and self._remaining_ms > 0:
            self._group.set_new_member_added(False)
            delay_ms = min(self._configured_ms, self._remaining_ms)
            self._again(self._group, delay_ms, max(self._remaining_ms - delay_ms, 0))
        else:
            self._end(self._group)
