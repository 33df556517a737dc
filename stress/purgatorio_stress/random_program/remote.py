"""Random programs over operations that wait for external values: futures, reads of a remote tier, look-ups of
offsets.

A thing is a request. When no task can run, a request with all values has been answered once, and one with a missing
value has not been answered (B751, B752; B902, B912). Then time passes, and every request has been answered once. A
future fails with a time-out no earlier than that of a request that waits for it (B753).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from purgatorio import QueuedExecutor
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_future import DelayedFuturePurgatory
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.fetch_request import FetchParams, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.log import Record
from purgatorio_broker.partition import NOTHING_READ, ReadRecords
from purgatorio_broker.remote_reads import OffsetFound, OffsetLookup, RemoteRead, RemoteReads
from purgatorio_broker.runtime import Runtime, VirtualRuntime
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import BEFORE, THREAD, Plain, Player, Verb, Vocabulary
from purgatorio_stress.scenario.broker_world import (
    P0,
    P1,
    TimelessRuntime,
    answered_once,
    leading,
    virtual_runtime,
)
from purgatorio_stress.scenario.world import FOREVER_MS, World

_ASKED: Final = ((P0,), (P1,), (P0, P1))
_LONGEST_MS: Final = 5
_REMOTE_WAIT_MS: Final = 4
_READ: Final = ReadRecords((Record(0, 1, 10, 0, 0),), None, None)
_FOUND: Final = OffsetFound(1, 0, 0)


class _WaitingPlayer(Player):
    """Setting: whether time passes; without, nothing expires."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        (timed,) = drawn.settings
        self.runtime: Runtime = virtual_runtime(world) if timed else TimelessRuntime(world)
        self.time = self.runtime if isinstance(self.runtime, VirtualRuntime) else None
        self.answers: dict[int, list[object]] = {}
        self.shut = any(act.do == "shutdown" for act in drawn.acts())
        self.passes = any(act.do == "pass" for act in drawn.acts())

    def do_pass(self, by_ms: int) -> None:
        if self.time is not None:
            with self.drained():
                self.time.advance(by_ms)

    def now_ms(self) -> int:
        """Of the runtime."""
        return 0 if self.time is None else self.time.clock.now_ms()

    def judged(self, thing: int, clause: str, left: int) -> Iterator[Broken]:
        """At rest, a request of which so many values are missing."""
        answers = self.answers[thing]
        if left == 0 or len(answers) > 1:
            yield from answered_once(clause, f"request-{thing}", answers)
        elif answers and not self.passes and not self.shut:
            yield Broken(clause, f"request-{thing}", f"answered, and {left} values have not come")


