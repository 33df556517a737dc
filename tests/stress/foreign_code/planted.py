"""Programs with a known fault, or none, each for one ability of the foreign explorer."""

import array
import asyncio
import pickle
import threading
import time
from asyncio import iscoroutinefunction
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

Acts = Sequence[Callable[[], object]]

total = 0

try:
    Lock().release()
    raise AssertionError("a lock that nobody holds was released")
except RuntimeError:
    pass


@dataclass
class Account:
    """Shared by two threads."""

    balance: int = 0


class LostUpdate:
    """`+=` on an attribute without a lock."""

    def __init__(self) -> None:
        self.account = Account()

    def threads(self) -> Acts:
        return [self.pay, self.pay]

    def pay(self) -> None:
        self.account.balance += 1

    def check(self) -> None:
        assert self.account.balance == 2, self.account.balance


class ManyLose(LostUpdate):
    """More threads than there are columns for."""

    def threads(self) -> Acts:
        return [self.pay] * 5


class CountsAlone:
    """One thread uses `runs` and `tries`, and `check` reads `runs`."""

    def __init__(self) -> None:
        self.ended = False
        self.runs = self.tries = 0

    def thread_runs(self) -> None:
        self.tries += 1
        if not self.ended:
            self.runs += 1

    def thread_ends(self) -> None:
        self.ended = True

    def check(self) -> None:
        assert self.runs == 0


class PreparesAlone:
    """One thread prepares the fields, and later both test and set."""

    def __init__(self) -> None:
        self.fields: dict[int, int] = {}
        self.taken = False
        self.takers = 0

    def thread_first(self) -> None:
        for number in range(8):
            self.fields[number] = 0
        time.sleep(1)
        self.take()

    def thread_second(self) -> None:
        time.sleep(1)
        self.take()

    def take(self) -> None:
        if not self.taken:
            self.taken = True
            self.takers += len(self.fields) > 0

    def check(self) -> None:
        assert self.takers < 2


class KeptUpdate(LostUpdate):
    """The same with a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()

    def pay(self) -> None:
        with self.lock:
            self.account.balance += 1


class LostGlobal:
    """`+=` on a global."""

    def __init__(self) -> None:
        global total
        total = 0

    def threads(self) -> Acts:
        return [self.add, self.add]

    def add(self) -> None:
        global total
        total += 1

    def check(self) -> None:
        assert total == 2, total


class OwnVariables:
    """Sound: variables of one call, with the names of a global, of a builtin and of each other."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def threads(self) -> Acts:
        return [self.add, self.add]

    def add(self) -> None:
        """Each call has its own `count`."""
        total, count = 1, 0

        def inner() -> None:
            nonlocal count
            count += total

        inner()
        self.seen.append([count, *(total for total in "ab")])
        self.rest(slice=1)

    def rest(self, slice: int) -> None:  # noqa: A002  a name that the rewritten code needs
        self.seen.append("ab"[slice:])

    def check(self) -> None:
        assert sorted(map(str, self.seen)) == ["[1, 'a', 'b']"] * 2 + ["b"] * 2, self.seen


class ComputesItsOrder:
    """Sound: a class that uses itself while its `__mro__` is computed."""

    def thread_a(self) -> None:
        class Meta(type):
            def mro(cls) -> list[type]:
                cls.seen = True
                return super().mro()

        assert Meta("Made", (), {}).seen

    def check(self) -> None: ...


class RecursesTooDeep:
    def __init__(self) -> None:
        self.depth = 0

    def thread_a(self) -> None:
        self.depth += 1
        self.thread_a()

    def check(self) -> None: ...


class PicklesItself:
    """Sound: `pickle` finds the class by the name of its module."""

    def thread_a(self) -> None:
        assert isinstance(pickle.loads(pickle.dumps(self)), PicklesItself)

    thread_b = thread_a

    def check(self) -> None: ...


