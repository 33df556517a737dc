"""K1, K2: requests that arrive, wait for completion under a time-out, and are mostly completed in time. K3: sessions
whose heartbeats move their time-out ahead again and again."""

from dataclasses import dataclass
from random import Random
from typing import Final

from benchmarks.candidate import Handle
from benchmarks.delays import log_normal
from benchmarks.workload import Counter, Make, Stopwatch, Workload

HEARTBEAT_MS: Final = 3_000
SESSION_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class RequestRate:
    rate_per_s: int
    p50_ms: float
    p75_ms: float
    seconds: float
    timeout_ms: int = 30_000


def request_plan(rate: RequestRate, seed: int) -> tuple[list[int], list[list[int]]]:
    """By millisecond: how many requests arrive, and the numbers of those that complete, in time only."""
    random = Random(seed)
    ticks = int(rate.seconds * 1000)
    arrivals, completions = [0] * ticks, [[] for _ in range(ticks)]  # type: tuple[list[int], list[list[int]]]
    number, at_ms = 0, random.expovariate(rate.rate_per_s / 1000)
    while at_ms < ticks:
        tick = int(at_ms)
        arrivals[tick] += 1
        done = int(at_ms + log_normal(random, rate.p50_ms, rate.p75_ms))
        if done < ticks and done - tick < rate.timeout_ms:
            completions[done].append(number)
        number += 1
        at_ms += random.expovariate(rate.rate_per_s / 1000)
    return arrivals, completions


class RequestWorkload(Workload):
    """A request is one add, at most one cancel, and its share of an advance every millisecond."""

    operations = ("request",)

    def __init__(self, name: str, rate: RequestRate, seed: int = 1) -> None:
        self.id = name
        self._rate = rate
        self._seed = seed
        self._arrivals, self._completions = request_plan(rate, seed)
        super().__init__(
            f"{rate.rate_per_s // 1000}k/s, completion {rate.p50_ms:g}/{rate.p75_ms:g} ms",
            sum(self._arrivals),
        )

    def play(self, make: Make, watch: Stopwatch) -> None:
        timer, counter, timeout_ms = make(), Counter(), self._rate.timeout_ms
        action, add, cancel, advance = counter.action, timer.add, timer.cancel, timer.advance
        handles: list[Handle] = []
        keep, now_ms = handles.append, 0
        with watch.timing("request", self.size):
            for arriving, completing in zip(self._arrivals, self._completions, strict=True):
                for _ in range(arriving):
                    keep(add(timeout_ms, action))
                for number in completing:
                    cancel(handles[number])
                    handles[number] = None
                now_ms += 1
                advance(now_ms)
        watch.fired = len(counter.fired)
        timer.close()

    def small(self) -> Workload:
        # A shorter time-out, so that enough of them expire.
        rate = self._rate
        few = RequestRate(2_000, rate.p50_ms, rate.p75_ms, 1.0, timeout_ms=max(50, int(rate.p50_ms // 4)))
        return RequestWorkload(self.id, few, self._seed)


class HeartbeatWorkload(Workload):
    """K3: `size` sessions, each beating once in 3 s in a random order: its time-out of 30 s is cancelled and set."""

    id = "K3"
    operations = ("churn",)

    def __init__(self, size: int, beats: int, seed: int = 3) -> None:
        super().__init__("heartbeat", size)
        self._seed = seed
        self._beats: list[tuple[int, int]] = []
        random, order = Random(seed), list(range(size))
        while len(self._beats) < beats:
            random.shuffle(order)
            first = len(self._beats)
            self._beats += [(s, (first + i) * HEARTBEAT_MS // size) for i, s in enumerate(order)]
        del self._beats[beats:]

    def play(self, make: Make, watch: Stopwatch) -> None:
        timer, counter = make(), Counter()
        action, add, cancel, advance = counter.action, timer.add, timer.cancel, timer.advance
        handles: list[Handle] = [add(SESSION_TIMEOUT_MS, action) for _ in range(self.size)]
        now_ms = 0
        with watch.timing("churn", len(self._beats)):
            for session, at_ms in self._beats:
                if at_ms > now_ms:
                    now_ms = at_ms
                    advance(now_ms)
                cancel(handles[session])
                handles[session] = add(SESSION_TIMEOUT_MS, action)
        watch.fired = len(counter.fired)
        timer.close()

    def small(self) -> Workload:
        return HeartbeatWorkload(100, 1_000, self._seed)
