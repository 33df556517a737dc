"""Days of the broker in virtual time, as data: `days/*.txt`, in the notation of `story_lines`. A line is a call, or
what must be so behind those before; its verb is a method of the class of its file."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from purgatorio.executors import QueuedExecutor
from purgatorio.faults import CONTAIN, PROPAGATE
from purgatorio.threads import THREADS
from purgatorio_broker.deferred import Cancelled, Deferred
from purgatorio_broker.delayed_future import DelayedFuturePurgatory
from purgatorio_broker.delayed_produce import DeleteResult, ProduceResult
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import CONSUMER, FetchParams, FetchPartition
from purgatorio_broker.group import Committed, JoinResult, SyncResult
from purgatorio_broker.group_coordinator import NEW_MEMBER_TIMEOUT_MS
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import EpochEnd, Record
from purgatorio_broker.partition import Isolation, ReadRecords
from purgatorio_broker.request import Gatekeeper, RequestLayer
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits
from purgatorio_broker.topics import Topics
from story_lines import Line, paragraphs
from wire.broker_scene import P0, P1, Answers, Scene
from wire.group_scene import REBALANCE_MS, SESSION_MS, GroupScene
from wire.share_scene import CAPACITY, MIN_BYTES, Fetched, ShareScene, offsets
from wire.share_scene import Share as ShareOf

PARTS = P0, P1


class Group:
    """A group's day. Members have names of one letter, and each its last call's answer."""

    def __init__(self) -> None:
        self.scene = GroupScene()
        self.coordinator = self.scene.coordinator
        self.boxes: dict[str, Answers[Any]] = {}
        self.members: dict[str, JoinResult] = {"stranger": JoinResult(Error.NONE, "stranger", 1)}
        self.actions = 0
        self.stored = 0

    def bounds(self, shortest_ms: int, longest_ms: int) -> None:
        self.coordinator._session_bounds_ms = shortest_ms, longest_ms

    def begun(self, names: str, **more: str) -> None:
        """A generation of these, not synced yet; the first leads."""
        self.members |= zip(names, self.scene.joined(len(names), **more), strict=True)

    def stable(self, names: str, **more: str) -> None:
        self.members |= zip(names, self.scene.stable(len(names), **more), strict=True)
        self.stored = len(self.scene.stored)

    def join(
        self, names: str, *, every: int = 0, box: str = "", protocols: tuple[str, ...] = ("range",),
        session: int = SESSION_MS, rebalance: int = REBALANCE_MS, **more: Any,
    ) -> None:  # fmt: skip
        """Each joins, by its id if it has one. `box`: where its answer comes to, if not under its name."""
        for at, name in enumerate(names):
            self.wait(every if at else 0)
            known = self._known(name)
            made = self.boxes[box or name] = Answers[JoinResult]()
            self.coordinator.join(
                "g", known.member if known else "", protocols, made, session_timeout_ms=session,
                rebalance_timeout_ms=rebalance, **more,
            )  # fmt: skip
            self.coordinator.check()

    def sync(self, names: str, *, keeps: bool = False) -> None:
        for name in names:
            known = self._known(name)
            assert known is not None
            made: Answers[SyncResult] = self.scene.sync(known)
            if not keeps:
                self.members[name], self.boxes[name] = known, made

    def wait(self, by_ms: int) -> None:
        self.scene.advance(by_ms)

    def beat(self, names: str, error: str = "NONE", generation: int | None = None) -> None:
        for known in map(self._known, [names] if names in self.members else names):
            assert known is not None
            at = known.generation if generation is None else generation
            assert self.coordinator.heartbeat("g", at, known.member) is Error[error]

    def beats(self, times: int, ms: int, names: str, error: str = "NONE", *, before: bool = False) -> None:
        """So often, behind each wait of so many ms, or before it."""
        for _ in range(times):
            for step in (self.beat, None) if before else (None, self.beat):
                step(names, error) if step else self.wait(ms)

    def leave(self, name: str, error: str = "NONE") -> None:
        """The last member may not know its id yet."""
        known = self._known(name)
        gone = known.member if known else self.scene.group.members()[-1].id
        assert self.coordinator.leave("g", gone) is Error[error]

    def commit(self, name: str, at: int, error: str = "NONE", generation: int = 1) -> None:
        known = self._known(name)
        assert known is not None
        assert self.coordinator.commit("g", generation, known.member, {P0: Committed(at)}) is Error[error]

    def kill(self) -> None:
        self.coordinator.kill("g")

    def shutdown(self) -> None:
        self.coordinator.shutdown()

    def patient(self, name: str) -> None:
        """Its rebalances have more time than a new member has."""
        with self.scene.group.lock:
            self.scene.group.update(
                self.members[name].member, rebalance_timeout_ms=10 * NEW_MEMBER_TIMEOUT_MS
            )

    def queue(self) -> None:
        """An action, that counts."""

        def act() -> None:
            self.actions += 1

        self.scene.actions.add(act)

    # What must be so.

    def waits(self, names: str) -> None:
        assert not [name for name in names if self.boxes[name]]

    def told(self, names: str, error: str = "NONE", **shown: Any) -> None:
        for name in [names] if names in self.boxes else names:
            answer = self.boxes[name].only()
            assert answer.error is Error[error], (name, answer)
            for field, value in shown.items():
                told = getattr(answer, field)
                if field in ("members", "leader"):
                    known = {
                        one.member: letter
                        for letter in {*self.boxes, *self.members}
                        if (one := self._known(letter)) is not None
                    }
                    told = "".join(sorted(known[one] for one in ([told] if field == "leader" else told)))
                if value == "own":
                    value = self.members[name].member.encode()
                assert told == value, (name, answer)

    def member(self, name: str, **fields: object) -> None:
        known = self.scene.group.get(self.members[name].member)
        assert {field: getattr(known, field) for field in fields} == fields

    def there(self, name: str) -> None:
        known = self._known(name)
        assert known is not None
        assert self.scene.group.get(known.member) is not None

    def gone(self, name: str) -> None:
        known = self._known(name)
        assert known is not None
        assert self.scene.group.get(known.member) is None

    def group(self, **shown: object) -> None:
        group = self.scene.group
        found = {
            "state": group.state().name,
            "generation": group.generation(),
            "members": len(group.members()),
        }
        assert {**found, **shown} == found

    def waiting(self, *, rebalances: int = 0, sessions: int = 0) -> None:
        assert self.coordinator.waiting() == (rebalances, sessions)

    def committed(self, at: int | None, stored: int | None = None) -> None:
        committed = self.scene.group.committed().get(P0)
        assert (None if committed is None else committed.offset) == at
        assert stored is None or len(self.scene.stored) == self.stored + stored

    def ran(self, actions: int) -> None:
        assert self.actions == actions

    def instances(self, *names: str) -> None:
        assert [one.instance for one in self.scene.group.members()] == [*names]

    def _known(self, name: str) -> JoinResult | None:
        box = self.boxes.get(name)
        answer = box.only() if box else None
        if isinstance(answer, JoinResult) and answer.error in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            return answer
        return self.members.get(name)


TIERED = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)
"""The part of each partition that is in the tier."""


class Share:
    """A share group's day. Fetches have the names of their members; records their offsets."""

    def __init__(self) -> None:
        self.operations: dict[str, DelayedShareFetch] = {}
        self.boxes: dict[str, Answers[Fetched]] = {}
        self.made()

    def made(self, *, later: bool = False, segment_bytes: int = 1_000_000, **limits: int) -> None:
        """`later`: reads of the local log wait for `run`."""
        held = ShareLimits(**{"capacity": CAPACITY, "lock_ms": 10_000, **limits})
        self.scene = ShareScene(later=later, limits=held, segment_bytes=segment_bytes)
        self.manager, self.tier, self.log = self.scene.manager, self.scene.tier, self.scene.log

    def records(self, count: int) -> None:
        self.made(capacity=3, lock_ms=40, max_deliveries=2)
        self.append(0, count)
        self.act()

    def append(self, number: int, count: int) -> None:
        self.scene.scene.append(PARTS[number], *[10] * count)

    def bring(self, number: int, share: str) -> None:
        self.scene.bring(PARTS[number], ShareOf[share])

    def fetch(
        self, member: str, *, of: tuple[int, ...] = (0, 1), wait: int = 30, least: int = MIN_BYTES, most: int = 1000
    ) -> None:  # fmt: skip
        params, parts = FetchParams(wait, least, most), [PARTS[number] for number in of]
        self.operations[member], self.boxes[member] = self.scene.fetch(params, *parts, member=member)

    def take(self, member: str) -> None:
        """A fetch of any record of partition 0, as a request: it completes the operations that it makes ready."""
        self.fetch(member, of=(0,), wait=1000, least=1)
        self.act()

    def tiered(self, member: str) -> None:
        """A fetch of both partitions that waits for the tier."""
        for number in (0, 1):
            self.bring(number, "TIERED")
        self.fetch(member)
        self.waits(member)
        self.locked(True, True)

    def run(self) -> None:
        self.scene.executor.run_all()

    def act(self) -> None:
        self.manager.run_actions()

    def wait(self, by_ms: int) -> None:
        self.scene.advance(by_ms)

    def moved(self, number: int) -> None:
        self.scene.fetches.partition_moved(PARTS[number])

    def follows(self, number: int, truncate_to: int | None = None) -> None:
        self.manager.become_follower(PARTS[number], 2, truncate_to=truncate_to)

    def leads(self, number: int) -> None:
        self.manager.become_leader(PARTS[number], 3, (0,), (0,))

    def stops(self, number: int, *, deleted: bool = False) -> None:
        self.manager.stop_replica(PARTS[number], deleted=deleted)

    def fails(self, number: int) -> None:
        self.manager.fail_directory(PARTS[number])

    def unlock(self, number: int) -> None:
        self.scene.share(PARTS[number]).unlock()

    def place(self, number: int, member: str) -> None:
        """The end of the log is where records are to be given out next."""
        end = self.log.end(PARTS[number], self.operations[member]._params.isolation)
        self.scene.share(PARTS[number]).note_place(end)

    def forget_place(self, number: int) -> None:
        self.scene.share(PARTS[number]).note_place(None)

    def done(self, number: int) -> None:
        self.tier.futures[PARTS[number]].complete(TIERED)

    def no_tier(self, number: int) -> None:
        self.tier.fails_for.add(PARTS[number])

    def tier_from(self, number: int, start: int) -> None:
        self.tier.starts[PARTS[number]] = start

    def local(self) -> None:
        """All is here again."""
        self.tier.starts.clear()

    def contain(self) -> None:
        self.scene.scene.runtime.faults = CONTAIN

    def reads(self, *, raises: bool = False, forces: str = "") -> None:
        """Each read of the log raises, as a broken disk does, or completes a fetch."""
        self.log.before.append(_raises if raises else self.operations[forces].force_complete)

    def begins(self, *, forces: str) -> None:
        """So does each read that is put on another thread."""
        self.log.begun.append(self.operations[forces].force_complete)

    def force(self, member: str, *, again: bool = False) -> None:
        assert self.operations[member].force_complete() is not again
        assert not again or not self.operations[member].try_complete()

    def tries(self, member: str) -> None:
        assert not self.operations[member].try_complete()

    def shutdown(self) -> None:
        self.scene.fetches.shutdown()

    def say(self, member: str, at: list[int], how: str, error: str = "NONE") -> None:
        assert self.scene.fetches.acknowledge(member, P0, at, Acknowledgement[how]) is Error[error]

    def closes(self, member: str, count: int) -> None:
        assert self.scene.fetches.close_session(member) == count

    # What must be so.

    def waits(self, *members: str) -> None:
        assert not [member for member in members if self.boxes[member]]

    def got(
        self, member: str, at: list[int] | None = None, *, of: tuple[int, ...] = (0,), error: str = "NONE",
        deliveries: tuple[int, ...] = (), beside: Mapping[int, str] | None = None,
    ) -> None:  # fmt: skip
        """The one answer: these records of each of these partitions, or this error, or nothing. `beside`: the errors
        of other partitions."""
        answer = self.boxes[member].only()
        errors = dict.fromkeys(of, error) if at is not None or error != "NONE" else {}
        assert {p.partition: one.error.name for p, one in answer.items()} == {**errors, **(beside or {})}
        for number in of:
            assert offsets(answer, PARTS[number]) == (at or [])
            assert not deliveries or answer[PARTS[number]].deliveries == deliveries

    def locked(self, *each: bool) -> None:
        assert self.scene.locked() == [*each]

    def read_later(self, *each: tuple[int, ...]) -> None:
        assert self.log.reads_later == [tuple(PARTS[number] for number in one) for one in each]

    def read_now(self, *each: int | tuple[int, int]) -> None:
        """How often, or of what how many bytes at most."""
        counts = len(self.log.reads_now) if isinstance(each[0], int) else None
        assert [*each] == (
            [counts] if counts is not None else [(p.partition, most) for p, most in self.log.reads_now]
        )

    def last_read(self, one: tuple[int, int]) -> None:
        assert self.log.reads_now[-1] == (PARTS[one[0]], one[1])

    def queued(self, count: int) -> None:
        assert self.manager.actions.size() == count

    def waiting(self, count: int) -> None:
        assert self.scene.fetches.waiting() == count

    def expired(self, count: int) -> None:
        assert self.scene.fetches.expirations.total() == count

    def cancelled(self, number: int) -> None:
        outcome = self.tier.futures[PARTS[number]].outcome()
        assert outcome is not None
        assert isinstance(outcome.error, Cancelled)

    def share(self, number: int, **shown: int) -> None:
        held = self.scene.share(PARTS[number])
        assert {field: getattr(held, field)() for field in shown} == shown

    def owner(self, offset: int, member: str) -> None:
        delivered = self.scene.share(P0).delivered(offset)
        assert delivered is not None
        assert delivered.member == member

    def locks(self, count: int) -> None:
        assert self.scene.fetches._timer.size() == count


