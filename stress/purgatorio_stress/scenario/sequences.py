"""Scenarios with one thread: bookkeeping, exceptions, long chains, stopping. With one thread the explorer has no
choices. These scenarios are for bugs that need no second thread."""

from collections.abc import Callable, Iterator
from typing import Final

from purgatorio import ActionQueue, DirectExecutor, QueuedExecutor, ReaperTimer
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.contract import Final_, one_thread
from purgatorio_stress.scenario.timing import completed_by_shutdown, size_is
from purgatorio_stress.scenario.world import Task, World


def _exceptions(world: World) -> Final_:
    def fail() -> None:
        raise ValueError("callback")

    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)
    bad, good = world.operation("bad", "k", trying=fail), world.operation("good", "k")
    last = world.operation("last", "l", completing=fail)

    def body() -> None:
        try:
            purgatory.register(bad)
        except ValueError:
            world.cover("the registration raised")
        purgatory.inner.try_complete_else_watch(good, ["k"])
        purgatory.register(last)
        for operation in (bad, good, last):
            operation.become_ready(world.log.now_ns())
        actions.add(fail)
        actions.add(lambda: purgatory.check("l"))
        actions.run_all()

    def event() -> None:
        body()
        watched = purgatory.inner.check_and_complete("k")
        world.cover("checked", watched == 1)

    world.task("caller", event)

    def final() -> Iterator[Broken]:
        for operation in (good, last):
            if not operation.is_completed():
                yield Broken("O8", operation.id, "lost by another callback's exception")

    return final


def _failing_operation_first(world: World) -> Final_:
    failing = [False]

    def trying() -> None:
        if failing[0]:
            raise ValueError("callback")

    purgatory = world.purgatory()
    bad, good = world.operation("bad", "k", trying=trying), world.operation("good", "k")

    def body() -> None:
        purgatory.register(bad)
        purgatory.register(good)
        failing[0] = True
        good.become_ready(world.log.now_ns())
        purgatory.check("k")

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("the exception was contained", bool(world.contained.caught_errors))
        if not good.is_completed():
            yield Broken("O8", "good", "lost by the exception of the operation before it")

    return final


def _reaper_survives(world: World) -> Final_:
    """A task raises on the drainer's own thread: the reaper must continue."""

    class Failing(Task):
        def run(self) -> None:
            super().run()
            raise ValueError("callback")

    timer = world.timer(wheel_size=20, executor=DirectExecutor())
    ReaperTimer("reaper", timer, faults=world.faults, sync=world.sync)
    first, second = Failing(world, "first", 2), Task(world, "second", 400)

    def body() -> None:
        timer.add(first)
        timer.add(second)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("both fired", bool(first.fired_at_ms and second.fired_at_ms))
        if not second.fired_at_ms:
            yield Broken("O8", "second", "never fired: the exception of the first ended the reaper")

    return final


def _long_chain(world: World) -> Final_:
    """Each completion makes the next ready: through the queue a loop, directly a recursion."""
    length = 400
    purgatory = world.purgatory()
    actions = ActionQueue(faults=world.faults, sync=world.sync)

    def then(number: int) -> Callable[[], None]:
        return lambda: actions.add(lambda: purgatory.inner.check_and_complete(f"k{number + 1}"))

    operations = [world.operation(f"op-{n}", f"k{n}", completing=then(n)) for n in range(length)]

    def body() -> None:
        for operation in operations:
            purgatory.inner.try_complete_else_watch(operation, operation.keys)
            operation.become_ready(0)
        purgatory.inner.check_and_complete("k0")
        while actions.size():
            actions.run_all()

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("all completed", all(operation.is_completed() for operation in operations))
        if any(isinstance(error, RecursionError) for error in world.contained.caught_errors):
            yield Broken("O8", "chain", f"RecursionError in a chain of {length} operations")
        yield from list(world.left_waiting(*operations))[:1]

    return final


