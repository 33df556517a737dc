"""Mutants of rebalances: their cause, the members that they wait for, their end and generation (G3, G4, G6)."""

import time
from collections.abc import Callable
from typing import Final

from mutants.broker.client_visible_mutant import felt, later, never, told
from purgatorio_broker.group import Group, GroupState, Member
from purgatorio_broker.group_coordinator import DelayedJoin, GroupCoordinator, InitialDelayedJoin
from purgatorio_stress.mutant.patch import Patch, edited, wrapped

_JOINED_S: Final[dict[str, float]] = {}


def _join_puts_off(
    join: Callable[..., None], self: GroupCoordinator, group_id: str, *given: object, **more: object
) -> None:
    _JOINED_S[group_id] = time.monotonic()
    join(self, group_id, *given, **more)


def _ends_later(end: Callable[..., None], self: GroupCoordinator, group: Group) -> None:
    left_ms = round(group.rebalance_timeout_ms() - 1000 * (time.monotonic() - _JOINED_S[group.id]))
    if left_ms > 0 and group.generation() and not group.all_have_joined():
        self._wait_for_joins(group, left_ms)
    else:
        end(self, group)


def _waits_once_more(
    wait: Callable[..., None], self: GroupCoordinator, group: Group, timeout_ms: int
) -> None:
    """What ends it does not end its time-out."""
    wait(self, group, timeout_ms)
    former = group.generation()

    def again() -> None:
        with group.lock:
            stable = group.state() is GroupState.STABLE and not group.pending_sync()
            if stable and group.generation() > former:
                self._prepare_rebalance(group)

    later(timeout_ms / 1000, again)


_JOINS: Final[dict[str, DelayedJoin]] = {}
"""By group, the wait for joins that goes on, or was the last."""


def _joins_time_out_anyway(
    wait: Callable[..., None], self: GroupCoordinator, group: Group, timeout_ms: int
) -> None:
    """What ends it does not end its time-out, which ends whatever waits then."""
    wait(self, group, timeout_ms)
    mine = _JOINS.get(group.id)

    def ends() -> None:
        with group.lock:
            waits = _JOINS.get(group.id)
            if waits is not None and waits is not mine and not waits.is_completed():
                waits.force_complete()
        self.actions.run_all()

    later(timeout_ms / 1000, ends)


def _join_noted(
    begin: Callable[..., None], self: DelayedJoin, timeout_ms: int, group: Group, *given: object
) -> None:
    begin(self, timeout_ms, group, *given)
    if not isinstance(self, InitialDelayedJoin):
        _JOINS[group.id] = self


def _joins_within(timeout_ms: str) -> Patch:
    return edited(
        GroupCoordinator, "_wait_for_joins", "DelayedJoin(timeout_ms,", f"DelayedJoin({timeout_ms},"
    )


_ASKED_BEFORE: Final[dict[str, int]] = {}
"""By group, the rebalance time-out before a newcomer."""


def _added_noted(add: Callable[..., None], self: GroupCoordinator, group: Group, member: Member) -> None:
    if group.members():
        _ASKED_BEFORE[group.id] = group.rebalance_timeout_ms()
    add(self, group, member)
    _ASKED_BEFORE.pop(group.id, None)


def _waits_as_asked_before(
    wait: Callable[..., None], self: GroupCoordinator, group: Group, timeout_ms: int
) -> None:
    wait(self, group, _ASKED_BEFORE.get(group.id, timeout_ms))


MUTANTS: Final = (
    *told("group_rebalances"),
    felt("join-waits-on", "a rebalance ends only at its time-out", "G4",
         Patch(DelayedJoin, "try_complete", never)),
    felt("rebalance-late", "a rebalance lasts a second longer than its time-out", "G6",
         _joins_within("timeout_ms + 1000")),
    felt("rebalance-early", "a rebalance lasts half its time-out", "G6", _joins_within("timeout_ms // 2")),
    felt("expected-not-awaited", "a rebalance does not wait for a client that got a member id", "G4",
         edited(Group, "all_have_joined", "not self._pending.get() and ", "")),
    felt("longest-time-out-overflows", "a rebalance with the largest possible time-out does not wait",
         "G4 G6",
         _joins_within("timeout_ms if timeout_ms + 5000 < 1 << 31 else 0")),
    felt("join-puts-off", "each JoinGroup of a rebalance restarts the rebalance timeout", "G6",
         wrapped(GroupCoordinator, "join", _join_puts_off),
         wrapped(GroupCoordinator, "_end_rebalance", _ends_later)),
    felt("ended-rebalance-again", "a rebalance that ended in time starts again at its time-out", "G3",
         wrapped(GroupCoordinator, "_wait_for_joins", _waits_once_more)),
    felt("former-time-out-ends-the-next", "the time-out of a rebalance that ended in time ends the next rebalance",
         "G6",
         wrapped(DelayedJoin, "__init__", _join_noted),
         wrapped(GroupCoordinator, "_wait_for_joins", _joins_time_out_anyway)),
    felt("time-out-of-the-others",
         "a rebalance that a new member starts ignores the longer rebalance timeout of this member",
         "G4 G6",
         wrapped(GroupCoordinator, "_add", _added_noted),
         wrapped(GroupCoordinator, "_wait_for_joins", _waits_as_asked_before)),
)  # fmt: skip
