"""Bugs that a plan of seconds does not reach: the toy subjects with one change each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from conformance.driven import EXAMPLES, PYTHON, changed, run_of
from mutants.diffs import diffs
from purgatorio import ManualClock, QueuedExecutor, SystemTimer, TimerTask
from purgatorio.timer.bucket import TimerTaskEntry
from purgatorio_conformance.protocol.boundary_plan import REACHES_FROM, BoundaryPlan, levels_of
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.message import (
    MAX_TIME_NS,
    Add,
    Call,
    Check,
    Description,
    Register,
)
from purgatorio_conformance.protocol.real_time import drive_real
from purgatorio_conformance.protocol.session import Drive, Session
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

CHANGES = {one.name: one for one in diffs(Path(__file__).parent / "toy_changes_beyond_a_plan.txt")}


def words_of(*names: str) -> dict[str, str]:
    return {old: new for name in names for change in CHANGES[name].changes for old, new in change.words}


def driven(program: str, changes: dict[str, str], folder: Path, operations: int) -> RunResult:
    path = changed(EXAMPLES / f"{program}.py", changes, folder)
    return run_of(command_subjects([*PYTHON, path])[0], folder, ops=operations)


OF_20 = Description(0, "", "one", ("timer",), (), tick_ns=MS, wheel_size=20, unit_ns=MS)


@dataclass
class SlowTime:
    """Stands in for a run whose subject takes `tick_s` for every tick that passes, and `answer_s` for its answer, on a
    machine that does something else for a second at two of three leaps."""

    tick_s: float
    answer_s: float = 0.0
    now_ns: int = 0
    spent_s: float = 0.0
    leaps: int = 0
    longest_ns: int = 0

    def clock_s(self) -> float:
        return self.spent_s

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        if isinstance(call, Add):
            self.longest_ns = max(self.longest_ns, call.delay_ns)

    def advance_through(self, until_ns: int) -> None:
        self.now_ns = max(self.now_ns, until_ns)

    def leap(self, by_ns: int) -> None:
        assert by_ns >= 0, "time goes back"
        self.leaps += 1
        self.now_ns += by_ns
        self.spent_s += by_ns // MS * self.tick_s + self.answer_s + (self.leaps % 3 > 0)

    def settle(self) -> None:
        """Nothing is kept waiting."""


@pytest.mark.parametrize(
    ("tick_s", "answer_s", "left_out"),
    [
        (0.0, 0.0, ""),
        (0.0, 0.1, ""),
        (4.8e-9, 0.0, "a task that waits for weeks: the clock advances too slowly to reach it"),
        (
            1e-6,
            0.0,
            "levels with buckets of 3,200,000,000,000 ns or more: the clock advances too slowly to reach them",
        ),
    ],
)
def test_what_is_left_out_is_said_and_hangs_on_the_subject_alone(
    tick_s: float, answer_s: float, left_out: str
) -> None:
    """Not on what else the machine does: a second here and there leaves nothing out, nor does a slow answer."""
    run = SlowTime(tick_s, answer_s)
    reach = BoundaryPlan(run, OF_20, "timer", 1, run.clock_s)
    reach.through_levels(longest_ns=MAX_TIME_NS)
    assert reach.left_out == left_out
    assert (run.longest_ns > 24 * 86_400_000 * MS) is (not left_out)


def test_time_does_not_go_back_if_all_delays_are_long() -> None:
    """A table of requests with one time-out accepts no other delay."""
    run = SlowTime(0.0)
    only = replace(OF_20, least_delay_ns=1_000 * MS, most_delay_ns=1_000 * MS)
    BoundaryPlan(run, only, "timer", 1, run.clock_s).through_levels(longest_ns=MAX_TIME_NS)
    assert run.longest_ns == 1_000 * MS


@dataclass
class Sleeper(SlowTime):
    """Without a task its clock stands still: it pays for the ticks at the next task."""

    owed_s: float = 0.0

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        super().call(call, through)
        self.spent_s, self.owed_s = self.spent_s + self.owed_s, 0.0

    def leap(self, by_ns: int) -> None:
        self.owed_s += by_ns // MS * self.tick_s
        self.now_ns += by_ns


@pytest.mark.parametrize("made", [SlowTime, Sleeper])
def test_a_subject_that_sleeps_is_as_slow_as_its_next_task(made: type[SlowTime]) -> None:
    """A wheel that visits each tick is not driven over 2**31 ticks, which would look endless."""
    run = made(4.8e-9, now_ns=1_000 * MS)
    reach = BoundaryPlan(run, OF_20, "timer", 1, run.clock_s)
    reach.through_levels(longest_ns=MAX_TIME_NS)
    assert "a task that waits for weeks" in reach.left_out
    reach.over_wraps(100 * MS, run.now_ns)
    assert reach.left_out.startswith("counts of 31 and 32 bits")


@dataclass
class Heard(SlowTime):
    calls: list[Call] = field(default_factory=list)

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        self.calls.append(call)


@pytest.mark.parametrize("most_delay_ns", [MAX_TIME_NS, 8_000 * MS])
def test_in_real_time_short_delays_are_compared_with_some_that_look_shorter_in_32_bits(
    most_delay_ns: int,
) -> None:
    """Where such are taken: in nanoseconds and in milliseconds, some of either sign. All are completed at last."""
    run = Heard(0.0)
    told = Description(0, "", "one", ("purgatory", "real-time"), (), most_delay_ns=most_delay_ns)
    BoundaryPlan(run, told, "purgatory", 1).in_real_time()
    delays = {call.id: call.delay_ns for call in run.calls if isinstance(call, Register)}
    longest = {name: delay_ns for name, delay_ns in delays.items() if delay_ns > 3_600_000 * MS}
    for unit_ns in (1, MS):
        bits = [(delay_ns // unit_ns - 2_000 * MS // unit_ns) % 2**32 for delay_ns in longest.values()]
        assert {bit >= 2**31 for bit in bits} == (set() if most_delay_ns < MAX_TIME_NS else {False, True})
    assert {call.key for call in run.calls[-2 * len(longest) :] if isinstance(call, Check)} >= set(longest)


@pytest.mark.parametrize("part", ["timer", "purgatory"])
def test_in_real_time_one_waits_alone_for_longer_than_a_timer_is_kept_awake(part: Part) -> None:
    """Nothing is called from when it is added to when it is due."""
    run = Heard(0.0)
    BoundaryPlan(run, Description(0, "", "one", (part, "real-time"), ()), part, 1).in_real_time()
    added = [call for call in run.calls if isinstance(call, Add | Register)]
    assert added[-1].delay_ns > 5_000 * MS > max(call.delay_ns for call in added[-5:-1])


@dataclass
class Late(Heard):
    late_ns: int = 0

    def settle(self) -> None:
        self.now_ns += self.late_ns


@pytest.mark.parametrize(("late_ms", "tick_ms", "whole"), [(1, 1, True), (60, 1, False), (1, 10, True)])
def test_in_real_time_the_first_of_a_level_comes_late_or_not_at_all(
    late_ms: int, tick_ms: int, whole: bool
) -> None:
    """One that comes because a thread was late is too early for it: the same again with a new wheel. Levels of seconds
    are left out."""
    run = Late(0.0, late_ns=late_ms * MS)
    plan = BoundaryPlan(run, replace(OF_20, tick_ns=tick_ms * MS), "timer", 1)
    assert plan.first_of_levels(real=True) is whole
    delays = [call.delay_ns // MS for call in run.calls if isinstance(call, Add)]
    assert delays[-2:] == ([30, 600] if whole and tick_ms == 1 else [4] if tick_ms == 1 else [])
    assert max(delays[:-2], default=0) <= 4


HOUR_NS = 3_600_000 * MS


@dataclass
class Loses:
    """A session, its conversation and its clock, of a timer that is late with all that it takes, or loses it."""

    late_ns: int
    loses: bool
    now_ns: int = 0
    starts: int = 0
    added_ns: dict[str, int] = field(default_factory=dict)

    @property
    def conversation(self) -> Loses:
        return self

    @property
    def known(self) -> set[str]:
        return {*self.added_ns}

    @property
    def pending(self) -> set[str]:
        return {
            name
            for name, due_ns in self.added_ns.items()
            if self.loses or due_ns + self.late_ns > self.now_ns
        }

    def overdue(self, lost_ns: int) -> list[str]:
        return [name for name in self.pending if self.added_ns[name] + lost_ns < self.now_ns]

    def running(self) -> bool:
        return False

    def makes_sense(self, call: Call) -> bool:
        return True

    def wait_for_lane(self, lane: int) -> None: ...

    def start(self, part: str) -> None:
        self.starts += 1

    def call(self, call: Call) -> None: ...

    def ask(self, call: Call, lane: int) -> None:
        assert isinstance(call, Add)
        self.added_ns[call.id] = self.now_ns + call.delay_ns

    def listen(self, until_s: float) -> None:
        self.now_ns = max(self.now_ns, int(until_s * 1e9))
        assert self.now_ns < HOUR_NS, "it waits for what cannot come"

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    def monotonic_ns(self) -> int:
        return self.now_ns


@pytest.mark.parametrize(("loses", "starts"), [(True, 1), (False, 21)])
def test_in_real_time_a_lost_task_is_not_awaited_at_each_start(
    loses: bool, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control is only late, too late for the next run, and is started again each time."""
    monkeypatch.setattr(BoundaryPlan, "in_real_time", lambda reach: None)
    session = Loses(50 * MS, loses)
    monkeypatch.setattr("purgatorio_conformance.protocol.real_time.time", session)
    drive = Drive(cast(Session, session), OF_20, "timer", 1, REACHES_FROM, print)
    drive_real(drive, [], HOUR_NS, 100 * MS, reaches=True)
    assert session.starts == starts


