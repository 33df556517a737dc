"""The services of the purgatory: faults (O8), purge (P1), gauges (P2), shutdown, deferred actions."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from purgatorio import (
    LOCKED,
    PROPAGATE,
    ActionQueue,
    DirectExecutor,
    GaugeRegistry,
    HeapTimer,
    IntrusiveTimer,
    ManualClock,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
    TimerClosed,
    TimerTask,
    VirtualTime,
    openmetrics,
)
from purgatorio.delayed.dialect import Dialect
from purgatorio.reaper import Reaper
from reference.waiting import DIALECTS, Reports, Request, quiet_world

both = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def burst() -> None:
    raise LookupError("the callback's own bug")


@both
def test_the_faithful_pass_ends_with_the_exception(dialect: Dialect) -> None:
    """The twin: with PROPAGATE the pass ends as Kafka's does, and the sound request waits on."""
    purgatory: Purgatory[Request] = Purgatory("t", VirtualTime().timer, reaper=False, faults=PROPAGATE)
    broken, sound = Request(dialect=dialect), Request(dialect=dialect)
    for request in (broken, sound):
        purgatory.try_complete_else_watch(request, ["key"])
    broken.during_try = burst
    sound.ready = True
    with pytest.raises(LookupError):
        purgatory.check_and_complete("key")
    assert not sound.is_completed()


@both
@pytest.mark.parametrize("contained", [True, False])
def test_on_expiration_after_an_on_complete_that_raised(dialect: Dialect, contained: bool) -> None:
    """O8: contained, `on_expiration` still comes; faithful, it is skipped, and the next task still runs."""
    world, purgatory = quiet_world()
    faults = Reports() if contained else PROPAGATE
    broken = Request(10, dialect, faults=faults, during_complete=burst)
    sound = Request(10, dialect)
    for request in (broken, sound):
        purgatory.try_complete_else_watch(request, ["key"])
    world.advance(10)
    assert ("expire" in broken.log) is contained
    assert broken.is_completed()
    assert sound.log[-1] == "expire"


class Forgetful(Request):
    """Says True and completes nothing."""

    def try_complete(self) -> bool:
        return self.ready


