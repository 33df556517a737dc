"""Code that uses a library which is not explored."""

import threading

import library  # type: ignore[import-not-found]  # it is found beside this file, when it is explored


class Adds:
    """Broken: an update of the library may be lost."""

    def __init__(self) -> None:
        self.tally = library.Tally()
        self.lock = threading.Lock()

    def act(self) -> None:
        self.tally.add()

    def thread_a(self) -> None:
        self.act()

    def thread_b(self) -> None:
        self.act()

    def check(self) -> None:
        assert self.tally.count == 2


class AddsInTurn(Adds):
    """Sound: a lock of this file orders the calls."""

    def act(self) -> None:
        with self.lock:
            super().act()


class Derives(library.Tally):  # type: ignore[misc]  # for the same reason
    def act(self) -> None:
        self.add()


class AddsToItself(Adds):
    """Broken, in a method of a base class."""

    def __init__(self) -> None:
        self.tally = Derives()

    def act(self) -> None:
        self.tally.act()


class CallsBack(Adds):
    """Sound: the lock of the library protects `used`. But this lock is not the explorer's."""

    guard = library.Guarded

    def __init__(self) -> None:
        self.guarded = self.guard()
        self.used = 0

    def use(self) -> None:
        self.used += 1

    def act(self) -> None:
        self.guarded.call(self.use)

    def check(self) -> None:
        assert self.used == 2, self.used


class CallsBackOnce(CallsBack):
    guard = library.GuardedOnce


class CallsBackAlone(CallsBack):
    """Sound: each thread has its own object of the library."""

    def act(self) -> None:
        self.guard().call(self.lock_and_use)

    def lock_and_use(self) -> None:
        with self.lock:
            self.use()

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class AddsAndUpdates(CallsBack):
    """Broken, in this file."""

    def __init__(self) -> None:
        super().__init__()
        self.tally = library.Tally()

    def act(self) -> None:
        self.tally.add()
        self.use()


class Act(Adds):
    """One act in two threads."""

    def __init__(self) -> None:
        library.forget()
        self.gate = library.Turnstile()
        self.made = 0
        self.once = library.once(self.make)
        self.lock = threading.Lock()

    def make(self) -> object:
        self.made += 1
        return self

    def check(self) -> None:
        assert self.made <= 1, self.made


class Numbers(Act):
    """Broken: two threads may get one number."""

    def act(self) -> None:
        library.number()


class NumbersOfAWith(Act):
    def act(self) -> None:
        with library.counted():
            pass


class NumbersInATarget(Act):
    def thread_a(self) -> None:
        threads = [threading.Thread(target=library.number) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def thread_b(self) -> None:
        pass


class NumbersInTurn(Act):
    """Sound: the library has a lock."""

    def act(self) -> None:
        library.number_in_turn()


class NumbersInMyTurn(Act):
    """Sound: this file has a lock."""

    def act(self) -> None:
        with self.lock:
            library.number()


class OnlyReads(Act):
    """Sound."""

    def act(self) -> None:
        library.named("one")


class LearnsTwice(Act):
    """Broken: another thread may act between the two calls."""

    def act(self) -> None:
        if not library.is_known("name"):
            library.know("name")


class MakesTwice(Act):
    """Broken, in a decorator of the library."""

    def act(self) -> None:
        self.once()


class EntersTwice(Act):
    """Broken."""

    def act(self) -> None:
        with self.gate:
            pass


class EntersAlone(Act):
    """Sound: each thread has its own object."""

    def act(self) -> None:
        with library.Turnstile() as inside:
            assert inside == 1


class CallsWhileEntering(EntersTwice):
    """The library may change in the middle of the call."""

    def thread_b(self) -> None:
        self.gate()


class Seizes(Act):
    """Sound. But the explorer cannot run the thread that holds the lock."""

    def act(self) -> None:
        library.seize()
        self.made = 1
        library.let_go()
