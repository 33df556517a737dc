"""One run of a program under the explorer: each thread of the program is a task (a greenlet), and a chooser decides at
each step which task runs next.

The explorer has its own version of `Sync` (locks, conditions, atomics, threads). Each operation of this version calls
`point` *before* it acts. `point` asks the chooser for the next task. If the chosen task is the calling task, `point`
returns at once. Otherwise `point` switches to the chosen task, and returns when the calling task is chosen again. So
the code under test is unmodified. A schedule is the list of the chosen tasks, and determines the run.

Virtual time passes only when no task can continue. Then the clock jumps to the earliest end of a timed wait. (A task
may also move the clock with `VirtualClock.advance`.) At this instant, all waits that are due may end, in any order,
and other tasks may act too.

A run ends in one of four ways: every task that is not a daemon has ended, and no wait ends before the horizon (a
virtual time that the program sets); a deadlock; a livelock (a loop that repeats while no other task can run); the
chooser ends the run.

While `live` is false (set-up, judging, clean-up), operations act at once and call no `point`.

Speed: in a known schedule, most steps belong to the task of the previous step. Before the step number `_until`,
`point` only counts such steps. See also `free`.
"""

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol

from purgatorio_stress.explorer.endless import NoEnd
from purgatorio_stress.explorer.step import ACQUIRE, TIME, TRY
from purgatorio_stress.explorer.task import ExecutionEnd, Gate, Place, Task

if TYPE_CHECKING:
    import greenlet

CUT: Final = -2
"""A chooser's answer: end this run here; it is redundant or beyond a bound."""

SOLO_TURNS: Final = 2_000
"""So many turns of a marked loop while no other task can continue, and no time passes, are a livelock."""

_FOR_EVER: Final = 1 << 60

MAX_STEPS: Final = 50_000
"""A run ends here, which is a limit: its program says whether so many steps can only be a loop without a mark. What a
search keeps of a run grows with the square of its length."""

_IN_VAIN: Final = 100
"""So often a task that is thrown out is told to end, until it is left where it stands."""

_LEFT: Final[list[object]] = []
"""What was left so. To forget it would throw it out again."""


class Shared:
    """Whatever steps are made on. `oid` is the same in every run that reaches it by the same acts of its maker."""

    __slots__ = ("name", "oid", "run")

    def __init__(self, run: "Execution", name: str) -> None:
        self.run = run
        self.name = name
        maker = run.current
        maker.made += 1
        self.oid: int = maker.index * 100_000 + maker.made
        if run.objects is not None:
            run.objects[self.oid] = self
            run.changed.add(self.oid)
        if run.names is not None:
            run.names[self.oid] = name

    def state(self) -> object:
        """What it is worth, for the comparison of states; see `naming`."""
        return None

    def shows(self, kind: int, /) -> object:
        """What a step of this kind, about to be made, tells its task; None where the step itself says so."""
        return None


class Chooser(Protocol):
    """A strategy's part in a run."""

    def choose(self, run: "Execution", /) -> int:
        """The index of an enabled task, TIME or CUT. Called where the known schedule has ended."""


_END: Final = ExecutionEnd("end")


