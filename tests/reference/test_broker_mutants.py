"""Known bugs of concrete delayed operations, brought back one by one: each scenario passes on the code and fails on
the mutant. The number is the row of the project's table of bugs, the issue the public one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from purgatorio.broker.delayed_fetch import DelayedFetch
from purgatorio.broker.delayed_heartbeat import DelayedHeartbeat
from purgatorio.broker.delayed_join import DelayedJoin
from purgatorio.broker.delayed_produce import DelayedProduce, ProduceResult
from purgatorio.broker.error import Error
from purgatorio.broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio.broker.group import Group, Member
from purgatorio.broker.group_coordinator import GroupCoordinator
from purgatorio.broker.key import MemberKey, TopicPartition
from purgatorio.broker.partition import Isolation, LogEnds, Partition
from purgatorio.broker.replica_manager import ReplicaManager
from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.faults import CONTAIN, PROPAGATE
from reference.broker_scene import P0, P1, Answers, Scene
from reference.group_scene import INITIAL_MS, SESSION_MS, GroupScene

Fetched = Mapping[TopicPartition, FetchResult]
Produced = Mapping[TopicPartition, ProduceResult]


def a_silent_member_is_removed() -> None:
    """It beats once, and never again."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    scene.beat(member)
    scene.advance(SESSION_MS)
    assert scene.group.get(member.member) is None, "nobody watches it"


def stale_satisfied(patch: pytest.MonkeyPatch) -> None:
    """28 (KAFKA-9752): the flag is not taken back before the next session is registered."""

    def heard_of(self: GroupCoordinator, group: Group, member: Member, timeout_ms: int) -> None:
        key = MemberKey(group.id, member.id)
        group.update(member.id, satisfied=True)
        self._heartbeats.check_and_complete(key)
        session = DelayedHeartbeat(timeout_ms, group, member.id, self._session_expired, self._runtime)
        self._heartbeats.try_complete_else_watch(session, [key])

    patch.setattr(GroupCoordinator, "_heard_of", heard_of)


def a_removed_member_leaves_no_session() -> None:
    """It leaves by itself; its session must not be in the timer any more."""
    scene = GroupScene()
    (member,) = scene.stable(1)
    scene.coordinator.leave("g", member.member)
    assert scene.coordinator.waiting() == (0, 0), "an operation would expire for nobody"


def armed_on_remove(patch: pytest.MonkeyPatch) -> None:
    """30 (KAFKA-7196): a member is removed without completing its session."""

    def remove(self: GroupCoordinator, group: Group, member: Member) -> None:
        group.remove(member.id)
        self._answer_waiting(group, member, Error.UNKNOWN_MEMBER_ID)

    patch.setattr(GroupCoordinator, "_remove", remove)


def actions_run_at_expiry() -> None:
    """What the end of a rebalance queued is run though no request comes."""
    scene = GroupScene()
    ran: list[int] = []
    scene.join()
    scene.actions.add(lambda: ran.append(1))
    scene.advance(INITIAL_MS)
    assert ran == [1], "left for the next request"


def skip_actions_on_expiry(patch: pytest.MonkeyPatch) -> None:
    """16 (KAFKA-8334): `on_expiration` does not drain the queue."""
    patch.setattr(DelayedJoin, "on_expiration", lambda self: None)


def a_replicated_record_is_acknowledged() -> None:
    """Both followers have it: the producer is answered, without any time."""
    scene = Scene().leads(P0)
    answers: Answers[Produced] = Answers()
    scene.manager.append_records(1000, -1, {P0: (10,)}, answers)
    for follower in (1, 2):
        scene.follower(follower, P0, 1)
    assert answers, "left to the time-out"


def missing_trigger(patch: pytest.MonkeyPatch) -> None:
    """31 (KAFKA-2960, KAFKA-1148): a follower's progress checks no key."""

    def note_follower(self: ReplicaManager, params: FetchParams, partitions: object, results: object) -> None:
        assert isinstance(partitions, Mapping)
        for partition, request in partitions.items():
            self.partition_or_raise(partition).follower_fetched(params.replica_id, request.offset)

    patch.setattr(ReplicaManager, "_note_follower", note_follower)


def trigger_before_update(patch: pytest.MonkeyPatch) -> None:
    """32 (KAFKA-2960, KAFKA-1148): the key is checked first, and the follower noted afterwards."""
    real = ReplicaManager._note_follower

    def note_follower(
        self: ReplicaManager,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        results: Mapping[TopicPartition, FetchResult],
    ) -> None:
        for partition in partitions:
            self.check_key(partition)
        silent = ActionQueue()
        patch.setattr(ReplicaManager, "_check_later", lambda self, partition: silent.add(lambda: None))
        real(self, params, partitions, results)

    patch.setattr(ReplicaManager, "_note_follower", note_follower)


