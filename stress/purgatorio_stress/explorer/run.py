"""One run of a program under the explorer: each thread of the program is a task (a greenlet), and a chooser decides at
each step which task runs next.

The explorer has its own version of `Sync` (locks, conditions, atomics, threads). Each operation of this version calls
`point` *before* it acts. `point` calls the chooser for the next task, switches to it, and returns when the calling task
is chosen again. The code under test is unmodified. A schedule is the list of the chosen tasks, and determines the run.

Virtual time passes only when no task can continue. The clock then jumps to the earliest end of a timed wait. (A task
may also move the clock with `VirtualClock.advance`.) After the jump, all due waits may end, in any order, and other
tasks may act too.

A run ends in one of four ways. (1) All tasks except daemons have ended, and no timed wait of a daemon ends before the
*horizon*, a virtual time that the program sets. (2) Deadlock: tasks remain, and none can continue. (3) Livelock: a loop
repeats while no other task can continue. (4) The chooser ends the run.

While `live` is false (set-up, judging, clean-up), operations act at once and do not call `point`.

For speed, `_until` is the number of the next step that may belong to another task. Before this step, `point` only
increases a counter, and does not call the chooser. (See `Execution.free`.)
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol

from purgatorio_stress.explorer.endless import NoEnd
from purgatorio_stress.explorer.step import ACQUIRE, TIME, TRY
from purgatorio_stress.explorer.task import Awaited, ExecutionEnd, ReplayStep, Task

if TYPE_CHECKING:
    import greenlet

CUT: Final = -2
"""A chooser's answer that ends the run, because it is redundant or exceeds a bound."""

SOLO_TURNS: Final = 2_000
"""More iterations of a loop with `loop_head` are a livelock, if no other task can continue and no time passes."""

_FOR_EVER: Final = 1 << 60

MAX_STEPS: Final = 50_000
"""The maximum length of a run, because the memory of a search is quadratic in this length. The program judges whether
this number of steps can only be a loop without `loop_head`."""

_IN_VAIN: Final = 100
"""After this number of GreenletExit, a task that does not end is abandoned: it stays suspended."""

_LEFT: Final[list[object]] = []
"""The abandoned greenlets. Garbage collection of a greenlet would raise GreenletExit in it again."""


class Shared:
    """An object that steps use. `oid`: its number, which depends only on the task that created it, and on how many
    objects this task had created."""

    __slots__ = ("name", "oid", "run")

    def __init__(self, run: "Execution", name: str) -> None:
        self.run = run
        self.name = name
        maker = run.current
        maker.made += 1
        self.oid: int = maker.index * 100_000 + maker.made
        if run.names is not None:
            run.names[self.oid] = name


class Chooser(Protocol):
    """A strategy: it decides which task makes the next step."""

    def choose(self, run: "Execution", /) -> int:
        """The index of an enabled task, TIME or CUT. Called after the end of the known schedule."""


_END: Final = ExecutionEnd("end")


def _no_line(task: Task) -> str:
    return ""