def _raises() -> None:
    raise OSError("disk")


class Broker:
    """A broker's day. Each request's answer has a name."""

    def __init__(self) -> None:
        self.boxes: dict[str, Answers[Any]] = {}
        self.made()

    def made(self, min_isr: int = 2, segment_bytes: int = 100) -> None:
        self.scene = Scene(min_isr=min_isr, segment_bytes=segment_bytes)
        self.manager = self.scene.manager

    def leads(self, number: int, *, isr: tuple[int, ...] = (0, 1, 2), epoch: int = 5) -> None:
        self.scene.leads(PARTS[number], isr=isr, epoch=epoch)

    def alone(self, number: int) -> None:
        self.manager.become_leader(PARTS[number], 1, (0,), (0,))

    def fenced(self, number: int, epoch: int) -> None:
        """No broker is the leader in this epoch any more."""
        for change in (
            lambda: self.scene.leads(PARTS[number], epoch=epoch),
            lambda: self.follows(number, epoch),
        ):
            with pytest.raises(BrokerError, match="FENCED_LEADER_EPOCH"):
                change()

    def shrink(self, number: int, *isr: int) -> None:
        self.manager.shrink_isr(PARTS[number], isr)

    def replicate(self, number: int, count: int, mark: int) -> None:
        """The leader sends a follower so many records and its high watermark."""
        self.manager.partition_or_raise(PARTS[number]).replicate([10] * count, 6, mark)

    def follows(self, number: int, epoch: int = 6, truncate_to: int | None = None) -> None:
        self.manager.become_follower(PARTS[number], epoch, truncate_to=truncate_to)

    def gone(self, number: int) -> None:
        self.manager.stop_replica(PARTS[number], deleted=True)

    def offline(self, number: int) -> None:
        self.manager.fail_directory(PARTS[number])

    def throttle(self, number: int) -> None:
        self.manager.throttle(frozenset({PARTS[number]}))

    def append(self, number: int, count: int) -> None:
        self.scene.append(PARTS[number], *[10] * count)

    def write(self, producer: str, *, marker: str = "") -> None:
        """A record of a transaction, or its end."""
        self.manager.append_records(0, 1, {P0: (10,)}, lambda results: None, producer=producer, marker=marker)

    def produce(self, name: str, *numbers: int, acks: int = -1) -> None:
        box = self.boxes[name] = Answers[Any]()
        self.manager.append_records(30, acks, {PARTS[number]: (10,) for number in numbers}, box)

    def consume(
        self, name: str, offset: int, *, wait: int = 30, least: int = 1, isolation: str = "HIGH_WATERMARK",
        replica: int = CONSUMER, leader_only: bool = True, last_epoch: int | None = None,
    ) -> None:  # fmt: skip
        box = self.boxes[name] = Answers[Any]()
        params = FetchParams(wait, least, 1000, Isolation[isolation], replica, leader_only)
        asked = FetchPartition(offset, 1000, last_fetched_epoch=last_epoch)
        self.manager.fetch_records(params, {P0: asked}, box)

    def delete(self, name: str, offset: int) -> None:
        box = self.boxes[name] = Answers[Any]()
        self.manager.delete_records(30, {P0: offset}, box)

    def follower(self, replica: int, number: int, offset: int, log_start: int = 0) -> None:
        self.scene.follower(replica, PARTS[number], offset, log_start)

    def act(self) -> None:
        self.manager.run_actions()

    def wait(self, by_ms: int) -> None:
        self.scene.advance(by_ms)

    def shutdown(self) -> None:
        self.manager.shutdown()

    # What must be so.

    def waits(self, name: str) -> None:
        assert not self.boxes[name]

    def told(self, name: str, error: str = "NONE", *, of: tuple[int, ...] = (0,)) -> None:
        found = {part.partition: result.error.name for part, result in self.boxes[name].only().items()}
        assert found == dict.fromkeys(of, error)

    def read(self, name: str, at: list[int], aborted: list[tuple[str, int, int]] | None = None) -> None:
        data = self.boxes[name].only()[P0].data
        assert [record.offset for record in data.records] == at
        assert [(one.producer, one.first, one.last) for one in data.aborted] == (aborted or [])

    def diverges(self, name: str, epoch: int, end: int) -> None:
        assert self.boxes[name].only()[P0].data.diverging == EpochEnd(epoch, end)

    def appended(self, name: str, base: int, end: int) -> None:
        assert self.boxes[name].only()[P0] == ProduceResult(Error.NONE, base, end)

    def deleted(self, name: str, low: int) -> None:
        assert self.boxes[name].only()[P0] == DeleteResult(Error.NONE, low, low)

    def end(self, number: int, at: int, **others: int) -> None:
        ends = self.manager.partition_or_raise(PARTS[number]).ends(None, leader_only=False)
        wanted = {"log_end": at, **others}
        assert {name: getattr(ends, name).offset for name in wanted} == wanted

    def role(self, number: int, **shown: object) -> None:
        replica = self.manager.partition_or_raise(PARTS[number])
        replica.check()
        assert {field: getattr(replica, field)() for field in shown} == shown

    def waiting(self, *counts: int) -> None:
        assert self.manager.waiting() == counts

    def expired(self, kind: str, total: int, *of: object) -> None:
        meter = getattr(self.manager, f"{kind}_expirations")
        keys = [PARTS[one] if isinstance(one, int) else one for one in of[:1]]
        assert (meter.total(), meter.keys()) == (total, keys)
        assert [meter.count(key) for key in keys] == [*of[1:]]


