"""Each way to break a clause is found, and its twin, one step away, is not; nor is what only looks wrong."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import purgatorio_spec.clause
from purgatorio_spec.clause import lost
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.verdict import Verdict
from spec.stories import Told, stories
from spec.trace_builder import Trace

ABSENCE = {
    "ready-before-registration",
    "unclaimed-on-return",
    "waits-beside-a-unit",
    "left-to-the-time-out",
    "garbage",
    "watched-out-of-bounds",
    "delayed-above-live",
    "size-wrong",
    "winner-without-callback",
    "loser-ran-callback",
    "lost-to-nobody",
    "callback-without-force",
    "true-and-never-ready",
    "got-no-unit",
    "answered-without-its-event",
    "expiration-without-its-completion",
    "never-claimed",
    "never-completed",
    "never-fired",
    "fired-twice",
    "check-miscounted",
    "try_complete-answered-true",
    "try_complete-answered-false",
    "try_complete_else_watch-answered-true",
    "try_complete_else_watch-answered-false",
}
"""Causes that rest on a record that is not there: dropped records may be just those."""

STORIES = list(stories())
TWINS = [one for one in STORIES if one.clause]
ABSENT = [one for one in TWINS if one.expects(one.clause, 1) in ABSENCE]
VARIANTS = [(told, variant) for told in STORIES for variant in range(told.variants)]


@pytest.mark.parametrize(("told", "variant"), VARIANTS, ids=str)
def test_a_history_comes_to_what_is_expected(told: Told, variant: int) -> None:
    """No false alarm on a legal history, and the right cause of a broken one. The fold gives the same results."""
    made = told.made(variant)
    judged = made.judge().clauses
    assert not told.wrong(variant, judged)
    assert made.folded().clauses == judged
    if not told.clause or not variant:
        return
    assert (told.variants, told.expects(told.clause, 0)) == (2, "kept")
    result, cause = judged[told.clause], told.expects(told.clause, 1)
    assert (result.verdict, list(result.causes), result.violations) == (Verdict.VIOLATED, [cause], 1)
    (example,) = result.causes[cause].examples
    assert example.clause == told.clause
    assert CLAUSES[told.clause].wording_in(made.header.profile, cause).promise
    assert example.events == tuple(sorted(example.events))
    assert example.events[-1] < len(made.events)
    assert example.allowed
    assert example.seen


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_check_that_raised_is_no_return_in_a_batch_of_its_own(rows: int) -> None:
    """In a batch of one row, all rows have an error, so a column without nulls is not a column without errors."""
    made = Trace()
    made.register("a", ["k"])
    made.point("ready", "a")
    made.end(made.start("check_and_complete", keys=["k"], th="c"), err="Boom")
    with made.call("timer_fire", "a", th="exec"):
        made.complete("a", th="exec")
    (again,) = (one for one in STORIES if str(one).startswith("a_check_after_an_evaluation_that_raised"))
    for one in (made, again.made(0), again.made(1)):
        assert one.recorded().folded(rows, one.file).clauses == one.judge().clauses


def test_every_cause_in_the_clauses_has_twins() -> None:
    """A new branch of a clause needs a history that reaches it."""
    assert {told.expects(told.clause, 1) for told in TWINS} == set(_causes()) | {
        f"{f}-answered-{answer}"
        for f in ("try_complete", "try_complete_else_watch")
        for answer in ("true", "false")
    }


def _causes() -> Iterator[str]:
    for path in Path(purgatorio_spec.clause.__path__[0]).glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Broken", "_Stop"):
                for argument in call.args:
                    if isinstance(argument, ast.Constant | ast.Name | ast.IfExp):
                        yield from _kebab(argument)


def _kebab(argument: ast.expr) -> Iterator[str]:
    for part in [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]:
        named = getattr(lost, part.id, None) if isinstance(part, ast.Name) else None
        value = part.value if isinstance(part, ast.Constant) else named
        if isinstance(value, str) and re.fullmatch("[a-z]+(-[a-z]+)*", value):
            yield value


def test_every_clause_has_twins() -> None:
    """The ids are public: each must have been seen to fail and to pass."""
    assert {told.clause for told in TWINS} == set(CLAUSES)


@pytest.mark.parametrize("told", ABSENT, ids=str)
def test_dropped_records_make_absence_unknown(told: Told) -> None:
    """A dropped record may be the record whose absence would be the violation, or a part of a bound."""
    legal, broken = (told.made(variant).judge(dropped=1).clauses[told.clause] for variant in range(2))
    assert legal.verdict in (Verdict.UNKNOWN, Verdict.PASS)
    assert broken.verdict is Verdict.UNKNOWN


def test_what_happened_is_a_violation_even_if_records_were_dropped() -> None:
    """Dropped records excuse missing events, not recorded ones."""
    causes = {"completed-twice", "two-winners", "overlap", "expired-twice"}
    present = [told for told in TWINS if told.expects(told.clause, 1) in causes]
    assert len(present) == 6
    for told in present:
        assert told.made(1).judge(dropped=1).clauses[told.clause].verdict == Verdict.VIOLATED


@pytest.mark.parametrize(("dropped", "verdict"), [(1, Verdict.UNKNOWN), (0, Verdict.VIOLATED)])
def test_a_lost_return_makes_no_overlap(dropped: int, verdict: Verdict) -> None:
    """A `try_complete` whose return was dropped seems to run for ever; where nothing was dropped, it does."""
    made = Trace()
    made.start("try_complete", "a", th="one")
    made.complete("a", th="two")
    assert made.judge(dropped=dropped).clauses["O6"].verdict == verdict


@pytest.mark.parametrize(("dropped", "verdict"), [(1, Verdict.UNKNOWN), (0, Verdict.VIOLATED)])
@pytest.mark.parametrize("acts", ["register ready check", "ready register"])
def test_a_completion_whose_record_is_lost_accuses_no_call(acts: str, dropped: int, verdict: Verdict) -> None:
    """O4: what returned without it may have seen it; where nothing was dropped, there was none."""
    made = Trace()
    for act in acts.split():
        getattr(made, act)("k" if act == "check" else "a")
    assert made.judge(dropped=dropped).clauses["O4"].verdict == verdict


@pytest.mark.parametrize("late", [True, False])
def test_a_cancel_that_came_too_late_is_told_of_a_task_that_never_ran(late: bool) -> None:
    """Perhaps the adapter forgets a task that it was too late to cancel."""
    made = Trace()
    made.add("a", delay_ns=1_000_000)
    made.wait(2_000_000)
    if late:
        made.cancel("a", out=0)
    made.wait(900_000_000)
    made.gauge(watched=0, delayed=0)
    (example,) = made.judge().clauses["T3"].causes["never-fired"].examples
    assert ("a cancel returned 0: too late" in example.seen) == late


def test_a_cancel_of_a_task_that_ran_is_reported_as_such() -> None:
    """Not as one that came so long before its deadline."""
    (told,) = (one for one in TWINS if str(one) == "t4_cancelled_after_it_ran-asyncio")
    (example,) = told.made(1).judge().clauses["T4"].causes["cancelled-after-it-ran"].examples
    assert "had run" in example.seen
    assert "-" not in example.seen


def test_the_adds_that_are_no_cause_of_a_fire_are_told() -> None:
    (told,) = (one for one in STORIES if one.name == "t3_twice_after_an_add_again_for_now")
    (example,) = told.made(1).judge().clauses["T3"].causes["fired-twice"].examples
    assert example.allowed.endswith(": of its 2 adds, only 1 was in force and due when it fired")
