"""Random programs for a purgatory: registrations, events, expiry, shutdown, locks of callers, and callbacks that use
these calls.

A *group* is an object of the calling code with a lock, as a consumer group in Kafka. Operations may share this lock.
The programs obey the rules for callers. In the dialect `locked`, an operation's lock is held while its callbacks run.
So a callback obeys three rules. It takes the lock of a group only if no operation uses this lock. It checks keys only
through the action queue. It registers or completes only operations with a higher number than its own, so that locks are
taken in one order. A thread that holds the lock of a group calls no `check_and_complete`. In the dialect
`pending-flag`, each operation needs its own lock. A registration first calls `try_complete` without the lock. So no
other thread may call `try_complete` before the operation is in a watch list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, cast

from purgatorio import (
    ActionQueue,
    DelayedOperation,
    DirectExecutor,
    Purgatory,
    QueuedExecutor,
    ReaperTimer,
    SystemTimer,
)
from purgatorio.delayed.gauges import GaugeRegistry
from purgatorio.sync import Executor, ExecutorClosed
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.interface import Timer, TimerClosed
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.instruments import FiringExecutor, TestedGuard
from purgatorio_stress.random_program.player import Planned, PlannedExit, Player, vocabulary
from purgatorio_stress.scenario.world import FOREVER_MS, Operation, World

_KEYS: Final = (("a",), ("a", "b"), ("b", "a"), ("b",), ("a", "a"), ("a", "b", "c"))
_KEY_NAMES: Final = ("a", "b", "c")
_FORMS: Final[tuple[Callable[[tuple[str, ...]], Any], ...]] = (
    list,
    lambda keys: dict.fromkeys(keys).keys(),
    lambda keys: {keys[0]},
    deque,
)
"""The types of keys, besides a tuple. (A set of several keys has another order in each process.)"""
_NO_KEYS: Final[tuple[Callable[[], Any], ...]] = (tuple, list, set, deque, lambda: {}.keys())
_WRONG_KEYS: Final[tuple[Callable[[], Any], ...]] = (
    *(partial(of, "ab") for of in (str, iter, dict.fromkeys, str.encode)),
    *(lambda: "", lambda: bytearray(b"ab"), lambda: (key for key in "ab"), lambda: None, lambda: 1),
    *(lambda: ["a", []], lambda: ({}, "a")),
)
"""Refused with ValueError, and with TypeError. Created each time, because an iterator can be used once."""
_INLINE: Final = 3
_FOREVER: Final = -1
_OWN: Final = 0
_REGISTERS: Final = ("register", "enter", "give")


class _Operation(Operation):
    """An operation whose callbacks execute the callbacks of the program."""

    def __init__(self, player: PurgatoryPlayer, number: int) -> None:
        delay_ms, keys, lock = player.drawn.things[number]
        super().__init__(
            player.world,
            f"op-{number}",
            _KEYS[keys],
            FOREVER_MS if delay_ms == _FOREVER or not player.timed else delay_ms,
            completing=lambda: player.completed(number),
            expiring=lambda: player.expired(number),
            trying=lambda: player.tried(number),
        )
        if lock != _OWN:
            self.lock = player.groups[lock - 1]
        self._player = player
        self._number = number

    def run(self) -> None:
        """The time-out. If it completes the operation, `on_expiration` follows, also after an exit."""
        me = self._player.running[self._number] = self._player.thread()
        try:
            super().run()
        except PlannedExit:
            self._player.ran(self._number, me)
            raise
        self._player.ran(self._number, me)


class _Plain(DelayedOperation):
    """An operation that is never ready, and not recorded."""

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None: ...


async def _coroutine() -> None: ...


class PurgatoryPlayer(Player):
    """Settings: timer (0: none, 1: `SystemTimer`, 2: `IntrusiveTimer`, `_INLINE`: as 1, on a `DirectExecutor`), purge
    interval, `complete_at_shutdown`, reaper."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        kind, self.purge_interval, completes, reaper = drawn.settings
        self.groups = [world.sync.rlock(f"group-{name}") for name in ("x", "y")]
        self.actions = ActionQueue(faults=world.faults, sync=world.sync)
        queue = QueuedExecutor(faults=world.faults, sync=world.sync)
        inline = kind == _INLINE
        self.executor = FiringExecutor(DirectExecutor()) if inline else FiringExecutor(queue, queue.run_all)
        self.guard: TestedGuard | None = None
        self.reaper = bool(reaper) and kind > 0
        self.calls_back_on_callers = not reaper
        self.timed = kind > 0
        self.completes = bool(completes)
        self.registry = GaugeRegistry(sync=world.sync)
        self.purgatory = world.purgatory(
            self._timer(kind, None if reaper and not inline else self.executor),
            registry=self.registry,
            purge_interval=self.purge_interval,
            reaper=self.reaper,
            complete_at_shutdown=self.completes,
        )
        self.operations = [_Operation(self, number) for number in range(len(drawn.things))]
        self.registered: set[int] = set()
        self.refused: list[int] = []
        """The operations whose time-out the timer's executor refused, so that they were not registered."""
        self.tries: dict[int, int] = {}
        self.arriving: dict[int, int] = {}
        """By operation, the thread of a registration whose first try has not returned."""
        self.running: dict[int, int] = {}
        """By operation, the thread of its time-out."""
        self.timed_out: set[int] = set()
        """The operations that their time-outs completed, without a call of `on_expiration` yet."""
        self.evented: set[int] = set()
        self.given_back: set[str] = set()
        self.shut: list[bool] = []
        self.churned: list[Operation] = []
        self.left_at_completion: list[int] = []
        self.alone = len(drawn.threads) == 1 and not reaper
        self.fails_to_try = {
            one.thing for one in drawn.callbacks if one.slot == "try" and one.act.do in ("raise", "exit")
        }
        self.queues = any(act.do in ("queue", "change", "spoil") for act in drawn.acts())

    def _timer(self, kind: int, executor: Executor | None) -> Timer | None:
        if kind == 0:
            return None
        parts = self.world.timer_parts(executor)
        timer: SystemTimer | IntrusiveTimer = (
            SystemTimer("timer", wheel_size=2, **parts)
            if kind in (1, _INLINE)
            else IntrusiveTimer("timer", wheel_size=2, levels=1, **parts)
        )
        if len(self.drawn.threads) == 1:
            timer.undriven = self.guard = TestedGuard(self.world, timer.size)
        return timer

    def act_ended(self) -> None:
        """Run the action queue, as a request handler does at its end."""
        self._run_queue()

    def _run_queue(self) -> None:
        """Call `run_all` until the queue is empty, because an action added by an action runs only in the next call."""
        while self.queues and (waiting := self.actions.size()):
            self.world.sync.loop_head(self)
            ran = waiting
            with self.owned():
                ran = self.actions.run_all()
            if ran != waiting and self.alone:
                self.breaks("O8", "actions", f"{waiting} were there, {ran} ran")

    def call_back(self, slot: str, thing: int) -> None:
        """Execute the acts of a callback. Does not run the action queue: only the end of a request does
        (`act_ended`)."""
        for callback in self.drawn.callbacks:
            if callback.slot == slot and callback.thing == thing:
                getattr(self, f"do_{callback.act.do}")(*callback.act.args)

    def completed(self, number: int) -> None:
        """The callback at completion: under the operation's lock in the dialect `locked`, without a lock in
        `pending-flag`."""
        if self.drawn.things[1:] == () and not self.left_at_completion:
            self.left_at_completion.append(self.purgatory.inner.watched())
        if self.running.get(number) == self.thread():
            self.timed_out.add(number)
        self.call_back("complete", number)

    def tried(self, number: int) -> None:
        """The callback of a `try_complete`. The first one runs in the registration, and has no callback."""
        self.tries[number] = self.tries.get(number, 0) + 1
        if self.tries[number] > 1:
            self.call_back("try", number)
        if self.arriving.get(number) == self.thread():
            del self.arriving[number]

    def expired(self, number: int) -> None:
        """The callback at expiry, on the executor without a lock. The same thread then runs the action queue."""
        self.timed_out.discard(number)
        try:
            self.call_back("expire", number)
        finally:
            self._run_queue()

    def ran(self, number: int, thread: int) -> None:
        """The time-out has run on this thread."""
        if number in self.timed_out and self.running.pop(number) == thread:
            self.breaks("O3", f"op-{number}", "its time-out completed it, and did not call on_expiration")

    # The verbs.

    def do_register(self, number: int, given: Any = None) -> None:
        """`try_complete_else_watch`. The caller gets an exception of the first try, and the operation is not
        registered. After an exit (see `purgatorio.faults`) of a later try, the operation stays registered."""
        self.registered.add(number)
        self.arriving[number] = self.thread()
        refusals = self.executor.refused[0]
        try:
            self.purgatory.register(self.operations[number], given)
        except Planned as error:
            self.told.append(error)
            self.registered.discard(number)
        except PlannedExit:
            refused = self.executor.refused[0] > refusals
            if number in self.arriving or refused:
                self.registered.discard(number)
            if refused and self.alone:
                self.refused.append(number)
            raise
        except (ExecutorClosed, TimerClosed):
            if self.executor.refused[0] > refusals:
                self.registered.discard(number)
                self.refused.append(number)
            elif self.completes or not self.shut:
                raise

    def do_give(self, form: int, number: int) -> None:
        """Register, with the keys in a collection of another type, such as a set."""
        operation = self.operations[number]
        given = _FORMS[form](operation.keys)
        operation.keys = tuple(given)
        self.do_register(number, given)

    def do_misuse(self) -> None:
        """Wrong arguments that must be refused: keys, an operation, and the arguments of a purgatory. Nothing is
        registered."""
        inner, sync = self.purgatory.inner, self.world.sync
        wrong = self.world.operation(f"op-wrong-{len(self.churned)}", "a")
        make: Callable[..., object] = partial(Purgatory, name="made", reaper=False, sync=sync)
        before = inner.watched()
        register: Callable[..., object] = inner.try_complete_else_watch
        for keys in _NO_KEYS:
            self.must_refuse(partial(register, wrong, keys()), ValueError, "no key")
        for keys in _WRONG_KEYS:
            self.must_refuse(partial(register, wrong, keys()), TypeError, "keys")
        self.must_refuse(partial(register, object(), ["a"]), TypeError, "an operation")
        made_of: list[dict[str, Any]] = [{"shards": 0}, {"purge_interval": -1}]
        made_of += [{"timer": ReaperTimer.__new__(ReaperTimer), "reaper": True}]
        for given in made_of:
            self.must_refuse(partial(make, **given), ValueError, "a part")
        for name in ("timer", "faults", "registry"):
            self.must_refuse(partial(make, **{name: object()}), TypeError, "a part")
        self.must_refuse(partial(make, name=1), TypeError, "a name")
        for name in ("dialect", "lock", "faults"):
            made: Callable[..., object] = partial(_Plain, 1, sync=sync)
            self.must_refuse(partial(made, **{name: object()}), TypeError, "a part")
        for name in ("try_complete", "on_complete", "on_expiration"):
            wrong_class = partial(type, "Wrong", (DelayedOperation,), {name: _coroutine})
            self.must_refuse(wrong_class, TypeError, "a method")
        self.must_refuse(partial(self.actions.add, cast(Any, None)), TypeError, "an action")
        if self.guard is not None and self.reaper:
            self.must_refuse(partial(make, timer=inner._timer, reaper=True), ValueError, "a second reaper")
        if self.alone and not self.shut:
            self._second_purgatory()
        if self.alone and inner.watched() != before:
            self.breaks("CHECK", "purgatory", f"{inner.watched() - before} more are watched after refusals")

    def _second_purgatory(self) -> None:
        """Another purgatory in the registry, with a timer of its own, which it closes."""
        sync, registry = self.world.sync, self.registry
        make = partial(Purgatory[DelayedOperation], reaper=False, sync=sync, faults=self.world.faults)
        self.must_refuse(partial(make, "purgatory", registry=registry), ValueError, "a name")
        other = make('a"\\\n', registry=registry)
        if [one.name for one in registry.members()] != ["purgatory", other.name]:
            self.breaks("P2", "gauge", f"exported: {registry.members()}")
        if '="a\\"\\\\\\n"} 0\n' not in registry.openmetrics():
            self.breaks("P2", "gauge", f"a name is not escaped: {registry.openmetrics()}")
        other.close()
        late = _Plain(5, sync=sync)
        if not other.try_complete_else_watch(late, ["a"]) or not late.is_completed():
            self.breaks("O5", "purgatory", "registered after the shutdown, and not completed")
        other = make("other", complete_at_shutdown=False)
        other.close()
        self.must_refuse(
            partial(other.try_complete_else_watch, _Plain(5, sync=sync), ["a"]), TimerClosed, "timer"
        )
        if other.watched():
            self.breaks("P2", "gauge", f"{other.watched()} are watched after the refusal")

    def do_fork(self) -> None:
        """The calls of a child process, which has no thread of the purgatory."""
        inner, operation = self.purgatory.inner, _Plain(1, sync=self.world.sync)
        calls: list[Callable[[], object]] = [partial(inner.check_and_complete, "a")]
        calls += [partial(inner.try_complete_else_watch, cast(Any, operation), ["a"])]
        calls += [partial(inner.cancel_for_key, "a")]
        calls += [inner.purge_if_needed, inner.watched, inner.num_delayed, inner.gauges, inner.pass_time]
        self.in_child(inner.close, *calls)

    def do_ready(self, number: int) -> None:
        """Make the condition true, without a check of a key."""
        self.operations[number].become_ready(self.world.log.now_ns())

    def do_check(self, key: int) -> None:
        self.purgatory.check(_KEY_NAMES[key])

    def do_event(self, number: int) -> None:
        """Make the condition true, and check the first key of the operation."""
        self.do_ready(number)
        self.evented.add(number)
        self.purgatory.check(self.operations[number].keys[0])

    def do_force(self, number: int) -> None:
        self.operations[number].force_complete()

    def do_retry(self, number: int) -> None:
        """Call `safe_try_complete` of an operation, as a check of one of the operation's keys does."""
        try:
            self.operations[number].safe_try_complete()
        except Planned as error:
            self.told.append(error)
            if number not in self.fails_to_try:
                raise

    def do_give_back(self, key: int) -> None:
        for operation in self.purgatory.cancel_for_key(_KEY_NAMES[key]):
            self.given_back.add(operation.id)

    def do_purge(self) -> None:
        before = self.purgatory.inner.watched()
        purged = self.purgatory.inner.purge_if_needed()
        if self.alone and purged != before - self.purgatory.inner.watched():
            self.breaks("P2", "purgatory", f"purged {purged} of {before}")

    def do_gauges(self) -> None:
        """Read all gauges, and `is_cancelled` of each operation."""
        inner = self.purgatory.inner
        for operation in self.operations:
            operation.is_cancelled()
        both = inner.gauges()
        for value in (inner.watched(), inner.num_delayed(), both.purgatory_size, both.num_delayed_operations):
            if value < 0:
                self.breaks("P2", "gauge", f"a gauge is {value}")
        self._exported()

    def _exported(self) -> None:
        """Check the OpenMetrics text: both gauges of each purgatory that is not shut down, and the `# EOF` line."""
        *lines, end, rest = self.registry.openmetrics().split("\n")
        samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        if (end, rest) != ("# EOF", "") or not all(value.isdigit() for value in samples.values()):
            self.breaks("P2", "gauge", f"the text ends with {end!r}, {rest!r}; values {samples}")
        if not self.shut and self.alone:
            now = self.purgatory.inner.gauges()
            said = tuple(int(value) for value in samples.values())
            if said != (now.purgatory_size, now.num_delayed_operations):
                self.breaks("P2", "gauge", f"exported {samples}, and the gauges are {now}")

    def do_turn(self) -> None:
        """Call `pass_time` if there is no reaper, then run the expired operations."""
        self._pass_time(0)
        self.do_run()

    def do_linger(self, timeout_ms: int) -> None:
        """Call `pass_time`, which waits for an expiry."""
        if self.timed and self.is_live():
            self._pass_time(timeout_ms)

    def _pass_time(self, timeout_ms: int) -> None:
        if self.reaper:
            return
        taken, refusals = self.executor.taken[0], self.executor.refused[0]
        before_ms, told = self.world.run.now_ms, True
        try:
            with self.owned():
                told = self.purgatory.inner.pass_time(*[timeout_ms][: timeout_ms > 0])
        except (ExecutorClosed, TimerClosed):
            if not self.shut and self.executor.refused[0] == refusals:
                raise
        waited_ms = self.world.run.now_ms - before_ms
        found = self.executor.taken[0] > taken
        if self.alone and not told and (found or (waited_ms < timeout_ms and not self.shut)):
            self.breaks(
                "T2", "purgatory", f"pass_time({timeout_ms}) is {told} after {waited_ms} ms, {found=}"
            )

    def do_run(self) -> None:
        """Run the actions that the timer has submitted."""
        self.run_until_empty(self.executor.run_all)

    def do_refuse(self, times: int) -> None:
        """Let the timer's executor refuse the next `times` actions."""
        self.executor.refuse_next[0] += times

    def do_pass(self, by_ms: int) -> None:
        if not self.reaper:
            self.world.virtual.advance(by_ms)

    def do_shutdown(self) -> None:
        self.shut.append(False)
        known = [*self.operations, *self.churned]
        before = sum(operation.is_completed() for operation in known)
        driven = self.guard is None or self.guard.driven.get()
        try:
            completed = self.purgatory.inner.close()
        finally:
            self.shut[0] = True
        reaper = self.purgatory.inner._reaper
        ended = reaper is None or reaper._worker.is_current() or reaper._worker.join(0)
        if len(self.shut) == 1 and not ended:
            self.breaks("P3", "purgatory", "it is closed, and its reaper continues")
        after = sum(operation.is_completed() for operation in known)
        if self.alone and not self.drawn.callbacks and completed != after - before:
            self.breaks("O7", "purgatory", f"close() is {completed}, and completed {after - before}")
        warned = self.guard is not None and any(warned for _, _, warned in self.guard.asked)
        if self.alone and len(self.shut) == 1 and not driven and warned != (completed > 0):
            self.breaks("CHECK", "purgatory", f"close() completed {completed}, no thread drained, {warned=}")

    def do_hold(self, group: int) -> None:
        """Acquire and release the lock of a group."""
        with self.groups[group]:
            pass

    def do_change(self, group: int, number: int) -> None:
        """Under the lock of a group, make the condition true and queue the check. `act_ended` runs the check."""
        operation = self.operations[number]
        with self.groups[group]:
            self.do_ready(number)
            self.actions.add(lambda: self.purgatory.check(operation.keys[0]))
        self.evented.add(number)

    def do_enter(self, group: int, number: int) -> None:
        """Register an operation under the lock of a group."""
        with self.groups[group]:
            self.do_register(number)

    def do_churn(self, times: int) -> None:
        """Register and complete `times` new operations."""
        for _ in range(times):
            operation = self.world.operation(f"op-{len(self.churned)}-churned", "a", "b")
            self.churned.append(operation)
            self.purgatory.register(operation)
            operation.force_complete()

    def do_spoil(self) -> None:
        """Queue an action that raises, and then another action."""
        self.actions.add(self.do_raise)
        self.do_queue(0)

    def do_queue(self, key: int) -> None:
        self.actions.add(lambda: self.purgatory.check(_KEY_NAMES[key]))

    # The end.

    def final(self) -> Iterator[Broken]:
        """Check for lost operations and actions, let all time-outs pass, then check the expired operations."""
        yield from self.broken
        self.broken.clear()
        self.executor.refuse_next[0] = 0
        inner = self.purgatory.inner
        inner.check()
        listed = [operation for watchers in inner._all_watchers() for operation in watchers.operations()]
        for operation in {self.operations[number] for number in self.refused}.intersection(listed):
            if not operation.is_completed():
                yield Broken("O5", operation.id, "its registration was refused, and it is in a list")
        yield from self._stranded()
        yield from self._lost()
        for before in self.left_at_completion:
            if inner.watched() > before + 1 and not self.churned:
                seen = f"it was put on {inner.watched() - before} lists after it had been completed"
                yield Broken("P1", "op-0", seen)
        if not self.reaper and self.timed and not self.shut:
            self._let_all_expire()
            inner.check()
        if not self.shut and self._counts_exactly():
            inner.pass_time(0)
            self.purgatory.gauge("quiesce")
            estimate = inner._estimated_operations.get() - inner.num_delayed()
            if self.alone and estimate > self.purge_interval:
                yield Broken(
                    "P2", "purgatory", f"{estimate} are thought to be done with, right after the purge"
                )
        if any(self.shut) == bool(self.registry.members()):
            yield Broken("P2", "gauge", f"exported at the end: {self.registry.members()}, {self.shut=}")
        yield from self.broken
        yield from self._closed_another_s()
        yield from self._in_limbo()
        yield from self._stranded()
        yield from self.uncontained()
        yield from self.exits_lost()

    def _counts_exactly(self) -> bool:
        """Whether purges count exactly. A purge counts too few operations if an operation is not in the timer: not
        added yet, expired but not run yet, or without a timer. The purge documents this."""
        purges = any(act.do in ("purge", "turn") for act in self.drawn.acts())
        expires = self.timed and any(thing[0] != _FOREVER for thing in self.drawn.things)
        return not expires and not (purges and (len(self.drawn.threads) > 1 or not self.timed))

    def _stranded(self) -> Iterator[Broken]:
        """Check that the action queue is empty. A run of the queue follows every addition of an action."""
        if self.actions.size():
            yield Broken("O4", "actions", f"{self.actions.size()} are left, and no thread will run them")

    def _lost(self) -> Iterator[Broken]:
        for number in self.evented & self.registered - self.fails_to_try:
            operation = self.operations[number]
            if operation.id not in self.given_back and not operation.is_completed():
                yield Broken(
                    "O4", operation.id, "ready, its key was checked, and it is not completed at the end"
                )

    def _let_all_expire(self) -> None:
        """Let all operations expire, also those that callbacks register at expiry."""
        later = sum(one.act.do in _REGISTERS for one in self.drawn.callbacks)
        longest_ms = max([0, *(thing[0] + 1 for thing in self.drawn.things)])
        for _ in range(longest_ms * (1 + later)):
            self.world.virtual.advance(1)
            self.do_turn()

    def _closed_another_s(self) -> Iterator[Broken]:
        """Check that a purgatory without a reaper has not closed its timer, which is the world's."""
        if self.timed and not self.reaper and self.shut == [True] and self.executor.shut[0]:
            yield Broken("CHECK", "timer", "the purgatory closed a timer that it does not drive")

    def _in_limbo(self) -> Iterator[Broken]:
        for number in self.registered:
            operation = self.operations[number]
            if operation.is_completed() or operation.id in self.given_back:
                continue
            if self.shut == [True] and self.completes:
                yield Broken("O5", operation.id, "shut down, and not completed")
            elif self.timed and not self.shut and self.drawn.things[number][0] != _FOREVER:
                yield Broken("O5", operation.id, "its time-out has passed, and it is not completed")


