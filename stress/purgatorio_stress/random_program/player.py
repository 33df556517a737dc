"""Executes a random program in a world: the part that every vocabulary shares."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from greenlet import GreenletExit

from purgatorio.sync import ExecutorClosed
from purgatorio.timer.interface import TimerClosed
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.random_program.act import Act, Drawn
from purgatorio_stress.scenario.contract import Final_
from purgatorio_stress.scenario.world import World

AT: Final = " | "
"""Between the parts of a label that says that an act was before a place when another began."""

BEFORE, THREAD, CALLBACK = "b", "t", "c"


class Planned(Exception):
    """What a callback raises because the program says so."""


class PlannedExit(BaseException):
    """What a callback ends with as with SystemExit, because the program says so: no fault policy gets it."""


def _unplanned(record: logging.LogRecord) -> bool:
    return not record.exc_info or not isinstance(record.exc_info[1], PlannedExit | GreenletExit)


# The reference tells of each exit at once, and a search makes thousands. (So does the end of each run that is cut.)
logging.getLogger("purgatorio").addFilter(_unplanned)


class Player:
    """One run's subject, and the acts on it: `do_add` carries out the verb `add`."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        self.world = world
        self.drawn = drawn
        self.broken: list[Broken] = []
        self.shut: object = False
        """True once the subject is shut down, or where the program shuts it down."""
        self.open: dict[int, str] = {}
        """The act that each task is in."""
        self.exits = {"raised": 0, "told": 0}
        """By callbacks, and to callers."""
        self.calls_back_on_callers = True
        self.planned: list[Planned] = []
        """What callbacks raised."""
        self.told: list[BaseException | None] = []
        """What came to a caller of these."""
        self.tells_the_first = False
        """Of several exceptions in one call only the first comes to the caller."""

    def is_live(self) -> bool:
        """Whether the threads run: not before, not at the end."""
        return bool(self.world.run.live)  # type: ignore[attr-defined]  # an explored run

    def thread(self) -> int:
        """The number of the one that runs now."""
        return int(self.world.run.current.index)  # type: ignore[attr-defined]  # an explored run

    def take(self, act: Act) -> None:
        """Carry it out. Planned exceptions that come through are broken promises (O8), and kept; exits end the call."""
        outer = self._begin(act.do)
        if act.do == "exit":
            self.do_exit()
        with self.owned():
            getattr(self, f"do_{act.do}")(*act.args)
        with self.owned():
            self.act_ended()
        self.open[outer[0]] = outer[1]

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Exits of callbacks come out of what is done within."""
        try:
            yield
        except PlannedExit:
            self.exits["told"] += 1

    def must_refuse(self, call: Callable[[], object], error: type[Exception], what: str) -> None:
        """A wrong argument is refused with this error; another one ends the thread (O8)."""
        with suppress(error):
            call()
            self.breaks("CHECK", what, f"a wrong argument was taken: {call}")

    def run_until_empty(self, run_all: Callable[[], object]) -> None:
        """What the exit of one leaves in a queue is run next."""
        ended = False
        while not ended:
            with self.owned():
                run_all()
                ended = True

    def _begin(self, do: str) -> tuple[int, str]:
        """Marks whom it meets: every other task that is within an act, with what that is about to use."""
        run = self.world.run
        assert isinstance(run, Execution), "random programs are explored"
        me = self.thread()
        outer = self.open.get(me, "")
        self.open[me] = do
        for task in run.tasks:
            act = self.open.get(task.index)
            if act and task.index != me and not task.finished:
                place = (run.names or {}).get(task.obj, "its beginning")
                self.world.cover(f"{act}{AT}{place}{AT}{do}")
        return me, outer

    def breaks(self, clause: str, subject: str, seen: str) -> None:
        """Keep it until the end."""
        self.broken.append(Broken(clause, subject, seen))

    @contextmanager
    def drained(self) -> Iterator[None]:
        """Time passes within, or a subject is used; no thread drains the timers of one that is shut down."""
        try:
            yield
        except (ExecutorClosed, TimerClosed):
            if not self.shut:
                raise

    def counts(self, *gauges: int) -> None:
        """What gauges say is no less than 0."""
        if min(gauges) < 0:
            self.breaks("P2", "gauge", f"waiting: {gauges}")

    def act_ended(self) -> None:
        """What the caller that called does before it continues."""

    def call_back(self, slot: str, thing: int) -> None:
        """What the program says that this thing does here."""
        for callback in self.drawn.callbacks:
            if callback.slot == slot and callback.thing == thing:
                self.take(callback.act)

    def do_raise(self) -> None:
        self.planned.append(Planned("planned"))
        raise self.planned[-1]

    def do_exit(self) -> None:
        self.exits["raised"] += 1
        raise PlannedExit

    def uncontained(self) -> Iterator[Broken]:
        """Contained exceptions that the program did not plan, which the reference raised itself; and planned ones that
        neither the fault policy nor a caller got."""
        contained = self.world.contained.caught_errors
        for error in contained:
            if not isinstance(error, Planned):
                yield Broken("O8", "faults", f"{type(error).__name__}: {error}")
        dropped = [one for one in self.planned if not any(one is error for error in (*contained, *self.told))]
        if dropped and not (self.tells_the_first and len(dropped) < len(self.planned)):
            seen = f"{len(dropped)} of {len(self.planned)} exceptions of callbacks were dropped"
            yield Broken("O8", "faults", f"{seen}: neither the fault policy nor a caller got them")

    def final(self) -> Iterator[Broken]:
        """What is broken when the run has ended."""
        yield from self.broken
        yield from self.uncontained()
        yield from self.exits_lost()

    def exits_lost(self) -> Iterator[Broken]:
        """An exit of a callback comes out of the call that called back."""
        if self.calls_back_on_callers and self.exits["raised"] and not self.exits["told"]:
            yield Broken("O8", "exits", f"{self.exits['raised']} callbacks exited, and no caller was told")


@dataclass(frozen=True, slots=True)
class Verb:
    """`args`: the domain of each number; `thing` and `other` are the things of the program. `where`: before the
    threads, in a thread, in a callback. `weight`: its relative frequency."""

    do: str
    args: tuple[str, ...] = ()
    where: str = BEFORE + THREAD + CALLBACK
    weight: int = 2


@dataclass(frozen=True, slots=True)
class Plain:
    """Of what most programs of a subject are made: things, what is done before, acts (texts, as in a program's name).

    `starts`: what is done before in other programs, whose states are far from the beginning. `settings`: where they are
    not the first of each. `raising`: others, for programs of which a callback raises. `shapes`: how many acts each
    thread has, in this order. `shifted`: settings with which the smallest are made once more.
    `mirrored`: the things of programs of which one thread is the mirror of the other. `together`: things that are due
    together; else all are the first."""

    things: tuple[tuple[int, ...], ...]
    before: str
    acts: str
    settings: tuple[int, ...] = ()
    raising: tuple[int, ...] = ()
    starts: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = (
        (1,),
        (2,),
        (1, 1),
        (3,),
        (2, 1),
        (1, 1, 1),
        (4,),
        (2, 2),
        (2, 1, 1),
    )
    shifted: tuple[int, ...] = ()
    mirrored: tuple[tuple[int, ...], ...] = ()
    together: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """All that can be asked of a subject. `settings`, `thing`: the choices for each number. `slots`: where things call
    back. `legal`: whether a caller may do this at all. `classes`: every public method of these is called by some
    program, but for those in `apart`, each with its reason."""

    name: str
    verbs: tuple[Verb, ...]
    settings: tuple[tuple[int, ...], ...]
    thing: tuple[tuple[int, ...], ...]
    build: Callable[[World, Drawn], Player]
    classes: tuple[type, ...]
    domains: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    slots: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ("pending-flag",)
    horizon_ms: int = 0
    turns: int = 4
    stepping: frozenset[str] = frozenset()
    most_things: int = 4
    weight: int = 1
    """How many times the CPU seconds of the others each of its dialects gets."""
    legal: Callable[[Drawn, str], bool] = lambda drawn, dialect: True
    plain: Plain | None = None
    small: tuple[tuple[int, ...], ...] = ()
    """The things of enumerated programs; where there are none, a few of `thing`."""
    apart: Mapping[str, str] = field(default_factory=dict)
    tick_ms: Callable[[Drawn], int] = lambda drawn: 1
    start_ms: Callable[[Drawn], int] = lambda drawn: 0
    purge_interval: Callable[[Drawn], int] = lambda drawn: 1000

    def verb(self, do: str) -> Verb | None:
        """The verb of this name."""
        return next((verb for verb in self.verbs if verb.do == do), None)


def play(vocabulary: Vocabulary, drawn: Drawn, world: World) -> Final_:
    """Set the program up: what comes before is done, the threads are ready to start."""
    run = world.run
    if isinstance(run, Execution) and run.names is None:
        run.names = {}
    player = vocabulary.build(world, drawn)
    try:
        for act in drawn.before:
            player.take(act)
    except Exception as error:
        player.breaks("O8", "before", f"ended by {type(error).__name__}: {error}")
        return player.final
    for number, acts in enumerate(drawn.threads, 1):
        world.task(f"thread-{number}", partial(_body, player, acts))
    return player.final


def _body(player: Player, acts: tuple[Act, ...]) -> None:
    for act in acts:
        player.take(act)