class FuturePlayer(_WaitingPlayer):
    """Two futures, and requests that wait for one of them or for both."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.executor = QueuedExecutor(faults=world.faults, sync=world.sync)
        self.waiting = DelayedFuturePurgatory("futures", self.executor, self.runtime)
        self.futures: list[Deferred[object]] = [Deferred(world.sync) for _ in range(2)]
        self.due_ms: dict[int, int] = {}

    def _of(self, thing: int) -> list[Deferred[object]]:
        mask = self.drawn.things[thing][1]
        return [future for number, future in enumerate(self.futures) if mask >> number & 1]

    # The verbs.

    def do_wait(self, thing: int) -> None:
        if thing in self.answers:
            return
        answers = self.answers[thing] = []
        wait_ms = self.drawn.things[thing][0]
        self.due_ms[thing] = self.now_ms() + max(wait_ms, 0) if wait_ms >= 0 else FOREVER_MS
        timeout_ms = FOREVER_MS if wait_ms < 0 or self.time is None else wait_ms
        self.waiting.try_complete_else_watch(timeout_ms, self._of(thing), lambda: answers.append(1))

    def do_done(self, future: int) -> None:
        self.futures[future].complete(future)

    def do_fail(self, future: int) -> None:
        self.futures[future].fail(OSError("disk"))

    def do_run(self) -> None:
        self.executor.run_all()

    def do_gauges(self) -> None:
        self.counts(self.waiting.num_delayed())

    def do_shutdown(self) -> None:
        self.waiting.shutdown()

    # The end.

    def final(self) -> Iterator[Broken]:
        self.do_run()
        if not self.shut:
            yield from self._timed_out_early()
            for thing in self.answers:
                left = [future for future in self._of(thing) if not future.is_done()]
                yield from self.judged(thing, "B752", len(left))
        if self.time is not None and not self.shut:
            self.do_pass(_LONGEST_MS + 1)
        for thing, answers in self.answers.items():
            expires = self.time is not None and self.drawn.things[thing][0] >= 0
            if len(answers) > 1 or self.shut or expires:
                yield from answered_once("B753", f"request-{thing}", answers)
        yield from super().final()

    def _timed_out_early(self) -> Iterator[Broken]:
        for number, future in enumerate(self.futures):
            outcome = future.outcome()
            if outcome is None or not isinstance(outcome.error, TimeoutError):
                continue
            dues = [due_ms for thing, due_ms in self.due_ms.items() if future in self._of(thing)]
            if self.now_ms() < min(dues) or self.time is None:
                yield Broken(
                    "B753", f"future-{number}", f"timed out by {self.now_ms()} ms, due at {min(dues)}"
                )


class RemotePlayer(_WaitingPlayer):
    """A leader of two partitions, and requests that wait for its tier: fetches and look-ups of offsets."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.manager = leading(self.runtime, P0, P1)
        wait_ms = _REMOTE_WAIT_MS if self.time is not None else FOREVER_MS
        self.remote = RemoteReads(self.runtime, self.manager, fetch_wait_ms=wait_ms, list_wait_ms=wait_ms)
        self.reads: dict[int, list[Deferred[ReadRecords]]] = {}
        self.lookups: dict[int, list[Deferred[OffsetFound | None]]] = {}
        self.moved: set[TopicPartition] = set()

    def _partitions(self, thing: int) -> tuple[TopicPartition, ...]:
        return _ASKED[self.drawn.things[thing][1]]

    # The verbs.

    def do_ask(self, thing: int) -> None:
        """`fetch` or `list_offsets`; each once."""
        if thing in self.answers:
            return
        answers = self.answers[thing] = []
        partitions = self._partitions(thing)
        if self.drawn.things[thing][0]:
            lookups: list[Deferred[OffsetFound | None]] = [Deferred(self.world.sync) for _ in partitions]
            self.lookups[thing] = lookups
            self.remote.list_offsets(
                0,
                tuple(
                    OffsetLookup(one, future=future) for one, future in zip(partitions, lookups, strict=True)
                ),
                answers.append,
            )
            return
        reads: list[Deferred[ReadRecords]] = [Deferred(self.world.sync) for _ in partitions]
        self.reads[thing] = reads
        local = {one: FetchResult(Error.NONE, NOTHING_READ) for one in partitions}

        def answered(results: Mapping[TopicPartition, FetchResult]) -> None:
            answers.append(results)
            if len(self.drawn.threads) == 1:
                self._is_what_was_read(thing, results)

        self.remote.fetch(
            FetchParams(0, 1, 100),
            tuple(RemoteRead(one, future) for one, future in zip(partitions, reads, strict=True)),
            local,
            answered,
        )

    def _is_what_was_read(self, thing: int, results: Mapping[TopicPartition, FetchResult]) -> None:
        for partition, future in zip(self._partitions(thing), self.reads[thing], strict=True):
            outcome, result = future.outcome(), results[partition]
            if outcome is None:
                right = result.error is Error.NONE and result.data is NOTHING_READ
            elif outcome.value is None:
                right = result.error is Error.UNKNOWN_SERVER_ERROR
            else:
                right = result.error is Error.NONE and result.data is outcome.value
            if not right:
                self.breaks("B907", str(partition), f"answered {result}, and the tier returned {outcome}")

    def do_done(self, thing: int, part: int) -> None:
        """The tier has one of its values."""
        if thing in self.lookups:
            self.lookups[thing][part % len(self.lookups[thing])].complete(_FOUND)
        elif thing in self.reads:
            self.reads[thing][part % len(self.reads[thing])].complete(_READ)

    def do_fail(self, thing: int, part: int) -> None:
        """The tier fails to read one."""
        for futures in (self.lookups.get(thing), self.reads.get(thing)):
            if futures:
                futures[part % len(futures)].fail(OSError("the tier is gone"))

    def do_stop(self, partition: int) -> None:
        """The replica is stopped, and its requests are notified."""
        which = _ASKED[partition][0]
        self.manager.stop_replica(which, deleted=True)
        self.moved.add(which)
        self.remote.partition_deleted(which)

    def do_resign(self, partition: int) -> None:
        """Another leads it: what is looked up there is refused; what is read there is not."""
        which = _ASKED[partition][0]
        try:
            self.manager.become_follower(which, 2)
        except BrokerError:
            return
        self.remote.partition_moved(which)

    def do_gauges(self) -> None:
        self.counts(*self.remote.waiting())

    # The end.

    def final(self) -> Iterator[Broken]:
        resigned = any(act.do == "resign" for act in self.drawn.acts())
        for thing in self.answers:
            futures = self.reads.get(thing) or self.lookups.get(thing) or []
            left = sum(not future.is_done() for future in futures)
            stopped = not self.moved.isdisjoint(self._partitions(thing))
            if (not stopped or left == 0) and not resigned:
                yield from self.judged(thing, "B912" if thing in self.lookups else "B902", left)
        if self.time is not None:
            self.do_pass(_REMOTE_WAIT_MS + 1)
        for thing, answers in self.answers.items():
            if answers or self.time is not None:
                yield from answered_once("B902", f"request-{thing}", answers)
        yield from super().final()


