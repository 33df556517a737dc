"""Small histories of one run, made by playing the completion protocol with threads that take turns at random.

`play` gives a legal history; `broken_run.py` spoils it. Everything follows from a `Plan`, so that Hypothesis can shrink
it and a seed can repeat it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from purgatorio_spec.trace.record import Phase, State

KEYS: Final = ("k0", "k1", "k2")
STEPS: Final = 400
"""Turns after which a run is cut off, with calls still open."""

Steps = Generator[None, None, None]
_DONE: Final = object()


@dataclass(slots=True, eq=False)
class Cell:
    """An event before it gets its `i`: a return points at its call itself."""

    th: str
    t: int
    ph: Phase
    f: str
    id: str | None = None
    call: Cell | None = None
    keys: tuple[str, ...] | None = None
    delay_ns: int | None = None
    deadline_t: int | None = None
    t_call: int | None = None
    out: int | None = None
    err: str | None = None
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: how many operations, how many turns of the actors, and whether callbacks call back."""

    seed: int
    profile: str = "locked"
    operations: int = 2
    actions: int = 4
    nesting: bool = False


@dataclass(slots=True, eq=False)
class _Operation:
    id: str
    keys: tuple[str, ...]
    delay_ns: int | None
    ready: bool = False
    completed: bool = False
    cancelled: bool = False
    deadline_t: int | None = None
    holder: str = ""
    depth: int = 0

    def done(self) -> bool:
        """Whether it is completed by now: another thread may have done it since the last look."""
        return self.completed


@dataclass(slots=True)
class World:
    """The purgatory that is played, and the record of it."""

    plan: Plan
    random: Random
    cells: list[Cell] = field(default_factory=list)
    watched: dict[str, list[_Operation]] = field(default_factory=dict)
    operations: list[_Operation] = field(default_factory=list)
    t: int = 1_000

    def put(self, th: str, ph: Phase, f: str, operation: _Operation | None = None) -> Cell:
        """Record an event."""
        self.t += self.random.randrange(1, 40)
        cell = Cell(th, self.t, ph, f, None if operation is None else operation.id)
        self.cells.append(cell)
        return cell

    def ret(self, call: Cell, out: int | None = None) -> Cell:
        """Record the return of a call."""
        cell = self.put(call.th, "ret", call.f)
        cell.id, cell.call, cell.out = call.id, call, out
        return cell

    def make(self) -> _Operation:
        """A new operation."""
        keys = tuple(self.random.choices(KEYS, k=self.random.randrange(1, 4)))
        delay_ns = self.random.choice((None, 0, 200, 900, 4_000))
        made = _Operation(f"op-{len(self.operations)}", keys, delay_ns)
        self.operations.append(made)
        return made

    def lock(self, th: str, op: _Operation) -> Steps:
        """Wait for the operation's lock (reentrant)."""
        while op.holder not in ("", th):
            yield
        op.holder, op.depth = th, op.depth + 1

    def unlock(self, op: _Operation) -> None:
        """Give the operation's lock back."""
        op.depth -= 1
        if not op.depth:
            op.holder = ""


def force(world: World, th: str, op: _Operation) -> Iterator[None]:
    """`force_complete`: `op.completed` tells afterwards, and the return is the last cell of this thread."""
    call = world.put(th, "call", "force_complete", op)
    yield
    yield from world.lock(th, op)
    won = not op.completed
    if won:
        op.completed = True
        if op.deadline_t is not None and not op.cancelled and world.random.random() < 0.7:
            yield from cancel(world, th, op)
        callback = world.put(th, "call", "on_complete", op)
        yield
        if world.plan.nesting and world.random.random() < 0.5:
            yield from (
                check(world, th) if world.random.random() < 0.6 else register(world, th, world.make())
            )
        world.ret(callback)
    world.unlock(op)
    yield
    world.ret(call, int(won))


def cancel(world: World, th: str, op: _Operation) -> Steps:
    """`timer_cancel`."""
    call = world.put(th, "call", "timer_cancel", op)
    op.cancelled = True
    yield
    world.ret(call, world.random.choice((1, None)))


def attempt(world: World, th: str, op: _Operation) -> Steps:
    """`try_complete` under the lock."""
    yield from world.lock(th, op)
    if not op.completed:
        call = world.put(th, "call", "try_complete", op)
        yield
        before = op.done()
        if op.ready:
            yield from force(world, th, op)
        world.ret(call, int(op.done() and not before))
    world.unlock(op)


