"""Drawn histories: a purgatory and a timer played step by step, threads taking turns at random, and what they record.

Legal unless a `fault` is named, which changes one decision of the player. Shares no code with the clauses: what is
legal follows from Kafka's protocol as it is played here (registration, check, force, cancel by key, shutdown, purge,
reaper and executor, late adds, adds again, nested checks, exceptions), not from a formula about the record.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from purgatorio_spec.judge.result import RunTally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.record import (
    FUNCTIONS,
    SINCE_2,
    Event,
    Header,
    Implementation,
    State,
    TimerConstants,
    TraceClock,
)
from spec.trace_builder import RecordedRun

US: Final = 1_000
MS: Final = 1_000_000
TICK_NS: Final = MS
PURGATORIES: Final = ("locked", "pending-flag")
LATE_NS: Final = 30_000 * MS
"""Above any time that a drawn run takes: a timer that is played is late by as much as threads take turns."""

PLAYED: Final = tuple(f for f in FUNCTIONS if f not in SINCE_2)
"""The functions that the player records. For periodic tasks and resets, see `drawn_periodic`."""

Steps = Generator[None, None, Any]


RACES: Final = frozenset({"force-gives-up", "gives-up", "no-retry", "no-second-look", "force-without-lock"})
MANY: Final = RACES | {
    "no-purge",
    "lost-key-stays",
    "key-gives-up",
    "given-back-expires",
    "skips-one",
    "watches-one-key",
}
"""Faults that show in a race only, and those that need many operations."""


class Raised(Exception):
    """An operation's `try_complete` raised."""


@dataclass(eq=False)
class Op:
    id: str
    keys: tuple[str, ...]
    delay_ns: int | None
    raises: bool = False
    ready: bool = False
    completed: bool = False
    owner: str | None = None
    depth: int = 0
    pending: bool = False


@dataclass
class Task:
    """A timer task: `armed` is its deadline while it is in the timer."""

    armed: int | None = None
    stale: bool = False
    """Cancelled, and counted until the next tick."""


class Drawn(RecordedRun):
    """What came of it."""


