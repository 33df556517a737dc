"""Random programs with sleeps, timed waits and time-outs, as data: for the seam here, for foreign code in `timed`.

A program is a tuple of threads, a thread a tuple of acts, an act its name and how long it may take, in tenths of a
second (None: no time-out). Most durations are equal, so that much is due at one instant.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from purgatorio.sync import Lock, Sync
from purgatorio_stress.explorer.controlled import ControlledSync
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.run import Execution

Act = tuple[str, int | None]
Timed = tuple[tuple[Act, ...], ...]

DURATIONS: tuple[int | None, ...] = (10, 10, 10, 10, 5, 20, 1, 0)
FAMILIES = (("wait", "set"), ("take", "give"), ("get", "put"), ("notice", "notify"), ("join", "alive"),
            ("hold", "hold"), ("submit", "note"))  # fmt: skip
"""Acts on one object: the first waits with a time-out; the second changes its condition, or reads it."""
WAITS = frozenset(first for first, _ in FAMILIES) - {"submit"}

CURRENT: Timed = ()
"""The acts of the adapter `timed:Player`."""


def random_program(seed: int) -> Timed:
    """Two or three threads with some five acts together on one thing or two; sleeps, and at least one timed wait."""
    rng = random.Random(seed)
    while True:
        names = [name for family in rng.sample(FAMILIES, rng.choice((1, 1, 2))) for name in family]
        sizes = rng.choice(((2, 2), (3, 2), (3, 3), (2, 1, 1), (1, 1, 1), (2, 2, 1)))
        program = tuple(tuple(_act(rng, names) for _ in range(size)) for size in sizes)
        if any(name in WAITS for acts in program for name, _ in acts):
            return program


def _act(rng: random.Random, names: Sequence[str]) -> Act:
    name = rng.choice((*names, "sleep", rng.choice(("sleep", "note", "time"))))
    if name not in WAITS and name != "sleep":
        return name, None
    never = name != "sleep" and rng.random() < 0.05
    return name, None if never else rng.choice(DURATIONS)


@dataclass
class ThroughTheSeam:
    """`Program` over one of these: locks, conditions, a worker to join. What each act saw is the outcome."""

    acts: Timed
    outcomes: set[str] = field(default_factory=set)
    name: str = "timed"
    turns: int = 4
    horizon_ms: int = 0

    def set_up(self, run: Execution, /) -> None:
        sync = ControlledSync(run)
        self._run = run
        self._seen: list[list[object]] = [[] for _ in self.acts]
        self._things = _Things(sync, run)
        for number, acts in enumerate(self.acts):
            run.spawn(f"T{number}", self._body(acts, self._seen[number]))

    def _body(self, acts: Sequence[Act], seen: list[object]) -> Callable[[], None]:
        things = self._things

        def body() -> None:
            for name, tenths in acts:
                seen.append(things.do(name, None if tenths is None else tenths * 100))

        return body

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        errors = [repr(task.error) for task in run.tasks if task.error is not None]
        self.outcomes.add(repr((run.stop.kind, errors, (self._seen, self._things.ran))))
        return ()


class _Things:
    def __init__(self, sync: Sync, run: Execution) -> None:
        self._run = run
        self._sync = sync
        self._lock = sync.lock("shared")
        self._changed = sync.condition(self._lock, "changed")
        self._private = [sync.lock(f"private {n}") for n in range(8)]
        self._asleep = [sync.condition(lock, "asleep") for lock in self._private]
        self._set = sync.cell(False, "set")
        self._permits = sync.cell(0, "permits")
        self._order = sync.atomic_int(0, "order")
        self._executor = sync.executor("executor")
        self.ran = []
        self._worker = sync.spawn("child", self._child)

    ran: list[int]

    def _child(self) -> None:
        self._sleep(1_000)

    def _sleep(self, ms: int) -> object:
        me = self._run.current.index
        with self._private[me]:
            return self._asleep[me].wait(ms)

    def _until(self, lock: Lock, ms: int | None, holds: Callable[[], bool]) -> bool:
        """One wait, as `Condition.wait` with a look before and after."""
        with lock:
            return holds() or (self._changed.wait(ms) and holds())

    def _change(self, change: Callable[[], None]) -> object:
        with self._lock:
            change()
            self._changed.notify_all()
        return None

    def do(self, name: str, ms: int | None) -> object:
        if name == "sleep":
            return self._sleep(ms or 0)
        if name == "join":
            return self._worker.join(ms)
        if name == "wait":
            return self._until(self._lock, ms, self._set.get)
        if name in ("take", "get"):
            return self._until(self._lock, ms, self._take)
        if name == "notice":
            with self._lock:
                return self._changed.wait(ms)
        if name == "hold":
            with self._lock:
                return self._sleep(ms or 0)
        if name == "set":
            return self._change(lambda: self._set.set(True))
        if name in ("give", "put"):
            return self._change(lambda: self._permits.set(self._permits.get() + 1))
        if name == "notify":
            return self._change(lambda: None)
        if name == "submit":
            self._executor.submit(self._ran)
            return None
        if name == "time":
            return self._run.now_ms
        return self._order.add(1)

    def _ran(self) -> None:
        self.ran.append(self._order.get())

    def _take(self) -> bool:
        if not self._permits.get():
            return False
        self._permits.set(self._permits.get() - 1)
        return True
