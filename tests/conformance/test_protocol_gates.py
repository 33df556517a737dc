"""Races by control: what is played with gates, and what that finds."""

from __future__ import annotations

import gc
import inspect
import itertools
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from conformance.driven import EXAMPLES, NODE, PYTHON, broken, needs_node, run_of, subject_in
from conformance.small_purgatory import SLIPS, small
from conformance.test_protocol_conversation import Scene
from program_text import program
from purgatorio_conformance.protocol import conversation, driver, gates, plays
from purgatorio_conformance.protocol.conversation import Conversation, VirtualClock
from purgatorio_conformance.protocol.coverage import not_looked_for
from purgatorio_conformance.protocol.describe import Part, reported
from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.protocol.failed_run import comes_of_order
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.gate_steps import Steps
from purgatorio_conformance.protocol.gates import GatedRun
from purgatorio_conformance.protocol.lines import Lines
from purgatorio_conformance.protocol.message import (
    STEP,
    Add,
    Advance,
    Cancel,
    Check,
    Description,
    Go,
    Register,
    Start,
)
from purgatorio_conformance.protocol.played_order import (
    TOO_MANY,
    Orders,
    PausedCall,
    PlayedOrder,
    first_in_trace,
    unfinished,
)
from purgatorio_conformance.protocol.plays import Play, Plays
from purgatorio_conformance.protocol.scope import crossing_named
from purgatorio_conformance.protocol.script import AtGate, Script, ScriptPlayer
from purgatorio_conformance.protocol.session import Peer, Session
from purgatorio_conformance.protocol.small_program import ANY, EveryOrder, Expiry, SmallProgram, delays_for
from purgatorio_conformance.recording import record_runs
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.child import ChildLimits, Quiet
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated as gated_conformance
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import of_purgatory, of_timer, play
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult, broken_off
from purgatorio_spec.recording import RecordedRun, judge
from purgatorio_spec.show.text import render
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import Trace

PURGATORY = (*PYTHON, str(EXAMPLES / "toy_purgatory.py"))


