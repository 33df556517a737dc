"""The controlled primitives keep the seam's contracts: waiting, time, executors, joining."""

from collections.abc import Callable
from functools import partial

from purgatorio import DirectExecutor, HashedWheel, IntrusiveTimer, ManualClock, ReaperTimer
from purgatorio.sync import SharedQueue, Sync
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.controlled import ControlledSync
from purgatorio_stress.explorer.dpor import Dpor, explore_dpor
from purgatorio_stress.explorer.program import carry_out
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.explorer.run import Execution
from stress.small_programs import Body, Build, Small


def _passes(build: Build) -> None:
    for search in (explore_dpor, explore_bounded):
        result = search(Small(build), Limits())
        assert result.verdict is Verdict.PASS, result


def _one_run(build: Build) -> Execution:
    return carry_out(Small(build), Dpor(), [])[0]


def test_a_timed_wait_ends_when_no_thread_can_continue() -> None:
    """Virtual time leaps to the end of the wait, and not before the others have stopped."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        lock = sync.lock("lock")
        changed = sync.condition(lock, "changed")
        answers: list[bool] = []

        def wait() -> None:
            with lock:
                answers.append(changed.wait(50))

        return [wait], lambda: answers == [False]

    _passes(build)
    assert _one_run(build).now_ms == 50


def test_a_waiting_writer_holds_back_new_readers_only() -> None:
    """A thread that reads may read again. A second reader after a writer waits, and all end."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        gate = sync.read_write_lock("gate")
        value = sync.atomic_int(0, "value")
        seen: list[tuple[int, int]] = []

        def read() -> None:
            with gate.read:
                first = value.get()
                with gate.read:
                    seen.append((first, value.get()))

        def write() -> None:
            with gate.write, gate.read:
                value.set(1)
                value.set(2)

        return [read, write], lambda: all(first == second for first, second in seen) and value.get() == 2

    _passes(build)


def test_a_reader_chain_behind_a_writer_deadlocks() -> None:
    """The writer's queue is what makes a second, un-nested read of another thread wait (KAFKA-7697)."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        one, two = sync.read_write_lock("one"), sync.read_write_lock("two")

        def chain(first: object, second: object) -> Body:
            def read() -> None:
                with first.read, second.read:  # type: ignore[attr-defined]  # both are reader-writer locks
                    pass

            return read

        def write(gate: object) -> Body:
            def body() -> None:
                with gate.write:  # type: ignore[attr-defined]  # as above
                    pass

            return body

        return [chain(one, two), chain(two, one), write(one), write(two)], lambda: True

    result = explore_dpor(Small(build), Limits())
    assert result.verdict is Verdict.VIOLATED
    assert "waits to write" in result.found[0].broken[0].seen


def test_an_executor_runs_in_order_and_ends() -> None:
    """One worker, first in first out. `await_termination` waits for accepted actions."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        executor = sync.executor("executor")
        ran: list[int] = []

        def body() -> None:
            for number in range(3):
                executor.submit(partial(ran.append, number))
            executor.shutdown()
            assert executor.await_termination(1_000)
            assert ran == [0, 1, 2]

        return [body], lambda: ran == [0, 1, 2]

    _passes(build)


def test_an_executor_goes_on_after_an_exit_and_its_owner_gets_it() -> None:
    """As on threads: what an action ends with that is no `Exception` ends that action alone, and is raised once."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        executor = sync.executor("executor")
        ran: list[str] = []

        def leave() -> None:
            raise SystemExit("on purpose")

        def body() -> None:
            executor.submit(leave)
            executor.submit(partial(ran.append, "second"))
            executor.shutdown()
            try:
                executor.await_termination(1_000)
            except SystemExit:
                ran.append("raised")
            assert executor.await_termination(1_000)

        return [body], lambda: ran == ["second", "raised"]

    _passes(build)


def test_a_reaper_goes_on_after_an_exit_whatever_the_order() -> None:
    """A task that leaves on the reaper's own thread, and one behind it, which still fires; closing raises it."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        ran: list[str] = []
        lock = sync.lock("lock")
        fired = sync.condition(lock, "fired")

        def leave() -> None:
            raise GeneratorExit("on purpose")

        def fire() -> None:
            with lock:
                ran.append("fired")
                fired.notify_all()

        def body() -> None:
            wheel = IntrusiveTimer("t", clock=ManualClock(), executor=DirectExecutor(), sync=sync)
            timer = ReaperTimer("reaper", wheel, sync=sync)
            timer.call_later(0, leave)
            timer.call_later(0, fire)
            with lock:
                while not ran:
                    fired.wait()
            try:
                timer.close()
            except GeneratorExit:
                ran.append("raised")

        return [body], lambda: ran == ["fired", "raised"]

    _passes(build)


def test_a_task_of_a_drain_may_wait_for_another_thread() -> None:
    """The wheel's lock is free while a `DirectExecutor` runs a task, which waits here for a cancel and an add."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        lock = sync.lock("lock")
        changed = sync.condition(lock, "changed")
        done: list[str] = []
        clock = ManualClock()
        wheel = HashedWheel("w", clock=clock, executor=DirectExecutor(), sync=sync)

        def tell(what: str) -> None:
            with lock:
                done.append(what)
                changed.notify_all()

        def wait() -> None:
            with lock:
                while "moved" not in done:
                    changed.wait()

        wheel.call_later(0, wait)
        later = wheel.call_later(1, partial(tell, "later"))
        wheel.call_later(0, wait)
        clock.advance(1)

        def move() -> None:
            later.cancel()
            wheel.call_later(0, partial(tell, "added"))
            tell("moved")

        return [lambda: wheel.advance_clock(0), move], lambda: "moved" in done

    _passes(build)


def test_waiting_for_oneself_is_a_deadlock() -> None:
    """A task that joins its own executor is named."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        executor = sync.executor("executor")

        def body() -> None:
            def wait_for_myself() -> None:
                executor.await_termination(10)

            executor.submit(wait_for_myself)

        return [body], lambda: True

    assert "waits for its own end" in _one_run(build).stop.text


def test_a_lock_that_is_not_reentrant_deadlocks_with_itself() -> None:
    """And a re-entrant one does not."""

    def build_with(reentrant: bool) -> Build:
        def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
            lock = sync.rlock("r") if reentrant else sync.lock("l")

            def body() -> None:
                with lock, lock:
                    pass

            return [body], lambda: True

        return build

    _passes(build_with(True))
    assert _one_run(build_with(False)).stop.kind == "deadlock"


def test_a_queue_iteration_is_weakly_consistent() -> None:
    """The iteration sees every element that is not removed, none twice, while other threads append and remove."""

    def build(sync: Sync) -> tuple[list[Body], Callable[[], bool]]:
        queue: SharedQueue[int] = sync.queue("queue")
        for item in (1, 2):
            queue.append(item)
        seen: list[object] = []

        def walk() -> None:
            seen.extend(node.item for node in queue.nodes())

        def change() -> None:
            node = next(iter(queue.nodes()))
            assert queue.remove(node)
            assert not queue.remove(node)
            queue.append(3)

        def well() -> bool:
            return 2 in seen and len(seen) == len(set(seen)) and queue.size() == 2

        return [walk, change], well

    _passes(build)


def test_quiet_primitives_make_no_steps() -> None:
    """Set-up and judgement are not part of the run."""
    run = Execution(Dpor(), [])
    sync = ControlledSync(run)
    with sync.lock(), sync.rlock(), sync.read_write_lock().read:
        assert sync.atomic_int(1).add(1) == 2
    run.execute()
    assert run.steps == 0
