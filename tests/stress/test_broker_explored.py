"""The broker where threads meet: small programs of its operations through their interleavings, beside twins that fail.

What one thread shows stands in `tests/wire`; the twins of two threads pass all of that.
"""

from collections.abc import Callable, Mapping, Sequence

import pytest

from purgatorio import ActionQueue
from purgatorio.faults import PROPAGATE
from purgatorio.sync import Sync
from purgatorio.threads import THREADS
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.group import GroupState, JoinResult
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import LogEnds, ReadRecords
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_broker.share_holding import LateAnswer, ReadingRemotely
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Exploration, Limits
from purgatorio_stress.mutant.patch import Patch, edited, patched
from stress.small_programs import Body, Small
from wire.broker_scene import P0, P1, Answers, Scene, follower_fetch
from wire.group_scene import REBALANCE_MS, SESSION_MS, GroupScene

Built = tuple[Sequence[Body], Callable[[], bool]]
FOREVER_MS = 1 << 40


def a_late_answer(sync: Sync) -> Built:
    """The read of the tier ends when its time is up: one answer."""
    answers, future = Answers[ReadingRemotely](), Deferred[ReadRecords](sync)
    late = LateAnswer(ReadingRemotely((P0,), ((P0, future),)), 20, answers, sync)
    return [late.give, late.give], lambda: len(answers.got) == 1


def a_change_of_leadership(sync: Sync) -> Built:
    """A produce over two partitions, a follower, and another leader of the second. The producer is answered once if its
    record was replicated; the consumer sees no record above the high watermark."""
    manager = Scene(sync=sync).leads(P0, P1, isr=(0, 1)).manager
    produced, seen = Answers[Error](), Answers[tuple[int, int]]()

    def ends() -> LogEnds:
        return manager.partition_or_raise(P0).ends(None, leader_only=False)

    def consumed(results: Mapping[TopicPartition, FetchResult]) -> None:
        data = results[P0].data
        seen((len(data.records), data.ends.high_watermark.offset if data.ends is not None else 0))

    def append(acks: int, answer: Callable[[Mapping[TopicPartition, ProduceResult]], None]) -> None:
        manager.append_records(FOREVER_MS, acks, {P0: (10,), P1: (10,)}, answer)
        manager.run_actions()

    def follow() -> None:
        for partition in (P0, P1):
            follower_fetch(manager, 1, partition, ends().log_end.offset)

    def change_leader() -> None:
        manager.become_follower(P1, 6)
        manager.run_actions()

    def well() -> bool:
        manager.check()
        replicated = ends().high_watermark.offset > 1
        return produced.got == [Error.NONE] * replicated and seen.only()[0] <= seen.only()[1]

    manager.fetch_records(FetchParams(FOREVER_MS, 1, 100), {P0: FetchPartition(0, 100)}, consumed)
    append(1, lambda results: None)
    return [lambda: append(-1, lambda results: produced(results[P0].error)), follow, change_leader], well


def members_that_come_and_go(sync: Sync) -> Built:
    """A member joins, one rejoins, one leaves, at once. In the end, no rebalance waits for a missing member."""
    actions = ActionQueue(faults=PROPAGATE, sync=sync)
    made = GroupScene(VirtualRuntime(7, faults=PROPAGATE, sync=sync), actions)
    first, second = made.stable(2)
    joins: list[Answers[JoinResult]] = []

    def join(member: str) -> None:
        joins.append(Answers())
        made.coordinator.join(
            "g",
            member,
            ("range",),
            joins[-1],
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )
        actions.run_all()

    def leave() -> None:
        made.coordinator.leave("g", second.member)
        actions.run_all()

    def well() -> bool:
        made.coordinator.check()
        waits_for_nobody = made.group.state() is GroupState.PREPARING and made.group.all_have_joined()
        made.runtime.advance(REBALANCE_MS + SESSION_MS)
        return not waits_for_nobody and [len(box.got) for box in joins] == [1, 1]

    return [lambda: join(""), lambda: join(first.member), leave], well


TWINS: dict[Callable[[Sync], Built], Patch] = {
    a_late_answer: edited(
        LateAnswer, "give", "self._given.compare_and_set(False, True)", "not self._given.get()",
        "self._timeout.cancel()", "self._given.set(True); self._timeout.cancel()",
    ),
    a_change_of_leadership: edited(ReplicaManager, "become_follower", "self._check_later(partition)", "pass"),
    members_that_come_and_go: edited(GroupCoordinator, "_drop", "group.state() is GroupState.PREPARING", "False"),
}  # fmt: skip
"""Each program, and the change that it finds."""


def explored(program: Callable[[Sync], Built]) -> Exploration:
    """Completely; three threads with at most one preemption."""
    small = Small(program)
    if len(program(THREADS)[0]) > 2:
        return explore_bounded(small, Limits(seconds=600, preemptions=1, violations=1))
    return explore_dpor(small, Limits(seconds=600, violations=1))


@pytest.mark.parametrize("program", TWINS, ids=lambda program: program.__name__)
def test_the_broker_passes_and_its_twin_is_found(program: Callable[[Sync], Built]) -> None:
    sound = explored(program)
    assert (sound.found, sound.complete) == ([], True)
    with patched([TWINS[program]]):
        assert explored(program).found
