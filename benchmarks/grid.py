"""U1 fill, U2 churn, U4 cancel all: by distribution and size, in one play. U3: the hold model."""

from random import Random

from benchmarks.candidate import Handle
from benchmarks.delays import delays
from benchmarks.workload import Counter, Make, Stopwatch, Workload


class GridWorkload(Workload):
    """Fill (`add`), then cancel and add random ones (`churn`), then cancel all in random order (`cancel`).

    Time stands still, so nothing fires. Handles are kept, as whoever wants to cancel must. A small size is played on
    several timers one after the other, so that `least_ops` are timed together: some milliseconds.
    """

    id = "U1 U2 U4"
    operations = ("add", "churn", "cancel")
    moves_time = False
    outside = True

    def __init__(
        self, distribution: str, size: int, churns: int, seed: int = 5, least_ops: int = 20_000
    ) -> None:
        super().__init__(distribution, size)
        self._seed = seed
        self.copies = max(1, least_ops // size)
        self.delays = delays(distribution, size, seed)
        random = Random(seed + 1)
        self.churned = [random.randrange(size) for _ in range(churns)]
        self.new_delays = delays(distribution, churns, seed + 2)
        self.order = random.sample(range(size), size)

    def play(self, make: Make, watch: Stopwatch) -> None:
        counter = Counter()
        action = counter.action
        timers = [make() for _ in range(self.copies)]
        kept: list[list[Handle]] = [[] for _ in timers]
        with watch.timing("add", self.copies * self.size):
            for timer, handles in zip(timers, kept, strict=True):
                add, keep = timer.add, handles.append
                for delay_ms in self.delays:
                    keep(add(delay_ms, action))
        timer, handles = timers[0], kept[0]
        add, cancel = timer.add, timer.cancel
        with watch.timing("churn", len(self.churned)):
            for index, delay_ms in zip(self.churned, self.new_delays, strict=True):
                cancel(handles[index])
                handles[index] = add(delay_ms, action)
        with watch.timing("cancel", self.copies * self.size):
            for timer, handles in zip(timers, kept, strict=True):
                cancel = timer.cancel
                for index in self.order:
                    cancel(handles[index])
                    handles[index] = None
        watch.fired = len(counter.fired)
        for timer in timers:
            timer.close()

    def small(self) -> Workload:
        return _GridWithoutCancel(self.name, 200, 300, self._seed)


class _GridWithoutCancel(GridWorkload):
    """Fill and churn only. The pending timers at the end show which timers were cancelled."""

    def __init__(self, distribution: str, size: int, churns: int, seed: int) -> None:
        super().__init__(distribution, size, churns, seed, least_ops=1)
        self.order = self.order[: size // 4]

    def play(self, make: Make, watch: Stopwatch) -> None:
        counter, timer = Counter(), make()
        handles = [timer.add(delay_ms, counter.action) for delay_ms in self.delays]
        for index, delay_ms in zip(self.churned, self.new_delays, strict=True):
            timer.cancel(handles[index])
            handles[index] = timer.add(delay_ms, counter.action)
        for index in self.order:
            timer.cancel(handles[index])
        timer.close()


class HoldWorkload(Workload):
    """U3: `size` pending; what fires is replaced by a new one; handles are dropped at once. X4 is its worst tick."""

    id = "U3"
    operations = ("expire",)

    def __init__(self, distribution: str, size: int, ticks: int, seed: int = 7) -> None:
        super().__init__(distribution, size)
        self._seed = seed
        self._ticks = ticks
        self._delays = delays(distribution, size, seed)
        self._new_delays = delays(distribution, size, seed + 1)

    def play(self, make: Make, watch: Stopwatch) -> None:
        timer, counter = make(), Counter()
        add, advance, action, fired = timer.add, timer.advance, counter.action, counter.fired
        for delay_ms in self._delays:
            add(delay_ms, action)
        new_delays, total = self._new_delays, 0
        with watch.timing("expire", self._fires()):
            for now_ms in range(1, self._ticks + 1):
                advance(now_ms)
                if fired:
                    for place in range(total, total + len(fired)):
                        add(new_delays[place % len(new_delays)], action)
                    total += len(fired)
                    fired.clear()
        watch.fired = total
        timer.close()

    def small(self) -> Workload:
        return HoldWorkload(self.name, 300, 2_000, self._seed)

    def _fires(self) -> int:
        """How many timers fire in the timed part: the deadlines alone say so."""
        due = [0] * (self._ticks + 1)
        for delay_ms in self._delays:
            if delay_ms <= self._ticks:
                due[delay_ms] += 1
        total = 0
        for now_ms in range(1, self._ticks + 1):
            for place in range(total, total + due[now_ms]):
                deadline_ms = now_ms + self._new_delays[place % len(self._new_delays)]
                if deadline_ms <= self._ticks:
                    due[deadline_ms] += 1
            total += due[now_ms]
        return total
