"""P6: Kafka's own performance test (TestPurgatoryPerformance) as a curve: asked rate against achieved rate.

In real time, as there: one thread registers operations at Poisson times, each under 3 of 100 keys with a payload of
some bytes and a time-out of 200 ms; a second thread completes each by force after a log-normal latency (p50 / p75 of
20 / 60 ms, or 200 / 400 ms, where more than half expire); the reaper expires the rest. The achieved rate is
operations over the time until the last was registered: below the asked one, the purgatory is the bottleneck, or the
machine is busy with something else. CPU time an operation tells the two apart.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from benchmarks.delays import log_normal
from benchmarks.purgatory_request import PurgatorySubject, Waiting, make_operations
from benchmarks.workload import Disagreement

RATES: Final = (1_000, 5_000, 10_000, 20_000, 40_000)
LATENCIES: Final = ((20, 60), (200, 400))
TIMEOUT_MS: Final = 200
_KEYS: Final = 100
_KEYS_EACH: Final = 3
_PAYLOAD_BYTES: Final = 100
_DRAIN_TIMEOUT_S: Final = 30.0
_NAP_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Achieved:
    """One point: rates in operations a second of the wall; `expired` is a share; CPU of the whole process."""

    subject: str
    p50_ms: int
    p75_ms: int
    asked_per_s: int
    achieved_per_s: float
    cpu_ns: float
    expired: float


def measure_rates(
    subjects: Sequence[PurgatorySubject], seconds: float, rates: Sequence[int]
) -> Iterator[Achieved]:
    """One point a rate, latency and subject, as they come. `Disagreement` where an operation is never completed."""
    for p50_ms, p75_ms in LATENCIES:
        for rate in rates:
            plan = _Plan(rate, int(rate * seconds), p50_ms, p75_ms)
            for subject in subjects:
                yield _Run(subject, plan).play()


class _Plan:
    """Arrivals and completions in seconds from the start, and the keys."""

    def __init__(self, rate: int, count: int, p50_ms: int, p75_ms: int) -> None:
        random = Random(rate)
        self.rate, self.p50_ms, self.p75_ms = rate, p50_ms, p75_ms
        self.arrivals_s: list[float] = []
        at_s = 0.0
        for _ in range(count):
            at_s += random.expovariate(rate)
            self.arrivals_s.append(at_s)
        # Stretched so that the last comes when the rate says: a short run would else ask for a little more or less.
        stretch = count / rate / at_s
        self.arrivals_s = [arrival_s * stretch for arrival_s in self.arrivals_s]
        self.keys = [tuple(random.sample(range(_KEYS), _KEYS_EACH)) for _ in range(count)]
        done_s = [at_s + log_normal(random, p50_ms, p75_ms) / 1000 for at_s in self.arrivals_s]
        # What completes long after its time-out would only make the run longer: it changes nothing.
        self.completions = sorted(
            (done_s[number], number)
            for number in range(count)
            if done_s[number] < self.arrivals_s[number] + 2 * TIMEOUT_MS / 1000
        )


class _Run:
    def __init__(self, subject: PurgatorySubject, plan: _Plan) -> None:
        build = subject.build
        timer = (build.timer if subject.for_use else build.faithful)("bench")
        self._subject, self._plan = subject, plan
        self._purgatory = build.purgatory("bench", timer)
        self._kind = make_operations(build)
        self._operations: list[Waiting | None] = [None] * len(plan.keys)
        self._by_force = 0
        self._start_s = 0.0

    def play(self) -> Achieved:
        """Register and complete everything, wait until the rest has expired, and count."""
        completer = threading.Thread(target=self._complete, daemon=True)
        cpu_ns = time.process_time_ns()
        self._start_s = time.monotonic()
        completer.start()
        registered_s = self._register()
        completer.join(_DRAIN_TIMEOUT_S)
        end_s = time.monotonic() + _DRAIN_TIMEOUT_S
        while self._purgatory.num_delayed() and time.monotonic() < end_s:
            time.sleep(_NAP_S)
        cpu_ns = time.process_time_ns() - cpu_ns
        self._purgatory.close()
        count = len(self._operations)
        done = sum(operation is not None and operation.is_completed() for operation in self._operations)
        if done != count:
            raise Disagreement(f"P6 {self._subject.name}: {done} of {count} completed")
        plan = self._plan
        return Achieved(
            self._subject.name,
            plan.p50_ms,
            plan.p75_ms,
            plan.rate,
            count / registered_s,
            cpu_ns / count,
            1 - self._by_force / count,
        )

    def _register(self) -> float:
        start_s, plan = self._start_s, self._plan
        for number, at_s in enumerate(plan.arrivals_s):
            left_s = start_s + at_s - time.monotonic()
            if left_s > _NAP_S:
                time.sleep(left_s)
            operation = self._kind(TIMEOUT_MS)
            operation.payload = bytes(_PAYLOAD_BYTES)
            self._purgatory.try_complete_else_watch(operation, plan.keys[number])
            self._operations[number] = operation
        return time.monotonic() - start_s

    def _complete(self) -> None:
        for at_s, number in self._plan.completions:
            left_s = self._start_s + at_s - time.monotonic()
            if left_s > _NAP_S:
                time.sleep(left_s)
            while (operation := self._operations[number]) is None:
                # The registering thread is late.
                time.sleep(_NAP_S)
            self._by_force += operation.force_complete()
