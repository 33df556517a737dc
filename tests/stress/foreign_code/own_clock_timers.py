"""A sound timer with a thread of its own, and the same timer with one bug each."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class Entry:
    def __init__(self, task: Callable[[], None], due_s: float) -> None:
        self.task, self.due_s, self.state = task, due_s, "waits"


class Sound:
    idle_s: float | None = None

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.heap: list[tuple[float, int, Entry]] = []
        self.number, self.stopped = itertools.count(), False
        self.thread = threading.Thread(target=self.run, name="worker", daemon=True)
        self.thread.start()

    def add(self, delay_ns: int, task: Callable[[], None]) -> Entry:
        with self.changed:
            entry = Entry(task, time.monotonic() + delay_ns / 1e9)
            self.push(entry)
            return entry

    def push(self, entry: Entry) -> None:
        heapq.heappush(self.heap, (entry.due_s, next(self.number), entry))
        self.wake()

    def wake(self) -> None:
        self.changed.notify()

    def cancel(self, entry: Entry) -> bool | None:
        with self.changed:
            if entry.state != "waits":
                return False
            entry.state = "cancelled"
            return True

    def reset(self, entry: Entry, delay_ns: int) -> bool | None:
        with self.changed:
            if entry.state != "waits":
                return False
            entry.due_s = time.monotonic() + delay_ns / 1e9
            self.push(entry)
            return True

    def size(self) -> int:
        with self.changed:
            return len({id(entry) for _, _, entry in self.heap if entry.state == "waits"})

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify()
        self.thread.join()

    def is_dead(self, due_s: float, entry: Entry) -> bool:
        return entry.state != "waits" or due_s != entry.due_s

    def take(self) -> Entry | None:
        """The next task, and None after the stop."""
        with self.changed:
            while not self.stopped:
                while self.heap and self.is_dead(self.heap[0][0], self.heap[0][2]):
                    heapq.heappop(self.heap)
                wait_s = self.heap[0][0] - time.monotonic() if self.heap else self.idle_s
                if wait_s is not None and wait_s <= 0:
                    entry = heapq.heappop(self.heap)[2]
                    self.began(entry)
                    return entry
                if not (self.changed.wait(wait_s) or self.heap) and self.dies():
                    break
            return None

    def dies(self) -> bool:
        return False

    def began(self, entry: Entry) -> None:
        entry.state = "ran"

    def run(self) -> None:
        while (entry := self.take()) is not None:
            entry.task()


class CancelBesideRun(Sound):
    """A cancel that comes between the pop and the run of a task returns True."""

    def began(self, entry: Entry) -> None:
        pass

    def run(self) -> None:
        while (entry := self.take()) is not None:
            entry.state = "ran"
            entry.task()


class EarlierTaskSleeps(Sound):
    """Only the first task wakes the thread."""

    def wake(self) -> None:
        if len(self.heap) == 1:
            self.changed.notify()


class FormerDeadline(Sound):
    """A reset to a later time leaves the former deadline."""

    def is_dead(self, due_s: float, entry: Entry) -> bool:
        return entry.state != "waits"


class CountsAll(Sound):
    """Tasks that were cancelled stay in the size."""

    cancelled = 0

    def cancel(self, entry: Entry) -> bool | None:
        done = super().cancel(entry)
        self.cancelled += bool(done)
        return done

    def size(self) -> int:
        return super().size() + self.cancelled


class WakesAtTimes(Sound):
    idle_s = 3_600


class WakesOften(Sound):
    idle_s = 1


class DiesIdle(WakesAtTimes):
    """Its thread ends after a day without a task (psycopg#1419)."""

    hours = 0

    def dies(self) -> bool:
        self.hours += 1
        return self.hours == 24


class SaysNothing(CancelBesideRun):
    """Its cancel and its reset promise nothing, so the race is no bug."""

    def cancel(self, entry: Entry) -> None:
        super().cancel(entry)

    def reset(self, entry: Entry, delay_ns: int) -> None:
        super().reset(entry, delay_ns)


class Early(Sound):
    """Its tasks run 100 ms early."""

    def push(self, entry: Entry) -> None:
        entry.due_s -= 0.1
        super().push(entry)


class DeclaresEarly(Early):
    early_ns = 100_000_000


class Polls:
    """It looks at its buckets every 5 ms, a bucket for each millisecond."""

    late_ns = 10_000_000

    def __init__(self) -> None:
        self.lock, self.over = threading.Lock(), threading.Event()
        self.buckets: dict[int, list[Callable[[], None]]] = {}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def now_ms(self) -> int:
        return round(time.monotonic() * 1_000)

    def add(self, delay_ns: int, task: Callable[[], None]) -> None:
        with self.lock:
            self.buckets.setdefault(self.now_ms() + delay_ns // 1_000_000, []).append(task)

    def run(self) -> None:
        while not self.over.wait(0.005):
            with self.lock:
                due = [bucket for bucket in self.buckets if bucket <= self.now_ms()]
            for bucket in due:
                self.empty(bucket)

    def empty(self, bucket: int) -> None:
        while True:
            with self.lock:
                if not self.buckets[bucket]:
                    del self.buckets[bucket]
                    return
                task = self.buckets[bucket].pop(0)
            task()

    def stop(self) -> None:
        self.over.set()
        self.thread.join()


class DropsBucket(Polls):
    """A task that comes between the look at the empty bucket and its removal is lost (resque-scheduler#46)."""

    def empty(self, bucket: int) -> None:
        tasks = self.buckets[bucket]
        while tasks:
            tasks.pop(0)()
        with self.lock:
            del self.buckets[bucket]


class Virtual(Sound):
    def advance(self, by_ns: int) -> None:
        raise AssertionError("the clock of the explorer moves")