class Broken(Exception):
    """What a callback raises here."""


def one_bad_callback_harms_nobody() -> None:
    """Two producers wait for one partition; the first one's callback raises."""
    scene = Scene()
    scene.runtime.faults = CONTAIN
    scene.leads(P0)

    def raises(results: Produced) -> None:
        raise Broken

    answers: Answers[Produced] = Answers()
    scene.manager.append_records(1000, -1, {P0: (10,)}, raises)
    scene.manager.append_records(1000, -1, {P0: (10,)}, answers)
    for follower in (1, 2):
        try:
            scene.follower(follower, P0, 2)
        except Broken:
            break
    assert answers, "not tried for this event"


def exception_aborts_pass(patch: pytest.MonkeyPatch) -> None:
    """33 (KAFKA-17240, KAFKA-9171): an exception in a callback ends the pass over the key's list."""
    patch.setattr(DelayedProduce, "call_on_complete", lambda self: self.on_complete())
    patch.setattr(
        "purgatorio.delayed.watchers.Watchers._try", lambda self, operation: operation.try_from_event()
    )


def every_action_runs() -> None:
    """Two actions, the first of which raises."""
    queue = ActionQueue()
    ran: list[int] = []

    def raises() -> None:
        raise Broken

    queue.add(raises)
    queue.add(lambda: ran.append(1))
    try:
        queue.run_all()
    except Broken:
        ran.append(-1)
    assert ran == [1], "the second was lost"


def action_queue_stops(patch: pytest.MonkeyPatch) -> None:
    """37 (KAFKA-8334, KAFKA-17240): draining stops at the first exception."""
    real = ActionQueue.__init__

    def init(self: ActionQueue) -> None:
        real(self, faults=PROPAGATE)

    patch.setattr(ActionQueue, "__init__", init)


def a_chain_of_completions_is_a_loop() -> None:
    """300 consumers wait at one offset each; every answer appends the record that the next one waits for."""
    scene = Scene(min_isr=1, segment_bytes=1_000_000)
    scene.manager.become_leader(P0, 1, (0,), (0,))
    answered: list[int] = []

    def answer(number: int) -> Callable[[Fetched], None]:
        def append(results: Fetched) -> None:
            answered.append(number)
            scene.manager.append_records(0, 1, {P0: (10,)}, lambda results: None)

        return append

    for number in range(300):
        params = FetchParams(1000, 10 * (number + 1), 10_000)
        scene.manager.fetch_records(params, {P0: FetchPartition(0, 10_000)}, answer(number))
    try:
        scene.append(P0, 10)
    except RecursionError:
        answered.append(-1)
    assert answered == list(range(300)), "as deep as the chain is long"


def direct_recheck(patch: pytest.MonkeyPatch) -> None:
    """36 (KAFKA-17509, KAFKA-17703): the key is checked on the spot instead of later."""
    patch.setattr(ReplicaManager, "_check_later", lambda self, partition: self.check_key(partition))


def a_committed_reader_that_waited_sees_no_open_transaction() -> None:
    """Answered at once or after waiting: the isolation is the request's."""
    scene = Scene()
    scene.manager.become_leader(P0, 1, (0,), (0,))
    answers: Answers[Fetched] = Answers()
    params = FetchParams(30, 100, 1000, Isolation.COMMITTED)
    scene.manager.fetch_records(params, {P0: FetchPartition(0, 1000)}, answers)
    scene.manager.append_records(0, 1, {P0: (10,)}, lambda results: None, producer="p")
    scene.manager.run_actions()
    scene.advance(30)
    assert answers.only()[P0].data.records == (), "the parked request forgot its isolation"


def parked_params_dropped(patch: pytest.MonkeyPatch) -> None:
    """96 (KAFKA-5355, KAFKA-5376): the delayed path reads with the default isolation."""
    real = ReplicaManager._read
    reads: list[int] = []

    def read(
        self: ReplicaManager, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]
    ) -> dict[TopicPartition, FetchResult]:
        reads.append(1)
        later = replace(params, isolation=Isolation.HIGH_WATERMARK)
        return real(self, params if len(reads) == 1 else later, partitions)

    patch.setattr(ReplicaManager, "_read", read)


