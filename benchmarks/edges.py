"""X1 sparse, X2 ping-pong, X3 herd: where a wheel may lose, and where it should win most."""

from benchmarks.candidate import Candidate
from benchmarks.delays import delays
from benchmarks.workload import Counter, Make, Stopwatch, Workload, wakes


class SparseWorkload(Workload):
    """X1: delays log-uniform from 1 ms to a year; a driver sleeps until it is needed. `add` and `expire`.

    When the driver wakes is found out in a play that is not timed, `wakes_per_timer` has the count.
    """

    id = "X1"
    operations = ("add", "expire")

    def __init__(self, size: int, copies: int = 1, seed: int = 11) -> None:
        super().__init__("log-uniform-year", size)
        self._seed = seed
        self._copies = copies
        self._delays = delays(self.name, size, seed)

    def play(self, make: Make, watch: Stopwatch) -> None:
        woken = self._wakes(self._filled(make(), Counter()))
        counter = Counter()
        timers = [make() for _ in range(self._copies)]
        with watch.timing("add", self._copies * self.size):
            for timer in timers:
                self._filled(timer, counter)
        with watch.timing("expire", self._copies * self.size):
            for timer in timers:
                advance = timer.advance
                for now_ms in woken:
                    advance(now_ms)
        watch.fired = len(counter.fired)
        for timer in timers:
            timer.close()

    def wakes_per_timer(self, make: Make) -> float:
        """How often a driver wakes, by timer."""
        return len(self._wakes(self._filled(make(), Counter()))) / self.size

    def small(self) -> Workload:
        return SparseWorkload(200, 1, self._seed)

    def _filled(self, timer: Candidate, counter: Counter) -> Candidate:
        add, action = timer.add, counter.action
        for delay_ms in self._delays:
            add(delay_ms, action)
        return timer

    def _wakes(self, timer: Candidate) -> list[int]:
        woken = list(wakes(timer))
        timer.close()
        return woken


class PingPongWorkload(Workload):
    """X2: one timer at a time: added, and fired a millisecond later."""

    id = "X2"
    operations = ("expire",)

    def __init__(self, turns: int) -> None:
        super().__init__("ping-pong", 1)
        self._turns = turns

    def play(self, make: Make, watch: Stopwatch) -> None:
        timer, counter = make(), Counter()
        add, advance, action = timer.add, timer.advance, counter.action
        with watch.timing("expire", self._turns):
            for now_ms in range(1, self._turns + 1):
                add(1, action)
                advance(now_ms)
        watch.fired = len(counter.fired)
        timer.close()

    def small(self) -> Workload:
        return PingPongWorkload(100)


class HerdWorkload(Workload):
    """X3: all due in the same millisecond."""

    id = "X3"
    operations = ("add", "expire")

    def __init__(self, size: int) -> None:
        super().__init__("herd", size)

    def play(self, make: Make, watch: Stopwatch) -> None:
        timer, counter = make(), Counter()
        add, action, delay_ms = timer.add, counter.action, 500
        with watch.timing("add", self.size):
            for _ in range(self.size):
                add(delay_ms, action)
        timer.advance(delay_ms - 1)
        with watch.timing("expire", self.size):
            timer.advance(delay_ms)
        watch.fired = len(counter.fired)
        timer.close()

    def small(self) -> Workload:
        return HerdWorkload(50)