_REQUEST: Final = BEFORE + THREAD
_PARTS: Final = {"future": (0, 1), "part": (0, 1), "partition": (0, 0, 1), "pass": (1, 2, 4, 5)}

WAITING: Final = (
    Vocabulary(
        "future",
        (
            Verb("wait", ("thing",), _REQUEST, weight=8),
            Verb("done", ("future",), _REQUEST, weight=8),
            Verb("fail", ("future",), _REQUEST, weight=2),
            Verb("run", (), _REQUEST, weight=2),
            Verb("pass", ("pass",), _REQUEST, weight=2),
            Verb("gauges", (), _REQUEST, weight=1),
            Verb("shutdown", (), THREAD, weight=1),
        ),
        ((0, 1),),
        ((-1, -1, 0, 2, 5), (1, 3, 3, 2)),
        FuturePlayer,
        (DelayedFuturePurgatory,),
        _PARTS,
        dialects=("pending-flag", "locked"),
        most_things=2,
        plain=Plain(((-1, 3), (-1, 1)), "", "wait.0,done.0,done.1,wait.1,fail.0,run"),
    ),
    Vocabulary(
        "remote",
        (
            Verb("ask", ("thing",), _REQUEST, weight=8),
            Verb("done", ("thing", "part"), _REQUEST, weight=8),
            Verb("fail", ("thing", "part"), _REQUEST, weight=2),
            Verb("stop", ("partition",), _REQUEST, weight=1),
            Verb("resign", ("partition",), _REQUEST, weight=1),
            Verb("pass", ("pass",), _REQUEST, weight=2),
            Verb("gauges", (), _REQUEST, weight=1),
        ),
        ((0, 1),),
        ((0, 1), (0, 0, 1, 2)),
        RemotePlayer,
        (RemoteReads,),
        _PARTS,
        dialects=("pending-flag", "locked"),
        most_things=2,
        plain=Plain(((0, 2), (1, 0)), "", "ask.0,done.0.0,done.0.1,ask.1,done.1.0,stop.0"),
        apart={
            "RemoteReads.partition_moved": "`partition_deleted` calls it, and so does `resign`",
        },
    ),
)
"""Of futures, and of a remote tier."""
