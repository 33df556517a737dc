"""The state of one explored program: its run, the numbers of its objects, its vector clocks.

A *location* is the object of a step: an attribute, a container, a lock. The task that first uses a location gives it a
number from the task's own range. So every run that reaches this use in the same way gives the same number.

Vector clocks compute which steps happen before other steps. Steps are ordered by locks, by the start and the end of
threads, and by operations on containers. The use of an attribute or a global variable orders nothing. Two uses of one
attribute, one of them a write, are a *data race* if neither happens before the other.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FrameType, GeneratorType
from typing import Final, NoReturn

from purgatorio_stress.explorer.endless import NoEnd
from purgatorio_stress.explorer.order import Order
from purgatorio_stress.explorer.run import Execution, Shared
from purgatorio_stress.explorer.step import READ, WRITE
from purgatorio_stress.explorer.task import Awaited, ExecutionEnd, Task
from purgatorio_stress.foreign.shown_containers import is_a
from purgatorio_stress.printed import Race

_Place = tuple[CodeType, int]
"""A code object and an offset of an instruction. The line is computed only for a report."""

MAX_TURNS: Final = 200
"""A run with more iterations of one `while` loop at one virtual time is cut, and the verdict is UNKNOWN."""


LIBRARY: Final = frozenset("threading queue sched concurrent.futures._base concurrent.futures.thread".split())
"""The modules of the standard library whose calls are shown as one line."""

_OBJECT: Final = "one of its objects"

_ALONE: Final = 2
"""The references to an object in `World.weakly` that nothing else refers to, while they are counted."""

GRAIN_NS: Final = 1_000
"""The resolution of deadlines."""


NOTE: Final = -1
"""The `number` of a row that is no step."""
TIME_PASSES: Final = "time passes to"


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """A step in a table: the task, the place in the user's source, the action. The passing of time has task 0.

    `call`: the number of the call of `threading` or `queue` that contains the step, such as `Condition.notify`, or 0.
    `said`: this call in words. `outcome`: the effect that the user sees, such as "woken".
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


class RealThread(BaseException):
    """The adapter cannot be made, because other code starts a real thread in it. The explorer controls neither this
    thread nor its time, so no verdict would hold."""