class Execution:
    """See the module. `schedule` is followed first, then `chooser` asked; `turns` bounds marked loops.

    `free`: set by a chooser when it has chosen a task that may continue until it is blocked or ends, or is about to
    use the object `wary`, or a new task is spawned; `block_oids` and `block_kinds` then have the steps that it was
    not asked about. Only where all other tasks are enabled, and stay so. `in_vain`: the depths of the steps of
    `try_lock` and timed waits that failed. `clock`: the object of a clock that tasks move, or 0. `woken`: the
    depths of the steps that ended a task's wait (a notice, or a clock that is moved so far), with the task.
    `exits`: a last task does them, if nothing else can be done and all tasks of the set-up have ended, as a program
    does when it ends. `objects`, `named`, `changed`, `volatile`: for `Fingerprint`, where states are compared.
    `steps`: how many steps the run took, once it has ended.
    """

    __slots__ = (
        "_idle",
        "_kept",
        "_leaving",
        "_main",
        "_none",
        "_starting",
        "_until",
        "block_kinds",
        "block_oids",
        "changed",
        "chooser",
        "clock",
        "current",
        "depth",
        "exits",
        "free",
        "horizon_ms",
        "in_vain",
        "known",
        "live",
        "named",
        "names",
        "now_ms",
        "objects",
        "orders",
        "places",
        "schedule",
        "steps",
        "stop",
        "tasks",
        "turns",
        "volatile",
        "wary",
        "woken",
    )

    def __init__(
        self,
        chooser: Chooser,
        schedule: list[int],
        *,
        turns: int = 4,
        orders: dict[tuple[str, str], str] | None = None,
        track_state: bool = False,
    ) -> None:
        self.chooser = chooser
        self.schedule = schedule
        self.known = len(schedule)
        self.turns = turns
        self.orders: dict[tuple[str, str], str] = {} if orders is None else orders
        self.in_vain: list[int] = []
        self.clock = 0
        self.woken: list[tuple[int, int]] = []
        self.exits: list[Callable[[], object]] = []
        self.free = False
        self.wary = 0
        self.block_oids: list[int] = []
        self.block_kinds: list[int] = []
        self.objects: dict[int, Shared] | None = {} if track_state else None
        self.changed: set[int] = set()
        self.volatile: set[int] = set()
        self.named: dict[int, tuple[object, object]] = {}
        self.places: list[Place] | None = None
        self.names: dict[int, str] | None = None
        self.depth = 0
        self.steps = 0
        self.live = False
        self._until = _FOR_EVER
        self.now_ms = 0
        self.horizon_ms = 0
        self.stop = _END
        # Here and not above: it turns the GIL on again where there is none, and threads need the rest of this module.
        import greenlet

        self._main = greenlet.getcurrent()
        self._leaving = 0
        self._idle: list[greenlet.greenlet] = []
        self._starting: list[greenlet.greenlet] = []
        self._kept: tuple[int, int, int, dict[int, tuple[object, object]]] = (0, 0, 0, {})
        self._none = Task(0, "set-up", lambda: None, True, 0)
        self._none.finished = True
        self.current = self._none
        self.tasks: list[Task] = [self._none]

    @property
    def said(self) -> Mapping[str, object]:
        """What the bodies of the tasks that have ended returned."""
        return {task.name: task.said for task in self.tasks if task.finished and task.error is None}

    def spawn(self, name: str, body: Callable[[], object], daemon: bool = False) -> Task:
        """A new task; it starts when it is chosen. Its first step, the start, is independent of all others."""
        task = Task(len(self.tasks), name, body, daemon, self.depth - 1 if self.live else -1)
        task.greenlet = self._worker()
        self.tasks.append(task)
        self.free = False
        return task

    def _worker(self) -> "greenlet.greenlet":
        """A greenlet for a task: to start one costs as much as twenty switches, so those that are done are kept.

        It takes its depth of calls from where it is started: so each is started at the bottom, and not where the first
        switch to it happens to be. (Else a timer whose thread starts the next one comes to the limit of recursion.)
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
        """The set-up is done, and `begin_anew` is to come back to here."""
        self._kept = len(self.tasks), self.current.made, self.now_ms, dict(self.named)

    def begin_anew(self, schedule: list[int]) -> None:
        """As it was at `keep`, for another run; what the tasks share is put back by others."""
        tasks, made, now_ms, named = self._kept
        self.schedule = schedule
        self.known = len(schedule)
        self.in_vain.clear()
        self.woken.clear()
        self.free = False
        self.block_oids.clear()
        self.block_kinds.clear()
        self.now_ms = now_ms
        self.stop = _END
        self.named = dict(named)
        self.changed.clear()
        self._none.made = made
        del self.tasks[tasks:]
        for task in self.tasks[1:]:
            task.begin_anew()
            task.greenlet = self._worker()

    def close(self) -> None:
        """End what waits for a further run."""
        for worker in self._idle:
            worker.throw()
        self._idle.clear()

    def execute(self) -> None:
        """Run all tasks to the end; afterwards the structures can be checked without any step."""
        self.live = True
        self.depth = 0
        self._until = 0
        first = self._next()
        if first is not None and first.greenlet is not None:
            self.current = first
            first.greenlet.switch()
            while self._starting:
                self._starting.pop().switch()
                self.current.greenlet.switch()  # type: ignore[union-attr]  # the task that started it goes on
        self.steps = self.depth
        self.live = False
        self._until = _FOR_EVER
        self.current = self._none
        for task in self.tasks:
            worker = task.greenlet
            if worker is None:
                continue
            if task.born < 0 and (task.finished or not task.begun):
                self._idle.append(worker)
            else:
                # What is suspended ends here: its `finally` blocks run, as quiet code.
                self._leaving = 1
                worker.throw()
                self._leaving = 0
                if not worker.dead:
                    _LEFT.append(worker)
            task.greenlet = None

    def leave(self) -> None:
        """The run has ended, and the caller would wait or turn in a loop: where it is a task, it ends here.

        Code that contains even GreenletExit, a bare `except:` in a loop, would come back for ever: it is left.
        """
        if not self._leaving:
            return
        self._leaving += 1
        if self._leaving < _IN_VAIN:
            from greenlet import GreenletExit

            raise GreenletExit
        while True:
            self._main.switch()

    def point(self, obj: int, kind: int, gate: Gate | None = None) -> None:
        """The calling task is about to do this step; return when it is chosen to do it."""
        depth = self.depth
        if depth < self._until:
            self.depth = depth + 1
            return
        task = self.current
        if self.free and obj != self.wary and (gate is None or gate.is_open(task)) and depth < MAX_STEPS:
            self.block_oids.append(obj)
            self.block_kinds.append(kind)
            self.depth = depth + 1
            return
        self.free = False
        task.obj = obj
        task.kind = kind
        task.gate = gate
        if self.places is not None:
            task.place = _place()
        # The common cases of `_next`, without the calls.
        if depth < self.known:
            index = self.schedule[depth]
        else:
            index = self.chooser.choose(self)
            if index == task.index and self.places is None and self.objects is None and depth < MAX_STEPS:
                self.depth = depth + 1
                return
        chosen = self._go(index)
        if chosen is None:
            self._main.switch()
        elif chosen is not task:
            self.current = chosen
            chosen.greenlet.switch()  # type: ignore[union-attr]  # a task that can be chosen has not been dropped
        if self.objects is not None:
            shared = self.objects.get(obj)
            task.digest = hash((task.digest, obj, kind, None if shared is None else shared.shows(kind)))
            self.changed.add(obj)

    def loop_head(self) -> None:
        """One more turn of the caller's caller: beyond the bound the run is cut; alone and for ever, a livelock."""
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
            self.finish(ExecutionEnd("turns", f"{task.name} went round a loop more than {self.turns} times"))
        elif turn > SOLO_TURNS:
            text = f"{task.name} goes round {frame.f_code.co_name} for ever, and no other task can continue"
            self.finish(ExecutionEnd("livelock", text))

    def finish(self, stop: ExecutionEnd) -> None:
        """End the run from within a task."""
        self.stop = stop
        self._main.switch()

    def is_enabled(self, task: Task) -> bool:
        """Whether the task could make its next step."""
        return not task.finished and (task.gate is None or task.gate.is_open(task))

    def _next(self) -> Task | None:
        """Follow the schedule or ask the chooser; None where the run has ended. Lets time pass on the way."""
        return self._go(self._asked())

    def _asked(self) -> int:
        return self.schedule[self.depth] if self.depth < self.known else self.chooser.choose(self)

    def _go(self, index: int) -> Task | None:
        while index == TIME:
            if not self.let_time_pass():
                return None
            if self.places is not None:
                self.places.append(Place("", 0, 0, "", f"time passes to {self.now_ms} ms"))
            self.depth += 1
            index = self._asked()
        if index == CUT or self.depth > MAX_STEPS:
            too_long = ExecutionEnd("steps", f"no end after {MAX_STEPS} steps")
            self.stop = ExecutionEnd("cut") if index == CUT else too_long
            return None
        self.depth += 1
        if self.places is not None:
            self._note(self.tasks[index])
        elif self.objects is None:
            self._until = self._end_of_block(index)
        return self.tasks[index]

    def _end_of_block(self, index: int) -> int:
        """Up to which depth the known schedule leaves the task alone that continues now."""
        at, known, schedule = self.depth, self.known, self.schedule
        while at < known and schedule[at] == index:
            at += 1
        return at

    def let_time_pass(self) -> bool:
        """Leap to the earliest end of a wait, up to the horizon; False, with `stop` set, where there is none."""
        going = [task for task in self.tasks if not task.finished]
        if not going:
            return False
        busy = any(not task.daemon for task in going)
        waiting = [task for task in going if task.wake_ms is not None]
        wakes = [task.wake_ms for task in waiting if task.wake_ms is not None]
        # Who has work to do of its own: the end of the program ends idle workers, and no timer of a daemon puts it off.
        own = any(task.born < 0 or (task.wake_ms is not None and not task.daemon) for task in going)
        if busy and self.exits and not own:
            acts, self.exits = self.exits, []
            # After all that was: its first step follows the one that lets time pass.
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
        """The current task's next step waits no longer than that (None: for ever); returns the kind of the step."""
        task = self.current
        task.notified = deadline_ms is not None and deadline_ms <= self.now_ms
        task.wake_ms = None if task.notified else deadline_ms
        return TRY if task.notified else ACQUIRE

    def move_clock(self, now_ms: int) -> None:
        """A step of the current task: it is that time now. Waits that are due may end from here on."""
        self.now_ms = now_ms
        self.woken += [(self.depth - 1, index) for index in self._wake()]

    def _wake(self) -> list[int]:
        """All timed waits that are due can end. What they wait for may not have come: the steps are tries now."""
        woken = []
        for task in self.tasks:
            if task.wake_ms is not None and task.wake_ms <= self.now_ms and not task.finished:
                task.wake_ms = None
                task.notified = True
                if task.kind == ACQUIRE:
                    task.kind = TRY
                woken.append(task.index)
        return woken

    def _who_waits(self) -> str:
        lines = []
        for task in self.tasks:
            if not task.finished and not (task.daemon and not task.held) and task.gate is not None:
                named = (shared.name for shared in task.held if not shared.name.endswith("?"))
                held = ", ".join(named) or "nothing"
                lines.append(f"{task.name} holds {held} and waits for {task.gate.why(task)}")
        return "; ".join(lines)

    def _work(self, *_: object) -> None:
        """The life of a greenlet: the body of one task after the other."""
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
                # The thread that stops the search means the search, not the task that happens to run.
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
        """For the table of a replay: who makes which step, where, on what."""
        where, function = task.place
        assert self.places is not None, "only replays note places"
        self.places.append(Place(task.name, task.obj, task.kind, where, function))


def _place() -> tuple[str, str]:
    """File:line of the code that makes a step, and the function; the nearest frame outside of the explorer."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "/purgatorio_stress/explorer/" in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back
    if frame is None:
        return "", ""
    filename = frame.f_code.co_filename.replace("\\", "/")
    return f"{filename.rsplit('/', 1)[-1]}:{frame.f_lineno}", frame.f_code.co_name
