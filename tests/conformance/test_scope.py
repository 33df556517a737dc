"""The scope, and small bugs of strangers that lay between the programs that somebody had thought of."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path

import pytest

from conformance.driven import broken, changed
from purgatorio_conformance.protocol import plays
from purgatorio_conformance.protocol.coverage import looked_for
from purgatorio_conformance.protocol.describe import Part, header_of
from purgatorio_conformance.protocol.driver import CommandSubject, command_subjects
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.scope import crossed, scope, scope_delays
from purgatorio_conformance.protocol.shortest import order_of_run
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.contract import silent
from purgatorio_conformance.subject.plan import HUGE_NS, MS
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import _STEPPED, SCOPE, of_timer, play
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "subjects"
PYTHON = (sys.executable, "-I", "-S")


def in_scope(command: Sequence[str], folder: Path, programs: int) -> tuple[RunResult, CommandSubject]:
    (subject,) = (one for one in command_subjects(command) if one.mode == "virtual-scope")
    trace = subject.run_seeded(1, programs, folder / "run.jsonl", silent)
    return check_files([trace]).runs[0], subject


TIMER = Description(
    0, "", "x", ("timer", "cancel", "gauge", "add-again"), (), tick_ns=MS, wheel_size=8, gates=("timer_fire",)
)
PURGATORY = replace(
    TIMER,
    capabilities=("purgatory", "cancel-key", "force", "gauge"),
    gates=("try_complete", "on_complete", "on_expiration"),
)


@pytest.mark.parametrize(
    ("part", "description", "sizes"),
    [
        ("timer", TIMER, [181, 1_945]),
        ("timer", replace(TIMER, gates=()), [89, 939]),
        ("timer", replace(TIMER, capabilities=("timer",), gates=()), [63, 322]),
        ("purgatory", PURGATORY, [385, 4_363]),
        ("purgatory", replace(PURGATORY, gates=()), [142, 1_259]),
    ],
)
def test_the_scope_is_enumerated(part: Part, description: Description, sizes: list[int]) -> None:
    """Each program once; what a subject lacks is in none of them. How many there are is a decision."""
    found = scope(part, scope_delays(description), description)
    programs = [next(found) for _ in sizes]
    assert [len(some) for some in programs] == sizes
    names = [one.name for some in programs for one in some]
    assert len({*names}) == len(names)


@pytest.mark.parametrize(("virtual", "late_ns"), [(True, MS), (False, 1_000)])
def test_the_late_bound_has_whole_units_where_the_clock_does(virtual: bool, late_ns: int) -> None:
    """A timer of floats is late by a nanosecond, and the next stop of the clock is a unit later."""
    floats = replace(TIMER, unit_ns=MS, late_ns=1_000)
    header = header_of(floats, "timer", run="r", virtual=virtual, late_slack_ns=0, params={})
    assert header.timer.late_ns == late_ns


def test_the_result_says_how_far_the_scope_was_played(tmp_path: Path) -> None:
    run, subject = in_scope((*PYTHON, str(EXAMPLES / "toy_wheel.py")), tmp_path, 100)
    assert run.verdict is Verdict.PASS
    assert run.clauses["T2"].occasions > 100
    reached = "all 71 programs up to size 1; size 2: 5 % of 513 (the limit of --operations)"
    assert ("toy-wheel timer", f"virtual-scope: {reached}") in looked_for([subject])


@pytest.mark.parametrize("ran", [True, False])
def test_a_run_without_a_program_is_no_pass(ran: bool, tmp_path: Path) -> None:
    (_, _, scoped) = command_subjects((*PYTHON, str(EXAMPLES / "toy_wheel.py")), time="virtual")
    (record,) = record_runs([replace(scoped, leaves_out=lambda program: not ran)], tmp_path, ops=30)
    assert (record.failure is None) is ran
    assert ran or "unfinished: no program ran, so nothing was tested" in str(record.failure)


INSIDE = {
    "        self.watchers, self.timeouts": "        self.expires = False\n        self.watchers, self.timeouts",
    "        first = 1 if BUG else 0\n": "        first = 1 if BUG else 0\n"
    "        if self.expires:\n            return 0\n",
    "                if self.force_complete(op):\n                    say": "                self.expires = True\n"
    "                done = self.force_complete(op)\n                self.expires = {}\n"
    "                if done:\n                    say",
}


@pytest.mark.parametrize("forgets", [True, False])
def test_a_check_inside_an_expiry(forgets: bool, tmp_path: Path) -> None:
    """A check while something expires looks nowhere (redis#7880). Its program is among the first 700."""
    changes = {', "cancel-key", "force", "gauge"]': "]"} | (INSIDE if forgets else {})
    changes = {text: instead.replace("= {}", "= False") for text, instead in changes.items()}
    run, subject = in_scope(
        (*PYTHON, changed(EXAMPLES / "toy_purgatory.py", changes, tmp_path)), tmp_path, 700
    )
    assert broken(run) == ({"O4"} if forgets else set())
    if forgets:
        session = order_of_run(subject, run, "O4", tmp_path / "again.jsonl")
        assert any('"m":"check"' in line and '"hold"' in line for line in session)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("runs", [True, False])
def test_a_cancel_inside_a_task_of_the_same_batch(runs: bool, tmp_path: Path) -> None:
    """A task cancels another that is due as well, is told that it did, and it runs. The twin looks before that."""
    looks = {"if (due && this.cancel(task)) {": "if (due) {\n          this.cancel(task);"}
    command = ("node", changed(EXAMPLES / "toy_wheel.js", looks if runs else {}, tmp_path))
    run, _ = in_scope(command, tmp_path, 300)
    assert broken(run) == ({"T4"} if runs else set())


class Wheel:
    """A bucket a tick. While a bucket runs, a cancel says that it did, and does not reach some tasks."""

    def __init__(self, misses: str) -> None:
        self._misses = misses
        self._now = 0
        self._buckets: dict[int, list[list[Callable[[], None]]]] = {}
        self._missed: list[list[Callable[[], None]]] = []

    def add(self, delay_ns: int, task: Callable[[], None]) -> list[Callable[[], None]]:
        handle = [task]
        due = max(self._now + 1, self._now + -(-delay_ns // (10 * MS)))
        self._buckets.setdefault(due, []).append(handle)
        return handle

    def cancel(self, handle: object) -> bool:
        assert isinstance(handle, list)
        waits = bool(handle)
        if not any(handle is missed for missed in self._missed):
            handle.clear()
        return waits

    def advance(self, by_ns: int) -> None:
        for _ in range(by_ns // (10 * MS)):
            self._now += 1
            batch = self._buckets.pop(self._now, [])
            later = [handle for bucket in self._buckets.values() for handle in bucket]
            self._missed = {"none": [], "batch": batch, "later": later}[self._misses]
            for handle in batch:
                for task in [*handle]:
                    handle.clear()
                    task()
            self._missed = []


@pytest.mark.parametrize("misses", ["none", "batch", "later"])
@pytest.mark.parametrize("profile", ["timer", "timer-cancel-barrier"])
def test_a_cancel_inside_a_task_of_an_adapter(
    profile: str, misses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the plugin, without threads: a success is final, whatever the profile. 100 programs find both. And a call may
    be so slow that its thread seems to wait: the program goes on behind it all the same."""
    monkeypatch.setattr(gated, "_SCOPE", 120)
    for patience in ("_GLANCE_S", "_QUIET_MOST_S"):
        monkeypatch.setattr(plays, patience, 0.0)
    monkeypatch.setattr(ProcessThreads, "wait", lambda threads: True)
    lacks = dict.fromkeys(("size", "between-ticks", "past", "raising"), "it is small")
    promise = Promise(profile, 10 * MS, early_ns=0, late_ns=10 * MS, lacks=lacks)
    judged = play(SCOPE, of_timer(promise, lambda _: Wheel(misses)))
    assert not judged.broken_off
    assert broken(judged.result) == (set() if misses == "none" else {"T4"})


class Behind:
    """A wheel whose hand follows the clock. After tgstation#38994. `by_hand`: a bucket is chosen from the hand, and not
    from the clock."""

    def __init__(self, by_hand: bool) -> None:
        self._by_hand = by_hand
        self._now = self._hand = 0
        self._tasks: list[tuple[int, int, Callable[[], None]]] = []

    def add(self, delay_ns: int, task: Callable[[], None]) -> None:
        due = self._now + max(1, delay_ns // MS)
        in_wheel = due < (self._hand if self._by_hand else self._now) + 16
        self._tasks.append((due % 16 if in_wheel else -1, due, task))

    def advance(self, by_ns: int) -> None:
        self._now += by_ns // MS
        while self._hand < self._now:
            self._hand += 1
            last = self._hand + 15
            tasks = [(due % 16 if due <= last else slot, due, task) for slot, due, task in self._tasks]
            self._tasks = [one for one in tasks if one[0] != self._hand % 16]
            for _, _, task in (one for one in tasks if one[0] == self._hand % 16):
                task()


class Stale:
    """Time goes at once, and tasks count from the moment that is `shown`, or from where time came from."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._now = 0
        self._tasks: list[tuple[int, Callable[[], None]]] = []

    def add(self, delay_ns: int, task: Callable[[], None]) -> None:
        self._tasks.append((self._now + delay_ns, task))

    def advance(self, by_ns: int) -> None:
        until = self._now + by_ns
        while due := [one for one in self._tasks if one[0] <= until]:
            first = min(due, key=lambda one: one[0])
            self._tasks.remove(first)
            self._now = max(self._now, first[0]) if self._shown else self._now
            first[1]()
        self._now = until


@pytest.mark.parametrize("sound", [True, False])
@pytest.mark.parametrize("kind", [Behind, Stale])
def test_a_task_counts_from_the_moment_that_its_add_sees(
    kind: type[Behind | Stale], sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs almost a revolution early, if the clock chooses a bucket that the hand has still to empty; and early, if
    it counts from the start of the move of time in which a task adds it."""
    monkeypatch.setattr(gated, "_SCOPE", 60)
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise("timer", MS, early_ns=0, late_ns=MS, wheel_size=16, lacks=lacks)
    judged = play(SCOPE, of_timer(promise, lambda _: kind(sound)))
    assert not judged.broken_off
    assert broken(judged.result) == (set() if sound else {"T1"})


class Walled:
    """Its wall clock is set back and forward, as docs/conformance-suite.md says. `monotonic`: it counts by another."""

    def __init__(self, monotonic: bool) -> None:
        self._monotonic = monotonic
        self._now = 0
        self._tasks: list[tuple[int, Callable[[], None]]] = []

    def _shown(self) -> int:
        return self._now + (0 if self._monotonic else (self._now // 10**7 % 3 - 1) * 3_600_000 * MS)

    def add(self, delay_ns: int, task: Callable[[], None]) -> None:
        self._tasks.append((self._shown() + delay_ns, task))

    def advance(self, by_ns: int) -> None:
        self._now += by_ns
        due = [one for one in self._tasks if one[0] <= self._shown()]
        self._tasks = [one for one in self._tasks if one not in due]
        for _, task in due:
            task()


@pytest.mark.parametrize("monotonic", [True, False])
def test_a_wall_clock_is_set_while_tasks_wait(monotonic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run early, and late."""
    monkeypatch.setattr(gated, "_SCOPE", 60)
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise("timer", MS, early_ns=0, late_ns=MS, wheel_size=16, lacks=lacks)
    judged = play(SCOPE, of_timer(promise, lambda _: Walled(monotonic)))
    assert bool({"T1", "T2"} & broken(judged.result)) is not monotonic


class Cyclic:
    """Many tasks share one timer, which is set for the first of them. After jetty#6334. `looks`: who has set it looks
    again whether another task has become the first."""

    def __init__(self, looks: bool) -> None:
        self._looks = looks
        self._now = 0
        self._first = self._set_to = HUGE_NS
        self._tasks: list[tuple[int, Callable[[], None]]] = []
        self._lock = threading.Lock()

    def add(self, delay_ns: int, task: Callable[[], None]) -> None:
        due = self._now + delay_ns
        self._tasks.append((due, task))
        self._set(due)

    def _set(self, due: int) -> None:
        with self._lock:
            sooner = due < self._first
            self._first = min(due, self._first)
        while sooner:
            self._set_to = due
            sooner = self._looks and self._first < due
            due = self._first

    def advance(self, by_ns: int) -> None:
        self._now += by_ns
        while self._set_to <= self._now:
            self._first = self._set_to = HUGE_NS
            due = [one for one in self._tasks if one[0] <= self._now]
            self._tasks = [one for one in self._tasks if one not in due]
            for _, task in due:
                task()
            if self._tasks:
                self._set(min(due for due, _ in self._tasks))


TWO_FIRST = [f"nothing | add w {one} beside add v {other}"
             for one, other in permutations(("soon", "later", "last"), 2)]  # fmt: skip


@pytest.mark.parametrize("looks", [True, False])
def test_two_adds_both_come_before_all_others(looks: bool) -> None:
    """The timer is set for the later one, and the first deadline passes without its task."""
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise("timer", MS, early_ns=0, late_ns=0, threads=True, lacks=lacks)
    subject = of_timer(promise, lambda _: Cyclic(looks))
    _, programs = next(crossed("timer", scope_delays(subject.description), subject.description))
    crossing = next(one.name for one in islice(programs, _STEPPED) if one.name in TWO_FIRST)
    judged = play("steps", replace(subject, leaves_out=lambda one: one.name != crossing))
    assert ("T2 is broken" in judged.broken_off) is not looks
    assert not broken(judged.result)


class Movable:
    """A reset finds the task in the list, or a thread has taken it out and is about to run it. Then it `says` so."""

    def __init__(self, says: bool | None) -> None:
        self._says = says
        self._now = 0
        self._waiting: dict[Callable[[], None], int] = {}
        self._lock = threading.Lock()

    def add(self, delay_ns: int, task: Callable[[], None]) -> Callable[[], None]:
        with self._lock:
            self._waiting[task] = self._now + delay_ns
        return task

    def reset(self, handle: Callable[[], None], delay_ns: int) -> bool | None:
        with self._lock:
            waits = handle in self._waiting
            if waits or self._says is not False:
                self._waiting[handle] = self._now + delay_ns
        return True if waits else self._says

    def advance(self, by_ns: int) -> None:
        self._now += by_ns
        while True:
            with self._lock:
                first = min(self._waiting, key=self._waiting.__getitem__, default=None)
                if first is None or self._waiting[first] > self._now:
                    return
                del self._waiting[first]
            first()


@pytest.mark.parametrize(("says", "found"), [(False, set()), (None, set()), (True, {"T11"})])
def test_a_task_is_reset_while_a_thread_takes_it_out(
    says: bool | None, found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs after the reset and before its new deadline; who calls the reset must know that."""
    monkeypatch.setattr(gated, "_DRAWN", 0)
    lacks = dict.fromkeys(("size", "cancel", "between-ticks", "past", "raising"), "it is small")
    promise = Promise(
        "timer-cancel-barrier", MS, early_ns=0, late_ns=0, threads=True, lacks=lacks, offers=("reset",)
    )
    subject = of_timer(promise, lambda _: Movable(says))
    _, programs = next(crossed("timer", scope_delays(subject.description), subject.description))
    names = [one.name for one in islice(programs, _STEPPED)]
    (crossing,) = (one for one in names if one.endswith("expiry of t beside reset t later"))
    judged = play("steps", replace(subject, leaves_out=lambda one: one.name != crossing))
    assert not judged.broken_off
    assert broken(judged.result) == found


@pytest.fixture(scope="session")
def delay_queue(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled. Skips where there is no compiler."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed")
    made = tmp_path_factory.mktemp("rust") / "delay-queue"
    source = HERE / "strangers" / "delay_queue.rs"
    subprocess.run([compiler, "-O", "-o", str(made), str(source)], check=True, capture_output=True)
    return str(made)


@pytest.mark.parametrize("moves", ["add-again", "reset"])
@pytest.mark.parametrize("fix", [(), ("fix",)], ids=["bug", "fix"])
def test_a_task_that_is_overdue_is_moved_and_then_cancelled(
    fix: tuple[str, ...], moves: str, delay_queue: str, tmp_path: Path
) -> None:
    """It is taken from the list where it was, and not from the one where it is (tokio#3270)."""
    run, _ = in_scope((delay_queue, moves, *fix), tmp_path, 800)
    assert broken(run) == (set() if fix else {"T4"})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("fix", [False, True], ids=["bug", "fix"])
@pytest.mark.parametrize(("slots", "tick_ns"), [(16, MS), (4_096, 1_000 * MS), (4_096, 60_000 * MS)])
def test_a_jump_over_a_revolution_leaves_nothing_overdue(
    slots: int, tick_ns: int, fix: bool, tmp_path: Path
) -> None:
    """It visits the buckets between where it was and where it is, without the revolution (nats-server#7070)."""
    made, source = tmp_path / "wheel", HERE / "strangers" / "hash_wheel.c"
    defined = [f"-DSLOTS={slots}", f"-DTICK={tick_ns}LL", *(["-DFIX"] if fix else [])]
    subprocess.run(["gcc", "-O1", *defined, "-o", str(made), str(source)], check=True, capture_output=True)
    run, _ = in_scope((str(made),), tmp_path, 100)
    assert broken(run) == (set() if fix else {"T2"})


@pytest.mark.slow
@pytest.mark.xdist_group("jvm-kit")
@pytest.mark.parametrize("fix", [False, True], ids=["bug", "fix"])
def test_two_adds_make_one_bucket(fix: bool, built: tuple[Path, Path], tmp_path: Path) -> None:
    """In real time: one of the two lists is lost (hutool#2712)."""
    java, classes = built
    command = (str(java), f"-Dfix={str(fix).lower()}", "-cp", str(classes), "LazyWheelAdapter")
    (subject,) = (one for one in command_subjects(command) if one.mode == "real-steps")
    trace = subject.run_seeded(1, 100, tmp_path / "run.jsonl", silent)
    assert broken(check_files([trace]).runs[0]) == (set() if fix else {"T3"})