NAMED = {"secret": TopicPartition("secret", 0), "nowhere": TopicPartition("nowhere", 0), "0": P0, "1": P1}


class Layer(Broker):
    """Histories of the request layer: no client may see the topic `secret`, and the broker does not know `nowhere`."""

    def made(self, min_isr: int = 2, segment_bytes: int = 100) -> None:
        super().made(min_isr, segment_bytes)
        self.closed: set[str] = set()
        knows = Gatekeeper(lambda topic: topic != "secret", lambda partition: partition.topic != "nowhere")
        self.layer = RequestLayer(self.manager, knows)

    def ask(self, name: str, acks: int, **sizes: int) -> None:
        """A produce of one record of so many bytes each; of none by 0."""
        box = self.boxes[name] = Answers[Any]()
        batches = {NAMED[one.strip("p")]: (size,) if size else () for one, size in sizes.items()}
        self.layer.produce(30, acks, batches, box, lambda: self.closed.add(name))

    def read_of(self, name: str, *parts: str, replica: int = CONSUMER, offset: int = 0) -> None:
        box = self.boxes[name] = Answers[Any]()
        asked = {NAMED[part]: FetchPartition(offset, 1000) for part in parts}
        self.layer.fetch(FetchParams(30, 1, 1000, replica_id=replica), asked, box)

    # What must be so.

    def merged(self, name: str, **errors: str) -> None:
        found = [(part, result.error.name) for part, result in self.boxes[name].only().items()]
        assert found == [(NAMED[one.strip("p")], error) for one, error in errors.items()]

    def ended(self, *names: str) -> None:
        assert self.closed == {*names}


