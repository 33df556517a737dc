"""The conformance suite against the reference: clean it passes everything, with a known bug inside a clause fails.

Through the adapters that a user would write, and by the clauses alone: no model, no look inside.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from conformance.reference_adapters import (
    HASHED,
    HEAP,
    NS_PER_MS,
    PURGATORIES,
    WHEEL,
    AnyPurgatory,
    GroupedPurgatory,
    hashed_wheel,
    heap_timer,
    intrusive_timer,
    wheel,
)
from mutants.reference import MUTANTS
from purgatorio.delayed.watchers import WatcherList
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.case import CaseResult, SubjectRuns, cases, driven_subject
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import JUMPS, PLAN, SCOPE, of_purgatory, of_timer, play
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

FINE_WHEEL: Final = replace(WHEEL, tick_ns=NS_PER_MS, early_ns=0)


def subject(name: str) -> tuple[str, SubjectRuns]:
    if name in ("pending-flag", "locked"):
        (promise,) = [promise for promise in PURGATORIES if promise.profile == name]
        return "purgatory", driven_subject(promise, of_purgatory(promise, AnyPurgatory))
    if name.endswith(", groups"):
        (promise,) = [promise for promise in PURGATORIES if f"{promise.profile}, groups" == name]
        return "purgatory", driven_subject(promise, of_purgatory(promise, GroupedPurgatory))
    timers = {
        "wheel": (WHEEL, wheel),
        "fine-wheel": (FINE_WHEEL, wheel),
        "intrusive": (replace(WHEEL, wheel_size=4), intrusive_timer),
        "heap": (HEAP, heap_timer),
        "hashed": (HASHED, hashed_wheel),
    }
    promise, make = timers[name]
    return "timer", driven_subject(promise, of_timer(promise, make))


RACES: Final = ("gates", "steps")


def outcomes(name: str, clauses: tuple[str, ...] = (), races: tuple[str, ...] = ()) -> dict[str, CaseResult]:
    """Of every case of these clauses (all, where none is named), by clause/scenario. `races`: only these scenarios."""
    kind, under_test = subject(name)
    return {
        f"{case.clause}/{case.scenario.name}": case.judge(under_test)
        for case in cases("timer" if kind == "timer" else "purgatory", under_test.promise)
        if (not clauses or case.clause in clauses)
        and (case.scenario.name in RACES) == bool(races)
        and (not races or case.scenario.name in races)
    }


@pytest.mark.parametrize(
    ("name", "tasks", "programs"),
    [
        *((name, 60, 60) for name in ("locked", "wheel", "intrusive", "pending-flag", "fine-wheel", "heap", "hashed")),
        *(pytest.param(name, 500, 800, marks=pytest.mark.slow)
          for name in ("locked", "wheel", "intrusive", "pending-flag", "fine-wheel", "heap", "hashed")),
    ],
)  # fmt: skip
def test_the_reference_passes(name: str, tasks: int, programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not PASS is SKIPPED for a lack or by the profile; each PASS has occasions."""
    monkeypatch.setattr(gated, "_OPERATIONS", tasks)
    monkeypatch.setattr(gated, "_SCOPE", programs)
    found = outcomes(name)
    assert {outcome.verdict for outcome in found.values()} <= {Verdict.PASS, Verdict.SKIPPED}, found
    assert sum(outcome.verdict is Verdict.PASS for outcome in found.values()) >= 15
    assert all(outcome.occasions for outcome in found.values() if outcome.verdict is Verdict.PASS)


