"""Explores a user's Python code through an adapter, and shows the counterexample with source lines."""

import difflib
import gc
import importlib
import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from shlex import quote
from types import FrameType
from typing import Final, Protocol

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.show.lanes import LANE_MOST, Lanes
from purgatorio_spec.show.visible import counted
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.explorer.endless import (
    NO_END_S,
    NoEnd,
    bounded_cpu,
    bounded_wait,
    ends_the_run,
    process_kept,
)
from purgatorio_stress.explorer.minimise import minimise
from purgatorio_stress.explorer.program import PROGRESS, Broken
from purgatorio_stress.explorer.replay import BadToken, Replay, Token, replay
from purgatorio_stress.explorer.result import BrokenExecution, Exploration, Limits
from purgatorio_stress.explorer.run import MAX_STEPS, Execution
from purgatorio_stress.explorer.step import ACQUIRE, READ, RELEASE
from purgatorio_stress.explorer.strategy import STRATEGIES
from purgatorio_stress.explorer.table import width, wrapped
from purgatorio_stress.foreign.load import CannotLoad, Loader, modules_aside, openings_recorded
from purgatorio_stress.foreign.threads import text_of
from purgatorio_stress.foreign.timer_program import (
    RUNS,
    SIZE,
    STOP,
    TimerProgram,
    is_timer,
    judges,
    programs,
)
from purgatorio_stress.foreign.world import MAX_TURNS, NOTE, TIME_PASSES, RealThread, ReplayRow, World
from purgatorio_stress.mutant.patch import Patch, patched
from purgatorio_stress.printed import ExploredAdapter, Race, Shown

FOREIGN: Final = "foreign"
"""The first word of each token of such a run."""

_NOT_DETERMINISTIC: Final = (
    "the same schedule gave another run: the code depends on other data, such as an address"
)

_THREAD: Final = "thread_"

_NOT_RUN_BY_A_CALL: Final = (
    inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
)  # fmt: skip

_LOOKS: Final = ("check", "outcome")
"""The methods that judge a run."""


class Adapter(Protocol):
    """The class that the user writes. The explorer makes a new instance for every run. The class imports the code under
    test, and nothing of Purgatorio.

    Its threads are the methods whose names begin with `thread_`, or the functions that `threads()` returns. The class
    has `check` or `outcome` or both. They are called after all threads have ended.
    """

    def check(self) -> None:
        """Raises AssertionError if the result is wrong."""

    def outcome(self) -> object:
        """A value. The explorer collects the different values of all runs."""


def _threads_of(adapter: Adapter | TimerProgram) -> Sequence[tuple[str, Callable[[], object]]]:
    """The bodies of the threads, with their names."""
    if hasattr(adapter, "threads"):
        return [(getattr(act, "__name__", "thread"), act) for act in adapter.threads()]
    names = [
        name for cls in reversed(type(adapter).__mro__) for name in vars(cls) if name.startswith(_THREAD)
    ]
    return [(name, getattr(adapter, name)) for name in dict.fromkeys(names)]


def _require_callable(name: str, act: object) -> None:
    """Raises CannotLoad if a call without arguments cannot run the code of `act`."""
    wrong = ""
    if not callable(act):
        wrong = f"is not callable, but {act!r}: write a method without arguments, or rename it"
    elif any(kind(act) for kind in _NOT_RUN_BY_A_CALL):
        wrong = "is a coroutine or a generator, and a call would not run its code: write a plain method"
    else:
        try:
            inspect.signature(act, follow_wrapped=False).bind()
        except TypeError as error:
            wrong = f"is called without arguments: {error}"
        except ValueError:
            pass  # C code without a signature
    if wrong:
        raise CannotLoad(f"{name} {wrong}")


def _require_program(adapter: str, made: object, *, has_threads: bool) -> None:
    """Raises CannotLoad if the class has no threads, or nothing that judges a run."""
    if not has_threads:
        moved = "; a timer that advance() moves is not explored" if hasattr(made, "advance") else ""
        raise CannotLoad(
            f"{adapter} has neither threads() nor a method whose name begins with {_THREAD}{moved}"
        )
    if not any(hasattr(made, look) for look in _LOOKS):
        raise CannotLoad(
            f"{adapter} has neither check() nor outcome(), so nothing would check the result; if only deadlocks "
            "and exceptions matter, add a check() that does nothing"
        )