class ChangedWhileIterating:
    """One thread walks over a dict into which another puts something."""

    def __init__(self) -> None:
        self.items = {1: 1, 2: 2}

    def thread_walks(self) -> None:
        for _ in self.items.values():
            pass

    def thread_puts(self) -> None:
        self.items[3] = 3

    def check(self) -> None:
        assert len(self.items) == 3


class Crossed:
    """Two locks in two orders."""

    def __init__(self) -> None:
        self.here = threading.Lock()
        self.there = threading.Lock()

    def thread_one(self) -> None:
        with self.here, self.there:
            pass

    def thread_other(self) -> None:
        with self.there, self.here:
            pass

    def check(self) -> None:
        return None


class LostNotice:
    """A condition that is notified before any thread waits, and a predicate that no thread tests."""

    def __init__(self) -> None:
        self.changed = threading.Condition()

    def thread_waits(self) -> None:
        with self.changed:
            self.changed.wait()

    def thread_notifies(self) -> None:
        with self.changed:
            self.changed.notify()

    def check(self) -> None:
        return None


class AsksAsyncio(KeptUpdate):
    """It asks what a function is, and waits for nothing."""

    def pay(self) -> None:
        if not iscoroutinefunction(self.pay):
            super().pay()


class UsesAsyncio:
    """Modules that the scheduler cannot control."""

    def thread_turns(self) -> None:
        asyncio.run(asyncio.sleep(0))

    def check(self) -> None:
        return None


class Spins:
    """A loop that waits for another thread without end."""

    def __init__(self) -> None:
        self.ready = False

    def thread_waits(self) -> None:
        while not self.ready:
            pass

    def thread_sets(self) -> None:
        self.ready = True

    def check(self) -> None:
        assert self.ready


class GivesUpInTime:
    """A wait of one second for what takes none: only an early time-out breaks it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.in_time = True

    def threads(self) -> Acts:
        return [self.waits, self.done.set]

    def waits(self) -> None:
        self.in_time = self.done.wait(1)

    def check(self) -> None:
        assert self.in_time


class SleepsLong:
    """An hour of virtual time."""

    def thread_sleeps(self) -> None:
        self.start = time.monotonic()
        time.sleep(3_600)
        self.end = time.monotonic()

    def check(self) -> None:
        assert self.end - self.start == 3_600


class HeldBeyondATimeOut:
    """One thread holds a lock for ten seconds; the other waits five for it, or comes first."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.got = False

    def thread_holds(self) -> None:
        with self.lock:
            time.sleep(10)

    def thread_waits(self) -> None:
        self.got = self.lock.acquire(timeout=5)
        if self.got:
            self.lock.release()

    def outcome(self) -> object:
        return self.got


class LooksUp:
    """A look and a use with a removal between; no `check`, the exception is enough."""

    def __init__(self) -> None:
        self.items = {"a": 1}
        self.seen = 0

    def thread_reader(self) -> None:
        if "a" in self.items:
            self.seen = self.items["a"]

    def thread_sweeper(self) -> None:
        self.items.clear()

    def outcome(self) -> int:
        return self.seen


class LooksAtNothing:
    """Neither `check` nor `outcome`."""

    def thread_idle(self) -> None:
        pass


class SharesUnknown:
    """An object of an unknown class that is not a container: it is unknown whether two of its operations are one
    step."""

    def __init__(self) -> None:
        self.ids = array.array("i", [1, 2])
        self.seen = 0

    def thread_sums(self) -> None:
        self.seen = sum(self.ids)

    def thread_changes(self) -> None:
        self.ids.append(777)
        self.ids.pop()

    def check(self) -> None:
        assert self.seen == 3, self.seen


class SwallowsAll:
    """It contains every exception, as many loops do; a counter is kept without a lock."""

    def __init__(self) -> None:
        self.items = [1, 2]

    def threads(self) -> Acts:
        return [self.walks, self.walks]

    def walks(self) -> None:
        try:
            for _ in self.items:
                pass
        except Exception:
            pass

    def check(self) -> None:
        assert len(self.items) == 2


