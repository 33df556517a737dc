"""P5: threads that share one purgatory. Each registers operations under three keys of its own and completes them.

With a GIL no purgatory gets faster by threads; what shows is how much is lost to hand-overs of locks. So beside CPU
time there is the wall: operations a second, which on a machine with other work on it says little.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.own_timers import SetClock
from benchmarks.purgatory_request import (
    TIMEOUT_MS,
    PurgatorySubject,
    Waiting,
    make_operations,
)
from benchmarks.rounds import rotated
from benchmarks.workload import Disagreement
from purgatorio import DelayedOperation, Purgatory

THREADS: Final = (1, 2, 4, 8)
_JOIN_TIMEOUT_S: Final = 300
_WINDOW: Final = 50
"""Operations that a thread has waiting at a time."""


@dataclass(frozen=True, slots=True)
class Threaded:
    """One play: CPU nanoseconds an operation, and operations a second of the wall."""

    subject: str
    threads: int
    ns: float
    wall_ops_per_s: float


def measure_threads(
    subjects: Sequence[PurgatorySubject], operations: int, rounds: int, threads: Sequence[int]
) -> list[Threaded]:
    """`operations` in all, shared among the threads. `Disagreement` where one was not completed."""
    found: list[Threaded] = []
    for order in rotated(subjects, rounds):
        for subject in order:
            found += [_play(subject, count, operations // count) for count in threads]
    return found


def _play(subject: PurgatorySubject, threads: int, each: int) -> Threaded:
    clock = SetClock()
    purgatory = subject.build.purgatory("bench", subject.timer(clock), reaper=False)
    kind = make_operations(subject.build)
    completed = [0] * threads
    # One more: the caller takes the times.
    barrier = threading.Barrier(threads + 1)

    def body(mine: int) -> None:
        keys = [tuple(f"{mine}-{number}-{place}" for place in range(3)) for number in range(each)]
        barrier.wait()
        completed[mine] = _work(purgatory, kind, keys)

    workers = [threading.Thread(target=body, args=(mine,), daemon=True) for mine in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    for worker in workers:
        worker.join(_JOIN_TIMEOUT_S)
    wall_ns, cpu_ns = time.perf_counter_ns() - wall_ns, time.process_time_ns() - cpu_ns
    if sum(completed) != threads * each:
        raise Disagreement(f"P5 {subject.name}: {sum(completed)} of {threads * each} completed")
    return Threaded(subject.name, threads, cpu_ns / sum(completed), sum(completed) * 1e9 / wall_ns)


def _work(
    purgatory: Purgatory[DelayedOperation], kind: type[Waiting], keys: Sequence[tuple[str, ...]]
) -> int:
    waiting: list[Waiting] = []
    completed = 0
    for number, own in enumerate(keys):
        operation = kind(TIMEOUT_MS)
        waiting.append(operation)
        purgatory.try_complete_else_watch(operation, own)
        if number >= _WINDOW:
            completed += waiting[number - _WINDOW].force_complete()
        if number % 100 == 0:
            purgatory.purge_if_needed()
    # The last ones, and those of a short run.
    return completed + sum(operation.force_complete() for operation in waiting[-_WINDOW:])