def _without_suffix(module: str) -> str:
    """The remedy for several names, or for a file, given in place of a module. Otherwise ""."""
    if "," in module:
        return f"; give each package of {module!r} on its own"
    name = module.replace("\\", "/")
    if not name.endswith(".py") and "/" not in name:
        return ""
    return f"; write the name of a module, {name.rpartition('/')[2].removesuffix('.py')}, and not its file"


def _as_thread(act: Callable[[], object], world: World) -> Callable[[], object]:
    """`act` as the body of a task. SystemExit ends the thread, and is no violation."""

    def body() -> None:
        with suppress(SystemExit):
            world.callee(act)()
        if world.weakly and world.run.live:
            world.point(world.lives(""), READ)  # before it, the objects die that only this thread had

    return body


class _Program:
    turns = 1
    horizon_ms = 0

    def __init__(
        self, world: World, packages: Sequence[str], adapter: str, path: Sequence[str], races_count: bool
    ) -> None:
        self.world = world
        self.name = f"{'+'.join(packages)} {adapter}"
        module, _, made_by = adapter.partition(":")
        made_by, _, self._calls = made_by.partition("=")
        if not made_by:
            raise CannotLoad(f"an adapter is named MODULE:CLASS, not {adapter!r}")
        # greenlet must be imported before the loader replaces names.
        importlib.import_module("greenlet")
        self._made_by = made_by
        self._races_count = races_count
        try:
            self.loader = Loader(self.world, packages, module, path)
        except (ImportError, CannotLoad) as error:
            named = "".join(map(_without_suffix, (*packages, module)))
            where = (
                "; Purgatorio searches this directory and sys.path" if isinstance(error, ImportError) else ""
            )
            raise CannotLoad(f"{error}{where}{named}") from error
        if not hasattr(self.loader.adapter(), made_by):
            near = difflib.get_close_matches(made_by, vars(self.loader.adapter()), 1)
            meant = _without_suffix(module) or "".join(f"; did you mean {one}?" for one in near)
            raise CannotLoad(f"{module} has no {made_by}{meant}")
        made = getattr(self.loader.adapter(), made_by)
        has_threads = any(name == "threads" or name.startswith(_THREAD) for name in dir(made))
        self.programs = tuple(programs(made)) if is_timer(made) and not (has_threads or self._calls) else ()
        """The programs to explore in place of this one, if the adapter is that of a timer."""
        self._judges = judges(made, world.early, self._calls) if self._calls else {}
        if not (self.programs or self._calls):
            _require_program(adapter, made, has_threads=has_threads)
        self.outcomes: dict[str, int] = {}
        self.not_run = set(self.loader.package_of.values())
        """The packages whose functions no run has called yet. `_note_call` removes a package at its first call."""
        self._adapter: Adapter | TimerProgram | None = None
        self._checked = False

    def choose(self, calls: str) -> None:
        """Continue with another of `programs`. The modules stay loaded."""
        self._calls = calls
        self._judges = judges(getattr(self.loader.adapter(), self._made_by), self.world.early, calls)
        self.world.forget()

    def set_up(self, run: Execution, /) -> None:
        """Create a new adapter, and a task for each of its threads."""
        # The objects of the last run end before the state is restored, because their finalizers may change it.
        self._adapter = None
        self.world.begin(run)
        if self.loader.collects:
            gc.collect()
        self.loader.restore()
        if self.not_run:
            sys.setprofile(self._note_call)
        self.world.making = True
        try:
            make = getattr(self.loader.adapter(), self._made_by)
            adapter = TimerProgram(self.world, make, self._calls) if self._calls else make()
            self._adapter = adapter
            acts = _threads_of(adapter)
            if not self._checked:
                self._check(acts)
        except RealThread:
            acts = ()  # nothing runs, and the thread that is recorded makes the PASS UNKNOWN
            del run.tasks[1:]
        except (KeyboardInterrupt, CannotLoad):
            raise
        except BaseException as error:
            if self.world.failure is not None:
                raise
            raise CannotLoad(f"{self.name} cannot be made: {text_of(error, self.world.files)}") from error
        finally:
            self.world.making = False
        for name, act in acts:
            self.world.started(run.spawn(name.removeprefix(_THREAD), _as_thread(act, self.world)))

    def _check(self, acts: Sequence[tuple[str, Callable[[], object]]]) -> None:
        """Raises CannotLoad if the explorer cannot call the methods of the adapter."""
        self._checked = True
        if not acts and len(self.world.run.tasks) == 1:
            raise CannotLoad(f"{self._made_by}.threads() returned no function: there is nothing to explore")
        looks = [(look, getattr(self._adapter, look)) for look in _LOOKS if hasattr(self._adapter, look)]
        for name, act in (*acts, *looks):
            _require_callable(f"{self._made_by}.{name}", act)

    def _note_call(self, frame: FrameType, event: str, _: object) -> None:
        package = self.loader.package_of.get(frame.f_code.co_filename)
        if event == "call" and package is not None:
            self.not_run.discard(package)
            if not self.not_run:
                sys.setprofile(None)

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        """The exceptions of threads, `check` and `outcome`; with `races_count` also the data races."""
        world = self.world
        world.end()
        broken = [
            Broken("EXCEPTION", task.name, text_of(task.error, world.files))
            for task in run.tasks
            if task.error is not None
        ]
        if run.stop.kind == "steps":
            world.too_long = world.too_long or run.stop.text
        if run.stop.kind == "end" and isinstance(self._adapter, TimerProgram):
            broken += self._adapter.broken(self._judges)
        elif run.stop.kind == "end":
            world.looked.clear()
            for look in _LOOKS:
                if not hasattr(self._adapter, look):
                    continue
                try:
                    seen = repr(getattr(self._adapter, look)())
                    if look == "outcome":
                        self.outcomes[seen] = self.outcomes.get(seen, 0) + 1
                except BaseException as error:
                    if world.failure is not None or ends_the_run(error):
                        raise
                    broken.append(Broken("CHECK", look, text_of(error, world.files)))
        if self._races_count:
            broken += [Broken("RACE", one.location, f"{one.first}, {one.second}") for one in world.run_races]
        return broken