def _legal(drawn: Drawn, dialect: str) -> bool:
    registered = [act.args[-1] for act in drawn.acts() if act.do in _REGISTERS]
    own = all(thing[2] == _OWN for thing in drawn.things)
    if len(registered) != len(set(registered)):
        return False
    if dialect == "pending-flag" and not own:
        return False
    if drawn.settings[3] and (
        drawn.settings[0] not in (1, _INLINE) or any(act.do in ("pass", "turn") for act in drawn.acts())
    ):
        # The reaper drives its own `SystemTimer`, and virtual time passes only by waits.
        return False
    if any(act.do == "refuse" for act in drawn.acts()) and (drawn.settings[3] or not drawn.settings[0]):
        return False
    if not drawn.settings[2] and any(act.do == "shutdown" for act in drawn.acts()) and drawn.settings[0]:
        # No clause judges the operations that such a shutdown leaves.
        return False
    calls_back = {one.thing for one in drawn.callbacks if one.act.do not in ("raise", "exit")}
    for act in drawn.acts():
        if act.do == "enter" and (not own or act.args[1] in calls_back):
            return False
    if dialect == "pending-flag" and not _tries_what_is_known(drawn):
        return False
    return all(
        _may_call_back(one.slot, one.act.do, one.thing, one.act.args, own, dialect) for one in drawn.callbacks
    )