@dataclass(slots=True, eq=False, repr=False)
class Execution:
    """One run. It follows `schedule` first, then `chooser` decides. `turns` bounds the loops that call `loop_head`.

    `free`: set by a chooser; the chosen task continues without a choice until it is blocked, ends, spawns a task, or is
    about to use the object `wary`. `block_oids` and `block_kinds` then have its steps. A chooser sets `free` only if
    all other tasks are enabled and stay enabled. `in_vain`: the depths of the steps of `try_lock` and timed waits that
    failed. `clock`: the object of a clock that tasks move, or 0. `woken`: the depth of each step that ended a wait (a
    notice, or a move of the clock), with the number of the waiting task. `exits`: callbacks for the end of the program.
    A last task calls these callbacks when all tasks of the set-up have ended and no other task can continue. `steps`:
    the length of the run, at its end. `line_of`: the line at which a task is paused, as ` at FILE:LINE`, or "".
    `now_ms`: the virtual time; with foreign code, it and all deadlines are in nanoseconds.
    """

    chooser: Chooser
    schedule: list[int]
    _: KW_ONLY
    turns: int = 4
    orders: dict[tuple[str, str], str] = field(default_factory=dict)
    known: int = field(init=False)
    in_vain: list[int] = field(default_factory=list)
    clock: int = 0
    woken: list[tuple[int, int]] = field(default_factory=list)
    exits: list[Callable[[], object]] = field(default_factory=list)
    line_of: Callable[[Task], str] = _no_line
    free: bool = False
    wary: int = 0
    block_oids: list[int] = field(default_factory=list)
    block_kinds: list[int] = field(default_factory=list)
    places: list[ReplayStep] | None = None
    names: dict[int, str] | None = None
    depth: int = 0
    steps: int = 0
    live: bool = False
    now_ms: int = 0
    horizon_ms: int = 0
    stop: ExecutionEnd = _END
    current: Task = field(init=False)
    tasks: list[Task] = field(init=False)
    _until: int = _FOR_EVER
    _main: "greenlet.greenlet" = field(init=False)
    _leaving: int = 0
    _idle: list["greenlet.greenlet"] = field(default_factory=list)
    _starting: list["greenlet.greenlet"] = field(default_factory=list)
    _kept: tuple[int, int, int] = field(init=False)
    _none: Task = field(init=False)

    def __post_init__(self) -> None:
        self.known = len(self.schedule)
        # Imported here, because on free-threaded Python the import enables the GIL, and threads import this module too.
        import greenlet

        self._main = greenlet.getcurrent()
        self._none = self.current = Task(0, "set-up", lambda: None, True, 0)
        self._none.finished = True
        self.tasks = [self._none]

    @property
    def said(self) -> Mapping[str, object]:
        """The results of finished task bodies, by task name. Tasks that ended by an exception are absent."""
        return {task.name: task.said for task in self.tasks if task.finished and task.error is None}

    def spawn(self, name: str, body: Callable[[], object], daemon: bool = False) -> Task:
        """Create a task, which starts when it is chosen. Its first step, the start, is independent of all others."""
        task = Task(len(self.tasks), name, body, daemon, self.depth - 1 if self.live else -1)
        task.greenlet = self._worker()
        self.tasks.append(task)
        self.free = False
        return task

    def _worker(self) -> "greenlet.greenlet":
        """A greenlet for a task. To start a greenlet costs as much as twenty switches, so finished greenlets are
        reused.

        A greenlet inherits the depth of calls at its start. So each greenlet is started here, near the bottom of the
        stack, not at the first switch. (Otherwise a chain of threads that start threads reaches the recursion limit.)
        """
        if self._idle:
            return self._idle.pop()
        worker = type(self._main)(self._work, self._main)
        if self.live:
            self._starting.append(worker)
            self._main.switch()
        else:
            worker.switch()
        return worker

    def keep(self) -> None:
        """Store the state after the set-up, which `begin_anew` restores."""
        self._kept = len(self.tasks), self.current.made, self.now_ms

    def begin_anew(self, schedule: list[int]) -> None:
        """Restore the state of `keep` for another run. `Snapshot` restores the shared objects."""
        tasks, made, now_ms = self._kept
        self.schedule = schedule
        self.known = len(schedule)
        self.in_vain.clear()
        self.woken.clear()
        self.free = False
        self.block_oids.clear()
        self.block_kinds.clear()
        self.now_ms = now_ms
        self.stop = _END
        self._none.made = made
        del self.tasks[tasks:]
        for task in self.tasks[1:]:
            task.begin_anew()
            task.greenlet = self._worker()

    def close(self) -> None:
        """End the idle greenlets."""
        for worker in self._idle:
            worker.throw()
        self._idle.clear()

    def execute(self) -> None:
        """Make the run. Afterwards uses of shared objects are no steps, so the structures can be checked."""
        self.live = True
        self.depth = 0
        self._until = 0
        first = self._next()
        if first is not None and first.greenlet is not None:
            self.current = first
            first.greenlet.switch()
            while self._starting:
                self._starting.pop().switch()
                self.current.greenlet.switch()  # type: ignore[union-attr]  # the current task goes on, so it has one
        self.steps = self.depth
        self.live = False
        self.current = self._none
        for task in self.tasks:
            worker = task.greenlet
            if worker is None:
                continue
            if task.born < 0 and (task.finished or not task.begun):
                self._idle.append(worker)
            else:
                # A suspended task ends here. Its `finally` blocks run, and their operations are no steps. But they are
                # counted, because the task may have been suspended in the middle of a change, so that they loop.
                self._leaving = 1
                self._until = self.depth + MAX_STEPS
                worker.throw()
                self._leaving = 0
                if not worker.dead:
                    _LEFT.append(worker)
            task.greenlet = None
        self._until = _FOR_EVER

    def leave(self) -> None:
        """End the calling task, if the run has ended and the task would otherwise wait or loop.

        Code that catches even GreenletExit (a bare `except:` in a loop) would call this method forever. So after
        `_IN_VAIN` calls the task stays suspended.
        """
        if not self._leaving:
            return
        self._leaving += 1
        if self._leaving < _IN_VAIN:
            from greenlet import GreenletExit

            raise GreenletExit
        while True:
            self._main.switch()

    def point(self, obj: int, kind: int, awaited: Awaited | None = None) -> None:
        """Tell the chooser the next step of the calling task. Return when the task is chosen."""
        depth = self.depth
        if depth < self._until:
            self.depth = depth + 1
            return
        if self._leaving:
            self.leave()
        task = self.current
        if (
            self.free
            and obj != self.wary
            and (awaited is None or awaited.is_open(task))
            and depth < MAX_STEPS
        ):
            self.block_oids.append(obj)
            self.block_kinds.append(kind)
            self.depth = depth + 1
            return
        self.free = False
        task.obj = obj
        task.kind = kind
        task.awaited = awaited
        if self.places is not None:
            task.place = _place()
        # The usual cases of `_next`, without its calls, for speed.
        if depth < self.known:
            index = self.schedule[depth]
        else:
            index = self.chooser.choose(self)
            if index == task.index and self.places is None and depth < MAX_STEPS:
                self.depth = depth + 1
                return
        chosen = self._go(index)
        if chosen is None:
            self._main.switch()
        elif chosen is not task:
            self.current = chosen
            chosen.greenlet.switch()  # type: ignore[union-attr]  # a task that can be chosen has not been dropped

    def loop_head(self) -> None:
        """Count an iteration of the loop in the caller's caller. Above `turns`, the run ends if another task can
        continue. Above SOLO_TURNS, the run ends as a livelock if no other task can continue."""
        if not self.live:
            return
        task = self.current
        frame = sys._getframe(2)
        turn = task.loops.get(frame, 0) + 1
        task.loops[frame] = turn
        if turn <= self.turns:
            return
        alone = not any(other is not task and self.is_enabled(other) for other in self.tasks)
        if not alone:
            self.finish(ExecutionEnd("turns", f"{task.name} repeated a loop more than {self.turns} times"))
        elif turn > SOLO_TURNS:
            text = f"{task.name} loops in {frame.f_code.co_name} for ever, and no other task can continue"
            self.finish(ExecutionEnd("livelock", text))

    def finish(self, stop: ExecutionEnd) -> None:
        """End the run. Called by a task."""
        self.stop = stop
        self._main.switch()

    def is_enabled(self, task: Task) -> bool:
        """Whether the task can make its next step."""
        return not task.finished and (task.awaited is None or task.awaited.is_open(task))

    def _next(self) -> Task | None:
        """The task that the schedule or the chooser selects. Time may pass first. None at the end of the run."""
        return self._go(self._asked())

    def _asked(self) -> int:
        return self.schedule[self.depth] if self.depth < self.known else self.chooser.choose(self)

    def _go(self, index: int) -> Task | None:
        while index == TIME:
            if not self.let_time_pass():
                return None
            if self.places is not None:
                self.places.append(ReplayStep("", 0, 0, "", f"time passes to {self.now_ms} ms"))
            self.depth += 1
            index = self._asked()
        if index == CUT or self.depth > MAX_STEPS:
            self.stop = ExecutionEnd("cut") if index == CUT else ExecutionEnd("steps", self._who_goes_on())
            return None
        self.depth += 1
        if self.places is not None:
            self._note(self.tasks[index])
        else:
            self._until = self._end_of_block(index)
        return self.tasks[index]

    def _end_of_block(self, index: int) -> int:
        """The depth of the next step in the known schedule that is not of task `index`."""
        at, known, schedule = self.depth, self.known, self.schedule
        while at < known and schedule[at] == index:
            at += 1
        return at

    def let_time_pass(self) -> bool:
        """Move the time to the earliest end of a wait, up to the horizon. False if there is none: the run ends, and at
        a deadlock `stop` says so."""
        going = [task for task in self.tasks if not task.finished]
        if not going:
            return False
        busy = any(not task.daemon for task in going)
        waiting = [task for task in going if task.wake_ms is not None]
        wakes = [task.wake_ms for task in waiting if task.wake_ms is not None]
        # Tasks with work of their own. The end of the program ends idle workers, and no timer of a daemon delays it.
        own = any(not task.daemon and (task.born < 0 or task.wake_ms is not None) for task in going)
        if busy and self.exits and not own:
            acts, self.exits = self.exits, []
            # The last task: its first step comes after the step that advances the time.
            self.spawn("the end of the program", lambda: [act() for act in acts]).born = self.depth
            return True
        if wakes and (busy or min(wakes) <= self.horizon_ms):
            self.now_ms = max(self.now_ms, min(wakes))
            for task in waiting:
                task.loops.clear()
            self._wake()
            return True
        if busy:
            self.stop = ExecutionEnd("deadlock", self._who_waits())
        return False

    def wait_until(self, deadline_ms: int | None) -> int:
        """Set the deadline of the current task's next step (None: no deadline). Return the kind of this step."""
        task = self.current
        task.notified = deadline_ms is not None and deadline_ms <= self.now_ms
        task.wake_ms = None if task.notified else deadline_ms
        return TRY if task.notified else ACQUIRE

    def move_clock(self, now_ms: int) -> None:
        """Set the time, as a step of the current task. Waits whose deadline has passed may then end."""
        self.now_ms = now_ms
        self.woken += [(self.depth - 1, index) for index in self._wake()]

    def _wake(self) -> list[int]:
        """Let all waits whose deadline has passed end. Their events may be missing, so their steps become TRY. Return
        the numbers of the tasks."""
        woken = []
        for task in self.tasks:
            if task.wake_ms is not None and task.wake_ms <= self.now_ms and not task.finished:
                task.wake_ms = None
                task.notified = True
                if task.kind == ACQUIRE:
                    task.kind = TRY
                woken.append(task.index)
        return woken

    def _who_goes_on(self) -> str:
        return ", ".join(f"{task.name}{self.line_of(task)}" for task in self.tasks if not task.finished)

    def _who_waits(self) -> str:
        lines = []
        for task in self.tasks:
            if not task.finished and not (task.daemon and not task.held) and task.awaited is not None:
                named = (shared.name for shared in task.held if not shared.name.endswith("?"))
                held = ", ".join(named) or "nothing"
                lines.append(f"{task.name} holds {held} and waits for {task.awaited.why(task)}")
        return "; ".join(lines)

    def _work(self, *_: object) -> None:
        """Run the body of one task after the other, in one greenlet."""
        from greenlet import GreenletExit

        self._main.switch()
        while True:
            task = self.current
            task.begun = True
            try:
                task.said = task.body()
            except GreenletExit:
                return
            except (KeyboardInterrupt, NoEnd):
                # These end the whole search, not only the running task.
                self.live = False
                self._until = _FOR_EVER
                raise
            except BaseException as error:
                task.error = error
            if not self.live:
                return
            task.finished = True
            self.free = False
            chosen = self._next()
            if chosen is None or chosen.greenlet is None:
                self._main.switch()
            else:
                self.current = chosen
                chosen.greenlet.switch()

    def _note(self, task: Task) -> None:
        """Record the task, place, object and kind of a step for the table of a replay."""
        where, function = task.place
        assert self.places is not None, "only replays note places"
        self.places.append(ReplayStep(task.name, task.obj, task.kind, where, function))


def _place() -> tuple[str, str]:
    """The file:line and the function of a step: those of the nearest frame outside of the explorer."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "/purgatorio_stress/explorer/" in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back
    if frame is None:
        return "", ""
    filename = frame.f_code.co_filename.replace("\\", "/")
    return f"{filename.rsplit('/', 1)[-1]}:{frame.f_lineno}", frame.f_code.co_name
