"""What recording costs the harness: the same rounds with and without it, in turns, in one run.

Two-thread rounds of one scenario by four crews, eight threads in all, at the interpreter's own switch interval, where
least of the time goes to switching and the recorder's share is largest. Timed is the building of the rounds (whose
registrations are recorded too) and the race; not the judging, which comes afterwards.
"""

import gc
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from purgatorio_spec.trace.recorder import Recorder
from purgatorio_stress.harness.crew import Crew
from purgatorio_stress.harness.round import RoundMaker
from purgatorio_stress.harness.seam import StopFlag
from purgatorio_stress.harness.settings import SWITCH_INTERVALS_S, Settings, applied
from purgatorio_stress.scenario.registry import SCENARIOS

SCENARIO: Final = "two-events"
DIALECT: Final = "pending-flag"
CREWS: Final = 4
THREADS: Final = 8
_ROUNDS: Final = 128
_LEAST_EVENTS_A_SECOND: Final = 50_000
_MOST_RATIO: Final = 1.5


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """What recording costs on this machine: nanoseconds an event, on one thread and on several at once."""

    one_thread_ns: float
    threads: int
    several_threads_ns: float


def measure_cost(events: int = 200_000, threads: int = 8) -> RecordingCost:
    """Time calls with returns on one thread, then on `threads` threads together (wall time over all events)."""

    def pairs(recorder: Recorder, count: int) -> None:
        log = recorder.log()
        for _ in range(count):
            log.ret("force_complete", log.call("force_complete", "op-0"), "op-0", out=1)

    def timed(work: Callable[[], None]) -> float:
        start = time.perf_counter_ns()
        work()
        return float(time.perf_counter_ns() - start)

    each = max(1, events // 2 // threads)

    def together() -> None:
        recorder = Recorder()
        running = [threading.Thread(target=pairs, args=(recorder, each)) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    alone = timed(lambda: pairs(Recorder(), events // 2)) / (events // 2 * 2)
    return RecordingCost(alone, threads, timed(together) / (each * threads * 2))


@dataclass(frozen=True, slots=True)
class _Timed:
    seconds: float
    cpu_seconds: float
    rounds: int
    events: int
    dropped: int


@dataclass(frozen=True, slots=True)
class StressCost:
    """The pairs' figures. Seconds are for all pairs; the ratios are medians over the pairs, recorded / unrecorded."""

    pairs: int
    rounds: int
    events: int
    dropped: int
    plain_seconds: float
    plain_cpu_seconds: float
    recorded_seconds: float
    recorded_cpu_seconds: float
    ratio: float
    cpu_ratio: float
    recorder: RecordingCost

    @property
    def events_a_second(self) -> float:
        """Recorded events by the wall, with the rounds that they came from."""
        return self.events / self.recorded_seconds

    @property
    def events_a_cpu_second(self) -> float:
        return self.events / self.recorded_cpu_seconds

    @property
    def passed(self) -> bool:
        """50,000 events a second, at most 1.5 times the CPU time of the unrecorded run, nothing dropped.

        By CPU time, for the wall clock of a shared machine is not the recorder's doing.
        """
        return (
            self.events_a_second >= _LEAST_EVENTS_A_SECOND
            and self.cpu_ratio <= _MOST_RATIO
            and self.dropped == 0
        )

    def text(self) -> str:
        each = self.rounds // self.pairs
        lines = [
            f"{SCENARIO}/{DIALECT}, {THREADS} threads, {self.pairs} pairs of {each:,} rounds",
            f"  unrecorded {self.plain_seconds:8.2f} s {self.plain_cpu_seconds:8.2f} CPU s"
            f" {self.rounds / self.plain_cpu_seconds:10,.0f} rounds a CPU second",
            f"  recorded   {self.recorded_seconds:8.2f} s {self.recorded_cpu_seconds:8.2f} CPU s"
            f" {self.rounds / self.recorded_cpu_seconds:10,.0f} rounds a CPU second",
            f"  {self.events:,} events, {self.events / self.rounds:.0f} a round, {self.dropped} dropped:"
            f" {self.events_a_second:,.0f} a second, {self.events_a_cpu_second:,.0f} a CPU second",
            f"  recorded / unrecorded: {self.ratio:.2f} of time, {self.cpu_ratio:.2f} of CPU time (medians)",
            f"  the recorder alone: {self.recorder.one_thread_ns:,.0f} ns an event on one thread,"
            f" {self.recorder.several_threads_ns:,.0f} ns on {self.recorder.threads}",
            f"  {'as promised' if self.passed else 'NOT as promised'}: {_LEAST_EVENTS_A_SECOND:,} events a second,"
            f" at most {_MOST_RATIO} times the CPU time",
        ]
        return "\n".join(lines)

    def results(self) -> list[dict[str, object]]:
        """Rows for the field `results` of `python -m benchmarks NAME --json`; a ratio is unrecorded / recorded."""
        rows = (
            ("round", self.rounds, self.recorded_seconds / self.rounds, 1 / self.ratio),
            ("round-cpu", self.rounds, self.recorded_cpu_seconds / self.rounds, 1 / self.cpu_ratio),
            ("event", self.events, self.recorded_seconds / self.events, None),
            ("event-cpu", self.events, self.recorded_cpu_seconds / self.events, None),
        )
        return [
            {
                "bench": "stress",
                "workload": f"{SCENARIO}-{THREADS}-threads",
                "size": size,
                "subject": "purgatorio",
                "operation": operation,
                "ns": round(seconds * 1e9, 1),
                "ratio": {} if ratio is None else {"unrecorded": round(ratio, 3)},
            }
            for operation, size, seconds, ratio in rows
        ]


def measure_stress_cost(pairs: int = 20, tell: Callable[[int], None] | None = None) -> StressCost:
    """Measure; a pair takes about a tenth of a second. ValueError below 1."""
    if pairs < 1:
        raise ValueError(f"at least one pair, not {pairs}")
    _timed(recorded=True)
    plain: list[_Timed] = []
    recorded: list[_Timed] = []
    for number in range(pairs):
        # Who goes first takes turns, lest the machine's drift be taken for a cost.
        for is_recorded in (False, True) if number % 2 else (True, False):
            (recorded if is_recorded else plain).append(_timed(is_recorded))
        if tell is not None:
            tell(number + 1)

    def ratio(of: Callable[[_Timed], float]) -> float:
        return statistics.median(of(a) / of(b) for a, b in zip(recorded, plain, strict=True))

    return StressCost(
        pairs=pairs,
        rounds=sum(one.rounds for one in recorded),
        events=sum(one.events for one in recorded),
        dropped=sum(one.dropped for one in recorded),
        plain_seconds=sum(one.seconds for one in plain),
        plain_cpu_seconds=sum(one.cpu_seconds for one in plain),
        recorded_seconds=sum(one.seconds for one in recorded),
        recorded_cpu_seconds=sum(one.cpu_seconds for one in recorded),
        ratio=ratio(lambda one: one.seconds),
        cpu_ratio=ratio(lambda one: one.cpu_seconds),
        recorder=measure_cost(40_000, THREADS),
    )


def _timed(recorded: bool) -> _Timed:
    # No trick at all, at the interpreter's own switch interval.
    settings = Settings(CREWS, _ROUNDS, SWITCH_INTERVALS_S[-1], 50, 0, 0, False, False)
    stop = StopFlag()
    maker = RoundMaker(SCENARIOS[SCENARIO], DIALECT, stop)
    gc.collect()
    gc.disable()
    try:
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        crews = [
            Crew(number, [maker.make(recorded) for _ in range(settings.rounds)], "cost", settings.spin, stop)
            for number in range(settings.crews)
        ]
        with applied(settings):
            for crew in crews:
                crew.start()
            for crew in crews:
                for thread in crew.threads:
                    thread.join()
        seconds, cpu_seconds = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    finally:
        gc.enable()
    logs = [one.log for crew in crews for one in crew.rounds if one.log is not None]
    events, dropped = sum(log.recorded for log in logs), sum(log.dropped for log in logs)
    return _Timed(seconds, cpu_seconds, settings.rounds * settings.crews, events, dropped)
