"""Executes a random program on a timer. `purgatorio_spec.oracle.timer_history` judges the history of each task. The
clauses also judge each task that is added only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from purgatorio import (
    ActionTask,
    DirectExecutor,
    HashedWheel,
    HeapTimer,
    InvariantBroken,
    QueuedExecutor,
    ReaperTimer,
    SystemTimer,
    TimerClosed,
    TimerTask,
)
from purgatorio.clock import MonotonicClock
from purgatorio.executors import LoopExecutor
from purgatorio.faults import PROPAGATE
from purgatorio.sync import ExecutorClosed
from purgatorio.timer import Handle, IntrusiveTimer, compiled
from purgatorio.timer.calls import Calls, Repeated
from purgatorio.timer.interface import Timer
from purgatorio_spec.oracle.timer_history import TimerCall, TimerRules, earliest, judge_task, possible_sizes
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.instruments import (
    FiringExecutor,
    FiringLoopExecutor,
    FirstReading,
    Loop,
    TestedGuard,
)
from purgatorio_stress.random_program.player import Planned, PlannedExit, Player
from purgatorio_stress.random_program.timeline import TimerTimeline, overlap
from purgatorio_stress.scenario.parts import TimerParts
from purgatorio_stress.scenario.world import World

T = TypeVar("T")
FAR_MS: Final = 2**63 - 1
"""A delay that never ends in a run. In signed 64 bits, its sum with a time overflows."""

CLOCKS_MS: Final = (
    0,
    1,
    2,
    7,
    19,
    20,
    399,
    400,
    1_234,
    7_999,
    8_000,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 53,
    (1 << 62) - 1,
    -1,
    -20,
    -1_001,
)
"""Starts of clocks, in ms: zero and its neighbors, level ends of 20 buckets, ends of machine integers, below zero.

A test that starts only at 0 cannot find bugs like netty #1959, or that of the last level of Linux's timer wheel.
"""

DELAYS: Final = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 26, FAR_MS)
"""Delays for wheels of two or three buckets: inside and at the ends of the first three levels, in the past, never."""

_TRACED_MS: Final = 1 << 40
"""The limit of recorded times, because a trace has times in ns as 64-bit integers."""

_OFF_NS: Final = (500_000, 1, 999_999, 0)
"""The distances of clocks that count nanoseconds from a whole millisecond."""

_LONG_WAIT_MS: Final = 1_000

INLINE: Final = 2
"""The setting of an executor that runs expired tasks on the draining thread."""

RAISING: Final = 3
"""The same as INLINE, with a fault policy that raises the exceptions of tasks."""

LOOP: Final = 4
"""The setting of an event loop, on whose thread all calls are made."""

LONGEST_MS: Final = 200
"""The time by which a waiting callback on an executor's thread has ended."""

_ENDED: Final = frozenset({"close", "stop"})
_ENDS: Final = frozenset({"close", "stop", "finish", "refuse"})