class World:
    """The state of one loaded program. `begin` starts a run."""

    def __init__(self, early: int = 0) -> None:
        self.early = early
        """The number of waits of each thread that may end by time-out while other threads can continue."""
        self.timed = False
        """Whether a thread has slept or waited with a time-out."""
        self.files: set[str] = set()
        """The user's files. A step is shown at the nearest line in these files."""
        self.kept: list[Shared] = []
        """The objects that were created by the import of the modules. All runs share them."""
        self.exits: list[Callable[[], object]] = []
        """The callbacks of `concurrent.futures` for the end of the program, which end its idle workers."""
        self.uncontrolled: set[str] = set()
        self.races: set[Race] = set()
        """The races of all runs. `run_races` has the races of the last run."""
        self.run_races: set[Race] = set()
        self.rows: list[ReplayRow] | None = None
        self.next_rows: dict[int, ReplayRow] = {}
        """In a replay: by task, its next step."""
        self.looked: set[int] = set()
        """In a replay: the locations that `check` and `outcome` read."""
        self.failure: Exception | None = None
        """An error of Purgatorio. See `fail`."""
        self.spins: set[str] = set()
        """The lines of loops with more than MAX_TURNS iterations."""
        self.too_long = ""
        """The threads of the first run that reached MAX_STEPS, with their lines. "" if no run did."""
        self.diverged = False
        """Whether a schedule of an earlier run was impossible in a later run: the code is not deterministic."""
        self.loading = True
        self.making = False
        """Whether the adapter of a run is being made."""
        self.threads_made = 0
        self.bodies: dict[Task, object] = {}
        self.act_thread: Callable[[Task], object] = _not_loaded
        self.callee: Callable[[Callable[..., object]], Callable[..., object]] = lambda function: function
        """The function that a thread calls in place of its target. See `Hooks.callee`."""
        self.weakly: dict[int, object] = {}
        """By `id`, the objects with weak references."""
        self.mourns = False
        """Whether the program has weak references."""
        self._dropped: set[int] = set()
        """The objects among `weakly` that die at the next step of a task, which has begun."""
        self._dying: dict[_Place | None, set[str]] = {}
        """By the place of a step of which a death is a part, the locations `lives`."""
        self._last: dict[Task, _Place] = {}
        """By task, the place of its last step, if `mourns`."""
        self.names: dict[int, str] = {}
        self.generators: dict[FrameType, object] = {}
        """By frame, the generators of rewritten code that a run has iterated."""
        self.numbers: dict[tuple[int, str], tuple[object, int]] = {}
        """By `id` of an object and attribute: the object or a weak reference to it, and the number of the location."""
        self._identities: dict[int, tuple[object, int]] = {}
        self._unseen: set[_Place] = set()
        self._entries: dict[int, dict[Task, _Place]] = {}
        """By number of an object, the place of the last call of each task in `enters`."""
        self.changed: set[object] = set()
        """The keys of the variables of such packages that any run has changed, and of the classes whose objects any run
        has used as dictionaries, or given another class."""
        self.changing: frozenset[object] = frozenset()
        """Those among them at the beginning of the search. A call that uses such a variable has a scheduling point. All
        attributes of an object of such a class are one location."""
        self.places: dict[tuple[object, str], tuple[object, bool] | None] = {}
        """By class and attribute, what `Hooks._place_of` returned."""
        self._met: set[str] = set()
        """The packages that are in `uncontrolled` because of such calls."""
        self.run = Execution(_Nobody(), [])
        self._order: Order[_Place] = Order(self.run)
        self.point: Callable[..., None] = self.run.point
        self._real_threads: set[int] = set()
        self._time_shown = 0
        self._calls: dict[int, tuple[int, object, list[int]]] = {}
        """By task, its last library call: number, place, and the offsets of the frames at its first step."""
        self._calls_made = 0
        self.notices: dict[int, bool] = {}
        """By lock that a `Condition` created for a waiter: whether the wait has timed out. For replays."""
        self._early_used: dict[int, int] = {}
        self._early_ns = -1

    def load_again(self) -> None:
        """Forget the objects of an earlier import, so that the next import gives its objects the same numbers."""
        self.loading = True
        self.kept.clear()
        self.exits.clear()
        self._identities.clear()
        self.run.current.made = 0

    def forget(self) -> None:
        """Forget what the runs of another program of the same modules have shown."""
        self.changed.clear()
        self.spins.clear()
        self.too_long = ""
        self.diverged = False

    def settle(self) -> None:
        """Begin a search with what earlier runs have changed."""
        self.changing = frozenset(self.changed)
        self.places.clear()
        self._dying.clear()
        for key in self.changing:
            if isinstance(key, tuple) and isinstance(key[0], tuple):
                self._dying.setdefault(key[0], set()).add(key[1])

    def begin(self, run: Execution) -> None:
        """Reset the state before the set-up of `run`."""
        # The objects of the last run end first. Their finalizers may change modules, which are restored afterwards.
        for task in self.run.tasks:
            task.body, task.said, task.error = _no_body, None, None
        self.bodies.clear()
        self.weakly.clear()
        self._dropped.clear()
        self._last.clear()
        self.numbers.clear()
        self.generators.clear()
        self.loading = False
        run.current.made = max((shared.oid for shared in self.kept), default=0)
        run.exits = self.exits
        run.line_of = self.standing
        self.run = run
        self._order = Order(run)
        self.synchronise = self._order.exchange
        self.point = self._point = run.point if self.rows is None else self._record
        if self.mourns:
            self.point = self._point_with_deaths
        for shared in self.kept:
            shared.run = run
        self.threads_made = 0
        self.run_races.clear()
        self._entries.clear()
        self.names.clear()
        self._early_used.clear()
        self._early_ns = -1
        self._calls.clear()
        self._calls_made = 0
        self.notices.clear()
        self._time_shown = 0
        self._real_threads = set(sys._current_frames())

    def end(self) -> None:
        """Store the races of a run that has ended. A new real thread that runs on is recorded as uncontrolled.

        Raises the error of Purgatorio that a hook passed to `fail`.
        """
        if self.failure is not None:
            raise self.failure
        self.races |= self.run_races
        if new := set(sys._current_frames()) - self._real_threads:
            names = [thread.name for thread in threading.enumerate() if thread.ident in new]
            self.uncontrolled.add(
                f"a real thread ({', '.join(names)}) that another module or extension started"
            )

    def refuse_thread(self, frame: FrameType) -> NoReturn:
        """Record that `frame`, which is not rewritten, starts a real thread while the adapter is made."""
        place, package = f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}", _package(frame)
        self.uncontrolled.add(f"{package}: starts a real thread at {place}: add --package {package}")
        raise RealThread

    def fail(self, error: Exception) -> NoReturn:
        """Store an error of Purgatorio and end the run. `end` raises it, so the code under test cannot catch it. If the
        code under test has left too little stack or memory for the hook, end the search."""
        if isinstance(error, RecursionError | MemoryError):
            if self.run.places is not None:
                raise error  # as in the run that is repeated
            raise NoEnd(
                f"{type(error).__name__}{self.standing(self.run.current)}, inside the explorer"
            ) from error
        self.failure = error
        if self.run.live:
            self.run.finish(ExecutionEnd("end"))
        raise error

    def number(self, thing: object, name: str = "") -> int:
        """The number of the location `name` of `thing`, or of `thing` itself ("").

        If `thing` supports weak references, its numbers are removed with it. Otherwise (a list) `thing` is kept alive,
        because another object with its `id` would get its numbers.
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

    def look(self, thing: object, name: str) -> None:
        """Record that code outside of the run reads an attribute, and a container in it."""
        places = [(one, name) for one in (thing, *type(thing).__mro__)]
        for where, attribute in (*places, (thing, "__dict__"), (getattr(thing, name, None), "")):
            known = self.numbers.get((id(where), attribute))
            if known is not None:
                self.looked.add(known[1])

    def identity(self, thing: object) -> int:
        """A number for the object, such as `id` returns, but equal in every run."""
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
        """The number of the location of the clock."""
        return self.lives("the clock")

    def may_be_early(self, task: Task) -> bool:
        """Whether this wait may end by time-out while other threads can continue. Each call counts as one wait."""
        self.timed = True
        if not self.early:
            return False
        used = self._early_used.get(task.index, 0)
        self._early_used[task.index] = used + 1
        return used < self.early

    def deadline(self, seconds: float) -> int:
        """The deadline in ns of a wait of `seconds` that begins now.

        Rounded to microseconds. Floating-point seconds have errors of some hundred nanoseconds. So without rounding,
        two waits with one intended deadline would always end in one order.
        """
        run = self.run
        if self.early and run.live:
            self.point(self.clock_number, READ)
        if seconds <= 0:
            return run.now_ms
        due_ns = (run.now_ms + int(seconds * 1_000_000_000) + GRAIN_NS // 2) // GRAIN_NS * GRAIN_NS
        return max(due_ns, run.now_ms + GRAIN_NS)

    def let_pass(self, deadline_ns: int) -> None:
        """Move the clock to the deadline, as a step of the calling task."""
        self.point(self.clock_number, WRITE)
        self.run.move_clock(max(self.run.now_ms, deadline_ns))
        self._early_ns = self.run.now_ms

    def ends_the_process(self, name: str) -> None:
        """Record a call that would end the explorer's process, and end the run. The verdict is then not PASS."""
        self.uncontrolled.add(name)
        if self.run.live:
            self.run.finish(ExecutionEnd("cut"))

    def waits(self, number: int, kind: int, awaited: Awaited) -> None:
        """Make a step that waits until `awaited` is open."""
        self.point(number, kind, awaited)
        run = self.run
        if run.live and not awaited.is_open(run.current):
            # A schedule of this code never chooses a blocked task, so the schedule does not fit the code.
            self.diverged = True
            run.finish(ExecutionEnd("cut"))

    def lives(self, location: str) -> int:
        """The number of a location of `lives_of`."""
        number = self.number(location)
        self.names[number] = location
        return number

    def _doomed(self) -> list[int]:
        """The keys of the objects with weak references that nothing else refers to. Containers that nothing else refers
        to are forgotten first, because objects may be in them."""
        if not self.weakly:
            return []
        ended: list[tuple[int, str]] | None = None
        while ended != []:
            ended = [
                key for key, (held, _) in self.numbers.items()
                if not isinstance(held, str | weakref.ref) and sys.getrefcount(held) <= _ALONE + 1
            ]  # fmt: skip
            for key in ended:
                self.numbers.pop(key, None)
        left = [one for one in self.weakly if one not in self._dropped]
        return [one for one in left if sys.getrefcount(self.weakly[one]) <= _ALONE]

    def bury(self) -> None:
        """After a change of shared data, objects die with it to which only weak references refer now. In the next
        search, the write of `lives` is made before such a change."""
        doomed = self._doomed()
        last = self._last.get(self.run.current)
        self.changed |= {(last, lives_of(self.weakly[one])) for one in doomed}
        for one in doomed:
            self.weakly.pop(one, None)

    def _point_with_deaths(self, number: int, kind: int, awaited: Awaited | None = None) -> None:
        """Make a step. Before it, objects die to which only local variables referred after the task's last step."""
        if doomed := self._doomed():
            self._dropped.update(doomed)
            for text in sorted({lives_of(self.weakly[one]) for one in doomed}):
                self._point(self.lives(text), WRITE)
                self.outcome("one dies")
            self._dropped.difference_update(doomed)
            for one in set(doomed).intersection(self._doomed()):
                self.weakly.pop(one, None)
        frame = self._user_frame(sys._getframe(1))
        if frame is not None:
            self._last[self.run.current] = place = frame.f_code, frame.f_lasti
            for text in sorted(self._dying.get(place, ())):
                self._point(self.lives(text), WRITE)
        self._point(number, kind, awaited)

    def started(self, child: Task) -> None:
        self._order.begin(child.index)

    def ended(self, child: Task) -> None:
        self._order.end(child.index)

    def plain(
        self, number: int, kind: int, thing: object, name: str, frame: FrameType, *, unseen: bool = False
    ) -> None:
        """Record a use of plain memory, and its races with earlier uses.

        `unseen`: other code may read the memory at an unknown time. A race with this use prevents PASS.
        """
        if not self.run.live:
            return
        place = frame.f_code, frame.f_lasti
        if unseen:
            self._unseen.add(place)
        for where in self._order.unordered(number, place, writes=kind != READ):
            self._race(thing, name, where, place)

    def enters(
        self, number: int, kind: int, package: str, frame: FrameType, name: str = _OBJECT, locks: Sequence[int] = ()
    ) -> None:  # fmt: skip
        """Record that the task is about to call code of `package`, which is not rewritten, on an object or a variable.
        If no order is between the calls of two threads, the verdict is not PASS, because no thread is switched in such
        a call. `name`: the variable. `locks`: the numbers of the locks that the code holds during the use."""
        place = frame.f_code, frame.f_lasti
        for lock in locks:
            self._order.take(lock)
        for where in self._order.unordered(number, place, writes=kind != READ):
            self._meet(package, name, where, place)
        for lock in locks:
            self._order.give(lock)
        self._entries.setdefault(number, {})[self.run.current] = place

    def entered(self, number: int, package: str) -> None:
        """End the run if another task is in a call on the object: the code called back, and the task was switched. The
        locks of the code do not know tasks, so they would let both pass, or block the explorer."""
        entries = self._entries[number]
        mine = entries[self.run.current]
        for task, place in entries.items():
            if task is not self.run.current and self._is_in(task, place):
                self._meet(package, _OBJECT, place, mine)
                self.run.finish(ExecutionEnd("cut"))

    def waiting(self, frame: FrameType | None) -> str:
        """The text for a thread that waits in the operating system: its place, and the remedy."""
        user = self._user_line(self._user_frame(frame))[0]
        while frame is not None and _package(frame) in sys.stdlib_module_names | {"purgatorio_stress"}:
            frame = frame.f_back
        if frame is None:
            return "no end of a wait in the operating system"
        place, package = f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}", _package(frame)
        if place == user:
            return f"{place} waits in the operating system, and no other thread can run until this wait ends"
        return (
            f"{place}, called at {user}, waits in the operating system, perhaps for a lock that another thread holds. "
            f"No other thread can run until this wait ends: add --package {package}"
        )

    def _meet(self, package: str, name: str, first: _Place, second: _Place) -> None:
        if package not in self._met:
            self._met.add(package)
            places = " and ".join(dict.fromkeys(_in_words(first, second)))
            self.uncontrolled.add(
                f"{package}: two threads use {name} at {places}, in no order: add --package {package}"
            )

    def _is_in(self, task: Task, place: _Place) -> bool:
        """Whether the task is in the call at this place, and not only before it."""
        frame, inside = None if task.finished else self._frame(task), False
        while frame is not None and (frame.f_code, frame.f_lasti) != place:
            inside |= not str(frame.f_globals.get("__name__")).startswith("purgatorio_stress.")
            frame = frame.f_back
        return inside and frame is not None

    def _race(self, thing: object, name: str, first: _Place, second: _Place) -> None:
        one, two = _in_words(first, second)
        if first in self._unseen or second in self._unseen:
            self.uncontrolled.add(
                f"{described(thing, name)}, which other code may read during a write: {one}, {two}"
            )
            return
        self.run_races.add(Race(described(thing, name), one, two))

    def turn(self, turns: list[int]) -> None:
        """Count an iteration of the caller's loop. `turns`: the number of iterations at one virtual time, and this
        time."""
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
                ExecutionEnd("turns", f"{run.current.name} repeated the loop at {where} {MAX_TURNS} times")
            )

    def _record(self, number: int, kind: int, awaited: Awaited | None = None) -> None:
        """Make a step of a replay: `Execution.point`, then append the row."""
        run = self.run
        if not run.live or self.rows is None:
            return
        what = f"{_VERBS[kind]} {self.names.get(number, '')}".strip()
        frame = self._user_frame(sys._getframe(1))
        where, source = self._user_line(frame)
        call, said = self._library_call(sys._getframe(1), frame)
        task = run.current.index
        self.next_rows[task] = ReplayRow(task, where, source, what, number, kind, call, said)
        run.point(number, kind, awaited)
        if run.now_ms != self._time_shown:
            self._time_shown = run.now_ms
            early = ": a wait ends early (--early)" if run.now_ms == self._early_ns else ""
            self.rows.append(ReplayRow(0, "", "", f"{TIME_PASSES} {run.now_ms / 1e9:g} s{early}"))
        self.rows.append(self.next_rows.pop(task))

    def note(self, text: str) -> None:
        """In a replay, show a call that is not in the user's code."""
        if self.rows is not None:
            self.rows.append(ReplayRow(self.run.current.index, "", "", text, NOTE))

    def outcome(self, text: str) -> None:
        """Set the outcome of the last row of a replay."""
        if self.rows:
            self.rows[-1] = replace(self.rows[-1], outcome=text)

    def _library_call(self, frame: FrameType | None, user: FrameType | None) -> tuple[int, str]:
        """The number and the text of the outermost public library call under the user's frame. (0, "") if none."""
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
        # A frame may have the address of an earlier frame. So calls are distinguished by place and first step.
        place = code, user and (user.f_code, user.f_lasti)
        number, known, first = self._calls.get(task, (0, None, []))
        if known != place or first == path:
            number = self._calls_made = self._calls_made + 1
            self._calls[task] = number, place, path
        name = code.co_name if code.co_name != "__init__" else f"{code.co_qualname.partition('.')[0]}()"
        timeout = outermost.f_locals.get("timeout")
        return number, name + (f" ({timeout:g} s)" if isinstance(timeout, int | float) else "")

    def standing(self, task: Task) -> str:
        """The user's line at which the task is paused, as ` at FILE:LINE`."""
        frame = self._user_frame(self._frame(task))
        return f" at {_file(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""

    def awaited(self, task: Task) -> str:
        """The object of the standard library in which the task waits for a notice, such as `an Event at FILE:LINE`."""
        frame, kind = self._frame(task), "notice"
        while frame is not None and frame.f_code.co_filename not in self.files:
            owner, _, method = frame.f_code.co_qualname.partition(".")
            if frame.f_globals.get("__name__") in LIBRARY and method and _is_public(frame.f_code):
                kind = owner.removeprefix("_Py")
            frame = frame.f_back
        return f"{_with_article(kind)}{self.standing(task)}"

    def _frame(self, task: Task) -> FrameType | None:
        worker = task.greenlet
        return sys._getframe(1) if task is self.run.current else worker and worker.gr_frame

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
    """The text of a location, such as `Cache.items`."""
    kind = thing if is_a(thing, type) else type(thing)
    if is_a(thing, str):
        return f"{thing}.{name}" if name else thing
    if name:
        return f"{kind.__name__}.{written(name)}"
    if is_a(thing, GeneratorType):
        return f"the generator {thing.__name__}"
    return _with_article(kind.__name__)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOU' else 'a'} {noun}"


def lives_of(thing: object) -> str:
    """The location that weak references to the objects of this class read, and the death of one writes."""
    return sys.intern(f"weak references to {type(thing).__name__}")


def written(name: str) -> str:
    """A private attribute as in the source: `__data` for `_Cache__data`."""
    owner, separator, rest = name.partition("__")
    return f"__{rest}" if separator and owner.startswith("_") and len(owner) > 1 else name


def _is_public(code: CodeType) -> bool:
    name = code.co_name
    return name == "__init__" or not (name.startswith(("_", "<")) or "<locals>" in code.co_qualname)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _line(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def _in_words(*places: _Place) -> list[str]:
    return sorted(f"{_file(code.co_filename)}:{_line(code, at)}" for code, at in places)


def _file(filename: str) -> str:
    return filename.replace("\\", "/").rsplit("/", 1)[-1]


def _not_loaded(task: Task) -> object:
    raise AssertionError("no code needs a thread before `threading` is loaded")


def _no_body() -> None:
    """The body of the tasks of earlier runs."""


class _Nobody:
    """The chooser during the import of modules, when no task runs."""

    def choose(self, run: Execution, /) -> int:
        raise AssertionError("no task runs while the modules are loaded")
