"""The state of one explored program: its run, the numbers of its objects, its vector clocks.

A *location* is the object of a step: an attribute, a container, a lock. A location gets its number at its first use,
from the task of this use. So the number is equal in every run that reaches this use in the same way.

Vector clocks compute "happened before". Locks, the start and the end of threads, and each call of C code (an operation
of a container) order the earlier and the later steps. A plain attribute or global orders nothing. Two uses of one
attribute without an order are a *data race*, if at least one use is a write.
"""

import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Final, NoReturn

from purgatorio_stress.explorer.order import Order
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.explorer.task import ExecutionEnd, Gate, Task
from purgatorio_stress.printed import Race

_Place = tuple[CodeType, int]
"""The code, and the instruction in it: the line is found out where it is shown."""

MAX_TURNS: Final = 200
"""So many turns of one `while` loop by one thread in a run, and the run is cut: UNKNOWN."""


LIBRARY: Final = frozenset("threading queue sched concurrent.futures._base concurrent.futures.thread".split())
"""The modules of Python whose calls are shown as one line."""

GRAIN_NS: Final = 1_000
"""The clock's grain."""


@dataclass(frozen=True, slots=True)
class Row:
    """A step for a table: which task, where in the user's source, what it does. Time passing has task 0.

    `call`: the number of the call of `threading` or `queue` that the step is part of, such as `Condition.notify`, or 0.
    `said`: that call in words. `outcome`: what the step did for the user, such as "woken".
    """

    task: int
    where: str
    source: str
    what: str
    number: int = 0
    kind: int = READ
    call: int = 0
    said: str = ""
    outcome: str = ""


