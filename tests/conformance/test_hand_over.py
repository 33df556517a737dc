"""Pools, semaphores and queues: each check has a unit for one of the waiting operations, and no unit is lost."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from conformance.driven import broken, needs_node, run_of
from purgatorio import DelayedOperation, IntrusiveTimer, LoopExecutor, MonotonicClock, Purgatory
from purgatorio_conformance.protocol import hand_over
from purgatorio_conformance.protocol.conversation import Misbehaved
from purgatorio_conformance.protocol.coverage import looked_for, not_looked_for
from purgatorio_conformance.protocol.describe import check_description
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.contract import Subject
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.event_loop import VirtualLoop
from purgatorio_conformance.suite.gated import UNITS, of_purgatory, play
from purgatorio_conformance.suite.in_process import describe
from purgatorio_conformance.suite.probe import Probe
from purgatorio_spec.check import check_files
from purgatorio_spec.show.text import render

POOL = Path(__file__).parents[2] / "kits" / "node" / "examples" / "pool.js"
PROMISE = Promise(
    "hand-over",
    tick_ns=MS,
    early_ns=0,
    late_ns=0,
    threads=False,
    subject="line",
    lacks=dict.fromkeys(("raising", "timer", "cancel-for-key", "force"), "a small line"),
)


@dataclass(eq=False)
class Waiter:
    probe: Probe
    due_ns: int
    over: bool = False

    def complete(self) -> bool:
        return self.probe.force_complete(self._completed)

    def _completed(self) -> bool:
        if self.over:
            return False
        self.over = True
        self.probe.on_complete()
        return True


@dataclass
class Line:
    """Operations wait in line for units, in virtual time. `bug`: what goes wrong."""

    bug: str = ""
    now_ns: int = 0
    free: dict[str, int] = field(default_factory=dict)
    lines: dict[str, deque[Waiter]] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)
    timed_out: dict[str, int] = field(default_factory=dict)

    def register(self, probe: Probe) -> bool:
        (key,) = probe.keys
        waiter = Waiter(probe, self.now_ns + probe.delay_ns)
        self.lines.setdefault(key, deque()).append(waiter)
        if self.bug == "refuses after many time-outs" and self.timed_out.get(key, 0) > 30:
            self.lines[key].pop()
        elif self.bug == "serves whoever asks":
            waiter.complete()
        elif self.free.get(key) and self.bug != "asks for no unit that is left":
            self.free[key] -= 1
            self._give(key)
        return waiter.over

    def check(self, key: str) -> int:
        if self.bug == "leaves its work":
            self.later.append(key)
            return 0
        return self._give(key)

    def _give(self, key: str) -> int:
        line = self.lines.setdefault(key, deque())
        while line:
            waiter = line.popleft()
            if not waiter.over:
                if self.bug == "gives a unit twice" and line:
                    line.popleft().complete()
                return int(waiter.complete())
            if self.bug == "drops a unit at a stale head":
                return 0
        self.free[key] = self.free.get(key, 0) + 1
        return 0

    def advance(self, by_ns: int) -> None:
        self.now_ns += by_ns
        for key, line in self.lines.items():
            due = [waiter for waiter in line if waiter.due_ns <= self.now_ns and not waiter.over]
            for waiter in due:
                if waiter.complete():
                    waiter.probe.on_expiration()
                if self.bug == "forgets the others at a time-out":
                    line.clear()
                self.timed_out[key] = self.timed_out.get(key, 0) + 1

    def settle(self) -> None:
        while self.later:
            self._give(self.later.pop(0))

    def force(self, probe: Probe) -> bool:
        raise AssertionError("it lacks force")

    def cancel_for_key(self, key: str) -> Sequence[Probe]:
        raise AssertionError("it lacks cancel-for-key")

    def gauges(self) -> tuple[int, int]:
        entries = [waiter for line in self.lines.values() for waiter in line]
        leaked = sum(self.timed_out.values()) if self.bug == "counts who has timed out" else 0
        return len(entries), sum(not one.over for one in entries) + leaked


class InOrder(Line):
    """Whoever waits for two units keeps the others waiting. After embassy#6964. `mended`: until its time-out."""

    def __init__(self, *, mended: bool) -> None:
        super().__init__()
        self.mended = mended

    def register(self, probe: Probe) -> bool:
        (key,) = probe.keys
        waiter = Waiter(probe, self.now_ns + probe.delay_ns)
        self.lines.setdefault(key, deque()).append(waiter)
        self._serve(key)
        return waiter.over

    def check(self, key: str) -> int:
        self.free[key] = self.free.get(key, 0) + 1
        return self._serve(key)

    def _serve(self, key: str) -> int:
        line, served = self.lines.setdefault(key, deque()), 0
        while line and line[0].probe.units <= self.free.get(key, 0):
            self.free[key] -= line[0].probe.units
            served += line.popleft().complete()
        return served

    def advance(self, by_ns: int) -> None:
        super().advance(by_ns)
        for key, line in self.lines.items():
            self.lines[key] = deque(waiter for waiter in line if not waiter.over)
            if self.mended:
                self._serve(key)