@dataclass(frozen=True, slots=True)
class AdapterResult:
    """The result of one adapter. `rows`: the steps of the counterexample. `names`: its thread names, by number.
    `looked`: the locations that its `check` and `outcome` read."""

    name: str
    exploration: Exploration
    races: tuple[Race, ...]
    uncontrolled: tuple[str, ...]
    outcomes: dict[str, int]
    anew: str = ""
    counterexample: BrokenExecution | None = None
    token: Token | None = None
    rows: tuple[ReplayRow, ...] = ()
    names: tuple[str, ...] = ()
    looked: frozenset[int] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """PASS only if the search is complete, no run was cut at a bound, and the scheduler controlled all code."""
        done = self.exploration.verdict
        if done is Verdict.PASS and (self.uncontrolled or self.exploration.beyond):
            return Verdict.UNKNOWN
        return done

    def printed(self) -> ExploredAdapter:
        """The result in the format of `purgatorio explore --package ... --json`."""
        done, found = self.exploration, self.counterexample
        return ExploredAdapter(
            program=self.name,
            verdict=self.verdict,
            uncontrolled=list(self.uncontrolled),
            races=list(self.races),
            outcomes=self.outcomes,
            violations=[] if found is None else [
                Shown(one.clause, one.seen, str(self.token), found.preemptions, len(found.schedule), one.subject)
                for one in found.broken
            ],
            **done.figures(),
        )  # fmt: skip


