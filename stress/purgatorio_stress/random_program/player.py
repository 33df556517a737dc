"""Executes a random program, and reads `vocabularies.toml`. All kinds of subjects share this code."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from greenlet import GreenletExit

from purgatorio.process import PROCESS, MadeBeforeFork
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.random_program.act import Act, Drawn
from purgatorio_stress.scenario.contract import Final_
from purgatorio_stress.scenario.world import World

AT: Final = " | "
"""The separator in labels `act | place | other act`: the other act began while the act was paused before the place."""

BEFORE, THREAD, CALLBACK = "b", "t", "c"


_OF_THREADS: Final = ("turn", "drain")
_CAUGHT: Final = ("run", "action", "try_complete", "on_complete", *_OF_THREADS)
"""Where a fault policy is told of an exception: of a callback, or of a thread by its name (`_OF_THREADS`)."""


class Planned(Exception):
    """The exception that a callback of the program raises on purpose."""


class PlannedExit(BaseException):
    """The exit, like SystemExit, that a callback of the program raises on purpose. No fault policy receives it."""


def _unplanned(record: logging.LogRecord) -> bool:
    return not record.exc_info or not isinstance(record.exc_info[1], PlannedExit | GreenletExit)


# The reference logs each exit. A search makes thousands of planned exits, and ends runs by GreenletExit.
logging.getLogger("purgatorio").addFilter(_unplanned)


class Player:
    """The subject of one run, and the acts on it. The method `do_add` executes the verb `add`."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        self.world = world
        self.drawn = drawn
        self.broken: list[Broken] = []
        self.open: dict[int, str] = {}
        """By number of a task, its current act."""
        self.exits = {"raised": 0, "told": 0}
        """The number of planned exits that callbacks raised, and that callers received (`told`)."""
        self.calls_back_on_callers = True
        self.planned: list[Planned] = []
        """The planned exceptions that callbacks raised."""
        self.told: list[BaseException | None] = []
        """The exits that a caller received."""
        self.tells_the_first = False
        """True if a caller receives only the first exception of several."""

    def is_live(self) -> bool:
        """Whether the threads run. False in the set-up and at the end."""
        return bool(self.world.run.live)  # type: ignore[attr-defined]  # an explored run

    def thread(self) -> int:
        """The number of the current task."""
        return int(self.world.run.current.index)  # type: ignore[attr-defined]  # an explored run

    def take(self, act: Act) -> None:
        """Execute the act. A planned exit of a callback may end it. A planned exception that ends it violates O8."""
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
        """Count a planned exit that the `with` block raises, and suppress it."""
        try:
            yield
        except PlannedExit:
            self.exits["told"] += 1

    def must_refuse(self, call: Callable[[], object], error: type[Exception], what: str) -> None:
        """`call` passes a wrong argument, and must raise this error. Any other error ends the thread (O8)."""
        with suppress(error):
            call()
            self.breaks("CHECK", what, f"a wrong argument was taken: {call}")

    def in_child(self, close: Callable[[], object], *calls: Callable[[], object]) -> None:
        """As in the child of a fork: the calls must raise MadeBeforeFork, and `close` must have no effect."""
        PROCESS.forks += 1
        try:
            for call in calls:
                self.must_refuse(call, MadeBeforeFork, "in a child")
            if close():
                self.breaks("CHECK", "in a child", "close() closed what belongs to the parent")
        finally:
            PROCESS.forks -= 1

    def run_until_empty(self, run_all: Callable[[], object]) -> None:
        """Call `run_all` again after each planned exit, because the exit leaves the other actions in the queue."""
        ended = False
        while not ended:
            with self.owned():
                run_all()
                ended = True

    def _begin(self, do: str) -> tuple[int, str]:
        """Record that an act begins. Label each other task in an act, with the object that it is about to use."""
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
        """Record a violation for the end of the run."""
        self.broken.append(Broken(clause, subject, seen))

    def counts(self, *gauges: int) -> None:
        """Check that no gauge is negative."""
        if min(gauges) < 0:
            self.breaks("P2", "gauge", f"waiting: {gauges}")

    def act_ended(self) -> None:
        """The code of a caller after each act, such as a run of the action queue."""

    def call_back(self, slot: str, thing: int) -> None:
        """Execute the acts of the program for this callback of this thing."""
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
        """Violations by exceptions: a contained exception that the program did not plan, or a planned exception that
        neither the fault policy nor a caller got."""
        contained = self.world.contained.caught_errors
        for error in contained:
            if not isinstance(error, Planned):
                yield Broken("O8", "faults", f"{type(error).__name__}: {error}")
        for where, subject in self.world.contained.of:
            if where not in _CAUGHT or isinstance(subject, str) != (where in _OF_THREADS):
                yield Broken("O8", "faults", f"caught in {where!r} of {subject!r}")
        dropped = [one for one in self.planned if not any(one is error for error in (*contained, *self.told))]
        if dropped and not (self.tells_the_first and len(dropped) < len(self.planned)):
            seen = f"{len(dropped)} of {len(self.planned)} exceptions of callbacks were dropped"
            yield Broken("O8", "faults", f"{seen}: neither the fault policy nor a caller got them")

    def final(self) -> Iterator[Broken]:
        """The violations of the run, at its end."""
        yield from self.broken
        yield from self.uncontained()
        yield from self.exits_lost()

    def exits_lost(self) -> Iterator[Broken]:
        """A violation if callbacks exited and no call raised the exit. A caller may get the first exception instead."""
        first = self.tells_the_first and self.planned
        if self.calls_back_on_callers and self.exits["raised"] and not self.exits["told"] and not first:
            yield Broken(
                "O8", "exits", f"{self.exits['raised']} callbacks exited, and no caller received the exit"
            )


