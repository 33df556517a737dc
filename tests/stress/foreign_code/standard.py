"""Adapters for modules of the standard library, for `purgatorio explore --package`."""

import queue
import sched
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

Acts = Sequence[Callable[[], object]]


class PutAndGet:
    """A producer and a consumer over a queue of one place."""

    def __init__(self) -> None:
        self.queue: queue.Queue[int] = queue.Queue(maxsize=1)
        self.got: list[int] = []

    def thread_producer(self) -> None:
        for number in range(2):
            self.queue.put(number)

    def thread_consumer(self) -> None:
        for _ in range(2):
            self.got.append(self.queue.get())

    def check(self) -> None:
        assert self.got == [0, 1], self.got


class CancelAgainstExpiry:
    """A timer is cancelled at the moment at which it expires."""

    def __init__(self) -> None:
        self.fired: list[str] = []
        self.timer = threading.Timer(5, self.fired.append, ["x"])

    def thread_starts(self) -> None:
        self.timer.start()
        self.timer.join()

    def thread_cancels(self) -> None:
        time.sleep(5)
        self.timer.cancel()

    def check(self) -> None:
        assert self.fired in ([], ["x"])

    def outcome(self) -> object:
        return self.fired


class CancelAgainstRun:
    """`sched`: an event is cancelled at the moment at which it is due. One that is cancelled does not run."""

    def __init__(self) -> None:
        self.scheduler = sched.scheduler()
        self.fired: list[str] = []
        self.event = self.scheduler.enter(5, 0, self.fired.append, ("x",))
        self.cancelled = False

    def threads(self) -> Acts:
        return [self.scheduler.run, self.cancels]

    def cancels(self) -> None:
        time.sleep(5)
        try:
            self.scheduler.cancel(self.event)
            self.cancelled = True
        except ValueError:
            pass

    def check(self) -> None:
        assert self.cancelled != bool(self.fired), (self.cancelled, self.fired)

    def outcome(self) -> object:
        return self.cancelled


class SubmitAndShutdown:
    """A pool is shut down during a submit: the submit is refused, or done."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.done: list[str] = []

    def thread_submits(self) -> None:
        try:
            self.pool.submit(self.done.append, "done").result()
        except RuntimeError:
            self.done.append("refused")

    def thread_shuts(self) -> None:
        self.pool.shutdown(wait=True)

    def check(self) -> None:
        assert len(self.done) == 1, self.done

    def outcome(self) -> object:
        return self.done


class SubmitAndLeave:
    """No thread shuts the pool down: its idle workers end with the program."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.done: list[str] = []

    def thread_submits(self) -> None:
        self.pool.submit(self.works)

    def works(self) -> None:
        self.done.append("done")

    def check(self) -> None:
        assert self.done == ["done"]


class SubmitAndHang(SubmitAndLeave):
    """A submitted function never ends, so the program never ends."""

    def works(self) -> None:
        threading.Event().wait()


class KeptWeakly:
    """An object dies when the last function that had it has returned, also out of a loop."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        self.kept: list[object] = []

    def threads(self) -> Acts:
        return [self.drops, self.drops]

    def drops(self) -> None:
        item = SubmitAndLeave()
        self.kept.append(weakref.ref(item, lambda _: self.gone.append("gone")))
        self.looks(item)

    def looks(self, item: SubmitAndLeave) -> None:
        while not item.done:
            item.done.append("seen")

    def check(self) -> None:
        assert self.gone == ["gone", "gone"], self.gone


class Channel:
    """One for all who want it at one time."""

    made: ClassVar["weakref.WeakValueDictionary[str, Channel]"] = weakref.WeakValueDictionary()


class LooksUpWeakly:
    """The channel may die between the test and the use."""

    def wanted(self) -> Channel:
        if "a" in Channel.made:
            return Channel.made["a"]
        made = Channel.made["a"] = Channel()
        return made

    def thread_comes(self) -> None:
        self.channel = self.wanted()

    def thread_comes_and_leaves(self) -> None:
        self.wanted()

    def check(self) -> None:
        pass


class AsksWeakly(LooksUpWeakly):
    """Sound, with one look."""

    lock = threading.Lock()

    def wanted(self) -> Channel:
        with self.lock:
            found = Channel.made.get("a")
            if found is None:
                found = Channel.made["a"] = Channel()
            return found

    def check(self) -> None:
        assert Channel.made["a"] is self.channel


class SeesItDead:
    """Sound. An object is dead as soon as the last reference is gone, also out of a list."""

    def __init__(self) -> None:
        self.channel: Channel | None = Channel()
        self.all = [self.channel]
        self.seen = weakref.ref(self.channel)

    def thread_drops(self) -> None:
        self.all = []
        self.channel = None

    def thread_looks(self) -> None:
        assert self.channel is not None or self.seen() is None

    def check(self) -> None:
        assert self.seen() is None