@both
def test_a_true_without_a_completion_is_refused(dialect: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    """Ready at once, the registration raises; later, the event tells the policy, and the time-out stays."""
    world, purgatory = quiet_world()
    with pytest.raises(
        RuntimeError, match=r"returned True and did not complete it: write `return self\.force"
    ):
        purgatory.try_complete_else_watch(Forgetful(dialect=dialect, ready=True), ["key"])
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
    request = Forgetful(10, dialect)
    assert not purgatory.try_complete_else_watch(request, ["key"])
    request.ready = True
    assert purgatory.check_and_complete("key") == 0
    assert "did not complete it" in caplog.text
    world.advance(10)
    assert request.log == ["complete", "expire"]


@both
def test_an_exception_in_the_second_try_leaves_the_time_out(dialect: Dialect) -> None:
    """By then others can see the request, so it stays registered, and O5 holds: its time-out completes it."""
    world, purgatory = quiet_world()
    reports = Reports()
    request = Request(10, dialect, faults=reports)

    def second_bursts() -> None:
        request.during_try = burst

    request.during_try = second_bursts
    assert not purgatory.try_complete_else_watch(request, ["key"])
    assert reports.caught_at == ["try_complete"]
    world.advance(10)
    assert request.log[-1] == "expire"


def test_a_reaper_survives_its_work() -> None:
    """O8 (KAFKA-14601): after a turn that raised there is another."""
    turns: list[int] = []
    enough = threading.Event()

    def work() -> None:
        turns.append(1)
        if len(turns) > 1:
            enough.set()
        raise LookupError("work failed")

    reports = Reports()
    reaper = Reaper("reaper-test", work, faults=reports)
    assert enough.wait(30)
    reaper.initiate_shutdown()
    reaper.await_shutdown()
    assert reports.caught_at[:2] == ["turn", "turn"]


def test_the_faithful_reaper_dies() -> None:
    """The twin: with PROPAGATE one exception ends the thread."""
    turns: list[int] = []

    def work() -> None:
        turns.append(1)
        raise LookupError("work failed")

    reaper = Reaper("reaper-test", work, faults=PROPAGATE)
    reaper.await_shutdown()
    assert turns == [1]


@both
@pytest.mark.parametrize(("completions", "watched"), [(10, 400), (11, 378)])
def test_the_purge_starts_above_the_interval(dialect: Dialect, completions: int, watched: int) -> None:
    """P1, and the probe on the real classes: interval 10, 200 requests of 2 keys; 10 completions purge nothing."""
    _, purgatory = quiet_world(purge_interval=10)
    requests = [Request(dialect=dialect) for _ in range(200)]
    for number, request in enumerate(requests):
        purgatory.try_complete_else_watch(request, [f"a{number}", f"b{number}"])
    for request in requests[:completions]:
        request.force_complete()
    purgatory.pass_time()
    assert purgatory.watched() == watched
    assert purgatory.purge_if_needed() == 0, "the estimate was reset"
    purgatory.check()


def test_without_a_timer_the_purge_counts_registrations() -> None:
    """`timer_enabled=False` makes the delayed count 0, so that the rule is "so many since the last purge"."""
    world = VirtualTime()
    purgatory: Purgatory[Request] = Purgatory(
        "t", world.timer, reaper=False, timer_enabled=False, purge_interval=3
    )
    requests = [Request(1) for _ in range(4)]
    for request in requests:
        purgatory.try_complete_else_watch(request, ["key"])
        request.force_complete()
    assert purgatory.num_delayed() == 0
    purgatory.pass_time()
    assert purgatory.watched() == 0


def test_the_gauges_as_openmetrics() -> None:
    """P2 for a scraper; a name with a quote in it does not break the text; a purgatory that is shut down leaves."""
    registry = GaugeRegistry()
    world = VirtualTime()
    purgatory: Purgatory[Request] = Purgatory('Pro"duce', world.timer, reaper=False, registry=registry)
    purgatory.try_complete_else_watch(Request(), ["a", "b"])
    text = registry.openmetrics()
    assert 'purgatory_size{delayed_operation="Pro\\"duce"} 2\n' in text
    assert 'num_delayed_operations{delayed_operation="Pro\\"duce"} 1\n' in text
    assert text.endswith("# EOF\n")
    with pytest.raises(ValueError, match="the registry has another purgatory 'Pro\"duce'"):
        Purgatory[Request]('Pro"duce', world.timer, reaper=False, registry=registry)
    registry.remove(Purgatory[Request]('Pro"duce', world.timer, reaper=False))
    assert registry.members() == [purgatory]
    purgatory.close()
    assert registry.openmetrics() == openmetrics([])


def test_the_faithful_shutdown_leaves_requests_pending() -> None:
    """The twin, as in Kafka: pending ones stay. A late one is refused. (In Kafka, it waits for ever.)"""
    world = VirtualTime()
    purgatory: Purgatory[Request] = Purgatory("t", world.timer, reaper=False, complete_at_shutdown=False)
    request = Request()
    purgatory.try_complete_else_watch(request, ["key"])
    assert purgatory.close() == 0
    world.timer.close()
    assert not request.is_completed()
    for delay_ms in (100, -10):
        with pytest.raises(TimerClosed):
            purgatory.try_complete_else_watch(Request(delay_ms), ["key"])


@both
@pytest.mark.parametrize("completes", [True, False])
def test_a_purgatory_without_a_reaper_leaves_its_timer_open(dialect: Dialect, completes: bool) -> None:
    """Two purgatories and a task share it: the close of one completes its own requests, or leaves them."""
    timer = IntrusiveTimer("shared", clock=(clock := ManualClock()), executor=DirectExecutor())
    first = Purgatory[Request]("first", timer, reaper=False, complete_at_shutdown=completes)
    second = Purgatory[Request]("second", timer, reaper=False)
    own, other, ran = Request(10, dialect), Request(10, dialect), list[str]()
    timer.call_later(10, lambda: ran.append("task"))
    first.try_complete_else_watch(own, ["key"])
    second.try_complete_else_watch(other, ["key"])
    assert first.close() == completes
    assert own.is_completed() == completes
    clock.advance(10)
    timer.advance_clock(0)
    assert (other.log[-1], ran) == ("expire", ["task"])
    assert own.log[-1] == ("complete" if completes else "expire")


def test_a_purgatory_closes_the_timer_that_it_drives() -> None:
    """The twin: with a reaper the timer is the purgatory's."""
    timer = IntrusiveTimer("driven", executor=DirectExecutor())
    Purgatory[Request]("p", timer).close()
    with pytest.raises(TimerClosed):
        timer.call_later(1, burst)


class _ClosedBetween(HeapTimer):
    """Is closed by another thread after the operation is watched, and before its add."""

    def add(self, task: TimerTask) -> None:
        self.close()
        super().add(task)


@both
@pytest.mark.parametrize("completes", [True, False])
def test_a_closed_timer_refuses_a_registration(dialect: Dialect, completes: bool) -> None:
    """As `call_later` does, instead of a wait without a time-out; nothing stays watched. A ready one needs no timer."""
    closed = IntrusiveTimer("gone", executor=DirectExecutor())
    closed.close()
    for timer in (closed, _ClosedBetween("between", executor=DirectExecutor())):
        purgatory = Purgatory[Request]("p", timer, reaper=False, complete_at_shutdown=completes)
        assert purgatory.try_complete_else_watch(Request(dialect=dialect, ready=True), ["a"])
        with pytest.raises(TimerClosed):
            purgatory.try_complete_else_watch(Request(dialect=dialect), ["a", "b", "a"])
        assert purgatory.watched() == 0
        purgatory.check()
        purgatory.close()
        late = Request(dialect=dialect)
        if completes:
            assert purgatory.try_complete_else_watch(late, ["a"])
            assert late.log[-1] == "complete"


def test_shutdown_from_a_callback_returns() -> None:
    """netty #365: a callback on the timer's own thread that shuts down must not wait for that thread."""
    purgatory: Purgatory[Request] = Purgatory("own")
    done = threading.Event()

    def stop() -> None:
        purgatory.close()
        done.set()

    purgatory.try_complete_else_watch(Request(1, during_complete=stop), ["key"])
    assert done.wait(30)


def test_a_long_chain_of_events_needs_no_deep_stack() -> None:
    """KAFKA-17509: each completion triggers the next key's check; through the queue that is a loop, not a recursion."""
    _, purgatory = quiet_world()
    queue = ActionQueue()
    count = 3_000
    requests: list[Request] = []
    for number in range(count):
        following = number + 1

        def then(following: int = following) -> None:
            if following < count:
                requests[following].ready = True
                queue.add(lambda: purgatory.check_and_complete(following))

        request = Request(dialect=LOCKED, during_complete=then)
        requests.append(request)
        purgatory.try_complete_else_watch(request, [number])
    requests[0].ready = True
    purgatory.check_and_complete(0)
    while queue.run_all():
        pass
    assert all(request.is_completed() for request in requests)


class _Interrupted(IntrusiveTimer):
    """A timer whose thread cannot be woken: Ctrl-C comes instead."""

    def add(self, task: TimerTask) -> None:
        if not isinstance(task, Request):
            raise KeyboardInterrupt
        super().add(task)


@pytest.mark.parametrize("leave", [Purgatory.close, lambda purgatory: asyncio.run(purgatory.__aexit__())])
def test_an_interrupted_close_completes_and_closes(leave: Callable[[Purgatory[Request]], object]) -> None:
    """[O5] The exit comes at the end: nothing waits, and the registry has forgotten the purgatory."""
    registry = GaugeRegistry()
    timer, shared = (_Interrupted("t", executor=QueuedExecutor()) for _ in range(2))
    purgatory: Purgatory[Request] = Purgatory("p", timer, registry=registry)
    request = Request(60_000)
    purgatory.try_complete_else_watch(request, ["k"])
    with pytest.raises(KeyboardInterrupt):
        leave(purgatory)
    assert (request.is_completed(), registry.members()) == (True, [])
    with pytest.raises(KeyboardInterrupt):
        ReaperTimer("r", shared).close()
    for closed in (timer, shared):
        with pytest.raises(TimerClosed):
            closed.call_later(5, print)
