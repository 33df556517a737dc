"""Objects with finalizers, which use shared data."""

import threading
import warnings


class Connection:
    open = 0

    def __init__(self, owner: "EndsWithItsRun") -> None:
        Connection.open += 1
        self.owner = owner
        self.me: object = None

    def __del__(self) -> None:
        Connection.open -= 1
        with self.owner.lock:
            self.owner.ended += 1


class EndsWithItsRun:
    """Sound. The connection of the last run ends after this run, and before the count of the next run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.used = self.ended = 0
        self.connection = self.connect()

    def connect(self) -> Connection | None:
        return Connection(self)

    def act(self) -> None:
        with self.lock:
            self.used += 1

    def thread_a(self) -> None:
        self.act()

    def thread_b(self) -> None:
        self.act()

    def check(self) -> None:
        assert Connection.open == 1, Connection.open
        assert self.used == 2, self.used


class LeavesCycles(EndsWithItsRun):
    """Sound. Only the collector ends the connections of `act`."""

    def connect(self) -> Connection | None:
        return None

    def act(self) -> None:
        made = Connection(self)
        made.me = made
        super().act()

    def check(self) -> None:
        assert self.used == 2, self.used


class LeavesCyclesAndUpdates(LeavesCycles):
    """Broken: an update may be lost."""

    def act(self) -> None:
        used = self.used
        super().act()
        self.used = used + 1


class Collects(LeavesCycles):
    """Sound. A collection finds no connection of an earlier run."""

    def thread_a(self) -> None:
        import gc

        self.act()
        gc.collect(0)

    def check(self) -> None:
        super().check()
        assert self.ended in (1, 2), self.ended


class WarnsOfItsEnd(EndsWithItsRun):
    """Sound. Only the collector ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.me = self

    def __del__(self) -> None:
        warnings.warn("not closed", RuntimeWarning, stacklevel=2)
