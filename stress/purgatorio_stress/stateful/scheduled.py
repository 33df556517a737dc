"""The schedule as data: Hypothesis draws a program for two or three threads and the interleaving to run it in.

The explorer runs it: a schedule is the list of the chosen tasks, here made from *switches*, pairs of "after so many
steps" and "to which of the others"; without one the present task goes on. So what Hypothesis shrinks, fewer acts, fewer
switches, smaller numbers, is a shorter program with fewer preemptions, both at once. The explorer's own search covers a
given program completely and this one nothing: it looks at programs that nobody has written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final, Literal

from hypothesis import strategies as st

from purgatorio import QueuedExecutor
from purgatorio_spec.oracle.timer_set import Disagreement
from purgatorio_stress.explorer.program import Broken, carry_out
from purgatorio_stress.explorer.run import Run
from purgatorio_stress.explorer.step import TIME
from purgatorio_stress.scenario.contract import Final_, Scenario, ScenarioProgram
from purgatorio_stress.scenario.timing import walk
from purgatorio_stress.scenario.world import Operation, Task, World

Part = Literal["purgatory", "timer"]

KEYS: Final = ("a", "b")
DELAYS_MS: Final = (1, 2, 3, 4, 5)
"""On a wheel of two buckets: this level, the next, and their ends."""

END_MS: Final = 12


@dataclass(frozen=True, slots=True)
class Act:
    """`register`, `event` (ready, then a check of a key), `check`, `force`; or `add`, `cancel`, `drain`.

    `name`: an operation or task. `keys`: watched, or checked. `delay_ms`: of an `add`.
    """

    do: str
    name: str = ""
    keys: tuple[str, ...] = ()
    delay_ms: int = 0

    def __str__(self) -> str:
        parts = [self.name, "+".join(self.keys), f"{self.delay_ms} ms" if self.do == "add" else ""]
        return f"{self.do}({', '.join(part for part in parts if part)})"


@dataclass(frozen=True, slots=True)
class Interleaved:
    """What is done before, then by each thread, and the switches between them."""

    part: Part
    before: tuple[Act, ...]
    threads: tuple[tuple[Act, ...], ...]
    switches: tuple[tuple[int, int], ...]

    def lines(self) -> Iterator[str]:
        """The program, a line a thread."""
        yield f"before: {'; '.join(map(str, self.before))}"
        for number, acts in enumerate(self.threads, 1):
            yield f"thread {number}: {'; '.join(map(str, acts))}"


@st.composite
def purgatory_programs(draw: st.DrawFn) -> Interleaved:
    """One or two operations, registered before or by a thread; events, checks and completions by the threads."""
    threads: list[list[Act]] = [[] for _ in range(draw(st.sampled_from((2, 2, 3))))]
    before: list[Act] = []
    names = [f"op-{number}" for number in range(draw(st.sampled_from((1, 1, 2))))]
    keys = {name: draw(st.sampled_from((("a",), ("a",), ("a", "b"), ("b", "a")))) for name in names}
    for name in names:
        place = draw(st.sampled_from((0, 0, 1, 2)))
        (before if place == 0 else threads[place - 1]).append(Act("register", name, keys[name]))
    for acts in threads:
        for do in draw(st.lists(st.sampled_from(("check", "event", "event", "force")), max_size=2)):
            name = draw(st.sampled_from(names))
            if do == "check":
                acts.append(Act(do, keys=(draw(st.sampled_from(KEYS)),)))
            else:
                acts.append(Act(do, name, (draw(st.sampled_from(keys[name])),) if do == "event" else ()))
    return Interleaved("purgatory", tuple(before), tuple(map(tuple, threads)), draw(_switches()))


@st.composite
def timer_programs(draw: st.DrawFn) -> Interleaved:
    """Tasks added and cancelled by threads, while one may drain; the wheel has two buckets."""
    delay = st.sampled_from(DELAYS_MS)
    before = [
        Act("add", f"early-{number}", delay_ms=draw(delay)) for number in range(draw(st.integers(0, 2)))
    ]
    threads: list[list[Act]] = []
    for number in range(2):
        acts: list[Act] = []
        for do in draw(st.lists(st.sampled_from(("add", "add", "cancel", "drain")), min_size=1, max_size=2)):
            if do == "add":
                acts.append(Act(do, f"task-{number}-{len(acts)}", delay_ms=draw(delay)))
            elif do == "cancel" and before:
                acts.append(Act(do, draw(st.sampled_from([act.name for act in before]))))
            elif do == "drain":
                acts.append(Act(do))
        threads.append(acts)
    return Interleaved("timer", tuple(before), tuple(map(tuple, threads)), draw(_switches()))


def _switches() -> st.SearchStrategy[tuple[tuple[int, int], ...]]:
    """A small program has a dozen steps a thread; `sampled_from` takes all of them as often, integers would not."""
    steps = st.sampled_from([*range(12), *range(40)])
    return st.lists(st.tuples(steps, st.integers(0, 1)), max_size=3).map(tuple)


class _Switching:
    """The chooser: the present task goes on until its switch, or until it is blocked or has ended."""

    def __init__(self, switches: tuple[tuple[int, int], ...]) -> None:
        self._switches = list(switches)
        self._left = self._next()
        self._to = 0
        self.chosen: list[int] = []

    def _next(self) -> int:
        if not self._switches:
            return -1
        steps, self._to = self._switches.pop(0)
        return steps

    def choose(self, run: Run, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        last = self.chosen[-1] if self.chosen else -1
        others = [index for index in able if index != last]
        if not able:
            index = TIME
        elif self._left == 0 and others:
            index = others[self._to % len(others)]
            self._left = self._next()
        else:
            index = last if last in able else able[0]
            self._left -= self._left > 0
        self.chosen.append(index)
        return index


def run_interleaved(drawn: Interleaved, dialect: str) -> None:
    """Run it on the reference. Raises Disagreement with clause, what was seen, and the schedule."""
    scenario = Scenario(
        "drawn",
        "a drawn program",
        len(drawn.threads),
        (),
        partial(_purgatory if drawn.part == "purgatory" else _timer, drawn),
        late_ms=0 if drawn.part == "timer" else None,
        horizon_ms=END_MS,
    )
    chooser = _Switching(drawn.switches)
    _, broken = carry_out(ScenarioProgram(scenario, dialect), chooser, [])
    if broken:
        first = broken[0]
        runs = [f"{task}x{len(list(steps))}" for task, steps in groupby(chooser.chosen)]
        raise Disagreement(f"{first.clause}: {first.subject}: {first.seen}; schedule {'-'.join(runs)}")


def _purgatory(drawn: Interleaved, world: World) -> Final_:
    purgatory = world.purgatory()
    acts = [act for acts in (drawn.before, *drawn.threads) for act in acts]
    operations: dict[str, Operation] = {
        act.name: world.operation(act.name, *act.keys) for act in acts if act.do == "register"
    }

    def take(act: Act) -> None:
        if act.do == "register":
            purgatory.register(operations[act.name])
        elif act.do == "event":
            world.event(purgatory, operations[act.name], act.keys[0])
        elif act.do == "check":
            purgatory.check(act.keys[0])
        else:
            operations[act.name].force_complete()

    _spread(drawn, world, take)

    def final() -> Iterator[Broken]:
        purgatory.inner.check()
        yield from world.left_waiting(*operations.values())

    return final


def _timer(drawn: Interleaved, world: World) -> Final_:
    executor = QueuedExecutor(sync=world.sync)
    timer = world.timer(executor=executor)
    acts = [act for acts in (drawn.before, *drawn.threads) for act in acts]
    tasks = {act.name: Task(world, act.name, act.delay_ms) for act in acts if act.do == "add"}

    def take(act: Act) -> None:
        if act.do == "add":
            tasks[act.name].add_to(timer)
        elif act.do == "cancel":
            tasks[act.name].cancel_recorded()
        else:
            timer.advance_clock(0)

    _spread(drawn, world, take)
    cancelled = {act.name for act in acts if act.do == "cancel"}

    def final() -> Iterator[Broken]:
        timer.check()
        walk(world, timer, executor, END_MS)
        for name, task in tasks.items():
            fired = len(task.fired_at_ms)
            if fired != 1 and not (fired == 0 and name in cancelled):
                yield Broken("T3", name, f"fired {fired} times, at {task.fired_at_ms}")

    return final


def _spread(drawn: Interleaved, world: World, take: Callable[[Act], None]) -> None:
    """Do what comes before, then give every thread its acts."""
    for act in drawn.before:
        take(act)

    def body(acts: tuple[Act, ...]) -> None:
        for act in acts:
            take(act)

    for number, acts in enumerate(drawn.threads, 1):
        if acts:
            world.task(f"thread-{number}", partial(body, acts))