def _bookkeeping(world: World) -> Final_:
    interval = 2
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(wheel_size=3, executor=executor)
    purgatory = world.purgatory(timer, purge_interval=interval)
    operations = [world.operation(f"op-{n}", f"a{n}", f"b{n}", delay_ms=50) for n in range(12)]
    purges: list[int] = []

    def body() -> None:
        for operation in operations:
            purgatory.register(operation)
        for number, operation in enumerate(operations[:10]):
            operation.force_complete()
            purges.append(purgatory.inner.purge_if_needed())
            live = len(operations) - number - 1
            if timer.size() != live:
                world.cover(f"size {timer.size()} with {live} live")

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        live = [operation for operation in operations if not operation.is_completed()]
        world.cover("purged", any(purges))
        purgatory.gauge("quiesce")
        most = (interval + len(live)) * 2
        if purgatory.inner.watched() > most:
            yield Broken(
                "P1", "purgatory", f"watched is {purgatory.inner.watched()}, at most {most} are allowed"
            )
        yield from size_is(timer, len(live))
        inside = purgatory.inner.watched() // 2
        estimate = purgatory.inner._estimated_operations.get()
        if estimate > inside + interval:
            yield Broken("P2", "purgatory", f"the estimate is {estimate}, and {inside} operations are inside")

    return final


def _completing_once_more(world: World) -> Final_:
    """The callback checks its own key, on the same thread: it must find the operation completed."""
    purgatory = world.purgatory()
    calls: list[int] = []

    def completing() -> None:
        calls.append(1)
        if len(calls) < 5:
            purgatory.check("k")

    operation = world.operation("op", "k", completing=completing)
    purgatory.register(operation)
    world.task("event", lambda: world.event(purgatory, operation))

    def final() -> Iterator[Broken]:
        world.cover("completed", operation.is_completed())
        return iter(())

    return final


def _stop_from_callback(world: World) -> Final_:
    timer = world.timer()

    class Closing(Task):
        def run(self) -> None:
            super().run()
            timer.close()

    task = Closing(world, "task", 0)

    def body() -> None:
        timer.add(task)
        world.virtual.advance(1)
        timer.advance_clock(0)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.cover("closed", bool(task.fired_at_ms))
        if world.run.now_ms > 1:
            yield Broken("P3", "timer", f"close() from a task waited until {world.run.now_ms} ms")

    return final


def _shut_down(world: World) -> Final_:
    timer = world.timer(executor=QueuedExecutor(sync=world.sync))
    purgatory = world.purgatory(timer)
    operation = world.operation("op", "k", delay_ms=5)
    late = world.operation("late", "k", delay_ms=0)

    def body() -> None:
        purgatory.register(operation)
        purgatory.inner.close()
        purgatory.register(late)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        for one in (operation, late):
            yield from completed_by_shutdown(world, one)

    return final


SEQUENCES: Final = (
    one_thread(
        "exceptions", "callbacks and actions that raise", ("O8",), _exceptions, "the registration raised"
    ),
    one_thread(
        "failing-first",
        "an operation that raises, before one that is ready",
        ("O8",),
        _failing_operation_first,
        "the exception was contained",
    ),
    one_thread("reaper-survives", "a task raises", ("O8",), _reaper_survives, "both fired", horizon_ms=800),
    one_thread(
        "long-chain",
        "400 completions, each making the next ready",
        ("O8", "O4"),
        _long_chain,
        "all completed",
    ),
    one_thread(
        "bookkeeping", "purge, estimate, sizes", ("P1", "P2", "T5"), _bookkeeping, "purged", purge_interval=2
    ),
    one_thread("once-more", "a callback checks its own key", ("O1",), _completing_once_more, "completed"),
    one_thread("stop-from-callback", "a task closes its timer", ("P3",), _stop_from_callback, "closed"),
    one_thread(
        "shut-down",
        "an operation waits at the shutdown, another comes later",
        ("O5",),
        _shut_down,
        "completed",
    ),
)
"""Scenarios of one thread."""
