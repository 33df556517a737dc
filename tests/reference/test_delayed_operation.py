"""The purgatory and its operations in both dialects: the behaviour that Kafka's DelayedOperationTest asserts."""

import random
import threading
from functools import partial

import pytest

from purgatorio import LOCKED, PENDING_FLAG, THREADS, Purgatory
from purgatorio.delayed.dialect import Dialect
from purgatorio.sync import Lock
from reference.waiting import DIALECTS, Request, elsewhere, free, quiet_world, together

both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def pausing(request: Request) -> tuple[threading.Event, threading.Event]:
    """Its next evaluation sets the first, and waits for the second."""
    inside, go_on = threading.Event(), threading.Event()

    def pause_once() -> None:
        request.during_try = None
        inside.set()
        assert go_on.wait(30)

    request.during_try = pause_once
    return inside, go_on


def is_held(lock: Lock) -> bool:
    return not elsewhere(partial(free, lock))


@both
def test_a_request_completes_by_its_own_keys_event(dialect: Dialect) -> None:
    """testRequestSatisfaction: a check completes the operation that is ready, counts it once, and no other."""
    _, purgatory = quiet_world()
    one, two = Request(dialect=dialect), Request(dialect=dialect)
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(one, ["test1"])
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(two, ["test2"])
    assert purgatory.check_and_complete("test2") == 0
    one.ready = True
    assert purgatory.check_and_complete("test1") == 1
    assert purgatory.check_and_complete("test1") == 0
    two.ready = True
    assert purgatory.check_and_complete("test2") == 1
    assert purgatory.check_and_complete("test2") == 0
    purgatory.check()


@both
def test_a_request_expires_not_before_its_time(dialect: Dialect) -> None:
    """testRequestExpiry: 20 ms are up after 20 ms and not after 19; a request of 200 s still waits."""
    world, purgatory = quiet_world()
    short, long = Request(20, dialect), Request(200_000, dialect)
    assert not purgatory.try_complete_else_watch(short, ["key"])
    assert not purgatory.try_complete_else_watch(long, ["key"])
    world.advance(19)
    assert not short.is_completed()
    world.advance(1)
    assert short.log[-2:] == ["complete", "expire"]
    assert not long.is_completed()
    world.timer.check()


@both
def test_garbage_leaves_when_its_key_is_checked(dialect: Dialect) -> None:
    """testRequestPurge: completing directly empties the timer at once, and each key's list at its next check."""
    _, purgatory = quiet_world()
    requests = [Request(dialect=dialect) for _ in range(3)]
    for count, request in enumerate(requests, start=1):
        purgatory.try_complete_else_watch(request, [f"key{n}" for n in range(1, count + 1)])
    assert (purgatory.num_delayed(), purgatory.watched()) == (3, 6)
    for request, delayed in ((requests[1], 2), (requests[2], 1)):
        request.ready = True
        request.try_complete()
        assert purgatory.num_delayed() == delayed
    for key, watched in (("key1", 4), ("key2", 2), ("key3", 1)):
        purgatory.check_and_complete(key)
        assert purgatory.watched() == watched
    purgatory.check()


@both
def test_cancel_for_key_gives_the_requests_back(dialect: Dialect) -> None:
    """shouldCancelForKeyReturningCancelledOperations: off the list and off the timer, neither completed nor called."""
    world, purgatory = quiet_world()
    cancelled = [Request(dialect=dialect), Request(dialect=dialect)]
    other = Request(dialect=dialect)
    for request in cancelled:
        purgatory.try_complete_else_watch(request, ["key"])
    purgatory.try_complete_else_watch(other, ["other"])
    assert purgatory.cancel_for_key("key") == cancelled
    assert (purgatory.num_delayed(), purgatory.watched()) == (1, 1)
    world.advance(200_000)
    assert [request.is_completed() for request in (*cancelled, other)] == [False, False, True]


def test_cancel_for_an_unknown_key_gives_nothing_back() -> None:
    """shouldReturnNilOperationsOnCancelForKeyWhenKeyDoesntExist."""
    _, purgatory = quiet_world()
    assert purgatory.cancel_for_key("key") == []


@pytest.mark.parametrize(("dialect", "expected"), [(LOCKED, [True, True]), (PENDING_FLAG, [False, True])])
def test_registering_holds_the_operations_lock_in_the_locked_dialect(
    dialect: Dialect, expected: list[bool]
) -> None:
    """testLockInTryCompleteElseWatch: `try_complete` runs under the lock, both times, and not by way of an event. The
    twin: Kafka 1.1-2.6 evaluated first without the lock, then as an event does."""
    _, purgatory = quiet_world()
    held: list[bool] = []
    request = Request(dialect=dialect, during_try=lambda: held.append(is_held(request.lock)))
    if dialect is LOCKED:
        request.safe_try_complete = lambda: pytest.fail("not the way of an event")  # type: ignore[method-assign]  # a spy on the way not taken
    purgatory.try_complete_else_watch(request, ["key"])
    assert held == expected


