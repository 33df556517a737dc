"""Other figures than mean times: ticks (three runs), held entries, the collector, wake-ups, bytes (one run)."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.candidate import Candidate, Entry, Handle
from benchmarks.delays import delays
from benchmarks.edges import SparseWorkload
from benchmarks.rounds import eligible
from benchmarks.witness import Collector, TickMeter
from benchmarks.workload import Counter, Stopwatch, Workload

_CHILD_TIMEOUT_S: Final = 120
_PLAYS: Final = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """The observations of one candidate under one workload. `values`: by name, with the unit last in the name."""

    workload: str
    size: int
    subject: str
    values: dict[str, float] = field(default_factory=dict)


def observe_ticks(workload: Workload, entries: Sequence[Entry]) -> list[Observation]:
    """The CPU time of each tick, with and without the collector's part; the most entries held; collections. The runs
    make the same ticks, so three runs separate the cost of a tick from delays of the machine."""
    return [_watched(workload, entry) for entry in eligible(workload, entries)[0]]


@dataclass(frozen=True, slots=True)
class Play:
    """`apart_ns` are the same ticks without the collector's pauses."""

    ticks_ns: list[int]
    apart_ns: list[int]
    most_held: int
    collector: Collector


def _watched(workload: Workload, entry: Entry) -> Observation:
    plays = [_played(workload, entry) for _ in range(1 if entry.slow else _PLAYS)]
    return Observation(workload.id, workload.size, entry.name, tick_values(plays))


def _played(workload: Workload, entry: Entry) -> Play:
    gc.collect()
    gc.freeze()
    meters: list[TickMeter] = []
    with Collector() as collector:

        def metered() -> Candidate:
            meters.append(TickMeter(entry.make(), collector))
            return meters[-1]

        workload.play(metered, Stopwatch())
    gc.unfreeze()
    return Play(
        [ns for meter in meters for ns in meter.ticks_ns],
        [ns for meter in meters for ns in meter.apart_ns],
        max(meter.most_held for meter in meters),
        collector,
    )


def tick_values(plays: Sequence[Play]) -> dict[str, float]:
    """The collector comes at another tick in each play, so the worst tick with it is the median of the plays' worst;
    without it, the worst of what each tick took at least."""
    ticks = sorted(ns for play in plays for ns in play.ticks_ns)
    return {
        "tick_p50_us": ticks[len(ticks) // 2] / 1e3,
        "tick_p999_us": ticks[len(ticks) * 999 // 1000] / 1e3,
        "worst_tick_ms": median(max(play.ticks_ns) for play in plays) / 1e6,
        "worst_tick_apart_from_collector_ms": max(
            map(min, zip(*(play.apart_ns for play in plays), strict=True))
        )
        / 1e6,
        "most_held": max(play.most_held for play in plays),
        "collections": median(play.collector.collections for play in plays),
        "worst_collection_ms": median(play.collector.worst_ns for play in plays) / 1e6,
        "collector_share": sum(play.collector.total_ns for play in plays) / sum(ticks),
    }


def observe_collector(size: int, entries: Sequence[Entry]) -> list[Observation]:
    """X5: what the collector costs while `size` timers are added whose handles are kept."""
    found: list[Observation] = []
    wanted = delays("uniform", size, 13)
    for entry in _inside(size, entries):
        gc.collect()
        gc.freeze()
        timer, counter = entry.make(), Counter()
        handles: list[Handle] = []
        with Collector() as collector:
            for delay_ms in wanted:
                handles.append(timer.add(delay_ms, counter.action))
        values: dict[str, float] = {
            "collector_ns_per_timer": collector.total_ns / size,
            "worst_collection_ms": collector.worst_ns / 1e6,
            "collections": collector.collections,
        }
        found.append(Observation("X5", size, entry.name, values))
        handles.clear()
        timer.close()
        gc.unfreeze()
    return found


def _inside(size: int, entries: Sequence[Entry]) -> list[Entry]:
    """Those that run in this process and may hold so many."""
    return [
        entry
        for entry in entries
        if entry.outside is None
        and entry.missing() is None
        and (entry.largest is None or size <= entry.largest)
    ]


def observe_wakes(workload: SparseWorkload, entries: Sequence[Entry]) -> list[Observation]:
    """X1: how often a driver that sleeps until it is needed wakes, by timer."""
    return [
        Observation(
            workload.id, workload.size, entry.name, {"wakes_per_timer": workload.wakes_per_timer(entry.make)}
        )
        for entry in eligible(workload, entries)[0]
    ]


def bytes_per_timer(size: int, entries: Sequence[Entry]) -> list[Observation]:
    """Growth of the resident memory by timer, each candidate in a fresh process; the callback is shared, handles are
    dropped. Empty where the system does not tell (`/proc`). RuntimeError where a child fails."""
    if not Path("/proc/self/statm").exists():
        return []
    found: list[Observation] = []
    for entry in _inside(size, entries):
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.observe", entry.name, str(size)],
            capture_output=True,
            text=True,
            timeout=_CHILD_TIMEOUT_S,
            check=False,
        )
        if child.returncode != 0:
            raise RuntimeError(f"{entry.name}: {child.stderr.strip()[-300:]}")
        values: dict[str, float] = {"bytes_per_timer": float(json.loads(child.stdout))}
        found.append(Observation("bytes", size, entry.name, values))
    return found


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measure_bytes(entry: Entry, size: int) -> float:
    """In the child process: the bytes of `size` timers, after a few first timers that create shared objects."""
    counter = Counter()
    wanted = delays("uniform", size, 17)
    warm = entry.make()
    for delay_ms in wanted[:1_000]:
        warm.add(delay_ms, counter.action)
    timer = entry.make()
    gc.collect()
    before = _resident_bytes()
    add, action = timer.add, counter.action
    for delay_ms in wanted:
        add(delay_ms, action)
    gc.collect()
    return (_resident_bytes() - before) / size


if __name__ == "__main__":
    from benchmarks.registry import (
        ENTRIES,
    )  # the child's side only: the registry imports every peer

    print(json.dumps(_measure_bytes({entry.name: entry for entry in ENTRIES}[sys.argv[1]], int(sys.argv[2]))))
