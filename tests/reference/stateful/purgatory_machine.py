"""The stateful test of the purgatory in one dialect. A model made of dictionaries gives the correct results, and the
clauses judge the trace."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatorio import LOCKED, PENDING_FLAG, Purgatory, SystemTimer
from purgatorio.delayed.dialect import Dialect
from purgatorio.timer.interface import TimerClosed
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.recording import RecordedRun, judge
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_stress.random_program.timer_player import CLOCKS_MS
from purgatorio_stress.recorded import (
    NS_PER_MS,
    RECORDED,
    RecordedOperation,
    RecordedPurgatory,
    RecordedTimer,
    RecordingClock,
)
from reference.stateful.purgatory_model import Act, ModelOperation, PurgatoryModel
from reference.stateful.timer_machine import MachineParts, boundary_delays
from reference.stateful.timer_set import Disagreement

KEYS = [f"k{number}" for number in range(3)]
STARTS_MS = [clock for clock in CLOCKS_MS if abs(clock) < 1 << 40]
SHAPES = ((1, 3), (1, 2), (3, 3), (10, 4), (1, 20))
ACTS = ("nothing", "raise", "check", "force", "ready", "again")
"""The possible actions of an operation in its `on_complete`. `again`: it completes itself once more."""
NOTHING = ("nothing", 0)
FAILS = ("raises", "lies")
FAR_MS = 1 << 41
"""A time-out longer than any example."""


class MachineOperation(RecordedOperation):
    """Does a random action at its completion. It may become ready during the first try, or raise in a try."""

    def __init__(
        self,
        machine: PurgatoryMachine,
        name: str,
        keys: tuple[str, ...],
        delay_ms: int,
        then: tuple[str, int],
    ) -> None:
        super().__init__(machine.recorder, name, keys, delay_ms, dialect=machine.dialect, sync=machine.sync)
        self.faults = machine.parts.faults
        self.machine = machine
        self.then = then
        self.completed_after: int | None = None
        self.ready_on_first_try = False
        self.fails = ""
        """If not empty, a try "raises", or "lies": it returns True without a completion."""

    def evaluate(self) -> bool:
        if self.fails == "raises":
            raise ValueError(self.id)
        if self.fails:
            return True
        if super().evaluate():
            return True
        if self.ready_on_first_try:
            self.ready_on_first_try = False
            self.become_ready(self.machine.now_ns())
        return False

    def on_complete(self) -> None:
        super().on_complete()
        self.machine.completions.append(self.id)
        self.machine.act(self)

    def on_expiration(self) -> None:
        super().on_expiration()
        self.machine.expirations.append(self.id)

    def run(self) -> None:
        self.machine.fired.append(self.id)
        super().run()


class PurgatoryMachine(RuleBasedStateMachine):
    dialect: Dialect
    judged = True
    """Whether the clauses also judge the trace of every example."""

    @initialize(
        shape=st.sampled_from(SHAPES), start_ms=st.sampled_from(STARTS_MS), purge_interval=st.integers(0, 5)
    )
    def start(self, shape: tuple[int, int], start_ms: int, purge_interval: int) -> None:
        self.tick_ms, size = shape
        self.parts = MachineParts.at(start_ms)
        self.clock, self.sync, self.executor = self.parts.clock, self.parts.sync, self.parts.executor
        self.meter = self.clock.meter
        self.sync.when_released = self.another_thread_comes_in
        self.registering: MachineOperation | None = None
        self.recorder = Recorder(self.now_ns)
        recording_clock = RecordingClock(self.clock)
        named = self.parts.named() | {"clock": recording_clock}
        timer = SystemTimer("t", tick_ms=self.tick_ms, wheel_size=size, **named)
        self.purge_interval = purge_interval
        self.purgatory = RecordedPurgatory(
            Purgatory(
                "p",
                RecordedTimer(timer, recording_clock, self.recorder),
                purge_interval=purge_interval,
                shards=2,
                reaper=False,
                faults=self.parts.faults,
                sync=self.sync,
            ),
            self.recorder,
        )
        self.timer = timer
        self.model = PurgatoryModel(self.tick_ms, purge_interval)
        self.operations: dict[str, MachineOperation] = {}
        self.completions: list[str] = []
        self.expirations: list[str] = []
        self.fired: list[str] = []
        self.acting = True
        self.raised = False
        self.lied = False
        self.delays = boundary_delays(self.tick_ms, size, levels=2)

    def now_ns(self) -> int:
        return self.clock.now_ms() * NS_PER_MS

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3),
        then=st.tuples(st.sampled_from(ACTS), st.integers(0, 9)),
        ready=st.sampled_from(
            ("no", "before", "on first try", "completed by another", "completed by another")
        ),
        data=st.data(),
    )
    def register(self, keys: list[str], then: tuple[str, int], ready: str, data: st.DataObject) -> None:
        """Register an operation that is ready before, becomes ready during the registration, or is not ready. In
        `pending-flag`, where the registration holds no lock, another thread may complete it between two keys."""
        delay_ms = data.draw(st.sampled_from(self.delays), label="delay_ms")
        name = f"op-{len(self.operations)}"
        operation = MachineOperation(self, name, tuple(keys), delay_ms, then)
        twin = ModelOperation(name, self._act_of(then))
        self.operations[name] = operation
        if ready == "before":
            operation.become_ready(self.now_ns())
            twin.ready = True
        operation.ready_on_first_try = twin.ready_on_first_try = ready == "on first try"
        if ready == "completed by another" and self.dialect.name == "pending-flag":
            after = data.draw(st.integers(1, len(keys)), label="after keys")
            operation.completed_after = twin.completed_after = after
        deadline_ms = self.clock.now_ms() + delay_ms
        self.registering = operation
        answer = self.purgatory.register(operation)
        self.registering = None
        self._same("O7: registration", answer, self.model.register(twin, keys, deadline_ms))
        self._run_handed_over(())

    def another_thread_comes_in(self, lock: str) -> None:
        """After the watch of a key, let another thread complete the operation that is being registered, if planned."""
        operation = self.registering
        if lock != "watcher-list" or operation is None or operation.completed_after is None:
            return
        operation.completed_after -= 1
        if operation.completed_after == 0:
            self.registering = None
            other = threading.Thread(target=self._force, args=(operation,), name="another")
            other.start()
            other.join()

    def _force(self, operation: MachineOperation) -> None:
        try:
            operation.force_complete()
        except Disagreement as wrong:
            self.parts.faults.wrong.append(wrong)

    def _act_of(self, then: tuple[str, int]) -> Act:
        def act(model: PurgatoryModel) -> None:
            what, number = then
            other = self._other(number)
            if not self.acting:
                return
            if what == "check":
                model.check(KEYS[number % len(KEYS)])
            elif what == "force" and other in model.operations:
                model.complete(model.operations[other])
            elif what == "ready" and other in model.operations:
                model.operations[other].ready = True

        return act

    def _other(self, number: int) -> str:
        return f"op-{number}"

    def act(self, operation: MachineOperation) -> None:
        """The action of the real operation in its callback. `_act_of` is the same action in the model."""
        what, number = operation.then
        if not self.acting:
            return
        if what == "raise":
            raise ValueError(operation.id)
        other = self.operations.get(self._other(number))
        if what == "again" and self.completions.count(operation.id) < 2:
            operation.force_complete()
        if what == "check":
            self.purgatory.check(KEYS[number % len(KEYS)])
        elif other is not None and other.id in self.model.operations:
            if what == "force":
                other.force_complete()
            elif what == "ready":
                other.become_ready(self.now_ns())

    @precondition(lambda self: self.operations)
    @rule(data=st.data(), check=st.booleans())
    def become_ready(self, data: st.DataObject, check: bool) -> None:
        """Make a (waiting, if any) operation ready, with or without the check that should follow."""
        waiting = sorted(twin.id for twin in self.model.waiting())
        names = waiting or sorted(self.operations)
        operation = self.operations[data.draw(st.sampled_from(names), label="operation")]
        operation.become_ready(self.now_ns())
        self.model.operations[operation.id].ready = True
        if check:
            self.check(operation.keys[0])

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2), fails=st.sampled_from(FAILS))
    def register_one_that_fails(self, keys: list[str], fails: str) -> None:
        """The caller gets the error of the first try, and nothing is registered."""
        operation = MachineOperation(self, f"failed-{len(self.operations)}", tuple(keys), FAR_MS, NOTHING)
        operation.fails = fails
        self.lied |= fails == "lies"
        with suppress(ValueError if fails == "raises" else RuntimeError):
            self.purgatory.register(operation)
            raise Disagreement(f"O2: a try {fails}, and the registration does not raise")

    @rule(
        key=st.sampled_from(KEYS),
        other=st.sampled_from(KEYS),
        heals=st.booleans(),
        fails=st.sampled_from(FAILS),
    )
    def event_with_one_that_fails(self, key: str, other: str, heals: bool, fails: str) -> None:
        """Check a key whose operations are all ready. The `try_complete` of the first fails, once or always."""
        for keys in ((key, other), (key,)):
            self._register(keys, FAR_MS)
        waiting = [twin for twin in self.model.waiting() if key in self.operations[twin.id].keys]
        for twin in waiting:
            self.operations[twin.id].become_ready(self.now_ns())
            twin.ready = True
        self.raised = True
        self.lied |= fails == "lies"
        waiting[0].raises = True
        self.operations[waiting[0].id].fails = fails
        self.check(key)
        waiting[0].raises = not heals
        self.operations[waiting[0].id].fails = "" if heals else fails

    @rule(key=st.sampled_from(KEYS), other=st.sampled_from(KEYS), count=st.integers(1, 6))
    def churn(self, key: str, other: str, count: int) -> None:
        """Complete operations by one key, so that they stay as garbage under another key. Then let the reaper run."""
        for _ in range(count):
            name = self._register((key, other), FAR_MS)
            self.operations[name].become_ready(self.now_ns())
            self.model.operations[name].ready = True
            self.check(key)
        self._advance(0)

    def _register(self, keys: tuple[str, ...], delay_ms: int) -> str:
        name = f"op-{len(self.operations)}"
        twin = ModelOperation(name, self._act_of(NOTHING))
        self.operations[name] = MachineOperation(self, name, keys, delay_ms, NOTHING)
        answer = self.purgatory.register(self.operations[name])
        self._same(
            "O7: registration", answer, self.model.register(twin, keys, self.clock.now_ms() + delay_ms)
        )
        return name

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def force(self, data: st.DataObject) -> None:
        operation = self._draw(data)
        twin = self.model.operations[operation.id]
        self._same("O1: force_complete", operation.force_complete(), self.model.complete(twin))

    @rule()
    def purge(self) -> None:
        """Compare the number of purged entries."""
        before = self.model.watched()
        purged = self.purgatory.inner.purge_if_needed()
        self.model.purge_if_needed()
        self._same("P2: purged", purged, before - self.model.watched())

    def _draw(self, data: st.DataObject) -> MachineOperation:
        return self.operations[data.draw(st.sampled_from(sorted(self.operations)), label="operation")]

    @rule(key=st.sampled_from(KEYS))
    def check(self, key: str) -> None:
        self._same(f"O7: check of {key}", self.purgatory.check(key), self.model.check(key))

    @rule(key=st.sampled_from(KEYS))
    def cancel_for_key(self, key: str) -> None:
        given = [operation.id for operation in self.purgatory.cancel_for_key(key)]
        self._same(f"cancel of {key}", given, self.model.cancel_for_key(key))

    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        """Let the reaper run after some time, mostly at or near the end of a level."""
        self._advance(max(0, data.draw(st.sampled_from(self.delays), label="by_ms")))

    def _advance(self, by_ms: int) -> None:
        self._run_handed_over(self._hand_over(by_ms))

    def _hand_over(self, by_ms: int) -> list[str]:
        self.clock.advance(by_ms)
        self.meter.work = 0
        handed = self.model.take_due(self.clock.now_ms())
        if not self.purgatory.inner.pass_time() and handed:
            raise Disagreement(f"T2: pass_time() found nothing, and {handed} are due")
        self.model.purge_if_needed()
        return handed

    @rule(data=st.data())
    def force_what_was_handed_over(self, data: st.DataObject) -> None:
        """Complete an operation after the timer has submitted its expiry and before the expiry runs."""
        handed = self._hand_over(max(0, data.draw(st.sampled_from(self.delays), label="by_ms")))
        if handed:
            name = data.draw(st.sampled_from(handed), label="operation")
            self.operations[name].force_complete()
            self.model.complete(self.model.operations[name])
        self._run_handed_over(handed)

    def _run_handed_over(self, handed: list[str] | tuple[str, ...]) -> None:
        """Run the executor. The model uses the observed order, because the order of equal deadlines is not promised."""
        self.fired = []
        self.executor.run_all()
        now_ms = self.clock.now_ms()
        left = list(handed)
        for name in self.fired:
            if name in left:
                left.remove(name)
            else:
                deadline = self.model.operations[name].deadline
                if deadline is None or deadline // self.tick_ms * self.tick_ms > now_ms:
                    raise Disagreement(f"T1, T3 or T4: {name} fired at {now_ms}, deadline {deadline}")
                self.model.operations[name].deadline = None
            self.model.expire(name)
        if left:
            raise Disagreement(f"T2: a drain at {now_ms} left {left}")

    def _same(self, what: str, seen: object, allowed: object) -> None:
        if seen != allowed:
            raise Disagreement(f"{what}: seen {seen!r}, allowed {allowed!r}")

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def agrees(self) -> None:
        """Check callbacks, gauges, and the invariants of the structures."""
        self.meter.work = 0
        self.parts.faults.raise_kept()
        twins = self.model.operations.values()
        done = sorted(twin.id for twin in twins if twin.completed)
        self._same("O1: completed", sorted(self.completions), done)
        self._same("O3: expired", sorted(self.expirations), sorted(t.id for t in twins if t.expired))
        now = self.purgatory.inner.gauges()
        self._same("P2: NumDelayedOperations", now.num_delayed_operations, self.model.delayed())
        self._same("P1, P2: PurgatorySize", now.purgatory_size, self.model.watched())
        self.purgatory.inner.check()
        self.timer.check()

    def teardown(self) -> None:
        """Close the timer, which then refuses a registration. Shut down, check that all operations are completed, and
        let the clauses judge the recorded run."""
        if not hasattr(self, "model"):
            return
        # Twice: the second call purges the operations that expire in the first.
        self._advance(0)
        self._advance(0)
        self.purgatory.gauge("quiesce")
        self.acting = False
        self.timer.close()
        before = self.purgatory.inner.watched()
        late = MachineOperation(self, "late", tuple(KEYS), FAR_MS, NOTHING)
        with suppress(TimerClosed):
            self.purgatory.register(late)
            raise Disagreement("O5: a closed timer, and a registration that is not refused")
        self._same("O5: watched after the refusal", self.purgatory.inner.watched(), before)
        waiting, completed = len(self.model.waiting()), len(self.completions)
        if self.purge_interval % 2:
            asyncio.run(cast(Coroutine[None, None, None], self.purgatory.inner.__aexit__()))
        else:
            self._same("O5: shutdown", self.purgatory.inner.close(), waiting)
        self._same("O5: completed by the shutdown", len(self.completions) - completed, waiting)
        self._same("O5: second shutdown", self.purgatory.inner.close(), 0)
        if self.judged:
            self._judge()

    def _judge(self) -> None:
        header = Header(
            run="stateful",
            implementation=Implementation("purgatorio reference", "source", "Python"),
            profile=self.dialect.name,
            timer=TimerConstants(self.tick_ms * NS_PER_MS, 2, (self.tick_ms - 1) * NS_PER_MS),
            purge_interval=self.purge_interval,
            clock=TraceClock("manual"),
            recorded=RECORDED,
        )
        judged = judge(RecordedRun(header, tuple(self.recorder.drain(last=True))))
        for clause, found in judged.result.clauses.items():
            for cause in found.causes.values():
                if (clause == "O4" and self.raised) or (clause in ("O2", "O7") and self.lied):
                    # The operation broke the clause itself: it is ready and raised, or it returned True without cause.
                    continue
                raise Disagreement(f"{clause}: {CLAUSES[clause].title}: {cause.examples[0]}")


class LockedMachine(PurgatoryMachine):
    dialect = LOCKED


class PendingFlagMachine(PurgatoryMachine):
    dialect = PENDING_FLAG