def _tries_what_is_known(drawn: Drawn) -> bool:
    """Whether no `retry` can be concurrent with the registration of its operation.

    In `pending-flag`, the first try of a registration takes no lock, because no other thread can find the operation
    before it is watched. So only the registering thread may retry it, or any thread after the registration.
    """
    known = {act.args[-1] for act in drawn.before if act.do in _REGISTERS}
    later = {act.args[-1] for act in drawn.acts() if act.do in _REGISTERS} - known
    if any(one.act.do == "retry" and one.act.args[0] in later for one in drawn.callbacks):
        return False
    for acts in drawn.threads:
        mine = {act.args[-1] for act in acts if act.do in _REGISTERS}
        if any(act.do == "retry" and act.args[0] in later - mine for act in acts):
            return False
    return True


def _may_call_back(slot: str, do: str, thing: int, args: tuple[int, ...], own: bool, dialect: str) -> bool:
    if do in ("raise", "exit", "queue", "spoil"):
        return do in ("raise", "exit") or slot != "try"
    if not own:
        return False
    if slot == "try":
        return do in ("hold", "gauges")
    if slot == "expire" or dialect == "pending-flag":
        return True
    if do in ("register", "force"):
        return args[0] > thing
    return do in ("hold", "gauges", "ready")


PURGATORIES: Final = (
    vocabulary(
        "purgatory",
        PurgatoryPlayer,
        *(Purgatory, DelayedOperation, ActionQueue, GaugeRegistry),
        legal=_legal,
        purge_interval=lambda drawn: drawn.settings[1],
    ),
)
"""The vocabulary of purgatories, in two dialects."""