def explore_foreign(
    packages: Sequence[str],
    adapter: str,
    limits: Limits,
    *,
    strategy: str = "dpor",
    seed: int = 0,
    early: int = 0,
    path: Sequence[str] = ("",),
    races_count: bool = False,
    progress: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AdapterResult:
    """Explore the adapter's program, or the small programs for the adapter of a timer. `path` is searched before
    `sys.path`. `progress` is entered when the program is loaded. Raises CannotLoad if an import fails, or if the
    adapter is wrong."""
    began = limits.clock()
    world = World(early)
    with _kept(world, packages, adapter):
        program = _Program(world, packages, adapter, path, races_count)
        token = f"{'+'.join(packages)}+{adapter}"
        if not program.programs:
            return _of_one(program, replace(limits, began=began), strategy, seed, token, progress)
        whole = AdapterResult(program.name, Exploration(strategy, "", complete=True), (), (), {})
        idle = ""
        with progress():
            for left, calls in zip(range(len(program.programs), 0, -1), program.programs, strict=True):
                # A program has at most twice its share of the time that is left.
                now, text = limits.clock(), calls.text
                share_s = round(max(calls.least_s, 2 * (began + limits.seconds - now) / left), 1)
                program.choose(text)
                one = _of_one(
                    program, replace(limits, seconds=share_s, began=now), strategy, seed, f"{token}={text}"
                )
                if one.exploration.found:
                    return replace(one, name=f"{one.name}={text}")
                if calls.extra and not one.exploration.complete:
                    idle = f"; not {text}: {one.exploration.limit}"
                else:
                    whole = _joined(whole, one, text)
    done = whole.exploration
    done.bound = f"all {len(program.programs) - bool(idle)} small programs{idle}; in each, {done.bound}"
    return whole


def _joined(before: AdapterResult, one: AdapterResult, text: str) -> AdapterResult:
    """The results of two programs of one timer as one. `text`: the second program."""
    done, new = before.exploration, one.exploration
    new.complete &= done.complete
    new.limit = done.limit or (new.limit and f"{text}: {new.limit}")
    new.schedules += done.schedules
    new.redundant += done.redundant
    new.beyond += done.beyond
    new.seconds += done.seconds
    return one


def _of_one(
    program: _Program,
    limits: Limits,
    strategy: str,
    seed: int,
    names: str,
    progress: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AdapterResult:
    """Explore one program. `names`: the packages and the adapter, for a token."""
    world = program.world
    try:
        with bounded_cpu(2 * limits.seconds + NO_END_S), bounded_wait(world.waiting):
            limit = _NOT_DETERMINISTIC
            if not _is_random(program):
                with progress():
                    return _explored(program, limits, strategy, seed, names)
    except NoEnd as error:
        limit = str(error)
    done = Exploration(strategy, "nothing", limit=limit)
    return AdapterResult(program.name, done, (), tuple(sorted(world.uncontrolled)), {})


def _explored(program: _Program, limits: Limits, strategy: str, seed: int, names: str) -> AdapterResult:
    world = program.world
    early = world.early
    with quiet():
        while True:
            world.settle()
            done = STRATEGIES[strategy](program, limits, seed)
            if done.found or done.limit or world.changing == world.changed:
                break
    if strategy == "dpor":
        done.bound = "all classes of interleavings"
    if early:
        done.bound += f", up to {counted(early, 'early time-out')} a thread"
    if world.timed and not early:
        done.bound += ", no time-out ended early (--early 0)"
    if world.diverged:
        done.complete, done.limit = False, _NOT_DETERMINISTIC
        done.found.clear()
    if world.too_long:
        done.complete = False
    if not (done.found and done.limit):
        cut = [
            _spinning(world.spins) if world.spins else "",
            _too_long(world.too_long) if world.too_long else "",
        ]
        done.limit = "; ".join(filter(None, [done.limit, *cut]))
    if program.not_run:
        done.complete, done.limit = False, _not_run(program.not_run)
    explored = AdapterResult(
        program.name, done, tuple(sorted(world.races)), tuple(sorted(world.uncontrolled)),
        dict(sorted(program.outcomes.items())), program.loader.why_anew,
    )  # fmt: skip
    if not done.found:
        return explored
    small = done.found[0]
    try:
        with quiet():
            small = minimise(program, small)
        rows, run = _replayed(program, small.schedule)
    except (BadToken, NoEnd):
        done.complete = False
        done.limit = (
            f"a violation was found ({small.broken[0].seen}), but the same schedule did not repeat it: the code is "
            "not deterministic, or it reaches the recursion limit"
        )
        done.found.clear()
        return explored
    except Exception as error:
        seen = "; ".join(f"{one.subject}: {one.seen}" for one in small.broken)
        token = Token(FOREIGN, names, early, small.schedule)
        error.add_note(f"A violation was found before this error. {seen}\nIts token: {token}")
        raise
    token = Token(FOREIGN, names, early, small.schedule)
    small = replace(small, preemptions=run.preemptions)
    looked = frozenset(world.looked)
    return replace(explored, counterexample=small, token=token, rows=rows, names=run.tasks, looked=looked)


def _spinning(places: set[str]) -> str:
    """The reason why a loop without an end prevents PASS, and the remedy."""
    named = ", ".join(sorted(places))
    return (
        f"the loop at {named} ran {MAX_TURNS} times, perhaps waiting for another thread: no "
        "schedule ends it, because no time passes in it. Wait with an Event, a Condition, a "
        "queue or join(), or sleep longer than 0"
    )


def _too_long(places: str) -> str:
    """The reason why a run without an end prevents PASS, and the remedy."""
    return (
        f"a run took more than {MAX_STEPS:,} steps; its threads were then: {places}. If one of them waits with a "
        "time-out in a loop, virtual time goes on for ever: end the loop in a thread of the adapter (check() is called "
        "only after all threads have ended, except daemons)"
    )


def _not_run(packages: set[str]) -> str:
    named = " and ".join(sorted(packages))
    return (
        f"no line of {named} was run: call it in the adapter, or name the package whose code the adapter runs"
    )


def _is_random(program: _Program) -> bool:
    """Whether one schedule (one thread after the other) makes different steps in two runs."""
    try:
        return _replayed(program, ())[0] != _replayed(program, ())[0]
    finally:
        program.outcomes.clear()


def replay_foreign(token: Token, path: Sequence[str] = ("",)) -> tuple[AdapterResult, tuple[Broken, ...]]:
    """Repeat the run of a token. Returns the result and the violations. Raises BadToken, CannotLoad and
    NoEnd."""
    *packages, adapter = token.dialect.split("+")
    world = World(token.early)
    with _kept(world, packages, adapter):
        program = _Program(world, packages, adapter, path, False)
        with bounded_wait(world.waiting):
            _is_random(program)
            world.settle()
            rows, run = _replayed(program, token.schedule)
    found = BrokenExecution(run.broken, token.schedule, run.preemptions)
    done = Exploration("replay", "one run")
    explored = AdapterResult(
        program.name, done, tuple(sorted(program.world.races)), tuple(sorted(program.world.uncontrolled)), {},
        "", found, token, rows, run.tasks, frozenset(world.looked),
    )  # fmt: skip
    return explored, run.broken


def _replayed(program: _Program, schedule: Sequence[int]) -> tuple[tuple[ReplayRow, ...], Replay]:
    world = program.world
    world.rows = []
    world.next_rows.clear()
    try:
        with quiet():
            run = replay(program, schedule)
        stuck = any(one.clause == PROGRESS for one in run.broken)
        waiting = [replace(row, outcome=_FOR_EVER) for row in world.next_rows.values()] if stuck else []
        return (*world.rows, *waiting), run
    finally:
        world.rows = None


def lines_of(explored: AdapterResult) -> list[str]:
    """The lines that the command prints before the table."""
    done = explored.exploration
    counts = counted(done.schedules, "schedule")
    if done.redundant:
        counts += f", {done.redundant:,} cut as redundant"
    if done.beyond:
        counts += f", {done.beyond:,} cut in a loop of more than {MAX_TURNS} turns or {MAX_STEPS:,} steps"
    rate = done.schedules / done.seconds if done.seconds else 0
    lines = [f"{explored.verdict!s:9} {explored.name}  {counts}, {done.seconds:.2f} s ({rate:,.0f}/s)"]
    lines.append(done.covered(explored.verdict))
    lines += [f"not controlled: {one}" for one in explored.uncontrolled]
    for location, races in groupby(explored.races, key=lambda one: one.location):
        *places, last = sorted({place for one in races for place in (one.first, one.second)})
        lines.append(f"data race on {location}: {', '.join(places)}{' and ' if places else ''}{last}")
    lines += [f"outcome {seen}: {counted(count, 'schedule')}" for seen, count in explored.outcomes.items()]
    return lines


def table(explored: AdapterResult, *, verbose: bool = False, folder: str = ".") -> str:
    """The counterexample: one column for each thread, with the user's lines. Below each line are its uses of shared
    objects. `folder`: where the replay finds the modules, besides `sys.path`.

    Unless `verbose`, only shared data is shown, and a call of `threading` or `queue` is one line.
    """
    found = explored.counterexample
    if found is None:
        return ""
    lines = [line for one in found.broken for line in wrapped(f"{one.subject}: {one.seen}")]
    shown = explored.rows if verbose else _one_line_a_call(_shared(explored.rows, explored.looked))
    rows = _to_the_end(explored, shown)
    if not verbose:
        rows = _once(rows)
    tasks = sorted({row.task for row in rows if row.task})
    files = sorted({row.where.rpartition(":")[0] for row in rows if row.where})
    cells: list[tuple[int, str, str]] = []
    last: dict[int, str] = {}
    before = 0
    number = alone = 0 if verbose else _alone(rows)
    if alone:
        of = explored.names[rows[0].task - 1]
        cells.append((0, "", f"-- steps 1 to {alone}: {of} alone; --verbose shows them --"))
    for row in rows[alone:]:
        if not row.task:
            cells.append((0, "", f"-- {row.what} --"))
            continue
        if row.number == NOTE:
            cells.append((row.task, "", row.what))
            last[row.task] = ""
            continue
        number += 1
        if last.get(row.task) != row.where or before != row.task:
            where = row.where.rpartition(":")[2] if len(files) == 1 else row.where
            cells.append((row.task, "", f"{where}: {row.source}" if where else "(no line of yours)"))
        # A long name goes without its class.
        what = row.what if len(row.what) <= LANE_MOST else re.sub(r"^(\w+ )\w+\.", r"\1", row.what)
        cells.append((row.task, str(number), f"  {what}"))
        last[row.task] = row.where
        before = row.task
    # Threads may have one function, and so one name.
    named = {
        task: name if explored.names.count(name) == 1 else f"{name} {task}"
        for task, name in enumerate(explored.names, 1)
        if task in tasks
    }
    texts = {name: [text for one, _, text in cells if one == task] for task, name in named.items()}
    lanes = Lanes.of(texts, width() - 4)
    lines += ["", f"    {lanes.heads()}".rstrip()]
    for task, label, text in cells:
        inset = len(text) - len(text.lstrip())
        for part in lanes.cells(named[task], text, inset) if task else [text]:
            lines.append(f"{label:>3} {part}".rstrip())
            label = ""
    made = sum(row.outcome != _FOR_EVER and row.number != NOTE for row in explored.rows)
    lines += [
        "",
        *wrapped(
            f"Lines of {', '.join(files)}. {counted(made, 'step')}, {counted(found.preemptions, 'preemption')}."
            f"{'' if verbose else ' Only shared data is shown.'}"
        ),
        "Replay it:",
        f"  {'' if folder == '.' else f'PYTHONPATH={quote(folder)} '}purgatorio explore --replay {explored.token}",
    ]
    return "\n".join(lines)


_FOR_EVER: Final = "waits for ever"

_FOLDED_LEAST: Final = 5
_KEPT: Final = 3
"""The fewest steps that are folded, and the steps of the first thread that are shown in any case."""


def _alone(rows: Sequence[ReplayRow]) -> int:
    """The number of first rows that are shown as one line: the steps of one thread before any other thread runs. The
    last of these steps are kept, and so are all steps from its first read of an object that another thread changes."""
    task = rows[0].task if rows else 0
    other = next((at for at, row in enumerate(rows) if row.task != task), len(rows))
    changed = {row.number for row in rows if row.task != task and row.kind != READ}
    read = next((at for at, row in enumerate(rows) if row.kind == READ and row.number in changed), other)
    alone = min(read, other - _KEPT)
    return alone if task and alone >= _FOLDED_LEAST else 0


def _once(rows: Sequence[ReplayRow]) -> list[ReplayRow]:
    """The rows, in which the wakes of a thread in vain stand once: what happens again each time that time passes."""
    starts = [at for at, row in enumerate(rows) if row.what.startswith(TIME_PASSES) and not row.task]
    parts = [rows[at:end] for at, end in pairwise((0, *starts, len(rows)))]
    found: list[ReplayRow] = []
    for _, equal in groupby(
        parts, lambda part: [(row.task, row.where, row.what) for row in part if row.task]
    ):
        first, *others = equal
        found += first
        if len(others) > 1:
            found.append(
                replace(others[-1][0], what=f"the same {len(others)} times more; {others[-1][0].what}")
            )
        else:
            found += [row for part in others for row in part]
    return found


def _to_the_end(explored: AdapterResult, rows: Sequence[ReplayRow]) -> Sequence[ReplayRow]:
    """The rows that matter. For a broken clause: up to the run of a task, if no call comes after it, or to the stop of
    the timer. For an exception that ended a thread: up to this, and to the next write of what the thread read last,
    because perhaps the write came too late."""
    broken = explored.counterexample.broken if explored.counterexample else ()
    if broken and all(one.clause in CLAUSES for one in broken):
        notes = [at for at, row in enumerate(rows) if row.number == NOTE]
        stop = next(at for at in notes if rows[at].what == STOP)
        *_, last = (at for at in notes if at < stop and not rows[at].what.startswith(SIZE))
        sized = any(one.clause == "T5" for one in broken)
        return rows[: stop if sized or not rows[last].what.endswith(RUNS) else last + 1]
    if any(one.clause != "EXCEPTION" for one in broken):
        return rows
    subjects = {one.subject for one in broken}
    ended = {number for number, name in enumerate(explored.names, 1) if name in subjects}
    last = max((at for at, row in enumerate(rows) if row.task in ended), default=len(rows) - 1)
    late = (
        at
        for at, row in enumerate(rows)
        if at > last and row.number == rows[last].number and row.kind != READ
    )
    return rows[: next(late, last) + 1]


def _one_line_a_call(rows: Sequence[ReplayRow]) -> list[ReplayRow]:
    """Merge the consecutive steps of one library call into one row. After a switch of threads a new row starts."""
    merged: list[ReplayRow] = []
    begun: set[int] = set()
    for (_, call), steps in groupby(rows, key=lambda row: (row.task, row.call)):
        turn = list(steps)
        if not call:
            merged += [replace(row, what=", ".join(filter(None, (row.what, row.outcome)))) for row in turn]
            continue
        words = [row.outcome for row in turn if row.outcome]
        if call not in begun:
            words.insert(0, turn[0].said)
        elif not words:
            locks = [row.what for row in turn if row.kind in (ACQUIRE, RELEASE)]
            words = locks[-1:] or [f"{turn[0].said} goes on"]
        begun.add(call)
        merged.append(replace(turn[0], what=", ".join(words)))
    return merged


def _shared(rows: Sequence[ReplayRow], looked: Set[int]) -> list[ReplayRow]:
    """The rows about objects that several threads use and one writes, whole library calls around them, and time. The
    reader of an object in `looked` is `check`."""
    users: dict[int, set[int]] = {}
    changed: set[int] = set()
    for row in rows:
        users.setdefault(row.number, set()).add(row.task)
        if row.kind != READ:
            changed.add(row.number)
    shared = [
        not row.task
        or row.number == NOTE
        or row.outcome == _FOR_EVER
        or (row.number in changed and (len(users[row.number]) > 1 or row.number in looked))
        for row in rows
    ]
    calls = {row.call for row, is_shared in zip(rows, shared, strict=True) if is_shared and row.call}
    return [row for row, is_shared in zip(rows, shared, strict=True) if is_shared or row.call in calls]


@contextmanager
def _kept(world: World, packages: Sequence[str], adapter: str) -> Iterator[None]:
    """In the body, code under test does not end this process. Afterwards restore what the exploration changes in it."""
    before, names = sys.getprofile(), (*packages, adapter.partition(":")[0])
    try:
        with process_kept(world.ends_the_process), openings_recorded(world), modules_aside(names):
            yield
    finally:
        sys.setprofile(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no log and no warning of the explored code. A thread that ends with its run would log a failure in each of
    thousands of runs, and the objects of a run end without a `close`."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with patched([Patch(warnings, "showwarning", lambda *_, **__: None)]):
            yield
    finally:
        logging.disable(before)