@dataclass(frozen=True, slots=True)
class Verb:
    """A possible call. `args`: the domain of each argument; the domain `thing` has the things of the program. `where`:
    before the threads, in a thread, in a callback. `weight`: the relative frequency."""

    do: str
    args: tuple[str, ...] = ()
    where: str = BEFORE + THREAD + CALLBACK
    weight: int = 2


@dataclass(frozen=True, slots=True)
class Plain:
    """The parts of the most common programs of a subject: things, set-up (`before`), acts. Texts as in a name.

    `starts`: other set-ups, for states far from the initial state. `settings`: the settings, if not the first value of
    each. `raising`: settings of programs whose callback raises. `shapes`: the numbers of acts of the threads, in the
    order of the search. `shifted`: further settings for the smallest programs. `mirrored`: the things of programs whose
    threads mirror each other. `together`: things that are due together (default: copies of the first).
    """

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
    """All calls of a subject. `settings`, `thing`: the choices for each number. `slots`: the callbacks of things.
    `legal`: whether callers may write the program. `classes`: some program calls each public method of these classes,
    except those in `apart`, with the reason."""

    name: str
    verbs: Mapping[str, Verb]
    settings: tuple[tuple[int, ...], ...]
    thing: tuple[tuple[int, ...], ...]
    build: Callable[[World, Drawn], Player]
    classes: tuple[type, ...]
    plain: Plain
    domains: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    slots: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ("pending-flag",)
    horizon_ms: int = 0
    turns: int = 4
    stepping: frozenset[str] = frozenset()
    most_things: int = 4
    weight: int = 1
    """The relative CPU time of each of its dialects."""
    legal: Callable[[Drawn, str], bool] = lambda drawn, dialect: True
    small: tuple[tuple[int, ...], ...] = ()
    """The things of enumerated programs. If empty, some values of `thing`."""
    apart: Mapping[str, str] = field(default_factory=dict)
    tick_ms: Callable[[Drawn], int] = lambda drawn: 1
    start_ms: Callable[[Drawn], int] = lambda drawn: 0
    purge_interval: Callable[[Drawn], int] = lambda drawn: 1000

    @property
    def plain_settings(self) -> tuple[int, ...]:
        return self.plain.settings or tuple(choices[0] for choices in self.settings)

    def things_of(self, act: Act) -> list[int]:
        """The things among the arguments of an act."""
        domains = self.verbs[act.do].args
        return [number for domain, number in zip(domains, act.args, strict=True) if domain == "thing"]

    def renumbered(self, act: Act, number: Callable[[str, int], int]) -> Act:
        """The same act with other arguments: `number` gets the domain and the number of each."""
        return Act(act.do, tuple(map(number, self.verbs[act.do].args, act.args)))


_TABLE: Final = tomllib.loads(files(__package__).joinpath("vocabularies.toml").read_text("utf-8"))


def vocabulary(
    name: str,
    build: Callable[[World, Drawn], Player],
    *classes: type,
    like: tuple[str, ...] = (),
    lists: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    **own: Any,
) -> Vocabulary:
    """The vocabulary in the section `name` of `vocabularies.toml`, or in the sections `like`, of which the last counts
    most. `lists`: the lists that the table names. `own`: the fields that are not in the table."""
    said = {key: value for section in like or (name,) for key, value in _TABLE[section].items()}
    verbs = said["verbs"]
    while "{" in verbs:
        verbs = verbs.format_map(_TABLE["groups"])
    said["verbs"] = verbs_of(verbs)
    for key in ("settings", "thing"):
        said[key] = [lists[one] if isinstance(one, str) else one for one in said[key]]
    if "stepping" in said:
        said["stepping"] = frozenset(said["stepping"].split())
    said["plain"] = Plain(**_frozen(said["plain"]))
    return Vocabulary(name, build=build, classes=classes, **own | _frozen(said))


def verbs_of(text: str) -> dict[str, Verb]:
    """The calls in a text of the table, by their names."""
    return {verb.do: verb for verb in map(_verb, text.split(","))}


def _verb(text: str) -> Verb:
    call, *more = text.split()
    do, *args = call.split(".")
    where = "".join(filter(str.isalpha, more)) or BEFORE + THREAD + CALLBACK
    return Verb(do, tuple(args), where, int("".join(filter(str.isdigit, more)) or 2))


def _frozen(value: Any) -> Any:
    """Lists as tuples."""
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def play(vocabulary: Vocabulary, drawn: Drawn, world: World) -> Final_:
    """Set up the program: create the subject, execute `before`, create the threads. Returns the check of the end."""
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