@dataclass
class Player:
    random: Random
    profile: str
    fault: str = ""
    virtual: bool = False
    """Time stands still but for the jumps inside `advance_clock`, which purges as well."""
    jump: int = 0
    i: int = -1
    t: int = 1_000 * MS
    events: list[Event] = field(default_factory=list)
    ops: dict[str, Op] = field(default_factory=dict)
    watched: dict[str, list[Op]] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    queue: list[str] = field(default_factory=list)
    estimate: int = 0
    interval: int = 3
    early_ns: int = 0
    late_ns: int | None = None
    deadline_on_call: bool = False
    closed: bool = False
    busy: int = 0
    faults: int = 0
    leaked: int = 0
    numbers: int = 0

    # The record.

    def note(self, th: str, ph: str, f: str, name: str | None = None, **fields: Any) -> int:
        self.i += 1 if self.random.random() < 0.95 else self.random.randrange(2, 5)
        self.t += 0 if self.virtual else self.random.randrange(1, 2 * US)
        self.events.append(Event(self.i, th, self.t, ph, f, name, **fields))  # type: ignore[arg-type]  # a phase by name
        return self.i

    def broken(self, fault: str) -> bool:
        """Whether to go wrong here: once or more in a run, at places that are drawn."""
        if self.fault != fault or (self.faults and self.random.random() < 0.5):
            return False
        self.faults += 1
        return True

    # The timer.

    def add(self, th: str, name: str, delay_ns: int) -> Steps:
        c = self.note(th, "call", "timer_add", name, delay_ns=delay_ns)
        if self.deadline_on_call:
            self.events[-1] = self.events[-1]._replace(deadline_t=self.t + delay_ns)
        yield
        deadline_t = self.t + delay_ns
        task = self.tasks.setdefault(name, Task())
        readded = task.armed is not None
        task.armed, task.stale = deadline_t, False
        if self.broken("lost") or (readded and self.broken("lost-when-moved")):
            task.armed = None
        if self.broken("early"):
            task.armed = deadline_t - self.early_ns - max(delay_ns // 2, 1)
        if self.broken("late"):
            task.armed = deadline_t + 2 * LATE_NS
        yield
        told = {} if self.deadline_on_call else {"deadline_t": deadline_t}
        self.note(th, "ret", "timer_add", name, c=c, **told)

    def cancel(self, th: str, name: str) -> Steps:
        c = self.note(th, "call", "timer_cancel", name)
        yield
        task = self.tasks.setdefault(name, Task())
        done = task.armed is not None
        if done and not self.broken("cancel-does-nothing"):
            task.armed = None
            task.stale = PROFILES[self.profile].counts_cancelled
            self.leaked += self.broken("cancel-is-not-counted")
        if not done and PROFILES[self.profile].cancel_is_barrier and name in self.queue:
            self.queue.remove(name)
            done = True
        out = None if self.profile in PURGATORIES else int(done)
        if out and self.random.random() < 0.1:
            out = None
        yield
        self.note(th, "ret", "timer_cancel", name, c=c, out=out)

    def hand_over(self) -> None:
        for name, task in self.tasks.items():
            task.stale = False
            if task.armed is not None and task.armed - self.early_ns <= self.t:
                task.armed = None
                self.queue.append(name)
                if self.broken("fires-twice"):
                    self.queue.append(name)

    def reap(self) -> None:
        """One drain; then the purge looks at its estimate."""
        if self.closed:
            return
        self.hand_over()
        if self.estimate - self.delayed() > self.interval and self.fault != "no-purge":
            self.estimate = self.delayed()
            self.purge()

    def purge(self) -> None:
        for key in list(self.watched):
            self.watched[key] = [op for op in self.watched[key] if not op.completed]

    def delayed(self) -> int:
        return sum(task.armed is not None for task in self.tasks.values())

    def fire(self, th: str, name: str) -> Steps:
        c = self.note(th, "call", "timer_fire", name)
        yield
        op = self.ops.get(name)
        if op is not None and not self.broken("expiry-does-not-complete"):
            if self.broken("expires-before"):
                self.note(th, "at", "on_expiration", name)
            won = yield from self.force(th, op)
            if (won and not self.broken("no-on-expiration")) or (
                not won and self.broken("expired-for-nothing")
            ):
                self.note(th, "at", "on_expiration", name)
                if self.broken("expired-twice"):
                    self.note(th, "at", "on_expiration", name)
        yield
        self.note(th, "ret", "timer_fire", name, c=c)

    # The operation.

    def lock(self, th: str, op: Op) -> Steps:
        while op.owner not in (None, th):
            yield
        op.owner, op.depth = th, op.depth + 1

    def unlock(self, op: Op) -> None:
        op.depth -= 1
        op.owner = op.owner if op.depth else None

    def force(self, th: str, op: Op) -> Steps:
        c = self.note(th, "call", "force_complete", op.id)
        locks = self.profile == "locked" and not self.broken("force-without-lock")
        yield
        if op.owner not in (None, th) and not op.completed and self.broken("force-gives-up"):
            self.note(th, "ret", "force_complete", op.id, c=c, out=0)
            return False
        if locks and not op.completed:
            yield from self.lock(th, op)
        else:
            locks = False
        if op.completed and not self.broken("two-winners"):
            if self.broken("loser-runs-callback"):
                yield from self.callback(th, op)
            if locks:
                self.unlock(op)
            self.note(th, "ret", "force_complete", op.id, c=c, out=int(self.broken("true-twice")))
            return False
        op.completed = True
        if op.id in self.tasks and not self.broken("keeps-its-task"):
            yield from self.cancel(th, op.id)
        if not self.broken("no-callback"):
            yield from self.callback(th, op)
        if locks:
            self.unlock(op)
        yield
        self.note(th, "ret", "force_complete", op.id, c=c, out=int(not self.broken("winner-says-no")))
        if self.broken("callback-outside"):
            yield from self.callback(th, op)
        return True

    def callback(self, th: str, op: Op) -> Steps:
        c = self.note(th, "call", "on_complete", op.id)
        yield
        if self.random.random() < 0.1 and self.watched:
            key = self.random.choice(list(self.watched))
            if key not in op.keys:
                yield from self.check(th, key)
        yield
        self.note(th, "ret", "on_complete", op.id, c=c)

    def attempt(self, th: str, op: Op) -> Steps:
        c = self.note(th, "call", "try_complete", op.id)
        yield
        seen = op.ready or self.broken("true-unready")
        yield from self.dwell()
        if op.raises and self.random.random() < 0.3:
            self.note(th, "ret", "try_complete", op.id, c=c, err="Boom")
            raise Raised
        won = False
        if seen:
            won = yield from self.force(th, op)
        said = not won if self.broken("try-lies") and not self.fault.startswith("true") else won
        self.note(th, "ret", "try_complete", op.id, c=c, out=int(said))
        return won

    def safe_try(self, th: str, op: Op) -> Steps:
        if self.profile == "locked":
            if op.owner not in (None, th) and self.broken("gives-up"):
                return False
            yield from self.lock(th, op)
            try:
                return False if op.completed else (yield from self.attempt(th, op))
            finally:
                self.unlock(op)
        while True:
            if op.owner in (None, th):
                yield from self.lock(th, op)
                op.pending = False
                try:
                    yield
                    won = yield from self.attempt(th, op)
                finally:
                    self.unlock(op)
                again = op.pending and self.fault != "no-retry"
                if won:
                    return True
            else:
                again, op.pending = not op.pending and self.fault != "no-retry", True
            yield
            if op.completed or not again:
                return False

    def register(self, th: str, op: Op) -> Steps:
        c = self.note(th, "call", "try_complete_else_watch", op.id, keys=op.keys, delay_ns=op.delay_ns)
        # A table of requests may arm before its first evaluation.
        armed = self.profile == "pending-flag" and not self.fault and self.random.random() < 0.2
        if armed and op.delay_ns is not None:
            yield from self.add(th, op.id, op.delay_ns)
            if op.completed:
                yield from self.cancel(th, op.id)
            for _ in range(self.random.randrange(60)):
                yield
            if op.completed:
                self.note(th, "ret", "try_complete_else_watch", op.id, c=c, out=0)
                return
        try:
            won = yield from (self.register_locked if self.profile == "locked" else self.register_flag)(
                th, op
            )
        except Raised:
            self.note(th, "ret", "try_complete_else_watch", op.id, c=c, err="Boom")
            return
        done = won or op.completed
        if not (armed or done) and op.delay_ns is not None and not self.broken("not-armed"):
            yield from self.add(th, op.id, op.delay_ns)
            if self.ops[op.id].completed:
                yield from self.cancel(th, op.id)
        yield
        said = not won if self.broken("registration-lies") else won
        self.note(th, "ret", "try_complete_else_watch", op.id, c=c, out=int(said))

    def register_locked(self, th: str, op: Op) -> Steps:
        yield from self.lock(th, op)
        try:
            if (yield from self.attempt(th, op)):
                return True
            yield from self.watch(op)
            return False if self.broken("no-second-look") else (yield from self.attempt(th, op))
        finally:
            self.unlock(op)

    def register_flag(self, th: str, op: Op) -> Steps:
        if (yield from self.attempt(th, op)):
            return True
        yield from self.watch(op)
        return False if op.completed else (yield from self.safe_try(th, op))

    def dwell(self) -> Steps:
        """A callback takes its time, longer where the fault needs a race."""
        for _ in range(self.random.randrange(40) if self.fault in RACES else 1):
            yield

    def watch(self, op: Op) -> Steps:
        yield from self.dwell()
        keys = op.keys[:1] if self.broken("watches-one-key") else op.keys
        for key in keys:
            if not op.completed:
                self.watched.setdefault(key, []).append(op)
            yield
        self.estimate += 1

    def check(self, th: str, key: str) -> Steps:
        c = self.note(th, "call", "check_and_complete", keys=(key,))
        yield
        count = 0
        try:
            for op in list(self.watched.get(key, ())):
                if op.completed:
                    self.unlink(key, op)
                elif not self.broken("skips-one") and (yield from self.safe_try(th, op)):
                    count += 1
                    self.unlink(key, op)
                yield
        except Raised:
            self.note(th, "ret", "check_and_complete", c=c, err="Boom")
            return
        count += self.broken("counts-more") - bool(count and self.broken("counts-less"))
        self.note(th, "ret", "check_and_complete", c=c, out=count)

    def unlink(self, key: str, op: Op) -> None:
        if op in self.watched.get(key, ()):
            self.watched[key].remove(op)

    def cancel_key(self, th: str, key: str) -> Steps:
        c = self.note(th, "call", "cancel_for_key", keys=(key,))
        yield
        ops = list(dict.fromkeys(self.watched.get(key, [])))
        if ops and self.broken("key-gives-up"):
            ops = []
        elif not self.broken("lost-key-stays"):
            self.watched.pop(key, None)
        for op in ops:
            if op.id in self.tasks and not self.broken("given-back-expires"):
                yield from self.cancel(th, op.id)
        inside = self.random.random() < 0.5
        if not inside:
            self.note(th, "ret", "cancel_for_key", c=c, out=len(ops))
        for op in ops:
            self.note(th, "at", "cancelled", op.id, keys=(key,))
        if inside:
            self.note(th, "ret", "cancel_for_key", c=c, out=len(ops))

    def state(self) -> State:
        watched = sum(len(ops) for ops in self.watched.values())
        delayed = self.delayed() + sum(task.stale for task in self.tasks.values()) + self.leaked
        watched += 1_000 * self.broken("watched-too-many") - watched * self.broken("watched-too-few")
        if self.broken("size-negative"):
            delayed = -1
        delayed = 0 if self.broken("size-too-small") else delayed + 1_000 * self.broken("size-too-large")
        if self.profile not in PURGATORIES:
            return State(None, delayed)
        return State(watched, delayed, sum(map(bool, self.watched.values())))

    # Threads.

    def user(self, th: str) -> Steps:
        purgatory = self.profile in PURGATORIES
        for _ in range(self.random.randrange(30, 60) if self.fault in MANY else self.random.randrange(3, 16)):
            acts: list[Callable[[str], Steps]] = [self.timer_act] if not purgatory else [
                self.new_op, self.new_op, self.new_op, self.event, self.event, self.outsider, self.plain_act,
                self.key_act,
            ]  # fmt: skip
            if self.fault == "no-purge":
                acts = [self.new_op, self.outsider, self.outsider]
            yield from self.random.choice(acts)(th)
            yield

    def delay(self) -> int:
        return self.random.choice(
            (0, 0, 20 * US, 200 * US, 5 * MS, 50 * MS, 5_000 * MS)
        ) + self.random.randrange(50)

    def new_op(self, th: str) -> Steps:
        self.numbers += 1
        keys = tuple(self.random.choice("klmn") for _ in range(self.random.randrange(1, 4)))
        op = Op(f"op-{self.numbers}", keys, self.delay() if self.random.random() < 0.9 else None)
        op.raises = self.random.random() < 0.05
        self.ops[op.id] = op
        if self.random.random() < 0.2:
            self.make_ready(th, op)
        yield from self.register(th, op)

    def make_ready(self, th: str, op: Op) -> None:
        if not op.ready:
            before_t = self.t
            op.ready = True
            self.note(th, "at", "ready", op.id, t_call=before_t)

    def event(self, th: str) -> Steps:
        op = self.random.choice(list(self.ops.values())) if self.ops else None
        if op is not None and self.random.random() < 0.6:
            self.make_ready(th, op)
            yield
        yield from self.check(th, self.random.choice(op.keys) if op is not None else "k")

    def outsider(self, th: str) -> Steps:
        if self.ops:
            yield from self.force(th, self.random.choice(list(self.ops.values())))

    def key_act(self, th: str) -> Steps:
        if self.random.random() < 0.3 or "key" in self.fault or self.fault == "given-back-expires":
            yield from self.cancel_key(th, self.random.choice("klmn"))

    def plain_act(self, th: str) -> Steps:
        if self.random.random() < 0.3:
            yield from self.timer_act(th)

    def timer_act(self, th: str) -> Steps:
        plain = [name for name in self.tasks if name.startswith("task")]
        if plain and self.random.random() < 0.5:
            name = self.random.choice(plain)
            again = self.profile != "netty-hashed-wheel"
            if again and self.random.random() < 0.4:
                yield from self.add(th, name, self.delay())
            else:
                yield from self.cancel(th, name)
            return
        self.numbers += 1
        yield from self.add(th, f"task-{self.numbers}", self.delay())

    def executor(self) -> Steps:
        while True:
            if self.queue:
                yield from self.fire("executor", self.queue.pop(0))
            yield

    def reaper(self) -> Steps:
        while not self.virtual:
            self.reap()
            yield
        while True:
            if self.closed or self.random.random() < 0.9:
                yield
                continue
            c = self.note("reaper", "call", "advance_clock")
            yield
            self.t, self.jump = self.t + self.jump, 0
            self.hand_over()
            yield
            held = self.delayed()
            if self.estimate - held > self.interval and self.fault != "no-purge":
                yield
                self.estimate = held
                yield
                self.purge()
            yield
            self.note("reaper", "ret", "advance_clock", c=c)

    def metrics(self) -> Steps:
        for _ in range(self.random.randrange(6)):
            for _ in range(self.random.randrange(60)):
                yield
            if self.random.random() < 0.5:
                c = self.note("metrics", "call", "gauge")
                yield
                state = self.state()
                yield
                self.note("metrics", "ret", "gauge", c=c, state=state)
            else:
                state = self.state()
                yield
                self.note("metrics", "at", "gauge", state=state)

    # The run.

    def go_on(self, *jumps: int) -> None:
        jump = self.random.choice(jumps)
        if self.virtual:
            self.jump += jump
        else:
            self.t += jump

    def play(self, steps: int) -> bool:
        """Let the threads take turns; whether all users came to their end."""
        users = [self.user(f"user-{n}") for n in range(self.random.randrange(1, 4))]
        threads: list[Steps] = [*users, self.metrics(), self.reaper(), self.executor()]
        live = list(users)
        self.service = threads[-2:]
        for _ in range(steps):
            if not live:
                return True
            thread = self.random.choice(threads)
            if self.random.random() < 0.02:
                self.go_on(100 * US, 3 * MS, 20 * MS)
            try:
                next(thread)
            except StopIteration:
                threads.remove(thread)
                live = [user for user in live if user is not thread]
        return not live

    def settle(self) -> bool:
        """Moves the time until the timer has run its due tasks. Returns whether it came to rest."""
        for _ in range(self.random.choice((1, 3))):
            jumps = {"late": (3 * LATE_NS,), "no-purge": (MS,)}.get(
                self.fault, (MS, 10 * MS, 60 * MS, 6_000 * MS)
            )
            self.go_on(*jumps)
            for _ in range(6_000):
                next(self.service[0])
                next(self.service[1])
                if not self.queue:
                    break
            for _ in range(400):
                next(self.service[0])
                next(self.service[1])
        return not self.queue and not any(op.owner for op in self.ops.values())


def draw(seed: int, fault: str = "", profile: str | None = None, *, virtual: bool = False) -> Drawn:
    """The history of a seed; with a fault, one that may show it."""
    profile = profile or (FAULTS[fault][1] if fault in FAULTS else None)
    random = Random(f"{seed}/{fault}/{profile}")
    # Logs are a projection, drawn where they are asked for: the seeds that show rare things were drawn without them.
    name = profile or random.choice(
        (*PURGATORIES * 4, *(one for one in PROFILES if one not in ("request-log", "hand-over")))
    )
    player = Player(random, name, fault, virtual)
    player.early_ns = random.choice((0, 0, 99 * US)) if fault not in ("early",) else 0
    player.late_ns = random.choice((None, LATE_NS)) if not fault else LATE_NS
    player.deadline_on_call = random.random() < 0.5
    player.interval = random.randrange(6)
    ended = player.play(100_000 if fault or random.random() < 0.8 else random.randrange(400))
    if ended and (fault or random.random() < 0.85):
        plain = any(one.startswith("task") for one in player.tasks)
        if not fault and name in PURGATORIES and not plain and random.random() < 0.1:
            player.closed = True
            for op in player.ops.values():
                if not op.completed:
                    player.note("main", "at", "cancelled", op.id)
        if player.settle() and (fault or random.random() < 0.8):
            player.reap()
            if not player.queue:
                player.note("main", "at", "quiesce", state=player.state())
    if fault == "fires-unknown":
        c = player.note("executor", "call", "timer_fire", "ghost")
        player.note("executor", "ret", "timer_fire", "ghost", c=c)
    # Who records no `cancelled` cannot tell of a shutdown, so there was none.
    hidden = [f for f in PLAYED if f != "cancelled" or not player.closed]
    unrecorded = set(random.sample(hidden, random.choice((0, 0, 0, 1)))) if not fault else set()
    if any(one.startswith("task") for one in player.tasks):
        unrecorded.discard("timer_add")  # of a timer that is shared every task is told, or P2 knows of none
    header = Header(
        f"drawn-{seed}",
        Implementation("drawn", "1", "Python"),
        name,
        TimerConstants(TICK_NS, 20, player.early_ns, player.late_ns),
        purge_interval=player.interval,
        clock=TraceClock("manual" if virtual else "monotonic"),
        recorded=tuple(f for f in PLAYED if f not in unrecorded),
    )
    drawn = Drawn(header, [event for event in player.events if event.f not in unrecorded])
    if not fault and random.random() < 0.1:
        drawn.dropped = random.randrange(1, 10)
        for _ in range(min(drawn.dropped, len(drawn.events))):
            drawn.events.pop(random.randrange(len(drawn.events)))
    drawn.whole = bool(fault) or random.random() < 0.9
    return drawn


FAULTS: Final[Mapping[str, tuple[str, str]]] = {
    "true-twice": ("O1", "locked"), "two-winners": ("O1", "pending-flag"), "no-callback": ("O1", "locked"),
    "loser-runs-callback": ("O1", "locked"), "winner-says-no": ("O1", "pending-flag"),
    "callback-outside": ("O1", "locked"), "force-gives-up": ("O1", "locked"),
    "true-unready": ("O2", "locked"), "lost-key-stays": ("O2", "pending-flag"), "key-gives-up": ("O2", "locked"),
    "expired-twice": ("O3", "locked"), "expired-for-nothing": ("O3", "locked"), "no-on-expiration": ("O3", "locked"),
    "expires-before": ("O3", "pending-flag"), "no-second-look": ("O4", "locked"), "gives-up": ("O4", "locked"),
    "skips-one": ("O4", "locked"), "no-retry": ("O4", "pending-flag"),
    "watches-one-key": ("P2", "locked"), "not-armed": ("O5", "locked"), "expiry-does-not-complete": ("O5", "locked"),
    "force-without-lock": ("O6", "locked"), "registration-lies": ("O7", "locked"), "try-lies": ("O7", "pending-flag"),
    "counts-more": ("O7", "locked"), "counts-less": ("O7", "pending-flag"), "no-purge": ("P1", "locked"),
    "watched-too-many": ("P2", "locked"), "watched-too-few": ("P2", "pending-flag"),
    "size-too-large": ("P2", "locked"), "early": ("T1", "timer"), "late": ("T2", "timer"),
    "fires-twice": ("T3", "netty-hashed-wheel"), "lost": ("T3", "timer"), "lost-when-moved": ("T3", "asyncio"),
    "fires-unknown": ("T3", "java-util-timer"), "cancel-does-nothing": ("T4", "timer-cancel-barrier"),
    "keeps-its-task": ("T4", "locked"), "given-back-expires": ("T4", "locked"),
    "cancel-is-not-counted": ("T5", "timer"), "size-negative": ("T5", "timer"), "size-too-small": ("T5", "asyncio"),
}  # fmt: skip
"""Fault to the clause that convicts it, and the profile in which it is played. Add a fault at the end."""


def said(tally: RunTally) -> dict[str, object]:
    """All that a tally says, without clauses that were not judged."""
    return {
        name: (
            one.occasions,
            one.undecided,
            {cause: (c.count, c.examples) for cause, c in one.causes.items()},
        )
        for name, one in tally.clauses.items()
        if one.occasions or one.undecided or one.causes
    }