class Semaphore:
    """After anyio#1145. `mended`: a release drops the cancelled waiters that have not cleaned up yet."""

    def __init__(self, *, mended: bool) -> None:
        self.mended = mended
        self.value = 0
        self.waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        if self.value and not self.waiters:
            self.value -= 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in self.waiters:
                self.waiters.remove(future)
            elif not future.cancelled():
                self.release()
            raise

    def release(self) -> None:
        for future in [*self.waiters]:
            if not future.cancelled() or self.mended:
                self.waiters.remove(future)
            if not future.cancelled():
                future.set_result(None)
                return
        self.value += 1


class OnALoop(Line):
    """Tasks of an event loop wait for a semaphore of each key."""

    def __init__(self, *, mended: bool) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.semaphores: defaultdict[str, Semaphore] = defaultdict(lambda: Semaphore(mended=mended))

    def register(self, probe: Probe) -> bool:
        self.loop.begin(self._wait(probe))
        return False

    async def _wait(self, probe: Probe) -> None:
        waiter = Waiter(probe, 0)
        try:
            async with asyncio.timeout(probe.delay_ns / 1e9):
                await self.semaphores[probe.keys[0]].acquire()
            waiter.complete()
        except TimeoutError:
            waiter.complete()
            probe.on_expiration()

    def check(self, key: str) -> int:
        self.semaphores[key].release()
        return 0

    def advance(self, by_ns: int) -> None:
        self.loop.advance(by_ns)

    def settle(self) -> None:
        self.loop.settle()

    def gauges(self) -> tuple[int, int]:
        waiting = sum(len(one.waiters) for one in self.semaphores.values())
        return waiting, waiting

    def close(self) -> None:
        self.loop.close()


