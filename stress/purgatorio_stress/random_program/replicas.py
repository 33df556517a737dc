"""Random programs over a broker's replica manager: producers, consumers, a follower, changes of leadership.

A thing is a request. When no task can run, every key is checked once more, and this completes no operation, because
each ready one has been notified before (B108, B214). With one thread, a waiting fetch is evaluated again at the
moment of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import Isolation
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import BEFORE, THREAD, Plain, Player, Verb, Vocabulary
from purgatorio_stress.scenario.broker_world import (
    P0,
    P1,
    TimelessRuntime,
    answered_once,
    follower_has,
    leading,
    virtual_runtime,
)
from purgatorio_stress.scenario.world import FOREVER_MS, World

_ASKED: Final = ((P0,), (P1,), (P0, P1))
_ROLES: Final = frozenset({"lead", "resign", "stop", "fail", "throttle", "shutdown"})
"""After these what was promised to who waits is answered otherwise."""
_TRANSACTION: Final = (("", ""), ("p", ""), ("p", "commit"), ("p", "abort"))
_BYTES: Final = 10
_LONGEST_MS: Final = 5


class ReplicaPlayer(Player):
    """Settings: the least ISR, and whether time passes; without, nothing expires."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        min_isr, timed = drawn.settings
        runtime = virtual_runtime(world) if timed else TimelessRuntime(world)
        self.time = runtime if isinstance(runtime, VirtualRuntime) else None
        self.manager: ReplicaManager = leading(runtime, P0, P1, min_isr=min_isr)
        self.epochs = {P0: 1, P1: 1}
        self.answers: list[tuple[str, list[object]]] = []
        acts = {act.do for act in drawn.acts()}
        self.alone = len(drawn.threads) == 1
        self.steady = not acts & _ROLES
        self.shut = "shutdown" in acts
        self.throttled = "throttle" in acts

    def act_ended(self) -> None:
        """A request's handler runs what was queued, at its end."""
        self.manager.run_actions()

    def _wait_ms(self, thing: int) -> int:
        wait_ms = self.drawn.things[thing][0]
        return FOREVER_MS if wait_ms < 0 or self.time is None else wait_ms

    def _partitions(self, thing: int) -> tuple[TopicPartition, ...]:
        return _ASKED[self.drawn.things[thing][1]]

    def _answers(self, clause: str) -> list[object]:
        answers: list[object] = []
        self.answers.append((clause, answers))
        return answers

    # The verbs.

    def do_produce(self, thing: int) -> None:
        answers = self._answers("B108")

        def answered(results: Mapping[TopicPartition, ProduceResult]) -> None:
            answers.append(results)
            for partition, result in results.items():
                if self.steady and result.error is Error.NONE:
                    self._is_replicated(partition, result)

        self.manager.append_records(
            self._wait_ms(thing), -1, dict.fromkeys(self._partitions(thing), (_BYTES,)), answered
        )

    def _is_replicated(self, partition: TopicPartition, result: ProduceResult) -> None:
        ends = self.manager.partition_or_raise(partition).ends(None, leader_only=False)
        if ends.high_watermark.offset < result.required_offset:
            self.breaks(
                "B105", str(partition), f"acknowledged {result.required_offset}, at {ends.high_watermark}"
            )

    def do_append(self, partition: int, kind: int) -> None:
        """`append_records` of the leader alone: a record, one of a transaction, or the transaction's end."""
        producer, marker = _TRANSACTION[kind]
        size_bytes = 0 if marker else _BYTES
        self.manager.append_records(
            0, 1, {_ASKED[partition][0]: (size_bytes,)}, self._answers("B108").append, producer, marker
        )

    def do_fetch(self, thing: int) -> None:
        answers = self._answers("B214")
        _, _, committed, wanted = self.drawn.things[thing]
        isolation = Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK
        request = {partition: FetchPartition(0, 100) for partition in self._partitions(thing)}
        waits = FetchParams(self._wait_ms(thing), wanted * _BYTES, 100, isolation)
        at_once = FetchParams(0, wanted * _BYTES, 100, isolation)

        def answered(results: Mapping[TopicPartition, FetchResult]) -> None:
            answers.append(results)
            size_bytes = sum(result.size_bytes() for result in results.values())
            failed = any(result.error is not Error.NONE for result in results.values())
            if self.steady and self.time is None and size_bytes < waits.min_bytes and not failed:
                seen = f"answered with {size_bytes} bytes, wanted {waits.min_bytes}, and nothing expires"
                self.breaks("B214", "consumer", seen)
            if self.alone:
                again: list[Mapping[TopicPartition, FetchResult]] = []
                self.manager.fetch_records(at_once, request, again.append)
                if _told(again[0]) != _told(results):
                    seen = f"waited: {_told(results)}; at once: {_told(again[0])}"
                    self.breaks("B215", "consumer", seen)

        self.manager.fetch_records(waits, request, answered)

    def do_delete(self, thing: int) -> None:
        """`delete_records` up to the high watermark."""
        self.manager.delete_records(
            self._wait_ms(thing), dict.fromkeys(self._partitions(thing), -1), self._answers("B307").append
        )

    def do_follow(self, partition: int, lag: int) -> None:
        """The fetch of the follower, which has all but so many records."""
        which = _ASKED[partition][0]
        try:
            end = self.manager.partition_or_raise(which).ends(None, leader_only=False).log_end.offset
        except BrokerError:
            return
        follower_has(self.manager, {which: max(end - lag, 0)})

    def do_shrink(self, partition: int) -> None:
        self._refusable(lambda: self.manager.shrink_isr(_ASKED[partition][0], (0,)))

    def do_lead(self, partition: int) -> None:
        """`become_leader` in a new epoch."""
        which = _ASKED[partition][0]
        self.epochs[which] += 1
        epoch = self.epochs[which]
        self._refusable(lambda: self.manager.become_leader(which, epoch, (0, 1), (0, 1)))

    def do_resign(self, partition: int) -> None:
        """`become_follower` in a new epoch."""
        which = _ASKED[partition][0]
        self.epochs[which] += 1
        epoch = self.epochs[which]
        self._refusable(lambda: self.manager.become_follower(which, epoch))

    def do_stop(self, partition: int) -> None:
        self.manager.stop_replica(_ASKED[partition][0], deleted=True)

    def do_fail(self, partition: int) -> None:
        self.manager.fail_directory(_ASKED[partition][0])

    def do_check(self, partition: int) -> None:
        self.manager.check_key(_ASKED[partition][0])

    def do_throttle(self, partition: int) -> None:
        """The follower's bytes of this partition are held back."""
        self.manager.throttle(frozenset(_ASKED[partition]))

    def do_pass(self, by_ms: int) -> None:
        if self.time is not None:
            with self.drained():
                self.time.advance(by_ms)

    def do_gauges(self) -> None:
        self.counts(*self.manager.waiting())

    def do_shutdown(self) -> None:
        self.manager.shutdown()

    def _refusable(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BrokerError:
            # The partition is led by another by now, or not here.
            return

    # The end.

    def final(self) -> Iterator[Broken]:
        """Nothing that was ready waits; then time passes, and everybody has been answered once."""
        self.manager.check()
        if self.manager.actions.size():
            yield Broken(
                "O4", "actions", f"{self.manager.actions.size()} are left, and no thread will run them"
            )
        if not self.throttled and not self.shut:
            for partition in (P0, P1):
                completed = self.manager.check_key(partition)
                if completed:
                    yield Broken("B108", str(partition), f"{completed} were ready, and were not notified")
        if self.time is not None and not self.shut:
            self.time.advance(_LONGEST_MS + 1)
        for clause, answers in self.answers:
            waits_for_ever = not answers and (self.time is None or self.shut)
            if not waits_for_ever and (answers or all(thing[0] >= 0 for thing in self.drawn.things)):
                yield from answered_once(clause, "request", answers)
        self.manager.check()
        yield from self.broken
        yield from self.uncontained()


def _told(results: Mapping[TopicPartition, FetchResult]) -> list[tuple[str, Error, list[int]]]:
    return [
        (str(partition), result.error, [record.offset for record in result.data.records])
        for partition, result in results.items()
    ]


_REQUEST: Final = BEFORE + THREAD

_VERBS: Final = (
    Verb("produce", ("thing",), _REQUEST, weight=8),
    Verb("fetch", ("thing",), _REQUEST, weight=8),
    Verb("append", ("partition", "kind"), _REQUEST, weight=4),
    Verb("follow", ("partition", "lag"), _REQUEST, weight=8),
    Verb("delete", ("thing",), _REQUEST),
    Verb("shrink", ("partition",), _REQUEST),
    Verb("lead", ("partition",), _REQUEST, weight=1),
    Verb("resign", ("partition",), _REQUEST, weight=1),
    Verb("stop", ("partition",), _REQUEST, weight=1),
    Verb("fail", ("partition",), _REQUEST, weight=1),
    Verb("check", ("partition",), _REQUEST, weight=1),
    Verb("throttle", ("partition",), _REQUEST, weight=1),
    Verb("pass", ("pass",), _REQUEST),
    Verb("gauges", (), _REQUEST, weight=1),
    Verb("shutdown", (), THREAD, weight=1),
)

_SHAPES: Final = ((1,), (2,), (3,), (4,), (1, 1), (1, 1, 1), (2, 1), (2, 2))
"""With one thread a request is asked again at once, so these come first."""

REPLICAS: Final = Vocabulary(
    "replicas",
    _VERBS,
    ((2, 1), (0, 1)),
    ((-1, 0, 2, 5), (0, 0, 1, 2), (0, 1), (1, 1, 2)),
    ReplicaPlayer,
    (ReplicaManager,),
    {"partition": (0, 0, 1), "kind": (0, 0, 1, 2, 3), "lag": (0, 0, 1), "pass": (1, 2, 3, 5)},
    dialects=("pending-flag", "locked"),
    most_things=2,
    plain=Plain(((-1, 0, 1, 1),), "", "fetch.0,append.0.0,append.0.1,follow.0.0,produce.0", shapes=_SHAPES),
    apart={
        "ReplicaManager.also_check": "for share groups; the subject `share` does",
        "ReplicaManager.is_throttled": "for delayed fetches",
    },
)
"""Of one broker."""