class _Whole:
    """A whole number of another type, without arithmetic."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


class _PlayedTask(TimerTask):
    def __init__(self, player: TimerPlayer, number: int, delay_ms: int) -> None:
        super().__init__(player.given(number, delay_ms), sync=player.world.sync)
        self._player = player
        self._number = number

    def run(self) -> None:
        self._player.fire(f"task-{self._number}", self._number)


Make = Callable[["TimerPlayer", int, int, int], Timer]
"""Makes a timer for a player. Arguments: the player, the tick in ms, the approximate number of buckets, its number."""


@dataclass(frozen=True, slots=True)
class TimerKind:
    """A kind of timer: its factory and its rules. `moves_clock`: a drain itself moves the clock and runs the tasks.
    `exact`: a drain returns True only if a task was submitted."""

    make: Make
    rules: TimerRules
    timers: int = 1
    moves_clock: bool = False
    lags: bool = False
    exact: bool = False


class TimerPlayer(Player):
    """Executes programs on timers. Settings: tick, size, executor (0: queued, 1: a thread, `INLINE`, `RAISING`,
    `LOOP`), end. The end is n: even n ends tick by tick, odd n by a jump. The clock starts at `CLOCKS_MS[n // 2]`. If n
    // 2 is even and not 0, it counts nanoseconds, and is `_OFF_NS` further: if not 0, a delay ends at the next ms."""

    def __init__(self, kind: TimerKind, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.tick_ms, size, threaded, end = drawn.settings
        self.leap = end % 2
        self.kind = replace(kind, rules=replace(kind.rules, recalls=threaded == LOOP))
        off_ns = _OFF_NS[end // 4 % len(_OFF_NS)]
        self.clock = FirstReading(world, off_ns)
        counts_ns = end > 1 and end // 2 % 2 == 0 and not kind.moves_clock
        self.rounds_up = counts_ns and off_ns > 0
        self.line = TimerTimeline(world)
        self.executor = self._executor(threaded)
        self.queued = isinstance(self.executor.inner, QueuedExecutor | LoopExecutor)
        self.raising = self.tells_the_first = threaded == RAISING
        self.calls_back_on_callers = not kind.rules.driven and threaded != 1
        self.found: set[int] = set()
        """The begins of drains that returned True."""
        self.cut_short = [0]
        """The number of drains that a task's exception ended. The later due tasks still wait."""
        self.parts: TimerParts = {
            "clock": MonotonicClock(self.clock.now_ns) if counts_ns else self.clock,
            "executor": self.executor,
            "faults": PROPAGATE if self.raising else world.faults,
            "sync": world.sync,
        }  # fmt: skip
        self.timers: list[Timer] = [
            kind.make(self, self.tick_ms, size, number) for number in range(kind.timers)
        ]
        self.guards: dict[int, TestedGuard] = {}
        for number, timer in enumerate(self.timers):
            # Only for one thread, because the guard's atomic adds a step to each drain.
            if len(drawn.threads) == 1 and isinstance(timer, SystemTimer | HeapTimer | IntrusiveTimer):
                timer.undriven = self.guards[number] = TestedGuard(world, timer.size)
        self.tasks = [_PlayedTask(self, number, thing[0]) for number, thing in enumerate(drawn.things)]
        self.names: list[str] = [f"task-{number}" for number in range(len(drawn.things))]
        self.fired: dict[int, int] = {}
        self.order: list[str] = []
        self.inside: list[int] = []
        """The threads that are in a callback."""
        self.handles: dict[int, tuple[Handle | TimerTask, str]] = {}
        self.called: list[tuple[Handle | TimerTask, str]] = []
        self.repeated: list[tuple[Repeated, list[int]]] = []
        self.cancelled: list[tuple[Repeated, list[int], int]] = []
        self.periods: list[int] = []
        adds = [act.args[0] for act in drawn.acts() if act.do == "add"]
        # The clauses of a trace require that each added task fires once, unless the timer is closed.
        self.recorded = frozenset(
            f"task-{number}"
            for number in adds
            if adds.count(number) == 1
            and self.queued
            and abs(world.start_ms) < _TRACED_MS
            and not any(act.do in _ENDS for act in drawn.acts())
            and not any(callback.act.do == "add" for callback in drawn.callbacks)
        )
        self.sleep_lock = world.sync.lock("sleep") if kind.rules.driven else None
        self.sleepers = None if self.sleep_lock is None else world.sync.condition(self.sleep_lock, "sleep")

    def _executor(self, threaded: int) -> FiringExecutor:
        world = self.world
        if threaded in (INLINE, RAISING):
            return FiringExecutor(DirectExecutor())
        if threaded == LOOP:
            loop = Loop(world.sync)
            on_loop = LoopExecutor(loop, faults=world.faults, sync=world.sync)
            return FiringLoopExecutor(on_loop, loop.turn)
        if threaded or self.kind.rules.driven:
            return FiringExecutor(world.sync.executor("timer"))
        queue = QueuedExecutor(faults=world.faults, sync=world.sync)
        return FiringExecutor(queue, queue.run_all)

    # The callbacks.

    def fire(self, name: str, number: int) -> None:
        """Record that a task or a function runs, and execute its callback at its first run."""
        log = self.world.log
        self.line.fired(name)
        self.order.append(name)
        self.fired[number] = self.fired.get(number, 0) + 1
        if name in self.recorded:
            log.ret("timer_fire", log.call("timer_fire", name), name)
        if self.fired[number] == 1:
            self.call_back("run", number)

    def call_back(self, slot: str, thing: int) -> None:
        me = self.thread()
        self.inside.append(me)
        try:
            super().call_back(slot, thing)
        finally:
            self.inside.remove(me)

    def given(self, number: int, time_ms: int) -> int:
        """A time as the thing `number` gives it. With one thread, odd things give a `_Whole`: the call reads the clock
        again."""
        odd = number % 2 and len(self.drawn.threads) == 1 and not compiled
        return cast(int, _Whole(time_ms)) if odd else time_ms

    # The verbs.

    def do_add(self, number: int, timer: int = 0) -> None:
        task = self.tasks[number]
        self._adding(f"task-{number}", lambda: self.timers[timer].add(task), task.delay_ms, timer=timer)

    def _adding(
        self,
        name: str,
        add: Callable[[], object],
        delay_ms: int,
        deadline_ms: int | None = None,
        timer: int = 0,
    ) -> None:
        """Add a task or a function. `deadline_ms`: its deadline, if the caller knows it."""
        log, recorded = self.world.log, name in self.recorded
        c = log.call("timer_add", name, delay_ns=delay_ms * 1_000_000) if recorded else 0
        begun_ms, at = self.line.now_ms(), self.line.begin("add", name, timer)
        outer_ms = self.clock.begin()
        refused = self.executor.refused[0]
        error, _ = self._failing(add, answers=False)
        if self.executor.refused[0] != refused and not error and self._is_calm():
            self.breaks("CHECK", "timer", f"its executor refused {name}, and add reported no error")
        if deadline_ms is None:
            deadline_ms = self._deadline_ms(begun_ms, delay_ms)
        self.clock.end(outer_ms)
        self.line.end(at, due_ms=self._due(deadline_ms), error=error)
        if recorded and error:
            log.ret("timer_add", c, name, err=error)
        elif recorded:
            log.ret("timer_add", c, name, deadline_t=deadline_ms * 1_000_000)

    def _deadline_ms(self, begun_ms: int, delay_ms: int) -> int:
        """The deadline of the add that began at this time."""
        if self.kind.moves_clock and delay_ms <= 0:
            # The task has run in the add, which does not read the clock.
            return begun_ms + delay_ms
        return self.clock.first_ms() + (self.rounds_up and delay_ms > 0) + delay_ms

    def do_call_later(self, number: int) -> None:
        delay_ms, timer = self.tasks[number].delay_ms, self._calls_functions()
        given = self.given(number, delay_ms)
        self._calling(number, lambda name: timer.call_later(given, self.fire, name, number), delay_ms)

    def do_call_every(self, number: int) -> None:
        """`call_every` with the delay as the period. Checks that runs are more than a period minus a tick apart. The
        first run executes the callback of the thing."""
        # At least a tick, because a shorter period is always due at once.
        period_ms = min(max(self.drawn.things[number][0], self.tick_ms), LONGEST_MS)
        ran_ms: list[int] = []

        def run(ran_ms: list[int]) -> None:
            now_ms = self.line.now_ms()
            if ran_ms and now_ms - ran_ms[-1] <= period_ms - self.tick_ms:
                seen = f"ran at {ran_ms[-1]} and {now_ms} ms, its period is {period_ms} ms"
                self.breaks("T1", f"repeated-{number}", seen)
            ran_ms.append(now_ms)
            if len(ran_ms) == 1:
                self.call_back("run", number)

        timer = self._calls_functions()
        _, repeated = self._failing(lambda: timer.call_every(self.given(number, period_ms), run, ran_ms))
        if repeated is not None:
            self.repeated.append((repeated, ran_ms))
            self.periods.append(period_ms)

    def do_unrepeat(self) -> None:
        """Cancel all repeated functions. A run that was already submitted may still come."""
        for repeated, ran_ms in list(self.repeated):
            repeated.cancel()
            self.cancelled.append((repeated, ran_ms, len(ran_ms)))

    def do_call_at(self, number: int) -> None:
        delay_ms = self.drawn.things[number][0]
        deadline_ms = self.line.now_ms() + delay_ms
        given, wheel = self.given(number, deadline_ms), self._wheel()
        self._calling(
            number,
            lambda name: wheel.call_at(given, partial(self.fire, name, number)),
            delay_ms,
            deadline_ms,
        )

    def _calling(
        self,
        number: int,
        call: Callable[[str], Handle | TimerTask],
        delay_ms: int,
        deadline_ms: int | None = None,
    ) -> None:
        name = f"call-{number}-{len(self.names)}"
        self.names.append(name)

        def keep() -> None:
            handle: object = call(name)
            if handle is None:
                self.breaks("T4", name, "called, and there is no handle to cancel it by")
            else:
                self.handles[number] = (cast(Handle, handle), name)
                self.called.append(self.handles[number])

        self._adding(name, keep, delay_ms, deadline_ms)

    def do_uncall(self, number: int) -> None:
        """Cancel the last `call_later` or `call_at` with this number by its handle. No effect without such a call."""
        if number in self.handles:
            waiting, name = self.handles[number]
            timer = self.timers[0]
            if isinstance(waiting, TimerTask):
                self._cancelling(name, waiting.cancel)
            else:
                assert isinstance(timer, IntrusiveTimer | ReaperTimer), "no other timer has handles"
                self._cancelling(name, partial(timer.cancel, waiting))

    def do_misuse(self) -> None:
        """Wrong arguments that must be refused: not a function, a coroutine function, half a millisecond, no period,
        not a task."""
        timer = self._calls_functions()
        none, half, no_task = cast(Any, None), cast(Any, 1.5), cast(Any, object())

        async def coroutine() -> None: ...

        functions: list[Any] = [none, coroutine, partial(coroutine)]
        for one in functions:
            self._refused(partial(timer.call_later, 1, one))
            self._refused(partial(timer.call_every, 1, one))
        delays: list[Any] = [half, "1", none]
        for delay in delays:
            self._refused(partial(timer.call_later, delay, self.do_raise))
        self._refused(partial(timer.call_every, 0, self.do_raise), ValueError)
        self._refused(partial(timer.cancel, no_task))
        self._refused(partial(timer.add, no_task))
        self.must_refuse(partial(ActionTask, half, self.do_raise), TypeError, "a delay")
        self.must_refuse(partial(ActionTask, 1, coroutine), TypeError, "a function")
        self.must_refuse(partial(type, "Wrong", (TimerTask,), {"run": coroutine}), TypeError, "a method")
        if isinstance(timer, IntrusiveTimer):
            self._refused(partial(timer.call_at, 1, none))
            self._refused(partial(timer.call_at, half, self.do_raise))
        if not self.kind.moves_clock and not self.kind.rules.driven:
            sizes = [] if isinstance(timer, HeapTimer) else [0] if isinstance(timer, HashedWheel) else [0, 1]
            for tick_ms, size in ((0, 2), *((1, size) for size in sizes)):
                make = partial(self.kind.make, self, tick_ms, size, len(self.timers))
                self.must_refuse(make, ValueError, "a tick or slots")
            make_any: Callable[..., object] = type(timer)
            make_any("timer", **self.parts)  # All sizes are the defaults.
            for wrong in ({"wheel_size": 3}, {"wheel_size": 6}, {"levels": 0}):
                if isinstance(timer, IntrusiveTimer):
                    self.must_refuse(partial(make_any, "timer", **wrong, **self.parts), ValueError, "slots")

    def do_fork(self) -> None:
        """The calls of a child process, which has no thread of the timer."""
        timer, task, driven = self._calls_functions(), self.tasks[0], self.timers[0]
        calls: list[Callable[[], object]] = [driven.size, partial(driven.advance_clock, 0)]
        calls += [partial(timer.call_later, 1, self.do_raise), partial(timer.call_every, 1, self.do_raise)]
        calls += [partial(timer.add, task), partial(timer.cancel, task)]
        if isinstance(timer, IntrusiveTimer):
            calls += [partial(timer.call_at, 1, self.do_raise), timer.next_due_ms]
        if isinstance(timer, HashedWheel):
            calls += [partial(timer.stop_after_pending, 0)]
        self.in_child(timer.stop_now if isinstance(timer, HashedWheel) else timer.close, *calls)

    def _refused(self, call: Callable[[], object], error: type[Exception] = TypeError) -> None:
        """Check that the call raises the error. A closed timer may raise TimerClosed instead."""
        with suppress(TimerClosed):
            self.must_refuse(call, error, "timer")

    def do_next_due(self) -> None:
        """`IntrusiveTimer.next_due_ms`: not later than the earliest due task, and not None while a task waits."""
        answer, alone = self._alone(self._wheel().next_due_ms)
        now_ms = self.line.now_ms()
        if self._is_still() and (answer is None or answer > now_ms) and self.do_drain(0):
            self.breaks("T2", "timer", f"next_due_ms() is {answer} at {now_ms} ms, and a drain found a task")
        if alone:
            added = self.repeated or any(call.do == "add" for call in self.line.begun())
            if answer is not None and not added:
                self.breaks("T2", "timer", f"next_due_ms() is {answer}, and nothing was added")
            first_ms = earliest(self.names, self._calls(), self.kind.rules, 0)
            if first_ms is not None and (answer is None or answer > max(first_ms, self.world.start_ms)):
                self.breaks("T2", "timer", f"next_due_ms() is {answer}, and a task is due at {first_ms} ms")

    def do_cancel(self, number: int) -> None:
        self._cancelling(f"task-{number}", self.tasks[number].cancel)

    def do_forget(self, number: int, timer: int = 0) -> None:
        self._cancelling(f"task-{number}", lambda: self.timers[timer].cancel(self.tasks[number]))

    def _cancelling(self, name: str, cancel: Callable[[], None]) -> None:
        log, recorded = self.world.log, name in self.recorded
        c = log.call("timer_cancel", name) if recorded else 0
        at = self.line.begin("cancel", name)
        cancel()
        self.line.end(at)
        if recorded:
            log.ret("timer_cancel", c, name)

    def do_probe(self, number: int) -> None:
        """`TimerTask.is_cancelled`: True before the first add and after a cancel, otherwise False."""
        name = f"task-{number}"
        answer, alone = self._alone(self.tasks[number].is_cancelled)
        calls = [call for call in self.line.begun() if call.task == name and call.do in ("add", "cancel")]
        wanted = not calls or calls[-1].do == "cancel"
        alone = alone and not any(overlap(calls[-1], call) for call in calls if call.begin != calls[-1].begin)
        at_once = self.kind.moves_clock and self.tasks[number].delay_ms <= 0
        if (alone or not calls) and not at_once and not (calls and calls[-1].error) and answer != wanted:
            self.breaks("T4", name, f"is_cancelled() is {answer} after {[call.do for call in calls[-1:]]}")

    def do_drain(self, timeout_ms: int = 0, timer: int = 0) -> bool:
        """`Timer.advance_clock`. Returns its result."""
        if not self.is_live() and not self.kind.moves_clock:
            # No thread waits in the set-up, because time does not pass there.
            timeout_ms = 0
        inside = isinstance(self.timers[timer], HashedWheel) and self._hands_over()
        begun_ms, at = self.line.now_ms(), self.line.begin("drain", timer=timer)
        refused, cut_short = self.executor.refused[0], self.cut_short[0]
        before = self._submitted()
        error, told = self._failing(lambda: self.timers[timer].advance_clock(timeout_ms))
        refuses = self.executor.refused[0] != refused or self.cut_short[0] != cut_short
        self.line.end(at, error=error, refused=refuses or inside)
        if told:
            self.found.add(at)
        if told and inside:
            self.breaks("T2", "timer", "advance_clock() in a task is True")
        alone = self._is_calm()
        if refuses and not error and alone:
            self.breaks("CHECK", "timer", "its executor refused a task, and no error was reported")
        found = self._submitted() > before
        if told is not None and self._is_still() and (found > told or (self.kind.exact and found < told)):
            self.breaks("T2", "timer", f"advance_clock() is {told}, and tasks were submitted: {found}")
        waited_ms = self.line.now_ms() - begun_ms
        closed = any(call.do in _ENDS for call in self.line.begun())
        sleeps = not inside and not closed and self._drains_alone(at, timer)
        if told is False and waited_ms < timeout_ms and sleeps:
            self.breaks("T2", "timer", f"waited {waited_ms} of {timeout_ms} ms, and got no notice")
        return bool(told)

    def _hands_over(self) -> bool:
        """Whether the caller is a task that a drain of the only thread runs. Its drains of a hashed wheel have no
        effect."""
        drains = any(call.do == "drain" for call in self.line.open.values())
        return drains and self._runs_here() and len(self.drawn.threads) == 1

    def _runs_here(self) -> bool:
        """Whether the caller is a task that runs inside a call of the timer."""
        return self.drawn.settings[2] in (INLINE, RAISING) and self.thread() in self.inside

    def _drains_alone(self, at: int, timer: int) -> bool:
        """Whether since the begin of the drain `at` no other call took a due task: by a drain of this timer, a cancel,
        a second add, or an add during which the task was cancelled."""
        added = [call.task for call in self.line.begun() if call.do in ("add", "cancel")]
        since = (call for call in self.line.ended if call.end > at and call.begin != at)
        return not any(
            (call.do == "drain" and call.timer == timer)
            or call.do == "cancel"
            or (call.do == "add" and added.count(call.task) > 1)
            for call in (*since, *self.line.open.values())
        )

    def _submitted(self) -> int:
        """The number of submitted actions. Without an executor, the number of runs."""
        if not self.kind.moves_clock:
            return self.executor.taken[0]
        return len(self.order) + sum(len(ran_ms) for _, ran_ms in self.repeated)

    def act_ended(self) -> None:
        """Check the structures and the sizes after each act of a program of one thread."""
        if self._is_still() and not self.kind.moves_clock and len(self.names) < 9:
            self.broken += self._checked(counted=True)

    def _is_calm(self) -> bool:
        """Whether the program has one thread and no callbacks."""
        return len(self.drawn.threads) == 1 and not self.drawn.callbacks

    def _is_still(self) -> bool:
        """Whether in addition no executor has a thread."""
        return self._is_calm() and self.calls_back_on_callers

    def do_run(self) -> None:
        """Run the submitted actions, if the executor has no thread."""
        try:
            self.run_until_empty(self.executor.run_all)
        except Planned as error:
            self.breaks("O8", "executor", f"{error!r} came out of run_all")

    def do_pass(self, by_ms: int) -> None:
        self.world.virtual.advance(by_ms)

    def do_step(self, by_ms: int) -> None:
        """Let time pass, drain all timers, and run the due tasks: one iteration of a draining thread."""
        self.world.virtual.advance(by_ms)
        for timer in range(len(self.timers)):
            self.do_drain(0, timer)
        self.do_run()

    def do_walk(self, turns: int) -> None:
        """Make `turns` iterations of a draining thread, one tick each. Before each, add a task or a function for each
        delay."""
        for turn in range(turns):
            for delay_ms in DELAYS[2:-1]:
                number = len(self.tasks)
                self.tasks.append(_PlayedTask(self, number, delay_ms))
                if (turn + delay_ms) % 2:
                    self.do_call_later(number)
                else:
                    self.names.append(f"task-{number}")
                    self.do_add(number)
            self.do_step(self.tick_ms)

    def do_sleep(self, for_ms: int) -> None:
        """Let this thread wait for `for_ms`."""
        if self.sleep_lock is not None and self.sleepers is not None:
            with self.sleep_lock:
                self.sleepers.wait(for_ms)

    def do_size(self, timer: int = 0) -> None:
        """`Timer.size`. The result is compared if no other call is concurrent."""
        size, alone = self._alone(self.timers[timer].size)
        if size < 0:
            self.breaks("T5", "timer", f"size() is {size}")
        if alone and not self.kind.rules.driven:
            self.broken += self._compared(timer, size)

    def _alone(self, ask: Callable[[], T]) -> tuple[T, bool]:
        """The result of `ask`, and whether no other call was concurrent with it."""
        before, alone = self.line.length, not self.line.open
        answer = ask()
        return answer, alone and before == self.line.length

    def do_drive(self) -> None:
        """`ReaperTimer.advance_clock`: raises RuntimeError, because only the reaper drains the timer."""
        try:
            self.timers[0].advance_clock(0)
        except RuntimeError:
            return
        self.breaks("T2", "timer", "advance_clock() of a timer that drives itself was not refused")

    def do_close(self, timer: int = 0) -> None:
        at = self.line.begin("close", timer=timer)
        before_ms = self.line.now_ms()
        error, _ = self._failing(self.timers[timer].close, answers=False)
        if self._is_calm():
            self.timers[timer].close()  # a second one has no effect
        if self.line.now_ms() - before_ms >= _LONG_WAIT_MS:
            self.breaks("P3", "timer", f"close() waited for {self.line.now_ms() - before_ms} ms")
        self.line.end(at, error=error)

    def do_stop(self) -> None:
        wheel = self.timers[0]
        assert isinstance(wheel, HashedWheel), "only a hashed wheel is stopped so"
        at = self.line.begin("stop")
        known = [*((task, f"task-{number}") for number, task in enumerate(self.tasks)), *self.called]
        error, waiting = self._failing(wheel.stop_now)
        given_back = tuple(name for task in waiting or () for one, name in known if one is task)
        due = {call.task: call.due_ms for call in self.line.ended if call.do == "add"}
        if self._is_still() and given_back != tuple(sorted(given_back, key=lambda name: due[name])):
            self.breaks("T6", "timer", f"stop_now() returned {given_back}, and they are due at {due}")
        # After an exit of a callback there is no list of waiting tasks, so the call counts as a close.
        self.line.end(at, do="close" if waiting is None else "stop", answer=given_back, error=error)

    def do_finish(self, timeout_ms: int) -> None:
        """`stop_after_pending`, with -1 without a time-out. It waits for its time-out only, and inside a task not at
        all."""
        wheel = self.timers[0]
        assert isinstance(wheel, HashedWheel), "only a hashed wheel is stopped so"
        inside, unknown = self.executor.is_current(), self._runs_here()
        at, before_ms = self.line.begin("finish"), self.line.now_ms()
        limit_ms = None if timeout_ms < 0 else timeout_ms
        error, done = self._failing(lambda: wheel.stop_after_pending(limit_ms))
        self.line.end(at, answer=("done",) if done else (), error=error)
        waited_ms = self.line.now_ms() - before_ms
        gave_up = (
            done is False and self.is_live() and not inside and (limit_ms is None or waited_ms < limit_ms)
        )
        limit_ms = 0 if inside else waited_ms if limit_ms is None else limit_ms
        if not unknown and (gave_up or (self._keeps_time(inside) and waited_ms > limit_ms)):
            seen = f"stop_after_pending({timeout_ms}) is {done} after {waited_ms} ms, in a task: {inside}"
            self.breaks("P3", "timer", seen)

    def _keeps_time(self, inside: bool) -> bool:
        """Whether time passes only by waits of calls. Outside a task, a call may also wait for callbacks."""
        moves = {act.do for acts in self.drawn.threads for act in acts} & {"pass", "step", "walk"}
        return (inside or not self.drawn.callbacks) and not (moves and len(self.drawn.threads) > 1)

    def do_refuse(self, times: int) -> None:
        """Let the executor refuse the next `times` actions."""
        self.executor.refuse_next[0] += times

    # The end.

    def final(self) -> Iterator[Broken]:
        """Check the structures and sizes, let time pass until all tasks have fired, then judge each task."""
        yield from self.broken
        self.broken.clear()
        yield from self.uncontained()
        yield from self.exits_lost()
        self.executor.refuse_next[0] = 0
        ended_timer = any(call.do in _ENDED and not call.error for call in self._calls())
        if ended_timer and not self.executor.shut[0] and not self.kind.moves_clock:
            yield Broken("CHECK", "executor", "its timer is closed, and it continues")
        yield from self._guarded()
        yield from self._held_up()
        yield from self._overslept()
        if self.repeated:
            yield from self._repetition()
        rules, ended = self.kind.rules, not self.line.open
        for at in [at for at, call in self.line.open.items() if call.do in _ENDED]:
            # A close in a callback blocks the executor's thread while the close waits for the reaper.
            self.line.end(at)
        yield from self._checked(counted=ended and not rules.driven)
        if (self.queued or self.raising) and ended:
            self._let_all_fire()
            yield from self._checked(counted=True)
        yield from self.broken
        calls = self._looked(self._calls())
        for name in dict.fromkeys(self.names):
            wrong = judge_task(name, calls, rules, self.line.now_ms())
            if wrong:
                clause, _, seen = wrong.partition(": ")
                yield Broken(clause, name, seen)

    def _checked(self, *, counted: bool) -> Iterator[Broken]:
        """Check the structures of each timer, and with `counted` its size."""
        for number, timer in enumerate(self.timers):
            try:
                getattr(timer, "check", lambda: None)()
            except InvariantBroken as error:
                # Reported, not raised, so that the tasks are judged too. After a refusal, due tasks stay in their place
                # until the next drain.
                drains = [call for call in self.line.ended if call.do == "drain"]
                if not any((call.refused or call.error) and call.timer == number for call in drains[-1:]):
                    yield Broken("CHECK", "structure", str(error))
            if counted:
                yield from self._compared(number, timer.size())

    def _calls(self) -> tuple[TimerCall, ...]:
        return self.line.calls(lags=self.kind.lags)

    def _looked(self, calls: tuple[TimerCall, ...]) -> tuple[TimerCall, ...]:
        """In a program of one thread without callbacks, a drain that returned True has submitted all tasks due at its
        end. So its begin counts as its end."""
        if not self._is_calm():
            return calls
        return tuple(
            replace(call, begin_ms=call.end_ms) if call.begin in self.found else call for call in calls
        )

    def _guarded(self) -> Iterator[Broken]:
        """Check the guards against the warning `Undriven`: a drain sets `driven`, and a close reads it."""
        for number, guard in self.guards.items():
            done = {call.do for call in self._calls() if call.timer == number}
            if "drain" in done and not guard.driven.get():
                yield Broken("CHECK", f"timer-{number}", "it was drained, and says that no thread drives it")
            if "drain" not in done and guard.asked and guard.asked[0][0]:
                yield Broken("CHECK", f"timer-{number}", "no thread drained it, and it says that one does")
            if "close" in done and not guard.asked:
                yield Broken(
                    "CHECK", f"timer-{number}", "it was closed, and it was not tested whether it was driven"
                )
            if sum(warned for _, _, warned in guard.asked) > 1:
                yield Broken("CHECK", f"timer-{number}", "it warned twice that no thread drives it")
            for driven, waiting, warned in guard.asked:
                if warned != (waiting > 0 and not driven) and self.drawn.settings[2] != 1:
                    # With setting 1, the executor's thread may drain the timer between these reads.
                    seen = f"{waiting} waited, {driven=}, {warned=}"
                    yield Broken("CHECK", f"timer-{number}", f"closed: {seen}")

    def _held_up(self) -> Iterator[Broken]:
        """Check that a waiting drain of a strict timer ends at the close of the timer."""
        acts = {act.do for thread in self.drawn.threads for act in thread}
        if not self.kind.rules.strict or (len(self.drawn.threads) > 1 and acts & {"pass", "step"}):
            return
        closes = [call for call in self._calls() if call.do in _ENDED and not call.error]
        for drain in self._calls():
            for close in closes:
                over_ms = max(close.end_ms, drain.begin_ms)
                if (
                    drain.do == "drain"
                    and drain.timer == close.timer
                    and drain.end > close.end
                    and drain.end_ms > over_ms
                ):
                    yield Broken(
                        "P3", "timer", f"closed at {close.end_ms} ms, a drain waited to {drain.end_ms} ms"
                    )

    def _overslept(self) -> Iterator[Broken]:
        """Check that a waiting drain ends when a task is due that no other call takes."""
        acts = {act.do for thread in self.drawn.threads for act in thread}
        if self.kind.rules.driven or (len(self.drawn.threads) > 1 and acts & {"pass", "step", "walk"}):
            return
        calls = self._calls()
        ends = [call for call in calls if call.do in _ENDS or call.refused or call.error]
        for drain in calls:
            if drain.do != "drain" or drain.begin_ms == drain.end_ms:
                continue
            if any(overlap(end, drain) or end.do == "close" for end in ends) or "refuse" in acts:
                continue
            for add in calls:
                if add.do != "add" or add.error or add.timer != drain.timer or add.end > drain.end:
                    continue
                if add.due_ms <= add.end_ms:
                    # The add itself may have submitted the due task.
                    continue
                due_ms = max(add.due_ms, add.end_ms, drain.begin_ms)
                others = [
                    call
                    for call in calls
                    if call is not add
                    and call is not drain
                    and add.begin < call.end
                    and call.begin < drain.end
                    and (call.do == "drain" or call.task == add.task)
                ]
                if due_ms < drain.end_ms and not others:
                    seen = f"a drain slept to {drain.end_ms} ms over {add.task}, due at {due_ms} ms"
                    yield Broken("T2", "timer", seen)

    def _let_all_fire(self) -> None:
        self.do_run()
        dues = self._dues()
        self.order.clear()
        if self.leap:
            self._until(max([*dues, self.line.now_ms()]) + 1)
            self.broken += self._out_of_order()
        for _ in range(3):
            for due_ms in sorted(due for due in self._dues() if due > self.line.now_ms())[:12]:
                self._until(due_ms - 1)
                self._until(due_ms)
            # For tasks that are due already, or that a callback added.
            self._until(self.line.now_ms())

    def _dues(self) -> set[int]:
        never_ms = self.world.start_ms + FAR_MS // 2
        return {call.due_ms for call in self.line.ended if call.do == "add" and call.due_ms < never_ms}

    def _until(self, until_ms: int) -> None:
        by_ms = until_ms - self.line.now_ms()
        if self.kind.moves_clock:
            self.do_drain(max(by_ms, 0))
            return
        if by_ms > 0:
            self.world.virtual.advance(by_ms)
        for timer in range(len(self.timers)):
            self.do_drain(0, timer)
        self.do_run()

    def _out_of_order(self) -> Iterator[Broken]:
        """Check T6: of the tasks of one drain, the task with the earlier tick runs first."""
        due = {call.task: call.due_ms for call in self.line.ended if call.do == "add"}
        added = [call.task for call in self.line.ended if call.do == "add"]
        if len(self.timers) > 1 or self.drawn.callbacks or len(added) != len(set(added)):
            return
        for first, then in zip(self.order, self.order[1:], strict=False):
            if due.get(then, 0) < due.get(first, 0):
                yield Broken("T6", then, f"due at {due[then]} ms, ran after {first}, due at {due[first]} ms")

    def _compared(self, timer: int, size: int) -> Iterator[Broken]:
        least, most = possible_sizes(dict.fromkeys(self.names), self._calls(), self.kind.rules, timer)
        if any(act.do == "call_every" for act in self.drawn.acts()):
            # The number of waiting repeated functions is unknown.
            return
        loose_close = not self.kind.rules.strict and any(call.do == "close" for call in self.line.begun())
        if not least <= size <= most and not loose_close:
            yield Broken("T5", "timer", f"size() is {size}, and {least} to {most} tasks wait")

    def _due(self, deadline_ms: int) -> int:
        if self.kind.moves_clock:
            # A drain runs tasks before the new time. An add runs a task without a delay at once.
            return deadline_ms + (deadline_ms > self.line.now_ms())
        return deadline_ms // self.tick_ms * self.tick_ms

    def _failing(self, call: Callable[[], T], *, answers: bool = True) -> tuple[str, T | None]:
        """Call, and return the error as `TimerCall.error`, and the answer: None after an exception, or if the call
        `answers` nothing. Other exceptions end the thread, and violate O8."""
        try:
            answer = call()
            if answers and answer is None:
                self.breaks("CHECK", "timer", "a call that has an answer returned None")
            return "", answer
        except TimerClosed:
            return "closed", None
        except ExecutorClosed:
            return "refused", None
        except Planned as error:
            if not self.kind.moves_clock and not self.raising:
                raise
            self.told.append(error)
            self.cut_short[0] += 1
        except PlannedExit:
            self.exits["told"] += 1
            self.cut_short[0] += 1
        return "", None

    def _calls_functions(self) -> IntrusiveTimer | ReaperTimer | Calls:
        timer = self.timers[0]
        assert isinstance(timer, IntrusiveTimer | ReaperTimer | Calls), "only what calls functions has this"
        return timer

    def _repetition(self) -> Iterator[Broken]:
        """Check that each repeated function runs again until it is cancelled, and then at most once."""
        steady = (
            self.queued
            and not self.kind.moves_clock
            and not any(act.do in _ENDS for act in self.drawn.acts())
        )
        going = [one for one in self.repeated if all(gone[0] is not one[0] for gone in self.cancelled)]
        if steady and going:
            before = [len(ran_ms) for _, ran_ms in going]
            self._until(self.line.now_ms() + max(self.periods) + self.tick_ms)
            for one, count in zip(going, before, strict=True):
                ran_ms = one[1]
                if len(ran_ms) == count and all(gone[0] is not one[0] for gone in self.cancelled):
                    yield Broken("T3", "repeated", f"ran at {ran_ms} ms, and not again")
        self.do_unrepeat()
        if self.queued:
            self._until(self.line.now_ms() + max(self.periods) + self.tick_ms)
        for _, ran_ms, count in self.cancelled:
            if len(ran_ms) > count + 1:
                yield Broken("T4", "repeated", f"ran {len(ran_ms) - count} times after it had been cancelled")

    def _wheel(self) -> IntrusiveTimer:
        timer = self.timers[0]
        assert isinstance(timer, IntrusiveTimer), "only the wheel for use has this"
        return timer