class UnpacksPairs:
    """A `for` unpacks a list that another thread makes longer for a moment."""

    def __init__(self) -> None:
        self.pair = [1, 2]

    def thread_unpacks(self) -> None:
        for _, _ in (self.pair,):
            pass

    def thread_lengthens(self) -> None:
        self.pair.append(3)
        self.pair.pop()

    def check(self) -> None:
        assert len(self.pair) == 2


class UnpacksPairsWithLock(UnpacksPairs):
    """The same with a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()

    def thread_unpacks(self) -> None:
        with self.lock:
            super().thread_unpacks()

    def thread_lengthens(self) -> None:
        with self.lock:
            super().thread_lengthens()


class UsesItsDictionary(LostUpdate):
    """One attribute, by its name and by way of `vars`."""

    def threads(self) -> Acts:
        return [self.pay, self.pay_by_name]

    def pay_by_name(self) -> None:
        vars(self.account)["balance"] += 1


class UsesItsDictionaryWithLock(UsesItsDictionary):
    lock = Lock()

    def threads(self) -> Acts:
        return [partial(self.locked, act) for act in super().threads()]

    def locked(self, act: Callable[[], object]) -> None:
        with self.lock:
            act()


class Once:
    """Replaces itself by an attribute of the object."""

    def __init__(self, made: Callable[[], object]) -> None:
        self.made = made

    def __get__(self, one: object, kind: type) -> object:
        setattr(one, "client", made := self.made())  # noqa: B010  as the field's descriptors do
        return made


class MakesTwice:
    client = Once(object)

    def thread_first(self) -> None:
        self.first = self.client

    def thread_second(self) -> None:
        self.second = self.client

    def check(self) -> None:
        assert self.first is self.second


class Shut:
    def __init__(self) -> None:
        self.opened = 0

    def open(self) -> None:
        self.__class__ = Open
        self.opened += 1


class Open(Shut):
    def open(self) -> None:
        pass


class ChangesItsClass:
    def __init__(self) -> None:
        self.door = Shut()

    def thread_opens(self) -> None:
        self.door.open()

    thread_opens_too = thread_opens

    def check(self) -> None:
        assert self.door.opened == 1, self.door.opened


class FarBehind:
    """A list behind more iterators than are followed."""

    def __init__(self) -> None:
        self.items = [1, 2]

    def thread_walks(self) -> None:
        going = iter(self.items)
        for _ in range(12):
            going = filter(None, going)
        list(going)

    def thread_puts(self) -> None:
        self.items.append(3)
        self.items.pop()

    def check(self) -> None:
        assert len(self.items) == 2


class YieldsInVain(Spins):
    """The same loop over `sleep(0)`, in which no time passes."""

    def thread_waits(self) -> None:
        while not self.ready:
            time.sleep(0)


class SleepsBetween(Spins):
    """It checks again after a while: time passes when the other thread cannot continue."""

    def thread_waits(self) -> None:
        while not self.ready:
            time.sleep(0.01)


class SetsByObject(LostUpdate):
    """As a frozen class does."""

    def pay(self) -> None:
        object.__setattr__(self.account, "balance", self.account.balance + 1)


class TakesNoticeTooLate:
    """A wait that has timed out is still in the list of waiters, so it takes the notice of the other wait."""

    def __init__(self) -> None:
        self.ready = threading.Condition()
        self.woken = 0

    def _wait(self, seconds: float) -> None:
        with self.ready:
            if self.ready.wait(seconds):
                self.woken += 1

    def thread_short(self) -> None:
        self._wait(1)

    def thread_long(self) -> None:
        self._wait(9)

    def thread_other(self) -> None:
        time.sleep(1)
        with self.ready:
            self.ready.notify()

    def check(self) -> None:
        assert self.woken == 1, self.woken
