"""CoordinatorTimer: two moments, the expiry and the write, and what may happen before, between and after them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purgatorio.threads import THREADS
from purgatorio_broker.coordinator_timer import RETRY_BACKOFF_MS, CoordinatorTimer, Write
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.error import BrokerError, Error
from purgatorio_broker.runtime import VirtualRuntime


class Wrapped(Exception):
    """An error that carries another."""


class Told:
    """A fault policy that remembers."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def caught(self, error: Exception, where: str, subject: object) -> None:
        """See `FaultPolicy`."""
        self.errors.append(error)


class WatcherList:
    """A shard whose queue the test can hold, and whose events can fail before they begin or by themselves."""

    def __init__(self) -> None:
        self.runtime = VirtualRuntime(5)
        self.told = Told()
        self.held: list[Callable[[], None]] | None = None
        self.fails: list[Exception] = []
        self.never_begins: Exception | None = None
        self.written: list[str] = []
        self.timer = CoordinatorTimer(self.runtime.timer("coordinator"), self.submit, faults=self.told)

    def submit(self, name: str, write: Write) -> Deferred[object]:
        """A write event, run at once unless the queue is held."""
        event: Deferred[object] = Deferred(THREADS)

        def run() -> None:
            if self.never_begins is not None:
                event.fail(self.never_begins)
                return
            try:
                event.complete(write())
            except Exception as error:
                event.fail(error)

        if self.held is None:
            run()
        else:
            self.held.append(run)
        return event

    def write(self, name: str) -> Write:
        """A write that notes that it ran, and fails as often as it is told to."""

        def run() -> None:
            self.written.append(name)
            if self.fails:
                raise self.fails.pop(0)

        return run

    def is_empty(self) -> bool:
        """Nothing is scheduled, under any key."""
        return not self.timer.is_scheduled("k") and self.timer.size() == 0


def test_it_writes_once_after_its_delay() -> None:
    """B771: not a millisecond before; afterwards the key is free."""
    shard = WatcherList()
    shard.timer.schedule("k", 100, shard.write("a"))
    assert (shard.timer.is_scheduled("k"), shard.timer.size()) == (True, 1)
    shard.runtime.advance(99)
    assert shard.written == []
    shard.runtime.advance(1)
    assert shard.written == ["a"]
    assert shard.is_empty()
    shard.runtime.advance(1000)
    assert shard.written == ["a"]


def test_a_write_may_schedule_its_own_key() -> None:
    """B771: the key is free when the write begins, so the heartbeat's idiom works."""
    shard = WatcherList()
    shard.timer.schedule("k", 100, lambda: shard.timer.schedule("k", 100, shard.write("again")))
    shard.runtime.advance(100)
    assert shard.timer.is_scheduled("k")
    shard.runtime.advance(100)
    assert shard.written == ["again"]


def test_cancelled_before_its_expiry() -> None:
    """B772."""
    shard = WatcherList()
    shard.timer.schedule("k", 100, shard.write("a"))
    shard.timer.cancel("k")
    assert shard.is_empty()
    shard.runtime.advance(100)
    assert shard.written == []


@pytest.mark.parametrize("anew", [False, True])
def test_overtaken_between_expiry_and_write(anew: bool) -> None:
    """B772: the event is in the queue; the key is cancelled, or scheduled anew; the event does nothing."""
    shard = WatcherList()
    shard.held = []
    shard.timer.schedule("k", 100, shard.write("a"), retry=True)
    shard.runtime.advance(100)
    (event,) = shard.held
    assert shard.timer.is_scheduled("k"), "the write is still to come"
    if anew:
        shard.timer.schedule("k", 100, shard.write("b"))
    else:
        shard.timer.cancel("k")
    event()
    assert shard.written == []
    assert (shard.timer.size(), shard.told.errors) == (int(anew), [])


def test_scheduled_anew_before_its_expiry() -> None:
    """B772: the second one counts, with its own delay; there is one timer."""
    shard = WatcherList()
    shard.timer.schedule("k", 100, shard.write("a"))
    shard.timer.schedule("k", 200, shard.write("b"))
    assert shard.timer.size() == 1
    shard.runtime.advance(199)
    assert shard.written == []
    shard.runtime.advance(1)
    assert shard.written == ["b"]
    assert shard.is_empty()


