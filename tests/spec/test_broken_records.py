"""A recording that is broken accuses nobody: one record of a legal history is spoilt in every way, and judged.

What no other record contradicts cannot be seen: a call that is missing whole, a point that is missing or doubled, a
time that stays between those beside it. The end record's count shows what a file lost; what a recorder never wrote, or
wrote falsely, is not detected (README, Limits).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import pytest

from purgatorio_spec.check import check_files, fold_reader
from purgatorio_spec.judge.result import RunResult, without_silent_pass
from purgatorio_spec.trace.convert import convert
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Event
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from spec.drawn_history import Drawn, draw
from spec.trace_builder import MS, Trace, with_room

Spoil = Callable[[list[Event], int, Random], None]


def _drop(events: list[Event], at: int, random: Random) -> None:
    del events[at]


def _double(events: list[Event], at: int, random: Random) -> None:
    events.insert(at + 1, events[at]._replace(i=events[at].i + 1))


def _swap(events: list[Event], at: int, random: Random) -> None:
    """Exchanges a record with the next of its thread."""
    other = next((n for n in range(at + 1, len(events)) if events[n].th == events[at].th), at)
    one, two = events[at], events[other]
    events[at], events[other] = two._replace(i=one.i), one._replace(i=two.i)


def _earlier(events: list[Event], at: int, random: Random) -> None:
    events[at] = events[at]._replace(t=events[at].t - random.choice((3_000, MS, 1_000 * MS)))


def _later(events: list[Event], at: int, random: Random) -> None:
    events[at] = events[at]._replace(t=events[at].t + random.choice((3_000, MS, 1_000 * MS)))


def _thread(events: list[Event], at: int, random: Random) -> None:
    events[at] = events[at]._replace(th="another")


def _other_call(events: list[Event], at: int, random: Random) -> None:
    if events[at].ph == "ret":
        events[at] = events[at]._replace(c=events[at].i - 1)


SPOILS: Final[tuple[Spoil, ...]] = (_drop, _double, _swap, _earlier, _later, _thread, _other_call)

CONTRADICTED: Final = {
    ("_drop", "call"), ("_double", "call"), ("_double", "ret"), ("_thread", "call"), ("_thread", "ret"),
    ("_other_call", "ret"),
}  # fmt: skip
"""What other records contradict wherever it is done; but for a call that is open, at which nothing ever ended."""


def _both_ways(drawn: Drawn) -> tuple[RunResult, RunResult]:
    return drawn.result(), drawn.folded(60)


def _legal(seed: int) -> Drawn | None:
    """A whole legal history, with room for an `i` between two; None if it lost records."""
    drawn = draw(seed)
    if drawn.dropped:
        return None
    drawn.whole = True
    drawn.events = with_room(drawn.events)
    return drawn


def _clean(seeds: range) -> list[Drawn]:
    """The clauses without those that dropped records may excuse."""
    return [one for one in map(_legal, seeds) if one is not None and len(one.events) > 4]


def _spoilt(drawn: Drawn, random: Random, places: int) -> list[tuple[str, str, bool, RunResult, RunResult]]:
    found: list[tuple[str, str, bool, RunResult, RunResult]] = []
    whole = list(drawn.events)
    returned = {event.c for event in whole}
    for spoil in SPOILS:
        for at in random.sample(range(len(whole)), min(places, len(whole))):
            drawn.events = list(whole)
            spoil(drawn.events, at, random)
            if drawn.events != whole:
                one = whole[at]
                is_open = one.ph == "call" and one.i not in returned
                found.append((spoil.__name__, one.ph, is_open, *_both_ways(drawn)))
    drawn.events = whole
    return found


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))])
def test_one_broken_record_causes_no_violation(block: int) -> None:
    """Wherever others contradict it the run is INVALID_TRACE, by both ways of judging; the rest is few."""
    unseen: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    for number, drawn in enumerate(_clean(range(12 * block, 12 * block + 12))):
        for spoil, phase, is_open, rowwise, folded in _spoilt(
            drawn, Random(f"{block}/{number}"), 4 if block else 2
        ):
            assert (rowwise.verdict, rowwise.clauses) == (folded.verdict, folded.clauses)
            assert rowwise.problems == folded.problems
            kind = (spoil, phase)
            if rowwise.verdict is Verdict.INVALID_TRACE:
                seen[kind] += 1
                verdicts = {one.verdict for one in rowwise.clauses.values()}
                assert verdicts <= {Verdict.UNKNOWN, Verdict.SKIPPED}
                assert rowwise.problems
            else:
                assert kind not in CONTRADICTED or is_open, (kind, drawn.header.run)
                unseen[kind] += 1
    assert seen.keys() >= CONTRADICTED | {("_swap", "call"), ("_earlier", "ret"), ("_later", "call")}
    assert sum(seen.values()) > 2 * sum(unseen.values())


def test_legal_histories_are_not_called_broken() -> None:
    """The control: nothing in a legal history contradicts another record, open calls and exceptions included."""
    for drawn in _clean(range(40)):
        rowwise, folded = _both_ways(drawn)
        assert rowwise.verdict == folded.verdict != Verdict.INVALID_TRACE, (
            drawn.header.run,
            rowwise.problems,
        )


def _orphan(made: Trace) -> None:
    made.add("a", delay_ns=10 * MS)
    del made.events[0]


def _twice(made: Trace) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    first = made.start("timer_fire", "a", th="exec")
    made.fire("a", th="exec")
    assert made.events[first].ph == "call"


def _back(made: Trace) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    made.add("b", delay_ns=1_000 * MS, th="exec")
    made.wait(MS)
    made.fire("a", th="exec")
    made.events[-2:] = [one._replace(t=one.t - 2 * MS) for one in made.events[-2:]]


def _returned_twice(made: Trace) -> None:
    made.add("a", delay_ns=10 * MS)
    made.events.append(made.events[-1]._replace(i=len(made.events)))


def _crossed(made: Trace) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    outer = made.start("timer_fire", "a", th="exec")
    made.start("timer_cancel", "b", th="exec")
    made.end(outer)


SAID: Final[dict[Callable[[Trace], None], str]] = {
    _orphan: "a return without its call",
    _twice: "a call that is recorded twice",
    _back: "time runs backwards on a thread",
    _returned_twice: "a return without its call",
    _crossed: "a return before that of a call made inside it",
}


@pytest.mark.parametrize("break_it", SAID)
@pytest.mark.parametrize("form", ["a.jsonl", "a.parquet"])
def test_each_kind_is_said_in_both_forms(
    break_it: Callable[[Trace], None], form: str, tmp_path: Path
) -> None:
    """Status 2, with problem and remedy. A real violation of another task is reported as possible."""
    made = Trace("timer")
    made.add("early", delay_ns=10 * MS)
    made.fire("early")
    before = len(made.events)
    other = Trace("timer")
    break_it(other)
    made.events += [
        one._replace(i=one.i + before, t=one.t + 100 * MS, c=None if one.c is None else one.c + before)
        for one in other.events
    ]
    path = made.write(tmp_path / "a.jsonl")
    if form != path.name:
        assert convert(path, tmp_path / form).valid
    for full in (False, True):
        result = without_silent_pass(check_files([tmp_path / form], full=full))
        (run,) = result.runs
        assert (result.verdict, EXIT_STATUS[result.verdict]) == (Verdict.INVALID_TRACE, 2)
        assert [problem.partition(",")[0] for problem in run.problems] == [SAID[break_it]]
        assert {one.verdict for one in run.clauses.values()} <= {Verdict.UNKNOWN, Verdict.SKIPPED}
        assert "1 of" in run.clauses["T1"].reason
        assert fold_reader(TraceReader(tmp_path / form), full=full).examples() == []


def test_the_same_run_unbroken_is_judged(tmp_path: Path) -> None:
    made = Trace("timer")
    made.add("early", delay_ns=10 * MS)
    made.fire("early")
    (run,) = check_files([made.write(tmp_path / "a.jsonl")]).runs
    assert (run.verdict, run.clauses["T1"].violations) == (Verdict.VIOLATED, 1)


def test_dropped_records_explain_missing_records() -> None:
    """The recorder counted dropped records: a return without its call is expected, time that goes back is not."""
    for break_it, said in SAID.items():
        made = Trace("timer")
        break_it(made)
        invalid = made.judge(dropped=1).verdict is Verdict.INVALID_TRACE
        assert invalid == ("backwards" in said)


def test_lost_lines_cause_no_violation(tmp_path: Path) -> None:
    """A line less, a line twice, two lines in each other's place: the file says so by its count, or by `i`."""
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    made.ready("a")
    made.check("k", "a")
    made.wait(20 * MS)
    lines = made.write(tmp_path / "a.jsonl").read_bytes().splitlines(keepends=True)
    spoilt: list[Sequence[bytes]] = []
    for at in range(1, len(lines) - 1):
        spoilt += [
            [*lines[:at], *lines[at + 1 :]],
            [*lines[: at + 1], *lines[at:]],
            [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]],
            [*lines[:at], lines[at][: len(lines[at]) // 2] + b"\n", *lines[at + 1 :]],
        ]
    for number, some in enumerate(spoilt):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"".join(some))
        (run,) = check_files([path]).runs
        assert run.verdict is Verdict.INVALID_TRACE
        assert all(one.verdict is not Verdict.VIOLATED for one in run.clauses.values())


def test_a_recording_without_the_functions_of_any_clause_is_not_judged(tmp_path: Path) -> None:
    """Exit status 3, and why; one clause that is judged is enough."""
    made = Trace("timer")
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    made.fire("a")
    whole = made.header
    for functions, verdict in (
        (("timer_fire",), Verdict.UNKNOWN),
        (("timer_add", "timer_fire"), Verdict.PASS),
    ):
        made.header = replace(whole, recorded=functions)
        result = without_silent_pass(check_files([made.write(tmp_path / "a.jsonl")]))
        assert (result.verdict, EXIT_STATUS[result.verdict]) == (
            verdict,
            3 if verdict is Verdict.UNKNOWN else 0,
        )
        assert any("nothing was judged" in one for one in result.runs[0].problems) == (
            verdict is Verdict.UNKNOWN
        )