@pytest.mark.parametrize("mended", [False, True])
def test_calls_come_between_callbacks_of_a_loop(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiter that has timed out, and has not cleaned up, strands the next one."""
    begin = ("wait briefly", "time until due", "unit")
    chosen = [program for program in hand_over._programs(2, amounts=False) if program[0][:3] == begin]
    monkeypatch.setattr(hand_over, "_programs", lambda turns, amounts: chosen[:40] if turns else [])
    promise = replace(PROMISE, early_ns=1_000, late_ns=1_000, offers=("turns",))
    whole = play(UNITS, of_purgatory(promise, lambda _: OnALoop(mended=mended)))
    assert broken(whole.result) == (set() if mended else {"O4"})


class GivesUp(OnALoop):
    """Each waiter is cancelled at its deadline, while a task of its own may have got a permit (asyncpg#547)."""

    def __init__(self, *, mended: bool) -> None:
        super().__init__(mended=True)
        self.mended = mended

    async def _wait(self, probe: Probe) -> None:
        waiter, semaphore = Waiter(probe, 0), self.semaphores[probe.keys[0]]
        own, this = asyncio.ensure_future(semaphore.acquire()), asyncio.current_task()
        assert this is not None
        self.loop.call_later(probe.delay_ns / 1e9, this.cancel)
        try:
            await asyncio.shield(own)
            waiter.complete()
        except asyncio.CancelledError:
            own.cancel()

            def late(_: object) -> None:
                if not own.cancelled():
                    semaphore.release()

            if self.mended:
                own.add_done_callback(late)
            waiter.complete()
            probe.on_expiration()


@pytest.mark.parametrize("mended", [False, True])
def test_a_caller_that_gives_up_leaves_its_unit(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [program for program in hand_over._programs(2, amounts=False) if len(program[0]) <= 3]
    monkeypatch.setattr(hand_over, "_programs", lambda turns, amounts: chosen if turns else [])
    lacks = {**PROMISE.lacks, "gauges": "none"}
    promise = replace(PROMISE, early_ns=1_000, late_ns=1_000, lacks=lacks, offers=("turns",))
    whole = play(UNITS, of_purgatory(promise, lambda _: GivesUp(mended=mended)))
    assert broken(whole.result) == (set() if mended else {"O4"})


class Get(DelayedOperation):
    """Waits for an item of a queue, and takes it in `on_complete`."""

    def __init__(self, queue: Queue, probe: Probe) -> None:
        super().__init__(-(-probe.delay_ns // MS))
        self.queue, self.probe = queue, probe
        self.item = asyncio.get_running_loop().create_future()

    def try_complete(self) -> bool:
        return self.queue.items[self.probe.keys[0]] > 0 and self.force_complete()

    def on_complete(self) -> None:
        has_one = self.queue.items[self.probe.keys[0]] > 0
        self.queue.items[self.probe.keys[0]] -= has_one
        self.item.set_result(has_one)


class Queue(Line):
    """Requests wait in a purgatory, whose time-outs run on the event loop. `bug`: the event comes before the item."""

    def __init__(self, bug: str) -> None:
        super().__init__(bug)
        self.items: Counter[str] = Counter()
        self.loop = VirtualLoop()
        clock = MonotonicClock(lambda: round(self.loop.time() * 1e9))
        timer = IntrusiveTimer("t", clock=clock, executor=LoopExecutor(self.loop))
        self.waiting = Purgatory[Get]("p", timer, reaper=False)

    def register(self, probe: Probe) -> bool:
        self.loop.begin(self._wait(probe))
        return False

    async def _wait(self, probe: Probe) -> None:
        get, waiter = Get(self, probe), Waiter(probe, 0)
        self.waiting.try_complete_else_watch(get, probe.keys)
        has_one = await get.item
        waiter.complete()
        if not has_one:
            probe.on_expiration()

    def check(self, key: str) -> int:
        self.items[key] += self.bug == ""
        self.waiting.check_and_complete(key)
        self.items[key] += self.bug != ""
        return 0

    def advance(self, by_ns: int) -> None:
        self.loop.advance(by_ns)
        self.waiting.pass_time()

    def settle(self) -> None:
        self.loop.settle()

    def close(self) -> None:
        self.waiting.close()
        self.loop.close()


@pytest.mark.parametrize("bug", ["", "checks before the put"])
def test_a_purgatory_on_a_loop(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's timer in virtual time, with `LoopExecutor`."""
    monkeypatch.setattr(hand_over, "_SIZE_MOST", 3)
    promise = replace(PROMISE, late_ns=MS, lacks={**PROMISE.lacks, "gauges": "none"}, offers=("turns",))
    whole = play(UNITS, of_purgatory(promise, lambda _: Queue(bug)))
    assert not whole.broken_off, whole.broken_off
    assert broken(whole.result) == ({"O4"} if bug else set())


def judged(bug: str, promise: Promise = PROMISE) -> tuple[set[str], str]:
    """The broken clauses, and the counterexample of O4."""
    whole = play(UNITS, of_purgatory(promise, lambda _: Line(bug)))
    assert not whole.broken_off, whole.broken_off
    shown = ""
    if whole.result.clauses["O4"].violations:
        assert whole.narrowed is not None
        shown = render(whole.narrowed("O4")[0].example("O4", "file"))
    assert bug == "serves whoever asks" or whole.result.clauses["O4"].occasions
    return broken(whole.result), shown


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated, "_OPERATIONS", 120)


@pytest.mark.parametrize(
    ("bug", "breaks"),
    [
        ("", set()),
        # Its work is done only when the suite asks it to come to rest.
        ("leaves its work", set()),
        # Each time-out leaves something behind, and in the end a request is refused (knative/serving#4776).
        ("refuses after many time-outs", {"O5", "P2"}),
        # At rest, the gauge counts those that wait, and a leak of it shows in two calls.
        ("counts who has timed out", {"P2"}),
        # The number of operations that got a unit is at most that of the units.
        ("gives a unit twice", {"O2"}),
        ("serves whoever asks", {"O2"}),
    ],
)
def test_a_line_is_sound_or_breaks_its_clause(bug: str, breaks: set[str]) -> None:
    assert judged(bug)[0] == breaks


@pytest.mark.parametrize(
    "bug",
    [
        "drops a unit at a stale head",
        "asks for no unit that is left",
        "forgets the others at a time-out",
    ],
)
def test_a_lost_unit_is_found(bug: str) -> None:
    """And the last calls of the key are shown, with the one that lost it."""
    clauses, shown = judged(bug)
    assert clauses - {"P2"} == {"O4"}
    assert "waits-beside-a-unit" in shown
    assert "note, no call" in shown
    assert shown.count("try_complete_else_watch(") + shown.count("check_and_complete(") >= 3
    assert "at rest, no operation waits for k" in shown
    assert ("on_expiration(k" in shown) == (bug != "asks for no unit that is left")


@pytest.mark.parametrize("mended", [False, True])
def test_an_operation_waits_for_two_units(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it has timed out, the next one is owed the unit that is free."""
    monkeypatch.setattr(gated, "_OPERATIONS", 350)
    promise = replace(PROMISE, offers=("amounts",))
    whole = play(UNITS, of_purgatory(promise, lambda _: InOrder(mended=mended)))
    assert not whole.broken_off
    assert broken(whole.result) == (set() if mended else {"O4"})


def test_time_outs_are_told() -> None:
    """Without them, the driver cannot count the units."""
    with pytest.raises(Misbehaved, match="it must report on_expiration"):
        check_description(describe(replace(PROMISE, lacks=dict(PROMISE.lacks, expiry="none")), "purgatory"))


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("mended", [True, False])
def test_a_pool_in_real_time(mended: bool, tmp_path: Path) -> None:
    """After cds-dbs#1721, behind the kit: a unit that meets a request that has timed out is dropped."""
    (subject,) = command_subjects(("node", str(POOL), *(() if mended else ("--bug",))))
    assert subject.mode == "real-units"
    assert broken(run_of(subject, tmp_path, ops=60)) == (set() if mended else {"O4"})
    assert not not_looked_for([subject])
    assert "up to 3 times each" in looked_for([subject])[0][1]


def edited_pool(folder: Path, old: str, new: str) -> Subject:
    """The pool of the kit for Node, with `new` in the place of `old`."""
    kit = shutil.copytree(POOL.parents[1], folder / "node", ignore=shutil.ignore_patterns("node_modules"))
    pool = kit / "examples" / POOL.name
    text = pool.read_text(encoding="utf-8")
    assert old in text
    pool.write_text(text.replace(old, new), encoding="utf-8")
    (subject,) = command_subjects(("node", str(pool)))
    return subject


@needs_node
@pytest.mark.parametrize("counted", [0, 1])
def test_a_unit_that_stayed_free_is_one_unit(counted: int, tmp_path: Path) -> None:
    """After rust-mssql-driver#151: a sweep of idle units counts each of them again. The twin's sweep counts nothing."""
    release = "release() { this.free += 1; this.dispense();"
    sweep = f"setTimeout(() => {{ if (this.free) this.free += {counted}; }}, 100);"
    subject = edited_pool(tmp_path, release, f"{release} {sweep}")
    assert broken(run_of(subject, tmp_path, ops=20)) == ({"O2"} if counted else set())


@needs_node
@pytest.mark.parametrize("late", [False, True])
def test_two_calls_at_once_get_one_unit(late: bool, tmp_path: Path) -> None:
    """After Eventra#8994: the count of free units goes down some steps after the look at it. In the twin, it goes down
    at once. One call after another finds no difference."""
    take, waits = "this.free -= 1;\n    let request", "await null; await null; await null;"
    look = "dispense() {\n    const { queue } = this;\n    if (this.free === 0 || queue.length === 0) return;\n    "
    new = f"{waits} {take}" if late else take.replace("\n", f"\n    {waits}\n")
    subject = edited_pool(tmp_path, look + take, f"async {look}{new}")
    assert broken(run_of(subject, tmp_path, ops=400 if late else 60)) == ({"O2"} if late else set())


@needs_node
def test_a_check_that_fails_brings_no_unit(tmp_path: Path) -> None:
    """It is the adapter's error, and no request that waits on accuses the pool."""
    check = "checkAndComplete(key) {"
    subject = edited_pool(tmp_path, check, f"{check} if (key === 'k2') throw new Error(key);")
    (record,) = record_runs([subject], tmp_path, suffix=".jsonl", ops=20)
    assert record.failure is not None
    assert record.failure.kind == "refused"
    assert record.trace is not None
    assert broken(check_files([record.trace]).runs[0]) == set()