class _Noted(TimerTask):
    """It notes when it ran, after its deadline or before it."""

    def __init__(self, delay_ms: int, clock: ManualClock, beside_ms: list[int]) -> None:
        super().__init__(delay_ms)
        self._clock = clock
        self._deadline_ms = clock.now_ms() + delay_ms
        self._beside_ms = beside_ms

    def run(self) -> None:
        self._beside_ms.append(self._clock.now_ms() - self._deadline_ms)


class TakesTheNext(SystemTimer):
    """It removes the next bucket before it drains the current one, which may add a task to the next."""

    def advance_clock(self, timeout_ms: int) -> bool:
        def reinsert(entry: TimerTaskEntry) -> None:
            if not self._add_entry(entry):
                self._hand_over(entry.task)

        following = first = self._queue.poll()
        while (bucket := following) is not None:
            following = self._queue.poll()
            self._wheel.advance_clock(bucket.expiration_ms())
            bucket.flush(reinsert)
        return first is not None


class OfReference:
    def __init__(self, made: type[SystemTimer]) -> None:
        self._clock = ManualClock()
        self._executor = QueuedExecutor()
        self._timer = made("reach", clock=self._clock, executor=self._executor)
        self._last_ms = 0
        self.beside_ms: list[int] = []

    @property
    def now_ns(self) -> int:
        return self._clock.now_ms() * MS

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        assert isinstance(call, Add)
        self._timer.add(_Noted(call.delay_ns // MS, self._clock, self.beside_ms))
        self._last_ms = max(self._last_ms, (self.now_ns + call.delay_ns) // MS)

    def advance_through(self, until_ns: int) -> None:
        while self._clock.advance_to(min(self._clock.now_ms() + 100, until_ns // MS)) < until_ns // MS:
            self._drive()
        self._drive()

    def leap(self, by_ns: int) -> None:
        self._clock.advance(by_ns // MS)
        self._drive()

    def settle(self) -> None:
        self.advance_through(self._last_ms * MS)

    def _drive(self) -> None:
        self._timer.advance_clock(0)
        self._executor.run_all()


@pytest.mark.parametrize("made", [SystemTimer, TakesTheNext])
def test_a_late_drain_of_several_buckets_keeps_tasks_of_a_later_turn(made: type[SystemTimer]) -> None:
    """Nothing is early, nor later than the leap, unless two that a turn lies between get into one bucket."""
    run = OfReference(made)
    BoundaryPlan(run, OF_20, "timer", 1).over_buckets(100 * MS)
    late = {beside_ms for beside_ms in run.beside_ms if not 0 <= beside_ms <= 100}
    assert bool(late) is (made is TakesTheNext)
    assert (min(late, default=0) < 0) is (made is TakesTheNext)


@dataclass
class Millis:
    """It counts milliseconds in 32 bits, and compares the counts, or (`wraps`) the sign of their difference. After
    AsyncTimer#26."""

    wraps: bool
    now_ns: int
    tasks: list[tuple[int, int]] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        assert isinstance(call, Add)
        self.tasks.append((self.now_ns + call.delay_ns, (self.now_ns + call.delay_ns) // MS % 2**32))

    def leap(self, by_ns: int) -> None:
        self.now_ns += by_ns
        now = self.now_ns // MS % 2**32
        due = [one for one in self.tasks if ((now - one[1]) % 2**32 < 2**31 if self.wraps else one[1] <= now)]
        self.tasks = [one for one in self.tasks if one not in due]
        self.late_ns += [self.now_ns - due_ns for due_ns, _ in due]

    def advance_through(self, until_ns: int) -> None:
        self.leap(until_ns - self.now_ns)

    def settle(self) -> None:
        self.leap(1_000 * MS)


@pytest.mark.parametrize("wraps", [True, False])
def test_time_jumps_over_the_end_of_a_count(wraps: bool) -> None:
    """A task that was due just before it is skipped for seven weeks."""
    run = Millis(wraps, 1_000 * MS)
    BoundaryPlan(run, OF_20, "timer", 1).over_wraps(100 * MS, run.now_ns)
    beside = [late_ns for late_ns in run.late_ns if late_ns > 0]  # the others end leaps
    assert len(beside) + len(run.tasks) == 12
    assert all(0 <= late_ns <= 100 * MS for late_ns in run.late_ns)
    assert bool(run.tasks) is not wraps


@pytest.mark.parametrize("bits", [32, 64])
def test_a_delay_is_as_long_as_the_count_less_the_present_time(bits: int) -> None:
    """Milliseconds are added in so many bits, so the deadline of a delay of nearly 2**32 lies before now. After
    RIOT#4894."""

    @dataclass
    class Sums(SlowTime):
        early: list[int] = field(default_factory=list)

        def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
            now = self.now_ns // MS % 2**bits
            if isinstance(call, Add) and call.delay_ns > 0 and (now + call.delay_ns // MS) % 2**bits <= now:
                self.early.append(call.delay_ns // MS)

    run = Sums(0.0, now_ns=1_000 * MS)
    BoundaryPlan(run, OF_20, "timer", 1, run.clock_s).through_levels(longest_ns=MAX_TIME_NS)
    assert run.early[:2] == ([] if bits == 64 else [2**32 - 1, 2**32])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if change.says])
def test_what_lies_beyond_a_plan_is_reached(name: str, tmp_path: Path) -> None:
    """Found from the first size of a plan on that reaches, and not by a smaller one."""
    clause, *first = CHANGES[name].says.split()
    program, changes = CHANGES[name].what, words_of(*first, name)
    assert driven(program, changes, tmp_path, REACHES_FROM).clauses[clause].verdict is Verdict.VIOLATED
    assert driven(program, changes, tmp_path, 50).clauses[clause].verdict is not Verdict.VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{'"purge_interval": 0': '"purge_interval": 50'}, words_of("skips"), words_of("estimates")]
)
def test_a_clean_purgatory_is_read_at_rest_a_hundred_times(changes: dict[str, str], tmp_path: Path) -> None:
    """Garbage beyond the purge interval, several times over: P1 and P2 have occasions."""
    run = driven("toy_purgatory", changes, tmp_path, REACHES_FROM)
    assert run.verdict is Verdict.PASS
    assert run.clauses["P1"].occasions >= 100
    assert run.clauses["P2"].occasions >= 100


@pytest.mark.parametrize(("tick_ms", "size"), [(1, 20), (1, 8), (1, 512), (10, 64)])
def test_four_levels_and_a_day_are_among_the_levels(tick_ms: int, size: int) -> None:
    """Of any wheel of that order, from the start of a clock that has three months before it."""
    described = Description(0, "", "", (), (), tick_ns=tick_ms * MS, wheel_size=size)
    levels = levels_of(described, 30 * 24 * 3_600_000 * MS)
    assert len(levels) >= 4
    assert levels[-1] * size >= 24 * 3_600_000 * MS