@pytest.mark.parametrize("ready", [False, True])
def test_the_action_runs_only_between_two_tries(ready: bool) -> None:
    """testSafeTryCompleteOrElse: in vain at first, then the action runs, under the lock; else it does not."""
    request = Request(dialect=LOCKED, ready=ready)
    held: list[bool] = []
    done = LOCKED.register(request, ["k"], lambda *_: held.append(is_held(request.lock)), lambda: None)
    assert done is ready
    assert held == ([] if ready else [True])
    assert request.log == (["try", "complete"] if ready else ["try", "try"])


@both
def test_many_threads_complete_every_request(dialect: Dialect) -> None:
    """testTryCompleteWithMultipleThreads: requests become ready at their last of 20 events, on 20 threads at once."""
    _, purgatory = quiet_world()
    rng = random.Random(7)
    requests = [Request(dialect=dialect) for _ in range(50)]
    for number, request in enumerate(requests):
        purgatory.try_complete_else_watch(request, [f"key{number}"])
    orders = [rng.sample(range(50), 50) for _ in range(20)]
    arrivals = [0] * 50
    guard = threading.Lock()

    def events(order: list[int]) -> None:
        for number in order:
            with guard:
                arrivals[number] += 1
                requests[number].ready = arrivals[number] == 20
            purgatory.check_and_complete(f"key{number}")

    together([partial(events, order) for order in orders])
    assert [request.log.count("complete") for request in requests] == [1] * 50


def test_a_completed_request_is_tried_twice_and_not_watched() -> None:
    """Measured on Kafka 4.1: passed again, it answers False after two evaluations; nothing is left behind."""
    _, purgatory = quiet_world()
    request = Request(dialect=LOCKED)
    assert request.force_complete()
    assert not purgatory.try_complete_else_watch(request, ["key"])
    assert request.log == ["complete", "try", "try"]
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)


@both
def test_a_key_named_twice_is_watched_twice_and_counted_once(dialect: Dialect) -> None:
    """Measured on Kafka: [a, a, b] is 3 entries, and a check that completes it says 1."""
    _, purgatory = quiet_world()
    request = Request(dialect=dialect)
    purgatory.try_complete_else_watch(request, ["a", "a", "b"])
    assert purgatory.watched() == 3
    request.ready = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched() == 1


@both
def test_inside_on_complete_the_timer_is_gone(dialect: Dialect) -> None:
    """The order is flag, cancel, callback: inside on_complete, the request is completed and not in the timer."""
    _, purgatory = quiet_world()
    seen: list[tuple[bool, int, int]] = []
    request = Request(
        dialect=dialect,
        during_complete=lambda: seen.append(
            (request.is_completed(), purgatory.num_delayed(), purgatory.check_and_complete("key"))
        ),
    )
    purgatory.try_complete_else_watch(request, ["key"])
    request.ready = True
    assert purgatory.check_and_complete("key") == 1
    assert seen == [(True, 0, 0)]
    assert request.log.count("complete") == 1


class TestPendingFlag:
    """What Kafka's tests of 1.0 to 2.6 asserted of the lock that is tried, not waited for."""

    def test_an_event_does_not_wait_for_another_holder(self) -> None:
        """testDelayedOperationLock: the lock is taken elsewhere, so the event passes on; a later one completes it."""
        _, purgatory = quiet_world()
        request = Request()
        purgatory.try_complete_else_watch(request, ["key"])
        request.ready = True
        with request.lock:
            assert elsewhere(partial(purgatory.check_and_complete, "key")) == 0
            assert not request.is_completed()
        assert purgatory.check_and_complete("key") == 1

    def test_the_own_threads_lock_is_no_obstacle(self) -> None:
        """testDelayedOperationLock: the lock is re-entrant."""
        request = Request(ready=True)
        with request.lock:
            assert request.safe_try_complete()

    def test_a_lock_of_the_callers_serves_as_well(self) -> None:
        """testDelayedOperationLockOverride: events then try the caller's lock."""
        shared = THREADS.rlock()
        request = Request(ready=True, lock=shared)
        with shared:
            assert not elsewhere(request.safe_try_complete)
        assert request.safe_try_complete()

    def test_an_event_that_meets_an_evaluation_is_not_lost(self) -> None:
        """testTryCompleteLockContention (KAFKA-6653): A has evaluated to false and still holds the lock; B makes it
        true and checks. B's check returns without waiting, and A evaluates again and completes it."""
        _, purgatory = quiet_world()
        request = Request()
        purgatory.try_complete_else_watch(request, ["key"])
        inside, go_on = pausing(request)
        first = threading.Thread(target=purgatory.check_and_complete, args=("key",))
        first.start()
        assert inside.wait(30)
        request.ready = True
        assert purgatory.check_and_complete("key") == 0
        assert not request.is_completed()
        go_on.set()
        first.join()
        assert request.is_completed()


def test_real_threads_expire_and_complete() -> None:
    """The default purgatory, with its reaper and executor, does what the quiet one does; shutdown ends its threads."""
    purgatory: Purgatory[Request] = Purgatory("real")
    expired = threading.Event()
    short = Request(1, during_complete=expired.set)
    assert not purgatory.try_complete_else_watch(short, ["key"])
    assert expired.wait(30)
    purgatory.close()
    assert short.log[-2:] == ["complete", "expire"]
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("-real")]