def a_consumer_is_not_answered_by_what_it_may_not_read() -> None:
    """An append that is not replicated leaves the consumer waiting."""
    scene = Scene().leads(P0)
    answers: Answers[Fetched] = Answers()
    scene.manager.fetch_records(FetchParams(30, 1, 1000), {P0: FetchPartition(0, 1000)}, answers)
    scene.append(P0, 10)
    assert not answers, "an empty answer, too early"


def predicate_is_not_the_result(patch: pytest.MonkeyPatch) -> None:
    """97 (KAFKA-3159, KAFKA-4313): the condition looks at the log's end, the read at the high watermark."""

    real = Partition.ends

    def ends(self: Partition, current_epoch: int | None, *, leader_only: bool) -> LogEnds:
        found = real(self, current_epoch, leader_only=leader_only)
        return replace(found, high_watermark=found.log_end)

    patch.setattr(Partition, "ends", ends)


def a_decided_partition_keeps_its_answer() -> None:
    """B109: replicated, then lost, while the request waits for another partition."""
    scene = Scene().leads(P0, P1)
    answers: Answers[Produced] = Answers()
    scene.manager.append_records(1000, -1, {P0: (10,), P1: (10,)}, answers)
    for follower in (1, 2):
        scene.follower(follower, P0, 1)
    scene.manager.become_follower(P0, 6)
    scene.manager.run_actions()
    for follower in (1, 2):
        scene.follower(follower, P1, 1)
    assert answers.only()[P0].error is Error.NONE, "an acknowledgement was taken back"


def asks_again(patch: pytest.MonkeyPatch) -> None:
    """(Of this project.) Partitions are asked again until the whole request is done."""

    def try_complete(self: DelayedProduce) -> bool:
        verdicts = {p: self._validator(p, cell.get().result.required_offset) for p, cell in self._statuses}
        for partition, cell in self._statuses:
            error = verdicts[partition].error
            cell.set(replace(cell.get(), result=replace(cell.get().result, error=error)))
        left = [v for v in verdicts.values() if not v.enough and v.error is Error.NONE]
        return not left and self.force_complete()

    patch.setattr(DelayedProduce, "try_complete", try_complete)


def a_throttled_follower_is_held_back() -> None:
    """Its partition has data on an older segment; it waits all the same."""
    scene = Scene(segment_bytes=10).leads(P0, isr=(0,))
    scene.append(P0, 10, 10, 10)
    scene.manager.throttle.set(frozenset({P0}), exceeded=True)
    answers: Answers[Fetched] = Answers()
    params = FetchParams(30, 1, 1000, Isolation.LOG_END, replica_id=2)
    scene.manager.fetch_records(params, {P0: FetchPartition(0, 1000)}, answers)
    assert not answers, "answered at once, and again, and again: a busy loop"


def throttle_forgotten(patch: pytest.MonkeyPatch) -> None:
    """(Of the family of 97, KAFKA-6937.) The condition does not know of the throttle."""
    real = DelayedFetch.try_complete

    def try_complete(self: DelayedFetch) -> bool:
        with patch.context() as inner:
            inner.setattr(ReplicaManager, "is_throttled", lambda self, partition, params: False)
            return real(self)

    patch.setattr(DelayedFetch, "try_complete", try_complete)


@dataclass(frozen=True)
class Row:
    """A mutant, and the scenario that tells it from the code."""

    number: int
    mutate: Callable[[pytest.MonkeyPatch], None]
    scenario: Callable[[], None]


ROWS = [
    Row(16, skip_actions_on_expiry, actions_run_at_expiry),
    Row(28, stale_satisfied, a_silent_member_is_removed),
    Row(30, armed_on_remove, a_removed_member_leaves_no_session),
    Row(31, missing_trigger, a_replicated_record_is_acknowledged),
    Row(32, trigger_before_update, a_replicated_record_is_acknowledged),
    Row(33, exception_aborts_pass, one_bad_callback_harms_nobody),
    Row(36, direct_recheck, a_chain_of_completions_is_a_loop),
    Row(37, action_queue_stops, every_action_runs),
    Row(96, parked_params_dropped, a_committed_reader_that_waited_sees_no_open_transaction),
    Row(97, predicate_is_not_the_result, a_consumer_is_not_answered_by_what_it_may_not_read),
    Row(0, asks_again, a_decided_partition_keeps_its_answer),
    Row(0, throttle_forgotten, a_throttled_follower_is_held_back),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number}-{row.mutate.__name__}")
def test_the_code_passes_and_the_mutant_is_killed(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario that both pass would show nothing, and one that both fail neither."""
    row.scenario()
    row.mutate(monkeypatch)
    with pytest.raises(AssertionError):
        row.scenario()
