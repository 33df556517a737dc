"""Records of a candidate: fired timers and their times, lengths of ticks, and the cost of the collector."""

import gc
import time
from collections.abc import Mapping
from typing import Final

from benchmarks.candidate import Action, Candidate, Entry, Handle
from benchmarks.workload import Disagreement, Make, Stopwatch, Workload, wakes

Firings = list[tuple[int, int]]
"""(number of the add, time in ms), sorted."""

_HELD_EVERY: Final = 64


class Witness:
    """A candidate that writes down what fires. On `close` all that is left is let fire first."""

    def __init__(self, inner: Candidate, seen: Firings) -> None:
        self._inner = inner
        self._seen = seen
        self._now_ms = 0
        self._added = 0
        self.cancel = inner.cancel
        self.next_ms, self.held = inner.next_ms, inner.held

    def add(self, delay_ms: int, action: Action) -> Handle:
        number, self._added = self._added, self._added + 1

        def fire() -> None:
            self._seen.append((number, self._now_ms))
            action()

        return self._inner.add(delay_ms, fire)

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._inner.advance(now_ms)

    def close(self) -> None:
        for _ in wakes(self, self._now_ms):
            pass
        self._inner.close()


def firings(workload: Workload, make: Make) -> Firings:
    """What fires when this workload is played."""
    seen: Firings = []
    workload.play(lambda: Witness(make(), seen), Stopwatch())
    return sorted(seen)


def agree(workload: Workload, entries: Mapping[str, Make]) -> int:
    """Play it on all and compare what fired and when; returns how many firings each saw. Raises `Disagreement`."""
    found = {name: firings(workload, make) for name, make in entries.items()}
    if not found:
        return 0
    (first, expected), *rest = found.items()
    for name, seen in rest:
        if seen != expected:
            odd = sorted(set(seen) ^ set(expected))[:3]
            raise Disagreement(
                f"{workload.id} {workload.name}: {name} fired {len(seen)}, {first} {len(expected)}; "
                f"(number, ms) in one of them only, or not as often: {odd}"
            )
    return len(expected)


class Collector:
    """Counts the collector's runs, their pauses and their whole time, while entered."""

    def __init__(self) -> None:
        self.collections = 0
        self.total_ns = 0
        self.worst_ns = 0
        self._start_ns = 0

    def __enter__(self) -> "Collector":
        gc.callbacks.append(self._tell)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._tell)

    def _tell(self, phase: str, info: dict[str, int]) -> None:
        now_ns = time.thread_time_ns()
        if phase == "start":
            self._start_ns = now_ns
            return
        pause_ns = now_ns - self._start_ns
        self.collections += 1
        self.total_ns += pause_ns
        self.worst_ns = max(self.worst_ns, pause_ns)


class TickMeter:
    """A candidate whose ticks are timed: CPU time of this thread from the end of one `advance` to that of the next.

    So the adds and cancels in between are in it, and a heap's compaction with them. `apart_ns` leaves the garbage
    collector's pauses out. `most_held` is looked at every few ticks.
    """

    def __init__(self, inner: Candidate, collector: Collector) -> None:
        self._inner = inner
        self._collector = collector
        self.add, self.cancel, self.next_ms = inner.add, inner.cancel, inner.next_ms
        self.held, self.close = inner.held, inner.close
        self.ticks_ns: list[int] = []
        self.apart_ns: list[int] = []
        self.most_held = 0
        self._collected_ns = 0
        self._last_ns = 0

    def advance(self, now_ms: int) -> None:
        self._inner.advance(now_ms)
        end_ns = time.thread_time_ns()
        # The first one has the fill before it, and is no tick.
        if self._last_ns:
            spent_ns = end_ns - self._last_ns
            self.ticks_ns.append(spent_ns)
            self.apart_ns.append(spent_ns - (self._collector.total_ns - self._collected_ns))
        self._collected_ns = self._collector.total_ns
        if len(self.ticks_ns) % _HELD_EVERY == 0:
            self.most_held = max(self.most_held, self._inner.held())
        self._last_ns = time.thread_time_ns()


def comparable(entries: list[Entry]) -> dict[str, Make]:
    """Those whose time can be injected, so that what fires can be compared."""
    return {entry.name: entry.make for entry in entries if entry.virtual and entry.fires}