class Topic:
    """A day of the metadata: topics, elections, and what waits for futures."""

    def __init__(self) -> None:
        self.runtime = VirtualRuntime(3, faults=PROPAGATE)
        self.topics = Topics(self.runtime)
        self.executor = QueuedExecutor(faults=PROPAGATE)
        self.purgatory = DelayedFuturePurgatory("AlterAcls", self.executor, self.runtime)
        self.boxes: defaultdict[str, Answers[Any]] = defaultdict(Answers)
        self.futures: defaultdict[str, Deferred[object]] = defaultdict(lambda: Deferred(THREADS))

    def leader(self, topic: str, number: int, node: int = 1) -> None:
        self.topics.metadata.set_leader(TopicPartition(topic, number), node)

    def create(self, name: str, wait: int = 30, **counts: int) -> None:
        self.topics.create(wait, counts, self.boxes[name])

    def grow(self, name: str, **totals: int) -> None:
        self.topics.create_partitions(30, totals, self.boxes[name])

    def delete(self, name: str, *topics: str) -> None:
        self.topics.delete(30, topics, self.boxes[name])

    def gone(self, topic: str) -> None:
        self.topics.metadata.remove(topic)

    def elect(self, name: str, *parts: tuple[str, int]) -> None:
        asked = [TopicPartition(*part) for part in parts]
        self.topics.elect(30, dict.fromkeys(asked, 1), self.boxes[name])

    def done(self, *names: str) -> None:
        for name in names:
            self.futures[name].complete(name)

    def all_of(self, name: str, *futures: str) -> None:
        waited = [self.futures[one] for one in futures]
        self.purgatory.try_complete_else_watch(20, waited, lambda: self.boxes[name]("called"))

    def wait(self, by_ms: int) -> None:
        self.runtime.advance(by_ms)

    # What must be so.

    def waits(self, name: str) -> None:
        assert not self.boxes[name]

    def told(self, name: str, *same: str, **errors: str) -> None:
        answer = self.boxes[name].only()
        found = {str(one): error.name for one, error in answer.items()}
        assert found == (errors or dict.fromkeys(found, *same))

    def called(self, name: str) -> None:
        assert self.boxes[name].only() == "called"

    def ran(self, actions: int) -> None:
        assert self.executor.run_all() == actions

    def waiting(self, count: int) -> None:
        assert self.purgatory.num_delayed() == count

    def future(self, name: str, *, undone: bool = False, late: bool = False) -> None:
        outcome = self.futures[name].outcome()
        assert (outcome is None) is undone
        assert outcome is None or isinstance(outcome.error, TimeoutError) is late
        assert outcome is None or outcome.value == (None if late else name)


DAYS: Mapping[str, Callable[[], object]] = {
    "group": Group, "share": Share, "broker": Broker, "request": Layer, "topics": Topic,
}  # fmt: skip
"""By file."""


@cache
def days() -> dict[tuple[Callable[[], object], str], list[Line]]:
    """The lines of each day, by kind and name."""
    return {
        (day, title.split()[0]): lines
        for file, day in DAYS.items()
        for title, lines, _ in paragraphs([Path(__file__).parent / "days" / f"{file}.txt"], 5)
    }


def variants(day: Callable[[], object], name: str) -> int:
    return max(line.variants for line in days()[day, name])


def lived(day: Callable[[], object], name: str, variant: int = 0) -> None:
    """AssertionError where something is not so."""
    made = day()
    for line in days()[day, name]:
        for _ in line.tell(getattr(made, line.verb), variant, {}):
            pass