def register(world: World, th: str, op: _Operation) -> Steps:
    """`try_complete_else_watch`, with the timer's add and its late cancel."""
    call = world.put(th, "call", "try_complete_else_watch", op)
    call.keys, call.delay_ns = op.keys, op.delay_ns
    yield
    yield from world.lock(th, op)
    yield from attempt(world, th, op)
    mine = op.done()
    if not mine:
        for key in op.keys:
            world.watched.setdefault(key, []).append(op)
            yield
        yield from attempt(world, th, op)
        mine = op.done()
    world.unlock(op)
    if not op.done() and op.delay_ns is not None:
        add = world.put(th, "call", "timer_add", op)
        add.delay_ns = op.delay_ns
        yield
        deadline_t = world.t + op.delay_ns
        world.ret(add).deadline_t = deadline_t
        op.deadline_t = deadline_t
        if op.done():
            yield from cancel(world, th, op)
    yield
    world.ret(call, int(mine))


def check(world: World, th: str) -> Steps:
    """`check_and_complete` of one key, after some operations became ready."""
    for op in world.operations:
        if not op.ready and world.random.random() < 0.4:
            began_t = world.t
            op.ready = True
            point = world.put(th, "at", "ready", op)
            point.t_call = world.random.choice((began_t, None))
    key = world.random.choice(KEYS)
    call = world.put(th, "call", "check_and_complete")
    call.keys = (key,)
    completed = 0
    for op in list(world.watched.get(key, [])):
        yield
        if op.completed:
            continue
        at = len(world.cells)
        yield from attempt(world, th, op)
        completed += any(
            c.f == "try_complete" and c.id == op.id and c.out == 1 and c.th == th for c in world.cells[at:]
        )
    world.ret(call, completed)


def cancel_key(world: World, th: str) -> Steps:
    """`cancel_for_key`."""
    key = world.random.choice(KEYS)
    call = world.put(th, "call", "cancel_for_key")
    call.keys = (key,)
    yield
    taken = world.watched.pop(key, [])
    for op in dict.fromkeys(taken):
        if op.deadline_t is not None and not op.cancelled:
            yield from cancel(world, th, op)
        world.put(th, "at", "cancelled", op).keys = (key,)
        yield
    world.ret(call, len(taken))


def read(world: World, th: str) -> Steps:
    """A gauge, as an interval or as a point."""
    state = State(sum(map(len, world.watched.values())), len(world.operations))
    if world.random.random() < 0.5:
        call = world.put(th, "call", "gauge")
        yield
        world.ret(call).state = state
    else:
        world.put(th, "at", "gauge").state = state
    yield


def actor(world: World, th: str) -> Steps:
    """A thread that registers, checks, forces, cancels by key and reads."""
    for _ in range(world.plan.actions):
        roll = world.random.random()
        if roll < 0.35 and len(world.operations) < world.plan.operations:
            op = world.make()
            if world.random.random() < 0.2:
                op.ready = True
                world.put(th, "at", "ready", op)
            yield from register(world, th, op)
        elif roll < 0.8 or not world.operations:
            yield from check(world, th)
        elif roll < 0.88:
            yield from force(world, th, world.random.choice(world.operations))
        elif roll < 0.95:
            yield from cancel_key(world, th)
        else:
            yield from read(world, th)


def timer(world: World, th: str) -> Steps:
    """The thread that runs expired tasks; it advances time when a deadline lies ahead."""
    while True:
        due = [op for op in world.operations if op.deadline_t is not None and not op.cancelled]
        if not due:
            yield
            continue
        op = min(due, key=lambda one: one.deadline_t or 0)
        if world.random.random() < 0.6:
            yield
            continue
        world.t = max(world.t, op.deadline_t or 0)
        op.cancelled = True
        call = world.put(th, "call", "timer_fire", op)
        yield
        if not op.completed:
            yield from force(world, th, op)
            expired = world.put(th, "call" if world.random.random() < 0.5 else "at", "on_expiration", op)
            yield
            if expired.ph == "call":
                world.ret(expired)
        world.ret(call)


def play(plan: Plan) -> list[Cell]:
    """A history by the book, except that a run may be cut off."""
    world = World(plan, Random(plan.seed))
    actors = [actor(world, f"th-{at}") for at in range(3)]
    reaper = timer(world, "reaper")
    for _ in range(STEPS):
        if not actors:
            break
        turn = world.random.choice([*actors, reaper])
        if next(turn, _DONE) is not None:
            actors.remove(turn)
    for _ in range(world.random.choice((0, 60, 200))):
        next(reaper)
    if world.random.random() < 0.3:
        world.t += 3_000_000_000
        world.put("th-0", "at", "quiesce").state = State(0, 0)
    return world.cells