@pytest.mark.parametrize("backoff_ms", [50, None])
def test_a_failed_write_is_tried_again(backoff_ms: int | None) -> None:
    """B773: after the back-off, 500 ms where none was given, until it succeeds; nobody is told."""
    shard = WatcherList()
    shard.fails = [OSError("full"), OSError("full")]
    if backoff_ms is None:
        shard.timer.schedule("k", 100, shard.write("a"), retry=True)
    else:
        shard.timer.schedule("k", 100, shard.write("a"), retry=True, backoff_ms=backoff_ms)
    shard.runtime.advance(100)
    for tries in (1, 2):
        assert (len(shard.written), shard.timer.size()) == (tries, 1)
        shard.runtime.advance((backoff_ms or RETRY_BACKOFF_MS) - 1)
        assert len(shard.written) == tries
        shard.runtime.advance(1)
    assert len(shard.written) == 3
    assert shard.is_empty()
    assert (shard.told.errors, RETRY_BACKOFF_MS) == ([], 500)


def test_a_failed_write_is_given_up() -> None:
    """B773: without retry; somebody is told."""
    shard = WatcherList()
    shard.fails = [OSError("full")]
    shard.timer.schedule("k", 100, shard.write("a"))
    shard.runtime.advance(1000)
    assert shard.written == ["a"]
    assert shard.is_empty()
    assert [str(error) for error in shard.told.errors] == ["full"]


@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS])
@pytest.mark.parametrize("wrapped", [False, True])
def test_who_is_no_coordinator_has_nothing_to_write(error: Error, wrapped: bool) -> None:
    """B774: not tried again though it is to retry, and nobody is told; as the error or as the cause of another."""
    shard = WatcherList()
    failure: Exception = BrokerError(error)
    if wrapped:
        failure = Wrapped()
        failure.__cause__ = BrokerError(error)
    shard.fails = [failure]
    shard.timer.schedule("k", 100, shard.write("a"), retry=True)
    shard.runtime.advance(2000)
    assert shard.written == ["a"]
    assert shard.is_empty()
    assert shard.told.errors == []


def test_scheduled_if_absent_where_it_is_absent() -> None:
    """B775: as if it were scheduled."""
    shard = WatcherList()
    shard.timer.schedule_if_absent("k", 100, shard.write("a"))
    shard.runtime.advance(100)
    assert shard.written == ["a"]
    assert shard.is_empty()


def test_scheduled_if_absent_where_it_is_not() -> None:
    """B775: the first one stays, with its delay."""
    shard = WatcherList()
    shard.timer.schedule("k", 100, shard.write("a"))
    shard.timer.schedule_if_absent("k", 200, shard.write("b"))
    assert shard.timer.size() == 1
    shard.runtime.advance(1000)
    assert shard.written == ["a"]


def test_cancel_all() -> None:
    """B776: three keys, none of which writes; one of them had expired, and its event waits in the queue."""
    shard = WatcherList()
    shard.held = []
    for number, delay_ms in enumerate((10, 100, 100)):
        shard.timer.schedule(f"k{number}", delay_ms, shard.write(str(number)))
    shard.runtime.advance(10)
    shard.timer.cancel_all()
    assert shard.timer.size() == 0
    for event in shard.held:
        event()
    shard.runtime.advance(100)
    assert (shard.written, len(shard.held)) == ([], 1)


def test_an_event_that_never_began_frees_its_key() -> None:
    """B777: the event failed in the queue; also where the scheduler itself raises."""
    shard = WatcherList()
    shard.never_begins = BrokerError(Error.NOT_COORDINATOR)
    shard.timer.schedule("k", 100, shard.write("a"))
    shard.runtime.advance(100)
    assert shard.written == []
    assert shard.is_empty()

    def raises(name: str, write: Write) -> Deferred[object]:
        raise BrokerError(Error.NOT_COORDINATOR)

    timer = CoordinatorTimer(shard.runtime.timer("other"), raises, faults=shard.told)
    timer.schedule("k", 100, shard.write("a"))
    shard.runtime.advance(100)
    assert timer.size() == 0