class World:
    """See the module. One for each loaded program; `begin` starts a run."""

    def __init__(self, early: int = 0) -> None:
        self.early = early
        """How many times a thread's wait may end by time-out while others can continue."""
        self.files: set[str] = set()
        """The user's: steps are shown at these."""
        self.kept: list[Shared] = []
        """What was made while the modules were loaded; it serves every run."""
        self.exits: list[Callable[[], object]] = []
        """What `concurrent.futures` wants to be called when the program ends: its idle workers end then."""
        self.uncontrolled: set[str] = set()
        self.races: set[Race] = set()
        """Of all runs; `run_races` are those of the last one."""
        self.run_races: set[Race] = set()
        self.rows: list[Row] | None = None
        self.failure: Exception | None = None
        """An error of ours; see `fail`."""
        self.spins: set[str] = set()
        """The lines of loops that went round too often."""
        self.too_long = False
        """A run took too many steps."""
        self.diverged = False
        """A schedule did not fit the code that it was made from: the code is not deterministic."""
        self.loading = True
        self.threads_made = 0
        self.bodies: dict[Task, object] = {}
        self.act_thread: Callable[[Task], object] = _not_loaded
        self.names: dict[int, str] = {}
        self.generators: dict[FrameType, object] = {}
        """By frame, those of the code's that were entered."""
        self.numbers: dict[tuple[int, str], tuple[object, int]] = {}
        """By `id` and attribute of what has a location: itself, or a weak reference to it, and the number."""
        self._identities: dict[int, tuple[object, int]] = {}
        self._unseen: set[_Place] = set()
        self.run = Execution(_Nobody(), [])
        self._order: Order[_Place] = Order(self.run)
        self.point: Callable[[int, int], None] = self.run.point
        self._real_threads = 0
        self._time_shown = 0
        self._calls: dict[int, tuple[int, object, list[int]]] = {}
        """By task, its latest call of the library: number, place, and the instructions of its first step."""
        self._calls_made = 0
        self.notices: dict[int, bool] = {}
        """By lock that a `Condition` made for a waiter: whether the wait has timed out. For replays."""
        self._early_used: dict[int, int] = {}

    def begin(self, run: Execution) -> None:
        """A run is about to be set up."""
        self.loading = False
        run.current.made = max((shared.oid for shared in self.kept), default=0)
        run.exits = self.exits
        self.run = run
        self._order = Order(run)
        self.synchronise = self._order.exchange
        self.point = run.point if self.rows is None else self._record
        for shared in self.kept:
            shared.run = run
        self.threads_made = 0
        self.bodies.clear()
        self.numbers.clear()
        self.generators.clear()
        self.run_races.clear()
        self.names.clear()
        self._early_used.clear()
        self._calls.clear()
        self._calls_made = 0
        self.notices.clear()
        self._time_shown = 0
        self._real_threads = len(sys._current_frames())

    def end(self) -> None:
        """The run has ended: the caller that started a real thread meanwhile was not the scheduler.

        Raises an error of ours that a hook met.
        """
        if self.failure is not None:
            raise self.failure
        self.races |= self.run_races
        now = len(sys._current_frames())
        if now > self._real_threads:
            names = [thread.name for thread in threading.enumerate()]
            self.uncontrolled.add(f"a real thread ({names[-1]}) that another module or extension started")

    def fail(self, error: Exception) -> NoReturn:
        """An error of ours inside a hook. The code under test does not meet it: the run ends, and `end` raises it."""
        self.failure = error
        if self.run.live:
            self.run.finish(ExecutionEnd("end"))
        raise error

    def lose(self, what: str, frame: FrameType) -> None:
        """From here on not every use is seen: name it, so that the verdict is no PASS.

        In `__init__` the object is nobody else's yet.
        """
        code = frame.f_code
        if code.co_name != "__init__":
            self.uncontrolled.add(f"{what} at {_file(code.co_filename)}:{frame.f_lineno}")

    def number(self, thing: object, name: str = "") -> int:
        """The location `name` of `thing`, or `thing` itself.

        What can die is forgotten when it does. The rest, such as a list, is kept alive, so that the number stays its
        own.
        """
        numbers, key = self.numbers, (id(thing), name)
        known = numbers.get(key)
        if known is not None:
            return known[1]
        maker = self.run.current
        maker.made += 1
        number = maker.index * 100_000 + maker.made
        try:
            held: object = weakref.ref(thing, lambda _: numbers.pop(key, None))
        except TypeError:
            held = thing
        numbers[key] = held, number
        return number

    def identity(self, thing: object) -> int:
        """What `id` says: an address would be another one in every run."""
        known = self._identities.get(id(thing))
        if known is None:
            number = len(self._identities) + 1 if self.loading else self.number(thing, "id")
            known = thing, number * 64
            if not self.loading:
                return known[1]
            self._identities[id(thing)] = known
        return known[1]

    @property
    def clock_number(self) -> int:
        """The location of the clock."""
        return self.number("the clock")

    def may_be_early(self, task: Task) -> bool:
        """Whether this wait may end by time-out while others can continue; counted."""
        if not self.early:
            return False
        used = self._early_used.get(task.index, 0)
        self._early_used[task.index] = used + 1
        return used < self.early

    def deadline(self, seconds: float) -> int:
        """When a wait of so long that begins now is due.

        In whole microseconds: what is computed from the clock's floating-point seconds is off by some hundred
        nanoseconds, and two waits that the code means to end together would always end in one order.
        """
        run = self.run
        if self.early and run.live:
            self.point(self.clock_number, READ)
        if seconds <= 0:
            return run.now_ms
        due_ns = (run.now_ms + int(seconds * 1_000_000_000) + GRAIN_NS // 2) // GRAIN_NS * GRAIN_NS
        return max(due_ns, run.now_ms + GRAIN_NS)

    def let_pass(self, task: Task, deadline_ns: int) -> None:
        """A step of `task`: time comes to its deadline."""
        number = self.clock_number
        self.names[number] = "the clock"
        self.point(number, WRITE)
        self.run.move_clock(max(self.run.now_ms, deadline_ns))

    def ends_the_process(self, name: str) -> None:
        """The code calls what would end the process that explores it: the run ends, and no verdict is a PASS."""
        self.uncontrolled.add(name)
        if self.run.live:
            self.run.finish(ExecutionEnd("cut"))

    def waits(self, number: int, kind: int, gate: Gate) -> None:
        """A step that may have to wait."""
        if self.rows is None:
            self.run.point(number, kind, gate)
        else:
            self._record(number, kind, gate)
        run = self.run
        if run.live and not gate.is_open(run.current):
            # Only a schedule that was made for other code than this sends somebody through a closed gate.
            self.diverged = True
            run.finish(ExecutionEnd("cut"))

    def started(self, child: Task) -> None:
        self._order.begin(child.index)

    def ended(self, child: Task) -> None:
        self._order.end(child.index)

    def plain(
        self, number: int, kind: int, thing: object, name: str, frame: FrameType, *, unseen: bool = False
    ) -> None:
        """A use of plain memory: search for a race with earlier ones.

        `unseen`: code without steps may read it, nobody knows when. In a race the verdict is no PASS.
        """
        if not self.run.live:
            return
        place = frame.f_code, frame.f_lasti
        if unseen:
            self._unseen.add(place)
        for where in self._order.unordered(number, place, writes=kind != READ):
            self._race(thing, name, where, place)

    def _race(self, thing: object, name: str, first: _Place, second: _Place) -> None:
        one, two = sorted(f"{_file(code.co_filename)}:{_line(code, at)}" for code, at in (first, second))
        if first in self._unseen or second in self._unseen:
            self.uncontrolled.add(
                f"{described(thing, name)}, which other code may read during a write: {one}, {two}"
            )
            return
        self.run_races.add(Race(described(thing, name), one, two))

    def turn(self, turns: list[int]) -> None:
        """One more turn of the caller's loop. `turns`: how many since when, in virtual time."""
        run = self.run
        turns[:] = turns[0] + 1 if turns[1] == run.now_ms else 1, run.now_ms
        if turns[0] > MAX_TURNS:
            frame = sys._getframe(1)
            if not run.live:
                run.leave()
                return
            where = f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}"
            self.spins.add(where)
            run.finish(
                ExecutionEnd("turns", f"{run.current.name} went round the loop at {where} {MAX_TURNS} times")
            )

    def _record(self, number: int, kind: int, gate: Gate | None = None) -> None:
        """A step of a replay: as `Execution.point`, and noted once it is made."""
        run = self.run
        if not run.live or self.rows is None:
            return
        what = f"{_VERBS[kind]} {self.names.get(number, '')}".strip()
        frame = self._user_frame(sys._getframe(1))
        where, source = self._user_line(frame)
        call, said = self._library_call(sys._getframe(1), frame)
        run.point(number, kind, gate)
        if run.now_ms != self._time_shown:
            self._time_shown = run.now_ms
            self.rows.append(Row(0, "", "", f"time passes to {run.now_ms / 1e9:g} s"))
        self.rows.append(Row(run.current.index, where, source, what, number, kind, call, said))

    def outcome(self, text: str) -> None:
        """Say in a replay what the latest step did for the user."""
        if self.rows:
            self.rows[-1] = replace(self.rows[-1], outcome=text)

    def _library_call(self, frame: FrameType | None, user: FrameType | None) -> tuple[int, str]:
        """The outermost public call of the library below the user's frame: its number, and its words."""
        outermost = None
        path: list[int] = []
        while frame is not None and frame is not user:
            path.append(frame.f_lasti)
            if frame.f_globals.get("__name__") in LIBRARY and _is_public(frame.f_code):
                outermost = frame
            frame = frame.f_back
        task = self.run.current.index
        if outermost is None:
            self._calls.pop(task, None)
            return 0, ""
        code = outermost.f_code
        # An address of a frame may be that of an earlier call: the place and the first step tell two calls apart.
        place = code, user and (user.f_code, user.f_lasti)
        number, known, first = self._calls.get(task, (0, None, []))
        if known != place or first == path:
            number = self._calls_made = self._calls_made + 1
            self._calls[task] = number, place, path
        name = code.co_name if code.co_name != "__init__" else f"{code.co_qualname.partition('.')[0]}()"
        timeout = outermost.f_locals.get("timeout")
        return number, name + (f" ({timeout:g} s)" if isinstance(timeout, int | float) else "")

    def standing(self, task: Task) -> str:
        """At which line of the user's it stands: ` at FILE:LINE`."""
        worker = task.greenlet
        frame = self._user_frame(sys._getframe() if task is self.run.current else worker and worker.gr_frame)
        return f" at {_file(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""

    def _user_frame(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and frame.f_code.co_filename not in self.files:
            frame = frame.f_back
        return frame

    def _user_line(self, frame: FrameType | None) -> tuple[str, str]:
        import linecache

        if frame is None:
            return "", ""
        filename = frame.f_code.co_filename
        return (f"{_file(filename)}:{frame.f_lineno}", linecache.getline(filename, frame.f_lineno).strip())


_VERBS: Final = ("read", "write", "acquire", "release", "try")


def described(thing: object, name: str) -> str:
    """A location in words: `Cache.items`."""
    kind = thing if isinstance(thing, type) else type(thing)
    if isinstance(thing, str):
        return f"{thing}.{name}" if name else thing
    return f"{kind.__name__}.{written(name)}" if name else f"a {kind.__name__}"


def written(name: str) -> str:
    """A private attribute as it is written: `__data` for `_Cache__data`."""
    owner, separator, rest = name.partition("__")
    return f"__{rest}" if separator and owner.startswith("_") and len(owner) > 1 else name


def _is_public(code: CodeType) -> bool:
    name = code.co_name
    return name == "__init__" or not (name.startswith(("_", "<")) or "<locals>" in code.co_qualname)


def _line(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def _file(filename: str) -> str:
    return filename.replace("\\", "/").rsplit("/", 1)[-1]


def _not_loaded(task: Task) -> object:
    raise AssertionError("nobody asks for a thread before `threading` is loaded")


class _Nobody:
    """Nothing is chosen while modules are loaded."""

    def choose(self, run: Execution, /) -> int:
        raise AssertionError("no task runs while the modules are loaded")
