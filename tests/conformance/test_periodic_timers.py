"""Timers with periodic tasks, resets and turns: the toy is found sound as declared, and each of its bugs is found, by
the protocol and by the conformance suite."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Set
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from conformance.driven import EXAMPLES, broken, subject_in
from conformance.reference_adapters import IN_MS, AnyTimer
from purgatorio import IntrusiveTimer, ManualClock, QueuedExecutor, TimerTask
from purgatorio.timer.calls import Repeated
from purgatorio_conformance.builtin.asyncio_periodic import loop_subject
from purgatorio_conformance.protocol import periodic
from purgatorio_conformance.protocol.driver import CommandSubject, command_subjects, describe_command
from purgatorio_conformance.subject.contract import Subject, SubjectFailed, silent
from purgatorio_conformance.subject.plan import make_plan
from purgatorio_conformance.subjects import PERIODIC, subjects_named
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.case import cases, driven_subject
from purgatorio_conformance.suite.contract import BadPromise, Promise
from purgatorio_conformance.suite.gated import command_promise, of_command, of_timer
from purgatorio_conformance.suite.in_process import DrivenTimer
from purgatorio_conformance.suite.stage import Stage
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

TOY: Final = EXAMPLES / "toy_periodic.py"
MS: Final = 1_000_000
RULES: Final = ("burst", "once", "skip", "restart")
FOUND: Final = {
    "rearmed-in-the-past": ("T8", "skip"),
    "rearmed-from-now": ("T9", "burst"),
    "rearmed-from-the-end": ("T9", "restart"),
    "delay-from-the-deadline": ("T8", "once"),
    "cancelled-inside-and-rearmed": ("T10", "once"),
    "cancel-inside-finds-nothing": ("T10", "burst"),
    "armed-twice": ("T8", "restart"),
    "lost-when-late": ("T9", "once"),
    "former-deadline": ("T11", "once"),
    "earlier-unnoticed": ("T11", "once"),
    "due-now-unnoticed": ("T11", "once"),
    "unknown-again": ("T4", "once"),
    "begins-beside-the-former": ("T8", "burst"),
    "begun-inside-and-rearmed": ("T9", "burst"),
    "endless-turn": ("T12", "once"),
}
"""By bug the clause that finds it, and the catch-up that is declared."""


@cache
def toy() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toy_periodic", TOY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_toy(*options: str) -> CommandSubject:
    command = [sys.executable, str(TOY), *options]
    return subject_in("virtual-periodic", command, time="virtual", lines=None)


def judged(subject: CommandSubject, seed: int, tasks: int, folder: Path) -> RunResult:
    return check_files([subject.run_seeded(seed, tasks, folder / "run.jsonl", silent)]).runs[0]


@pytest.mark.parametrize("rule", RULES)
def test_the_toy_keeps_its_promises(rule: str, tmp_path: Path) -> None:
    run = judged(of_toy("--catch-up", rule), 1, 150, tmp_path)
    assert run.verdict is Verdict.PASS
    assert all(run.clauses[name].occasions > 5 for name in ("T8", "T9", "T10", "T11", "T12"))


@pytest.mark.parametrize(("most", "grows"), [(4, False), (1_000, True)])
def test_tasks_that_nothing_cancels_do_not_grow_without_a_bound(
    most: int, grows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periodic, "_KEPT_MOST", most)
    kept = tmp_path / "kept.py"
    kept.write_text(TOY.read_text(encoding="utf-8").replace('        "cancel",\n', ""))
    subject = subject_in("virtual-periodic", [sys.executable, str(kept)])
    run = judged(subject, 1, 100, tmp_path)
    assert run.verdict is Verdict.PASS
    assert (run.events > 2_000) == grows


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_twenty_seeds_are_quiet(rule: str, tmp_path: Path) -> None:
    subject = of_toy("--catch-up", rule)
    assert all(judged(subject, seed, 400, tmp_path).verdict is Verdict.PASS for seed in range(2, 22))


BY_THE_PROTOCOL: Final = {
    "rearmed-from-now", "cancelled-inside-and-rearmed", "cancel-inside-finds-nothing", "armed-twice", "lost-when-late",
    "earlier-unnoticed", "begun-inside-and-rearmed",
}  # fmt: skip
BY_THE_SUITE: Final = FOUND.keys() - BY_THE_PROTOCOL - {"begins-beside-the-former"}
"""Who finds a bug the cheapest. With --slow each is found by both."""


def bugs(quick: Set[str]) -> list[object]:
    return [pytest.param(bug, marks=[] if bug in quick else [pytest.mark.slow]) for bug in FOUND]


@pytest.mark.parametrize("bug", bugs(BY_THE_PROTOCOL))
def test_a_bug_is_found_by_its_clause(bug: str, tmp_path: Path) -> None:
    clause, rule = FOUND[bug]
    subject = of_toy("--catch-up", rule, "--bug", bug)
    assert any(clause in broken(judged(subject, 1, tasks, tmp_path)) for tasks in (150, 600))


def test_all_bugs_of_the_toy_are_tried() -> None:
    assert set(toy().BUGS) == set(FOUND)


class Adapter:
    def __init__(self, make: Any, task: Any) -> None:
        self._functions: dict[str, Callable[[], None]] = {}
        self._timer = make(0, lambda name: self._functions[name]())
        self._task = task

    def _added(self, function: Callable[[], None], delay_ns: int, *kind: object) -> str:
        name = f"task-{len(self._functions)}"
        self._functions[name] = function
        self._timer.add(self._task(name, *kind), delay_ns)
        return name

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        return self._added(task, delay_ns)

    def fixed_rate(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        return self._added(task, first_ns, "fixed-rate", period_ns)

    def fixed_delay(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        return self._added(task, first_ns, "fixed-delay", period_ns)

    def reset(self, handle: object, delay_ns: int) -> bool:
        return bool(self._timer.reset(handle, delay_ns))

    def cancel(self, handle: object) -> bool:
        return bool(self._timer.cancel(handle))

    def move(self, by_ns: int) -> None:
        self._timer.now_ns += by_ns

    def advance(self, by_ns: int) -> None:
        self._timer.advance(self._timer.now_ns + by_ns)


PROMISE: Final = Promise(
    "timer-cancel-barrier",
    tick_ns=MS,
    early_ns=0,
    late_ns=MS,
    wheel_size=8,
    lacks={"size": "it does not count", "raising": "it is a toy"},
    offers=("fixed-rate", "fixed-delay", "reset", "reset-periodic", "lasting"),
    catch_up="once",
    turn="next",
)


def outcomes(
    promise: Promise, monkeypatch: pytest.MonkeyPatch, bug: str = "", clause: str = "", tasks: int = 200
) -> dict[str, Verdict]:
    monkeypatch.setattr(gated, "_OPERATIONS", tasks)
    monkeypatch.setattr(toy(), "CATCH_UP", promise.catch_up)
    monkeypatch.setattr(toy(), "BUG", bug)
    subject = driven_subject(promise, of_timer(promise, lambda _: Adapter(toy().Timer, toy().Task)))
    every = [case for case in cases("timer", promise) if case.scenario.name == "periodic"]
    asked = [case for case in every if not clause or case.clause == clause]
    return {f"{case.clause}/{case.scenario.name}": case.judge(subject).verdict for case in asked}


@pytest.mark.parametrize("rule", RULES)
def test_the_suite_passes_the_toy(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcomes(replace(PROMISE, catch_up=rule), monkeypatch)
    assert len(found) == 6
    assert set(found.values()) == {Verdict.PASS}, found


@pytest.mark.parametrize("bug", bugs(BY_THE_SUITE))
def test_the_suite_finds_a_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clause, rule = FOUND[bug]
    promise = replace(PROMISE, catch_up=rule)
    found = (outcomes(promise, monkeypatch, bug, clause, tasks) for tasks in (200, 500))
    assert {f"{clause}/periodic": Verdict.VIOLATED} in found


@pytest.mark.parametrize("bug", ["", "rearmed-in-the-past", "former-deadline", "endless-turn"])
def test_the_suite_plays_them_to_a_program(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated, "_OPERATIONS", 250)
    clause, rule = FOUND.get(bug, ("", "once"))
    command = [sys.executable, str(TOY), "--bug", bug, "--catch-up", rule]
    description = describe_command(command)
    promise = command_promise(description)
    asked = [case for case in cases("timer", promise, "timer") if case.scenario.name == "periodic"]
    subject = driven_subject(promise, of_command(promise, "timer", description, command))
    verdicts = ((case.clause, case.judge(subject).verdict) for case in asked)
    found = {one for one, verdict in verdicts if verdict is not Verdict.PASS}
    assert clause in found if bug else not found


class ReferenceAdapter(AnyTimer):
    """The project's own wheel to use, with `call_every`."""

    def fixed_delay(self, first_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        """A period after the end of each run; the first one too."""
        assert isinstance(self.timer, IntrusiveTimer)
        return self.timer.call_every(period_ns // MS, task)

    def cancel(self, handle: object) -> None:
        assert isinstance(handle, TimerTask)
        handle.cancel()


def of_reference(_: Promise) -> ReferenceAdapter:
    clock, executor = ManualClock(), QueuedExecutor()
    timer = IntrusiveTimer("t", tick_ms=1, wheel_size=8, clock=clock, executor=executor)
    return ReferenceAdapter(timer, clock, executor)


REFERENCE: Final = Promise(
    "timer",
    tick_ns=MS,
    early_ns=0,
    late_ns=0,
    wheel_size=8,
    lacks={**IN_MS, "raising": "tried elsewhere"},
    offers=("fixed-delay", "period-first"),
    turn="next",
)


def test_the_suite_passes_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """`call_every` has a fixed delay, and a task that a task adds runs in the next turn; twins find the opposite."""

    monkeypatch.setattr(gated, "_OPERATIONS", 120)

    def verdicts(promise: Promise = REFERENCE) -> dict[str, Verdict]:
        subject = driven_subject(promise, of_timer(promise, of_reference))
        asked = [case for case in cases("timer", promise) if case.scenario.name == "periodic"]
        return {f"{case.clause}/{case.scenario.name}": case.judge(subject).verdict for case in asked}

    assert set(verdicts().values()) == {Verdict.PASS}
    assert verdicts(replace(REFERENCE, turn="same"))["T12/periodic"] is Verdict.VIOLATED

    def run(self: Repeated) -> None:
        self._timer.add(self)
        self._function()

    monkeypatch.setattr(Repeated, "run", run)  # armed before its run: what cancels itself is found no more
    monkeypatch.setattr(Repeated, "cancel", lambda self: None)
    assert verdicts()["T10/periodic"] is Verdict.VIOLATED


def test_a_promise_without_offers_asks_for_nothing_new() -> None:
    plain = replace(PROMISE, offers=(), catch_up=None, turn=None)
    assert "periodic" not in {case.scenario.name for case in cases("timer", plain)}


def test_what_is_offered_must_be_there() -> None:
    """A method that is missing, a word that is none, a catch-up without its rate."""
    with pytest.raises(BadPromise, match="only with a fixed rate"):
        replace(PROMISE, offers=())
    with pytest.raises(BadPromise, match=r"field 'turn'.* use one of same, next"):
        replace(PROMISE, turn="later")
    with pytest.raises(BadPromise, match="no such offer"):
        replace(PROMISE, offers=("rates",))

    class Plain:
        def add(self, delay_ns: int, task: Callable[[], None]) -> object:
            return task

        def cancel(self, handle: object) -> bool:
            return True

        def advance(self, by_ns: int) -> None:
            pass

    with pytest.raises(BadPromise, match="no fixed_rate"):
        DrivenTimer(PROMISE, lambda _: Plain(), Stage(lambda _: None), 0)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("purgatorio-subject/1.2", "purgatorio-subject/1.1", "does not know"),
    ],
)
def test_a_description_that_cannot_be_played(old: str, new: str, why: str, tmp_path: Path) -> None:
    """An earlier version does not know of it."""
    program = tmp_path / "toy.py"
    program.write_text(
        TOY.read_text(encoding="utf-8").replace(
            f'{old}"' if "/" in old else old, f'{new}"' if "/" in new else new
        ),
        encoding="utf-8",
    )
    with pytest.raises(SubjectFailed, match=why):
        command_subjects([sys.executable, str(program)])