def only(monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Nothing but these is played, of those that are written by hand and of the scope."""
    monkeypatch.setattr(
        gates,
        "gate_programs",
        lambda part, delays: tuple(one for one in gate_programs(part, delays) if one.name in programs),
    )
    monkeypatch.setattr(
        gates,
        "crossed",
        lambda *of: iter(
            [(1, filter(None, (crossing_named(name, *of) for name in programs if "|" in name)))]
        ),
    )
    monkeypatch.setattr(GatedRun, "_sleep", lambda run: None)
    monkeypatch.setattr(driver, "_DRAWN_MOST", 0)
    monkeypatch.setattr(gated_conformance, "_DRAWN", 0)


def gated(command: tuple[str, ...], folder: Path) -> RunResult:
    return run_of(subject_in("virtual-gates", command), folder, ops=400)


def test_a_correct_subject_passes(tmp_path: Path) -> None:
    """Calls from inside callbacks are legal."""
    run = gated(PURGATORY, tmp_path)
    assert run.verdict is Verdict.PASS
    assert run.clauses["O4"].occasions > 0


@needs_node
def test_a_task_is_held_in_javascript_while_others_are_called(tmp_path: Path) -> None:
    """A gate is a promise there, and the lanes are calls under way at once."""
    run = gated((NODE, str(EXAMPLES / "toy_wheel.js")), tmp_path)
    assert run.verdict is Verdict.PASS
    assert run.clauses["T3"].occasions > 20
    assert run.clauses["T2"].reason == "the driver paused threads, and a paused thread may delay a task"


POOL = program("thread_a_task")


@pytest.mark.parametrize("most", [8, 10_000])
def test_tasks_that_each_have_a_thread_are_no_flood(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be, if the bystanders of all programs came due at once."""
    monkeypatch.setattr(plays, "_PENDING_MOST", most)
    monkeypatch.setattr(conversation, "_MAX_HOLDS", 16)
    monkeypatch.setattr(gates, "gate_programs", lambda part, delays: ())
    monkeypatch.setattr(GatedRun, "_sleep", lambda run: None)
    subject = subject_in("virtual-gates", (*PYTHON, "-c", POOL))
    (record,) = record_runs([subject], tmp_path, suffix=".jsonl", ops=90)
    assert (record.failure is None) == (most == 8), record.failure


STOPPED_POOL = program("stopped_pool")


@pytest.mark.parametrize(
    ("mode", "promise", "end", "breaks"),
    [
        ("gates", "drains", "waits", set()),
        ("gates", "drains", "drops", {"T3"}),
        ("gates", "halts", "waits", set()),
        ("gates", "halts", "drops", set()),
        ("gates", "halts", "runs on", {"T4"}),
        ("plan", "halts", "drops", set()),
        ("plan", "halts", "runs on", {"T4"}),
    ],
)
def test_a_stop_runs_what_is_due_or_drops_it_as_declared(
    mode: str, promise: str, end: str, breaks: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "gate_programs", lambda part, delays: ())
    monkeypatch.setattr(GatedRun, "_sleep", lambda run: None)
    subject = subject_in(f"virtual-{mode}", (*PYTHON, "-c", STOPPED_POOL, promise, end))
    run = run_of(subject, tmp_path, ops=30)
    assert run.verdict is (Verdict.VIOLATED if breaks else Verdict.PASS)
    assert broken(run) == breaks


@contextmanager
def deep(most: int) -> Iterator[None]:
    """No deeper than this."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(most)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def test_hundreds_of_threads_may_pause_before_the_first_one_is_resumed() -> None:
    """Their answers are read one after another, and not one inside another."""
    adds = [Add(f"t-{number}", MS) for number in range(240)]
    with closing(ScriptPlayer((*PYTHON, "-c", POOL))) as player, deep(len(inspect.stack()) + 240):
        played = player.play(Script("timer", 0, (AtGate("timer_fire", "t-0"), *adds, Advance(MS))))
    assert sum(event.f == "timer_fire" for event in played.events) == 2 * len(adds)


SLIP = """
import runpy, sys
from purgatorio.delayed.dialect import Completable
from purgatorio.delayed.watchers import WatcherList
from purgatorio.timer.system_timer import SystemTimer
{}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_SLIPS = (Path(__file__).parent / "reference_slips.txt").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    re.split("^== ", _SLIPS, flags=re.MULTILINE)[1:],
    ids=lambda told: told.partition("\n")[0],
)
def test_a_slip_of_the_reference_is_found_by_its_program(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clause, or by how it fails. Without the slip nothing is found."""
    program, _, found_by, slip = told.split("\n", 3)
    breaks = {word for word in found_by.split() if word[0].isupper()}
    failure = next((word for word in found_by.split() if word[0].islower()), None)
    only(monkeypatch, program)
    # More than a crowd says.
    monkeypatch.setattr(plays, "_SAID_MOST", 12_000 if "crowd" in program else 4_000)
    # A thread that is slow on a busy machine is waited for.
    monkeypatch.setattr(plays, "_QUIET_LEAST_S", 0.05)
    example = (str(EXAMPLES / "reference_purgatory.py"), "locked")
    for command, clauses, kind in (
        (("-c", SLIP.format(slip), *example), breaks, failure),
        (example, set(), None),
    ):
        subjects = command_subjects((sys.executable, *command), limits=ChildLimits(silence_s=4.0))
        records = record_runs([one for one in subjects if one.held and one.virtual], tmp_path)
        kinds = {record.failure.kind for record in records if record.failure}
        # Without calls that can be paused at their steps, a run has nothing to play.
        assert kinds - {"unfinished"} == ({kind} if kind else set())
        traces = [record.path for record in records if record.path is not None]
        runs = check_files(traces).runs if traces else ()
        found = set[str]().union(*map(broken, runs))
        assert found >= clauses
        assert clauses or not found


DIES = program("dying_worker")


@pytest.mark.slow
@pytest.mark.parametrize("dies", [True, False])
def test_who_hangs_in_real_time_with_nobody_held_and_has_lost_what_is_due_is_late(
    dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in one expiry keeps the worker that carries them out for ever. The twin forgets the error."""
    only(monkeypatch, "op a soon, other a soon | expiry of op; in on_expiration of op: raises")
    slip = SLIP.format(DIES.format("time.sleep(600)" if dies else "pass"))
    (real,) = (
        one
        for one in command_subjects(
            (sys.executable, "-c", slip, str(EXAMPLES / "reference_purgatory.py"), "locked"),
            time="real",
            limits=ChildLimits(silence_s=4.0),
            late_slack_ns=MS,
        )
        if one.mode == "real-gates"
    )
    (record,) = record_runs([real], tmp_path)
    assert (record.failure is not None) is dies
    if record.failure is not None:
        assert record.failure.kind == "late", record.failure.why
        assert "O5 is broken: " in record.failure.why


PARKS = program("parked_reaper")


@pytest.mark.slow
@pytest.mark.parametrize("parks", [True, False])
def test_what_was_armed_beside_a_purge_is_waited_for_in_real_time_before_anything_else_is_called(
    parks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reaper sleeps while the estimate is nothing, which a purge sets it to. The twin is woken."""
    only(monkeypatch, "purge-registration-expiry")
    monkeypatch.setattr(plays, "LATE_SLACK_NS", 500 * MS)
    monkeypatch.setattr(plays, "_FAR_REAL_NS", 500 * MS)
    slip = SLIP.format(PARKS.format("pass" if parks else "woken.set()"))
    command = (sys.executable, "-c", slip, str(EXAMPLES / "reference_purgatory.py"), "locked")
    subjects = command_subjects(command, time="real")
    (subject,) = (one for one in subjects if one.mode == "real-gates")
    # Until it is stopped, which wakes it: what is overdue is still in the timer and in the lists of its keys.
    assert broken(run_of(subject, tmp_path)) == ({"P2", "T5"} if parks else set())


_MILLISECONDS = Description(0, "", "", (), (), tick_ns=MS, wheel_size=20, unit_ns=MS)


def test_a_purge_is_stopped_step_by_step_beside_calls() -> None:
    """It is all that is stopped in that program, of those with as much garbage before them: each play is long."""
    description = replace(_MILLISECONDS, purge_interval=100, gates=(STEP,), lanes=2)
    programs = gate_programs("purgatory", delays_for(description, MS * 3_600_000))
    purges = [
        one
        for one in programs
        if one.long and one.expiring() and one.cannot_step(description, virtual=True) is None
    ]
    assert purges
    for purged in purges:
        assert [type(call) for _, _, call in purged.stepped()] == [Expiry]
    for interval, played in ((121, ["calls-beside-purge"]), (1_000, ["calls-beside-purge"]), (1_201, [])):
        longer = replace(description, purge_interval=interval)
        programs = gate_programs("purgatory", delays_for(longer, MS * 3_600_000))
        steps = {
            one.name: one.cannot_step(longer, virtual=True)
            for one in programs
            if one.name in {p.name for p in purges}
        }
        assert [name for name, why in steps.items() if why is None] == played
        assert {why for why in steps.values() if why} <= {
            "its purge interval is above 120",
            "its purge interval is above 1,200",
        }


@dataclass
class _Noted:
    """Stands in for the plays of a run, and for the lines of a JVM that comes to none."""

    clock: object
    description: Description = _MILLISECONDS
    part: str = "purgatory"
    broken: bool = False
    adapters: frozenset[object] = frozenset()
    points: tuple[object, ...] = ()
    noted: list[str] = field(default_factory=list)
    delays: object = None

    def start(self, gates: tuple[str, ...]) -> None:
        self.noted.append("start")

    def start_anew(self, gates: tuple[str, ...], *, early: bool = False) -> None:
        self.noted.append("anew")

    def come_to_rest(self, *, early: bool = False) -> None:
        """See `Plays`."""

    def seen(self, watched: Mapping[int, str]) -> list[int]:
        return []


def test_far_tasks_that_no_call_names_are_left_out_while_lines_are_watched() -> None:
    before = (Add("far", 9), Add("live", 9), Add("soon", 1))
    program = SmallProgram("one", ANY, ((Cancel("far"),),), before=before)
    assert program.without_far(9).before == (Add("far", 9), Add("soon", 1))


@pytest.mark.parametrize("virtual", [True, False])
def test_each_program_is_watched_in_a_subject_of_its_own(
    virtual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or lines of a purge that comes by what others have left are taken for a short program's, and left out of those
    that are there for them. In real time that would take too long."""
    run = _Noted(object() if virtual else None)

    def watched(self: Steps, lines: Lines, program: SmallProgram, stop: PausedCall) -> Mapping[int, str]:
        run.noted.append(program.name)
        return {}

    monkeypatch.setattr(Steps, "_watched", watched)
    programs = [(SmallProgram(name, "", ((Check(name),),), ()), "") for name in "ab"]
    found = Steps(cast(Plays, run))._at_lines(cast(Lines, run), programs, ("step",))
    assert list(found) == [[], []]
    first, *_ = run.noted
    assert first == "start"
    assert (run.noted[run.noted.index("b") - 1] == "anew") is virtual


@pytest.mark.parametrize(("reached", "plays"), [(5, 6), (100, 24)])
def test_each_step_of_a_fresh_program_is_known_after_the_step_before(
    reached: int, plays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real time, each execution starts the subject again, so there are few. The steps are not listed first: their
    list would have no end."""
    steps = Steps(cast(Plays, SimpleNamespace(broken="", clock=None, lines=None)))
    stops: list[PausedCall] = []

    def stopped(self: Steps, _: SmallProgram, stop: PausedCall) -> None:
        stops.append(stop)
        self._stops_made = int(len(stops) <= reached)

    monkeypatch.setattr(Steps, "_stopped_at", stopped)
    program = SmallProgram("a", "", ((Check("a"),),), (), fresh=True)
    orders = steps._steps_of(program, steps._counted(program), math.inf, lambda _: None)
    assert (orders.plays, [one.steps for one in stops]) == (plays, [(step,) for step in range(plays)])


def test_a_random_program_that_real_time_cannot_play_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some let time pass. The others are played, and the run is whole."""
    described = replace(_MILLISECONDS, capabilities=("timer", "cancel"), gates=(STEP, "timer_fire"), lanes=2)
    plays = _Noted(None, described, "timer", delays=delays_for(described, MS))
    monkeypatch.setattr(GatedRun, "_play", lambda run, program, *_: plays.noted.append(program.name))
    monkeypatch.setattr(Steps, "drawn", lambda *_: None)
    run = GatedRun(cast(Plays, plays), effort=gates.Effort(drawn=300))
    run._all_drawn(lambda share: None)
    (orders,) = run.orders
    assert (orders.plays, orders.cut) == (len(plays.noted) - 1, "")
    assert 30 < orders.plays < 60


_RAISES = {"raising": "what a task raises comes out of the call"}
_UNCOUNTED = Promise("timer", MS, early_ns=0, threads=True, lacks={**_RAISES, "size": "it is not counted"})


class TwoLists:
    """A timer with a coarse list and a fine one, to which time moves tasks. A cancel takes the lock of the list that
    had its task; unless it `looks` under it, time may have moved the task to where that lock guards nothing."""

    def __init__(self, *, looks: bool) -> None:
        self._looks = looks
        self._now_ns = 0
        self._lists: dict[str, list[Entry]] = {"coarse": [], "fine": []}
        self._locks = {name: threading.Lock() for name in self._lists}

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self._put(Entry(self._now_ns + delay_ns, task))

    def _put(self, entry: Entry) -> Entry:
        name = "fine" if entry.deadline_ns < self._now_ns + 20 * MS else "coarse"
        with self._locks[name]:
            self._lists[name] = [*self._lists[name], entry]
            entry.where = name
        return entry

    def cancel(self, handle: object) -> None:
        assert isinstance(handle, Entry)
        while (there := handle.where) is not None:
            with self._locks[there]:
                now_there = handle.where
                if now_there == there or (now_there is not None and not self._looks):
                    rest = [one for one in self._lists[now_there] if one is not handle]
                    self._lists[now_there] = rest
                    handle.where = None

    def advance(self, by_ns: int) -> None:
        self._now_ns += by_ns
        with self._locks["coarse"]:
            near = [one for one in self._lists["coarse"] if one.deadline_ns < self._now_ns + 20 * MS]
            self._lists["coarse"] = [one for one in self._lists["coarse"] if one not in near]
            for entry in near:
                self._put(entry)
        with self._locks["fine"]:
            due = [entry for entry in self._lists["fine"] if entry.deadline_ns <= self._now_ns]
            self._lists["fine"] = [entry for entry in self._lists["fine"] if entry not in due]
            for entry in due:
                entry.where = None
        for entry in due:
            entry.task()


@dataclass(eq=False)
class Entry:
    deadline_ns: int
    task: Callable[[], None]
    where: str | None = None


class _Whole(TwoLists):
    """It takes whole ticks only."""

    def advance(self, by_ns: int) -> None:
        assert by_ns % MS == 0
        super().advance(by_ns)


def test_time_goes_by_whole_units_whatever_bound_is_declared() -> None:
    """A late bound need not be a multiple of the unit; every moment that is asked for is."""
    lacks = dict.fromkeys(("between-ticks", "raising", "size"), "it is a stub")
    promise = Promise("timer", MS, early_ns=0, late_ns=MS + 1, threads=True, lacks=lacks)
    judged = play("gates", of_timer(promise, lambda _: _Whole(looks=True)))
    assert not judged.broken_off
    assert not any(clause.violations for clause in judged.result.clauses.values())


class _Collected(TwoLists):
    """An add has the collector run; a cancel ends the thread that makes it."""

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        self.kept: list[list[None]] = list(map(list, [()] * 10_000))
        return super().add(delay_ns, task)

    def cancel(self, handle: object) -> None:
        raise SystemExit


def test_the_collector_runs_on_no_lane_and_who_ends_a_thread_answers() -> None:
    """A finalizer of somebody else's would be a step of the call."""
    ran: set[str] = set()

    def collected(phase: str, info: Mapping[str, int]) -> None:
        ran.add(threading.current_thread().name)

    subject = of_timer(_UNCOUNTED, lambda _: _Collected(looks=True)).peer()
    gc.callbacks.append(collected)

    def heard(**call: object) -> Iterator[dict[str, Any]]:
        subject.say(orjson.dumps({"n": 1, **call}))
        while isinstance(line := subject.hear(10.0), bytes):
            yield (said := orjson.loads(line))
            if said["m"] == "held":
                subject.say(orjson.dumps({"m": "go", "n": 2, "holds": [said["hold"]]}))
            elif said["n"] == 1:
                return

    try:
        assert [*heard(m="start", now_ns=0, gates=[STEP])]
        steps = [[*heard(m="add", id="t", delay_ns=MS, step=step)] for step in range(20)]
        assert not any("collected" in said.get("at", "") for said in itertools.chain(*steps))
        assert ran == {threading.current_thread().name}
        assert [one["m"] for one in steps[-1]] == ["answer"], "all its steps were seen"
        assert [one.get("err") for one in heard(m="cancel", id="t")] == ["SystemExit"]
    finally:
        gc.callbacks.remove(collected)
        subject.close()
    assert gc.isenabled()


class _Stuck(TwoLists):
    """An add waits for ever, where no exception of Python's reaches it, unless somebody lets it `go_on`."""

    def __init__(self, go_on: threading.Lock) -> None:
        super().__init__(looks=True)
        self._go_on = go_on

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        with self._go_on:
            return super().add(delay_ns, task)


def _stuck(go_on: threading.Lock, _: Promise) -> _Stuck:
    return _Stuck(go_on)


def test_a_thread_that_waits_for_ever_keeps_no_later_one_from_its_steps() -> None:
    """CPython 3.11 turns for ever at the beginning of a traced function, while any thread has an asynchronous
    exception that it has not taken note of."""
    locks = threading.Lock(), threading.Lock()
    locks[0].acquire()
    for lock, answers in zip(locks, (False, True), strict=True):
        subject = of_timer(_UNCOUNTED, partial(_stuck, lock)).peer()
        subject.say(orjson.dumps({"m": "start", "n": 0, "now_ns": 0, "gates": [STEP]}))
        assert isinstance(subject.hear(10.0), bytes)
        subject.say(orjson.dumps({"m": "add", "n": 1, "id": "t", "delay_ns": MS, "step": 100}))
        assert isinstance(subject.hear(10.0 if answers else 0.1), bytes) is answers
        subject.close()
    locks[0].release()


class _Refusing(TwoLists):
    """Every cancel ends with an error."""

    def cancel(self, handle: object) -> None:
        raise ValueError(handle)


@pytest.mark.parametrize(
    ("again", "one_by_one", "proved"),
    [
        ([["check"]], [], True),
        ([[], None, ["check"]], [], True),
        ([[], [], ["add"], [], []], [], False),
        ([["check"]], ["check"], False),
    ],
)
def test_a_hang_by_its_order_of_threads_is_a_deadlock(
    again: list[list[str] | None], one_by_one: list[str], proved: bool
) -> None:
    """It need not hang each time; the calls must be the same, and return where they come one by one."""
    order = PlayedOrder("program", ("lane 0", "lane 1"), None)
    answers = iter(again)

    def alone(played: PlayedOrder) -> list[str] | None:
        return next(answers) if played == order else one_by_one

    assert comes_of_order(order, ["check"], alone) is proved


@pytest.mark.parametrize("refuses", [True, False])
def test_an_error_in_a_play_of_steps_counts_whatever_came_before(refuses: bool) -> None:
    """A program before it may have been told to end a callback with an error: that is over."""
    under = of_timer(_UNCOUNTED, lambda _: (_Refusing if refuses else TwoLists)(looks=True))
    clock = VirtualClock()
    conversation = Conversation(Recorder(clock), reported(under.description, "timer"), clock)
    conversation.description = under.description
    conversation.fails = True
    peer = under.peer()
    try:
        plays = Plays(Session(peer, conversation, ChildLimits()), under.description, "timer")
        GatedRun(plays).drive(("alone",), PlayedOrder("cancels-beside", (), PausedCall(0, 0, (0,))))
    finally:
        peer.close()
    assert ("ended with an error" in conversation.errors()) == refuses


def test_a_plan_that_is_cut_short_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its count, or by the time that nothing but what is endless takes."""
    only(monkeypatch, "nothing | register next a; in try_complete of next: event next")
    monkeypatch.setattr(gates, "_ORDERS_MOST", 2)
    (record,) = record_runs([subject_in("virtual-gates", PURGATORY)], tmp_path, suffix=".jsonl")
    assert record.failure is not None
    assert (record.failure.kind, "too many" in record.failure.why) == ("unfinished", True)
    assert record.failure.trace is not None
    (run,) = check_files([record.failure.trace]).runs
    assert (run.verdict, broken_off(run, "unfinished", "").verdict) == (Verdict.PASS, Verdict.UNKNOWN)


def test_one_of_many_similar_programs_may_have_too_many_orders() -> None:
    """Some others were run in all orders, and the result tells how many. A program by hand is no such program."""
    similar = SmallProgram("a", "b", (), schedule=EveryOrder(2))
    whole, cut = Orders(similar, 7), Orders(replace(similar, name="c"), 5_000, cut=TOO_MANY)
    assert unfinished([whole, cut]) == ""
    assert TOO_MANY in unfinished([cut])
    by_hand = replace(similar, schedule=EveryOrder())
    assert TOO_MANY in unfinished([whole, Orders(by_hand, 5_000, cut=TOO_MANY)])


@pytest.mark.parametrize("looks", [True, False])
def test_the_rest_is_not_played_once_a_promise_is_broken(
    looks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody waits for the word, and it does not change any more. An event from inside the first try is not seen by a
    second, for there is none; the toy itself looks again, and all is played."""
    found = "nothing | register next a; in try_complete of next: event next"
    only(monkeypatch, found, "op a | check a; in try_complete of op: give back a")
    monkeypatch.setattr(plays, "_JUDGED_FIRST", 1)
    monkeypatch.setattr(plays, "_JUDGED_AGAIN", 1)
    subject = subject_in("virtual-gates", PURGATORY if looks else (*PURGATORY, "--no-recheck"))
    assert broken(run_of(subject, tmp_path)) == (set() if looks else {"O4"})
    assert ({one.program for one in subject.account.plays} == {found}) is not looks
    assert ("a clause was broken before" in {one.skipped for one in subject.account.orders}) is not looks


def test_what_a_long_purge_interval_leaves_out_is_told_though_others_of_its_class_were_played() -> None:
    subject = subject_in("virtual-gates", PURGATORY)
    longer = replace(_MILLISECONDS, purge_interval=1_000, gates=("try_complete", STEP), lanes=2)
    programs = gate_programs("purgatory", delays_for(longer, MS * 3_600_000))
    reasons = {
        one: one.ruled_out(longer, virtual=True) for one in programs if one.targets.startswith("a purge")
    }
    left_out = [one.name for one, why in reasons.items() if why == "its purge interval is above 120"]
    subject.account.orders = [
        Orders(one, 1) if why == "it runs only step by step" else Orders(one, skipped=why or "")
        for one, why in reasons.items()
    ]
    assert "calls-beside-purge" not in left_out
    said = f"not run (its purge interval is above 120): {', '.join(left_out)}"
    assert said in [told for _, told in not_looked_for([subject])]


def test_what_is_left_out_for_a_promise_that_is_kept_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the part said, the whole is judged."""
    monkeypatch.setattr(driver, "_breaks_so_far", lambda recording: True)
    (record,) = record_runs([subject_in("virtual-gates", PURGATORY)], tmp_path, suffix=".jsonl")
    assert record.failure is not None
    assert (record.failure.kind, "was broken before" in record.failure.why) == ("unfinished", True)


@pytest.mark.parametrize("slip", [name for name, one in SLIPS.items() if one.program])
def test_a_slip_is_found_by_its_program(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls that are held at once, and callbacks that raise. Without the slip nothing is found."""
    one = SLIPS[slip]
    only(monkeypatch, one.program)
    twin = one.after if one.after in ("flagged", "unlinks") else ""
    lacks = {"cancel-for-key": "it is small"}
    promise = Promise(
        "pending-flag" if twin == "flagged" else "locked",
        MS,
        early_ns=0,
        late_ns=0,
        purge_interval=0,
        lacks=lacks,
    )
    for made, breaks in ((slip, {one.clause}), (twin, set())):
        found: set[str] = set()
        for way in ("gates", "steps"):
            judged = play(way, of_purgatory(promise, partial(small, made)))
            assert not judged.broken_off
            found |= broken(judged.result)
            if breaks and found >= breaks:
                break
        assert found >= breaks
        assert breaks or not found


@pytest.mark.parametrize(
    ("slip", "clause"),
    [
        ("", ""),
        pytest.param("last", "O3", marks=pytest.mark.slow),
        pytest.param("polite", "O1", marks=pytest.mark.slow),
        pytest.param("scratch", "O4", marks=pytest.mark.slow),
        ("hurried", "O4"),
    ],
)
def test_a_slip_is_found_by_what_is_drawn(slip: str, clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no program that was written for it. Without a slip nothing is found."""
    only(monkeypatch)
    monkeypatch.setattr(gated_conformance, "_DRAWN", 300)
    promise = Promise(
        "locked", MS, early_ns=0, late_ns=0, purge_interval=0, lacks={"cancel-for-key": "it is small"}
    )
    judged = play("steps", of_purgatory(promise, partial(small, slip)))
    assert not judged.broken_off
    found = broken(judged.result)
    assert clause in found if clause else not found


def _said(m: str, **fields: object) -> bytes:
    return orjson.dumps({"m": m, **fields})


class _Peer:
    """A peer that says to each call what `answers` makes of it; and the pauses that each call names."""

    def __init__(self, answers: Callable[[Mapping[str, Any]], list[bytes]]) -> None:
        self._answers = answers
        self._told: list[bytes] = []
        self.asked: list[object] = []

    def say(self, line: bytes) -> None:
        call = orjson.loads(line)
        self.asked.append(call.get("holds"))
        self._told += self._answers(call)

    def hear(self, within_s: float) -> bytes | Quiet:
        return self._told.pop(0) if self._told else Quiet.SILENT

    def threads(self) -> ProcessThreads:
        return ProcessThreads(())


def _plays(peer: object, scene: Scene, lines: Lines | None = None) -> Plays:
    session = Session(cast(Peer, peer), scene.conversation, ChildLimits())
    part: Part = "purgatory" if scene.conversation.clock is None else "timer"
    return Plays(session, Description(0, "", "x", (part,), ()), part, lines=lines)


def test_a_thread_at_a_line_of_the_adapter_goes_on_when_nothing_is_answered() -> None:
    """Its lines are not known from the subject's; without that the run is a hang."""
    scene = Scene(
        Start("purgatory", "real", gates=("step", "timer_fire")), Register("op", ("k",), 50), virtual=False
    )
    called = scene.conversation.calls
    scene.conversation.ask(Check("k"), steps=(4,))
    scene.hear("held", f'"hold":1,"f":"step","during":{called}')
    scene.hear("enter", '"f":"timer_fire","id":"op","th":"reaper"')
    scene.hear("held", '"hold":2,"f":"timer_fire","id":"op","th":"reaper"')
    # It answers a `go` only when the thread at a line, the hold 1, has gone on: that has the lock of the output.
    peer = _Peer(
        lambda call: [_said("answer", n=call["n"] - back) for back in (0, 1) if call["holds"] == [1]]
    )
    run = _plays(peer, scene, lines=cast(Lines, object()))
    run.go([hold for hold in scene.conversation.paused() if hold.number == 2])
    assert peer.asked == [[2], [1]]
    assert scene.conversation.paused() == []


@pytest.mark.parametrize("waited_for", [True, False])
def test_an_expiry_that_comes_before_its_play_begins_is_held(waited_for: bool) -> None:
    """Or the play would show nothing, on a busy machine; unless its thread is all that a subject has."""
    scene = Scene(
        Start("purgatory", "real", gates=("timer_fire",)), Register("p1-op", ("k",), 50), virtual=False
    )
    scene.hear("enter", '"f":"timer_fire","id":"p1-op","th":"reaper"')
    scene.hear("held", '"hold":1,"f":"timer_fire","id":"p1-op","th":"reaper"')
    if waited_for:
        scene.conversation.ask(Register("p1-other", ("k",), 50))
    # The thread that goes on answers what waits for it.
    peer = _Peer(
        lambda call: [
            _said("answer", n=call["n"]),
            _said("leave", f="timer_fire", id="p1-op", th="reaper"),
            _said("answer", n=call["n"] - 1, out=0),
        ]
    )
    run = _plays(peer, scene)
    program = SmallProgram("expiry", "", ((Expiry("op"),),), ("timer_fire",))
    run.let_go(Play(run, program, 1))
    assert peer.asked == ([[1]] if waited_for else [])


def test_a_run_inside_its_own_add_holds_up_no_later_call() -> None:
    """It comes too early, and its add has no answer while it is held."""
    scene = Scene(Start("timer", "virtual", now_ns=0, gates=("timer_fire",)))
    fire = {"f": "timer_fire", "id": "p1-t"}

    def answers(call: Mapping[str, Any]) -> list[bytes]:
        if call.get("id") == "p1-t":
            return [_said("enter", **fire, during=call["n"]), _said("held", **fire, during=call["n"], hold=1)]
        came = [_said("answer", n=call["n"])]
        return [*came, _said("leave", **fire, during=1), _said("answer", n=1)] if call["m"] == "go" else came

    peer = _Peer(answers)
    run = _plays(peer, scene)
    program = SmallProgram(
        "expiry", "", ((Expiry("t"),),), ("timer_fire",), before=(Add("t", 50), Add("u", 50))
    )
    play_of_it = Play(run, program, 1)
    run.make_all(play_of_it.named.before, play_of_it)
    assert peer.asked == [None, [1], None]


class _Slow(_Peer):
    """A peer that answers the newest call when it is waited for, and not before."""

    waits = 0

    def hear(self, within_s: float) -> bytes | Quiet:
        if within_s < 0.4:
            return Quiet.SILENT
        self.waits += 1
        return self._answers({})[0]


def test_who_waits_for_one_that_is_held_is_waited_for_again_where_something_came() -> None:
    """It may have been slow the first time, and give up the lock the second."""
    scene = Scene(Start("timer", "virtual", now_ns=0, gates=("step",)), virtual=True)
    called = scene.conversation.calls
    scene.conversation.ask(Add("t", 50), steps=(1,))
    scene.hear("held", f'"hold":1,"f":"step","during":{called}')
    peer = _Slow(lambda _: [_said("answer", n=scene.conversation.calls - 1)])
    run = _plays(peer, scene)
    play_of_it = Play(run, SmallProgram("adds", "", (), ()), 1)
    for name in ("u", "v"):
        scene.conversation.ask(Add(name, 50), 1)
        run.settle(play_of_it)
    assert peer.waits == 2
    assert not scene.conversation.running()


class _Works(_Peer, ProcessThreads):
    """A peer that answers while its threads are looked at."""

    def threads(self) -> ProcessThreads:
        return self

    def wait(self) -> bool:
        self.say(b"{}")
        return False


def test_a_subject_is_not_quiet_while_a_thread_works() -> None:
    """However long it says nothing, on a busy machine."""
    scene = Scene(Start("timer", "virtual", now_ns=0), virtual=True)
    called = scene.conversation.calls
    scene.conversation.ask(Add("t", 50))
    assert not _plays(_Works(lambda _: [_said("answer", n=called)]), scene).is_quiet()
    assert scene.conversation.is_open(called) is False


@pytest.mark.parametrize("lost", [[], ["t-9"]])
def test_a_run_is_at_rest_when_a_thread_has_gone_from_gate_to_gate(lost: list[str]) -> None:
    """It stands at none of them in between; what the subject has lost is not waited for."""
    tasks = [f"t-{number}" for number in range(10)]
    scene = Scene(
        Start("timer", "virtual", now_ns=0, gates=("timer_fire",)), *(Add(one, 50) for one in tasks)
    )
    scene.now += 50
    due = iter([one for one in sorted([*tasks, "t-5"]) if one not in lost])
    of_thread: dict[str, object] = {"f": "timer_fire", "th": "executor"}

    def answers(call: Mapping[str, Any]) -> list[bytes]:
        """Its one thread comes to its gate with one of them in every advance, which is answered then."""
        answer = _said("answer", n=call["n"])
        if call["m"] == "go":
            return [answer, _said("leave", **of_thread)]
        if call["m"] != "advance" or (task := next(due, None)) is None:
            return [answer]
        of_thread["id"] = task
        return [_said("enter", **of_thread), _said("held", hold=call["n"], **of_thread), answer]

    _plays(_Peer(answers), scene).come_to_rest()
    assert scene.conversation.pending == {*lost}


def paused(event: Event, *pauses: Sequence[object]) -> Event:
    return event._replace(x={"x_pauses": [*pauses]})


def test_a_pause_at_a_line_is_in_the_trace() -> None:
    """With the next event, and with the next event of its thread."""
    recorder = Recorder(VirtualClock())
    talked = Conversation(recorder)
    talked.ask(Start("timer", "real", gates=(STEP,)))
    talked.hear(_said("answer", n=0))
    talked.ask(Add("t", 5), steps=(3,))
    talked.hear(_said("held", hold=7, f=STEP, during=1, at="Wheel.add (Wheel.java:7)"))
    talked.ask(Cancel("t"), lane=1)
    talked.ask(Go((7,)))
    talked.hear(_said("answer", n=2, out=0))
    talked.hear(_said("answer", n=1))
    at, goes = [0, "caller-0", "is paused at Wheel.add (Wheel.java:7)"], [1, "caller-0", "continues"]
    named = [None if one.x is None else one.x["x_pauses"] for one in recorder.drain()]
    assert named == [None, [at], [goes], [at, goes]]


def test_a_pause_at_a_line_is_shown_in_the_counterexample() -> None:
    """Between the events that it was between, and without the programs that ran before."""
    made = Trace("timer")
    made.add("p1-t", delay_ns=10 * MS)
    made.wait(10 * MS)
    made.fire("p1-t")
    made.add("p2-t", delay_ns=10 * MS)
    made.fire("p2-t")
    *before, fire = made.events[:-1]
    fire = paused(
        fire, [5, "caller-1", "is paused at Wheel.add (Wheel.java:7)"], [5, "caller-1", "continues"]
    )
    judged = judge(RecordedRun(made.header, (*before, fire, made.events[-1])))
    since_i = first_in_trace(('> {"m":"add","n":2,"lane":1,"id":"p2-t","delay_ns":10000000}',), judged.table)
    shown = render(judged.example("T1", "t.jsonl", whole=True, since_i=since_i))
    add, stopped, continues, fired = map(
        shown.index, ("timer_add(", "is paused at Wheel.add", "continues", "timer_fire {")
    )
    assert add < stopped < continues < fired
    assert "p1-t" not in shown


@pytest.mark.parametrize("answered", [True, False])
def test_the_call_that_is_paused_is_shown(answered: bool) -> None:
    """Also an advance, which names no task, and the first event of the trace. The thread continues after the answers
    before its `go`."""
    made = Trace("timer-cancel-barrier")
    made.add("p1-t", delay_ns=10 * MS)
    made.add("p1-live", delay_ns=900 * MS)
    with made.call("advance_clock", th="caller-0"):
        made.wait(10 * MS)
        made.cancel("p1-t", th="caller-1")
        made.fire("p1-t", th="caller-0")
    _, _, _, _, advance, cancel, cancelled, fire, *ends = made.events
    cancel = paused(cancel, [advance.i, "caller-0", "is paused"])
    since_i = cancelled.i if answered else cancel.i
    fire = paused(fire, [advance.i, "caller-0", "is paused"], [since_i, "caller-0", "continues"])
    events = (*made.events[:5], cancel, cancelled, fire, *ends)
    judged = judge(RecordedRun(made.header, events))
    for whole in (True, False):
        shown = render(judged.example("T4", "t.jsonl", whole=whole))
        cancels = ("continues", "} timer_cancel") if not answered else ("} timer_cancel", "continues")
        words = (
            "timer_add(10 ms)",
            "advance_clock {",
            "is paused",
            "timer_cancel {",
            *cancels,
            " timer_fire {",
        )
        places = [*map(shown.index, words)]
        assert places == sorted(places)
        assert ("p1-live" in shown) is whole


def test_real_time_alone_has_the_runs_that_virtual_time_has_otherwise() -> None:
    command = (*PYTHON[:1], str(EXAMPLES / "reference_purgatory.py"))
    modes = {time: {one.mode for one in command_subjects(command, time=time)} for time in ("real", "all")}
    assert "real-steps" in modes["real"] - modes["all"]
    assert "virtual-steps" in modes["all"]
