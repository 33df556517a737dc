"""The state of a waiting ShareFetch between two checks: its fetch locks, and the reads that it waits for.

Code that takes this state from the operation must do one of three things: store the state again, respond with its
results, or release its locks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio.sync import AtomicFlag, AtomicInt, Sync
from purgatorio.timer.interface import Timer
from purgatorio.timer.task import ActionTask
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.fetch_request import FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_log import ShareReads


@dataclass(frozen=True, slots=True)
class ReadHere:
    """The records of the `locked` partitions are available. `results`: the results of the read partitions."""

    locked: tuple[TopicPartition, ...]
    results: Mapping[TopicPartition, FetchResult]

    def cancel(self) -> None:
        """No effect: no read is open."""


@dataclass(frozen=True, slots=True)
class ReadingHere:
    """A read of the local log is open, for some of the `locked` partitions. `missed`: an event came during the read."""

    locked: tuple[TopicPartition, ...]
    future: Deferred[ShareReads]
    missed: bool = False

    def cancel(self) -> None:
        self.future.cancel()


@dataclass(frozen=True, slots=True)
class ReadingRemotely:
    """Reads of the tier are open, one for each of the `locked` partitions."""

    locked: tuple[TopicPartition, ...]
    reads: tuple[tuple[TopicPartition, Deferred[ReadRecords]], ...]

    def is_done(self) -> bool:
        """Whether all reads are done, with or without success."""
        return all(future.is_done() for _, future in self.reads)

    def cancel(self) -> None:
        for _, future in self.reads:
            future.cancel()


Held = ReadHere | ReadingHere | ReadingRemotely


class LateAnswer:
    """A response that is sent after the completion of its operation, once: when the reads of the tier are done, or at
    their time limit. `answer` runs on the thread of the first of these events."""

    def __init__(
        self,
        reading: ReadingRemotely,
        remaining_ms: int,
        answer: Callable[[ReadingRemotely], None],
        sync: Sync,
    ) -> None:
        self._reading = reading
        self._answer = answer
        self._given: AtomicFlag = sync.atomic_flag(False, "late-answer.given")
        self._open: AtomicInt = sync.atomic_int(len(reading.reads), "late-answer.open")
        self._timeout = ActionTask(remaining_ms, self.give, sync=sync)

    def begin(self, timer: Timer) -> None:
        for _, future in self._reading.reads:
            future.when_done(self._one_done)
        timer.add(self._timeout)
        if self._given.get():
            self._timeout.cancel()

    def give(self) -> None:
        """Sends the answer now, unless it has been sent."""
        if self._given.compare_and_set(False, True):
            self._timeout.cancel()
            self._answer(self._reading)

    def is_given(self) -> bool:
        """Whether the answer was sent, or is about to be sent."""
        return self._given.get()

    def _one_done(self) -> None:
        if self._open.add(-1) == 0:
            self.give()
