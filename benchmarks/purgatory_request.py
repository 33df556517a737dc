"""P1-P4: what an operation costs the purgatory from its making to its completion, in virtual time.

2,000 operations wait; each step makes one, registers it, and completes the oldest: by an event on its key
(`check_and_complete`), or by `force_complete`, with one key of its own or three. Every 100 steps 10 ms pass. Nothing
expires. Whoever completes by force, or waits under three keys, leaves entries behind, so purging is in the figure.
"""

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.builds import Build, compiled_build, interpreted_build
from benchmarks.candidate import Entry, nothing_here
from benchmarks.own_timers import SetClock
from benchmarks.workload import Disagreement, Make, Stopwatch, Workload
from purgatorio import DelayedOperation, DirectExecutor, Timer

PURGATORY_IDS: Final = {
    "P1": "one key, completed by an event",
    "P2": "three keys, completed by an event",
    "P3": "one key, completed by force",
    "P4": "three keys, completed by force",
    "P5": "three keys, by force, by 1 to 8 threads on one purgatory",
    "P6": "Kafka's own performance test: asked rate against achieved rate, in real time",
}

TIMEOUT_MS: Final = 30_000
PENDING: Final = 2_000
_TURN: Final = 100
_TURN_MS: Final = 10


@dataclass(frozen=True, slots=True)
class PurgatorySubject:
    """The purgatory of one build over one of its timers."""

    name: str
    build: Build
    for_use: bool

    def timer(self, clock: SetClock) -> Timer:
        """A timer under virtual time that runs its tasks on the caller."""
        kind = self.build.timer if self.for_use else self.build.faithful
        return kind("bench", clock=clock, executor=DirectExecutor())


def purgatory_subjects() -> list[PurgatorySubject]:
    """`compiled` where there is a compiled build, `interpreted` over the wheel for use, `faithful` over Kafka's."""
    compiled, interpreted = compiled_build(), interpreted_build()
    found = [] if compiled is None else [PurgatorySubject("compiled", compiled, for_use=True)]
    return [
        *found,
        PurgatorySubject("interpreted", interpreted, for_use=True),
        PurgatorySubject("faithful", interpreted, for_use=False),
    ]


def purgatory_entries() -> list[Entry]:
    return [
        Entry(
            subject.name,
            nothing_here,
            "mypyc" if subject.name == "compiled" else "interpreted",
            ours=True,
            locked=True,
            virtual=False,
            outside=partial(_play, subject),
        )
        for subject in purgatory_subjects()
    ]


def make_operations(build: Build) -> type["Waiting"]:
    """An operation as a user writes one: an interpreted subclass of this build's base class."""
    base: type[DelayedOperation] = build.operation

    class Operation(base):  # type: ignore[misc,valid-type]  # the base differs by build, its type does not
        __slots__ = ("done", "payload", "ready")

        def __init__(self, delay_ms: int) -> None:
            super().__init__(delay_ms)
            self.ready = False
            self.done = False
            self.payload = b""

        def try_complete(self) -> bool:
            return self.force_complete() if self.ready else False

        def on_complete(self) -> None:
            self.done = True

    return Operation


class Waiting(DelayedOperation):
    """What `make_operations` makes, for the types: `ready` is its condition, `done` that `on_complete` ran."""

    __slots__ = ("done", "payload", "ready")

    ready: bool
    done: bool
    payload: bytes

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)


class PurgatoryWorkload(Workload):
    """See the module. `size` counts the steps."""

    operations = ("request",)
    moves_time = False
    outside = True

    def __init__(self, name: str, size: int) -> None:
        super().__init__(PURGATORY_IDS[name], size)
        self.id = name
        self.by_event = name in ("P1", "P2")
        many = 3 if name in ("P2", "P4") else 1
        self.keys: Sequence[tuple[Hashable, ...]] = [
            tuple(f"key-{number}-{place}" for place in range(many)) for number in range(size + PENDING)
        ]

    def play(self, make: Make, watch: Stopwatch) -> None:
        raise NotImplementedError("its subjects are purgatories: see `purgatory_entries`")

    def small(self) -> Workload:
        return self


def _play(subject: PurgatorySubject, workload: object) -> dict[str, float]:
    """One play: nanoseconds a step. `Disagreement` where an operation was not completed."""
    if not isinstance(workload, PurgatoryWorkload):
        raise TypeError(f"not a workload for purgatories: {workload!r}")
    clock = SetClock()
    purgatory = subject.build.purgatory("bench", subject.timer(clock), reaper=False)
    make = make_operations(subject.build)
    waiting: list[Waiting] = []
    for number in range(PENDING):
        waiting.append(make(TIMEOUT_MS))
        purgatory.try_complete_else_watch(waiting[number], workload.keys[number])
    keys, by_event, completed = workload.keys, workload.by_event, 0
    now_ms = 0
    start_ns = time.process_time_ns()
    for number in range(PENDING, PENDING + workload.size):
        operation = make(TIMEOUT_MS)
        waiting.append(operation)
        purgatory.try_complete_else_watch(operation, keys[number])
        oldest = number - PENDING
        if by_event:
            waiting[oldest].ready = True
            completed += purgatory.check_and_complete(keys[oldest][0])
        else:
            completed += waiting[oldest].force_complete()
        if number % _TURN == 0:
            now_ms += _TURN_MS
            clock.set(now_ms)
            purgatory.pass_time()
    spent_ns = time.process_time_ns() - start_ns
    done = sum(operation.done for operation in waiting)
    if completed != workload.size or done != workload.size:
        raise Disagreement(
            f"{workload.id} {subject.name}: {completed} and {done} of {workload.size} completed"
        )
    return {"request": spent_ns / workload.size}