@pytest.mark.parametrize(
    "subject", [one for name in PERIODIC for one in subjects_named(name)], ids=lambda one: one.name
)
def test_a_foreign_timer_keeps_its_periods(subject: Subject, tmp_path: Path) -> None:
    """The JDK's, and those of packages where they are installed: two programs of real time each."""
    try:
        path = subject.run(make_plan(1, 16, threads=1, tick_ns=MS), tmp_path / "run.jsonl", silent)
    except SubjectFailed as missing:
        if missing.kind == "unavailable":
            pytest.skip(missing.why)
        raise
    run = check_files([path]).runs[0]
    assert run.verdict is Verdict.PASS, broken(run)
    assert run.clauses["T8"].occasions > 2
    assert run.clauses["T10"].occasions > 2


class BrokenLoop:
    """A timer on asyncio, with a bug."""

    def __init__(self, bug: str) -> None:
        self.bug, self.loop = bug, asyncio.get_running_loop()
        self.cancelled: set[object] = set()

    def repeat(self, delay_ns: int, period_ns: int, task: Callable[[], None]) -> object:
        handle, at = object(), self.loop.time() + delay_ns / 1e9
        self.loop.call_at(at, self.run, handle, at, period_ns / 1e9, task)
        return handle

    def run(self, handle: object, at: float, period: float, task: Callable[[], None]) -> None:
        if handle in self.cancelled:
            return
        task()
        while self.bug == "backlog" and at + period < self.loop.time():
            at += period
            task()  # what came due meanwhile, without a look at the cancelled ones
        if self.bug == "cancel":
            self.cancelled.discard(handle)  # it is put back behind its run, whatever happened in it
        if self.bug == "twice":
            self.loop.call_soon(task)
        self.loop.call_at(at + period, self.run, handle, at + period, period, task)

    def cancel(self, handle: object) -> bool:
        self.cancelled.add(handle)
        return True


@pytest.mark.parametrize(
    ("bug", "clause"), [("cancel", "T10"), ("twice", "T8"), ("backlog", "T10"), ("none", "")]
)
def test_real_time_finds_a_bug(bug: str, clause: str, tmp_path: Path) -> None:
    """The twins of the foreign timers, and one that is sound."""
    subject = loop_subject("pytest", partial(BrokenLoop, bug), "burst")
    path = subject.run(make_plan(1, 32, threads=1, tick_ns=MS), tmp_path / "run.jsonl", silent)
    found_broken = broken(check_files([path]).runs[0])
    assert clause in found_broken if clause else not found_broken