@pytest.mark.parametrize(
    ("number", "name", "clause", "run", "size"),
    [
        (56, "wheel", "T3", JUMPS, 120), (61, "wheel", "T3", JUMPS, 120), (64, "wheel", "T1", JUMPS, 120),
        (65, "wheel", "T1", JUMPS, 120), (66, "fine-wheel", "T2", JUMPS, 500), (69, "wheel", "T2", JUMPS, 120),
        (70, "wheel", "T1", JUMPS, 120), (83, "wheel", "T5", JUMPS, 120), (84, "wheel", "T5", JUMPS, 120),
        (72, "hashed", "T2", JUMPS, 120), (73, "hashed", "T3", JUMPS, 120), (74, "hashed", "T3", JUMPS, 120),
        (76, "hashed", "T1", JUMPS, 120),
        (1, "pending-flag", "O4", SCOPE, 500), (2, "pending-flag", "O4", SCOPE, 500),
        (21, "pending-flag", "O1", SCOPE, 250), (33, "pending-flag", "O4", SCOPE, 250),
        (33, "locked", "O4", SCOPE, 250), (39, "pending-flag", "P2", JUMPS, 500),
        (46, "pending-flag", "P1", JUMPS, 120), (46, "locked", "P1", JUMPS, 120),
    ],
)  # fmt: skip
def test_a_known_bug_fails_its_clause(
    number: int, name: str, clause: str, run: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the quickest run, of about so many tasks or programs as it takes."""
    monkeypatch.setattr(gated, "_OPERATIONS", size)
    monkeypatch.setattr(gated, "_SCOPE", size)
    # Only the verdict is read, so what ends a run is not minimized.
    monkeypatch.setattr(gated, "_failing", lambda *_: ((), ""))
    with MUTANTS[number].applied():
        _, under_test = subject(name)
        assert under_test.run(run).result.breaks(clause)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pending-flag", "locked", "locked, groups", "wheel", "intrusive", "heap"])
def test_the_reference_passes_its_races(name: str) -> None:
    """Each clause has its occasions there, but for what a timer of one level has not."""
    found = outcomes(name, races=RACES)
    assert {outcome.verdict for outcome in found.values()} <= {Verdict.PASS, Verdict.SKIPPED}, found
    assert all(outcome.occasions for outcome in found.values() if outcome.verdict is Verdict.PASS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "clause", "by"),
    [
        (1, "O4", "gates"), (2, "O4", "gates"), (11, "O4", "gates"), (12, "O4", "gates"), (14, "O4", "gates"),
        (24, "O6", "gates"), (40, "T4", "gates"), (3, "O4", "steps"), (4, "O4", "steps"), (19, "O1", "steps"),
        (51, "T4", "steps"),
    ],
)  # fmt: skip
def test_a_known_race_fails_its_clause(number: int, clause: str, by: str) -> None:
    """In every run: nothing depends on luck. It is shown by the one play that broke it."""
    mutant = MUTANTS[number]
    with mutant.applied():
        (outcome,) = outcomes(mutant.dialect, (clause,), races=(by,)).values()
    assert outcome.verdict is Verdict.VIOLATED
    # What 3 leaves behind breaks a play that comes later, so all plays are shown.
    assert number == 3 or outcome.calls


class Lazy:
    """Runs what is due inside `advance` only; `wakes` says at which readings of its clock it does."""

    def __init__(self, wakes: Callable[[int], bool]) -> None:
        self.wakes = wakes
        self.now_ns = 0
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def add(self, delay_ns: int, task: Callable[[], None]) -> object:
        self.waiting.append((self.now_ns + delay_ns, task))
        return None

    def advance(self, by_ns: int) -> None:
        self.now_ns += by_ns
        if self.wakes(self.now_ns):
            due = [task for deadline_ns, task in self.waiting if deadline_ns <= self.now_ns]
            self.waiting = [one for one in self.waiting if one[0] > self.now_ns]
            for task in due:
                task()


@pytest.mark.parametrize(
    ("wakes", "verdict"),
    [(lambda now_ns: True, Verdict.PASS), (lambda now_ns: now_ns % (2 * NS_PER_MS) == 0, Verdict.VIOLATED)],
    ids=["every-tick", "every-other-tick"],
)
def test_late_counts_from_the_first_chance(
    wakes: Callable[[int], bool], verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delay of zero, added when time has passed, may wait for the next `advance`; not for the one after it."""
    monkeypatch.setattr(gated, "_OPERATIONS", 60)
    lacks = {"cancel": "none", "size": "none"}
    promise = Promise("timer", tick_ns=NS_PER_MS, early_ns=0, late_ns=0, lacks=lacks)
    judged = driven_subject(promise, of_timer(promise, lambda _: Lazy(wakes))).run(PLAN)
    assert judged.result.clauses["T2"].verdict is verdict


class Slots:
    """A task lives in a slot, which is free when it has run; or, with the bug, once more when it has returned."""

    def __init__(self, frees_again: bool) -> None:
        self.frees_again = frees_again
        self.now_ns = 0
        self.slots: list[tuple[int, int, Callable[[], None]] | None] = [None] * 8
        self.added = 0

    def add(self, delay_ns: int, task: Callable[[], None]) -> tuple[int, int]:
        slot = self.slots.index(None)
        self.added += 1
        self.slots[slot] = (self.now_ns + delay_ns, self.added, task)
        return slot, self.added

    def cancel(self, handle: object) -> bool:
        assert isinstance(handle, tuple)
        slot, number = handle
        there = self.slots[slot]
        if there is None or there[1] != number:
            return False
        self.slots[slot] = None
        return True

    def advance(self, by_ns: int) -> None:
        self.now_ns += by_ns
        while due := [
            slot for slot, one in enumerate(self.slots) if one is not None and one[0] <= self.now_ns
        ]:
            there = self.slots[due[0]]
            assert there is not None
            if not self.frees_again:
                self.slots[due[0]] = None
            there[2]()
            if self.frees_again:
                self.slots[due[0]] = None


@pytest.mark.parametrize(("frees_again", "verdict"), [(False, Verdict.PASS), (True, Verdict.VIOLATED)])
def test_a_task_that_is_replaced_from_inside_is_played(frees_again: bool, verdict: Verdict) -> None:
    """It cancels itself; what is added then gets its slot (contrem/arduino-timer#71): two calls of one callback."""
    lacks = {"size": "none", "raising": "an error comes out of advance"}
    promise = Promise("timer", tick_ns=NS_PER_MS, early_ns=0, late_ns=0, lacks=lacks)
    subject = driven_subject(promise, of_timer(promise, lambda _: Slots(frees_again)))
    (case,) = [one for one in cases("timer", promise) if (one.clause, one.scenario.name) == ("T3", SCOPE)]
    outcome = case.judge(subject)
    assert outcome.verdict is verdict
    if outcome.calls:
        assert any("in timer_fire of" in line and "cancel(" in line for line in outcome.calls)


PROMISE = Promise("locked", NS_PER_MS, early_ns=0, late_ns=0, purge_interval=0)


class Telling(AnyPurgatory):
    def gauges(self) -> tuple[int, int, int]:
        watched, delayed, *_ = super().gauges()
        return watched, delayed, sum(len(one._lists.get()) for one in self.purgatory._watcher_lists)


def judged(made: type[AnyPurgatory]) -> RunResult:
    return play(PLAN, of_purgatory(PROMISE, made)).result


def test_a_list_of_a_key_that_is_never_dropped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twins: it is dropped; nobody tells the keys, and then nothing is said of P4."""
    monkeypatch.setattr(gated, "_OPERATIONS", 60)
    assert "P4" not in judged(AnyPurgatory).clauses
    assert judged(Telling).clauses["P4"].verdict is Verdict.PASS
    monkeypatch.setattr(WatcherList, "remove_key_if_empty", lambda *_: None)
    broken = judged(Telling).clauses["P4"]
    assert (broken.verdict, list(broken.causes)) == (Verdict.VIOLATED, ["empty-lists"])
