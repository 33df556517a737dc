"""Before and after a change: new violations are always found, and an UNKNOWN verdict never counts as fixed."""

import json
from pathlib import Path

import pytest

from pipeline.test_commands import run
from pipeline.test_pictures import drawn
from purgatorio_pipeline.comparison import Change, ClauseChange, Comparison, compare
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.report.markdown import comparison_markdown
from purgatorio_spec.judge.result import Cause, CheckResult, ClauseResult, RunResult
from purgatorio_spec.verdict import Verdict, Violation
from spec.shown_trace import fired_early
from spec.trace_builder import Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traces"


def clause(verdict: Verdict, occasions: int, *causes: str) -> ClauseResult:
    """A clause as judged, broken once in each of these ways."""
    broken = {name: Cause(1, [Violation("T1", "t", name, (1,), "a", "s")]) for name in causes}
    return ClauseResult("T1", verdict, occasions, broken)


KEPT = clause(Verdict.PASS, 5)
EARLY = clause(Verdict.VIOLATED, 5, "early")
BOTH = clause(Verdict.VIOLATED, 5, "early", "other")
IDLE = clause(Verdict.PASS, 0)
UNKNOWN = clause(Verdict.UNKNOWN, 5)
SKIPPED = clause(Verdict.SKIPPED, 0)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (KEPT, EARLY, Change.BROKEN),
        (IDLE, EARLY, Change.BROKEN),
        (None, EARLY, Change.BROKEN),
        (EARLY, BOTH, Change.BROKEN),
        (EARLY, EARLY, Change.STILL_BROKEN),
        (BOTH, EARLY, Change.STILL_BROKEN),
        (EARLY, KEPT, Change.MENDED),
        (EARLY, IDLE, Change.LOST),
        (EARLY, UNKNOWN, Change.LOST),
        (KEPT, SKIPPED, Change.LOST),
        (KEPT, None, Change.LOST),
        (UNKNOWN, KEPT, Change.GAINED),
        (IDLE, KEPT, Change.GAINED),
        (KEPT, KEPT, Change.SAME),
        (SKIPPED, SKIPPED, Change.SAME),
        (UNKNOWN, IDLE, Change.SAME),
    ],
)
def test_a_change_is_named(before: ClauseResult | None, after: ClauseResult | None, change: Change) -> None:
    """Every kind of change; a clause that nothing can break any more is not mended."""
    assert ClauseChange("T1", before, after).change is change


def judged(*made: Trace) -> Judged:
    late = [drawn(one)[0] for one in made]
    return Judged(
        CheckResult(tuple(one.judge() for one in made)), {}, [one for one in late if one is not None]
    )


def in_time(run: str = "early-fire") -> Trace:
    """The run of `fired_early`, with the fire at its deadline."""
    made = fired_early(run=run)
    fire = next(event for event in made.events if event.f == "timer_fire")
    made.events[fire.i :] = [event._replace(t=event.t + 20_000_000) for event in made.events[fire.i :]]
    return made


def verdicts(comparison: Comparison) -> tuple[Verdict, int]:
    return comparison.verdict, comparison.exit_status


def test_newly_broken_and_mended() -> None:
    """The same pair both ways: 1 one way, 0 the other, and the lateness of both sides."""
    good, bad = judged(in_time()), judged(fired_early())
    worse, better = compare(good, bad), compare(bad, good)
    assert verdicts(worse) == (Verdict.VIOLATED, 1)
    assert [one.clause for _, one in worse.changes(Change.BROKEN)] == ["T1"]
    assert verdicts(better) == (Verdict.PASS, 0)
    assert [one.clause for _, one in better.changes(Change.MENDED)] == ["T1"]
    assert worse.pairs[0].lateness_before is not None
    assert worse.pairs[0].lateness_after is not None
    assert worse.pairs[0].lateness_before.early == 0
    assert worse.pairs[0].lateness_after.early == 1
    assert verdicts(compare(bad, bad)) == (Verdict.PASS, 0)


def test_runs_without_a_partner_count() -> None:
    """A missing run counts as UNKNOWN, and a new run that is broken counts as broken. Runs are paired by name."""
    one, two = in_time("one"), in_time("two")
    missing = compare(judged(one, two), judged(two))
    assert verdicts(missing) == (Verdict.UNKNOWN, 3)
    assert [run.run for run in missing.only_before] == ["one"]
    assert [pair.before.run for pair in missing.pairs] == ["two"]
    new = compare(judged(one), judged(one, fired_early()))
    assert verdicts(new) == (Verdict.VIOLATED, 1)
    assert verdicts(compare(judged(), judged())) == (Verdict.UNKNOWN, 3)


def test_an_invalid_trace_is_no_mending() -> None:
    """The run after cannot be read: nothing of it is taken for kept."""
    after = RunResult("early-fire", "f", "", "", Verdict.INVALID_TRACE, 0, {}, ("no usable header",))
    compared = compare(judged(fired_early()), Judged(CheckResult((after,)), {}, []))
    assert verdicts(compared) == (Verdict.INVALID_TRACE, 2)
    assert [one.clause for _, one in compared.changes(Change.LOST)][:1] == ["O1"]
    assert not list(compared.changes(Change.MENDED))


def test_nothing_is_compared_with_an_invalid_trace() -> None:
    before = RunResult("early-fire", "f", "", "", Verdict.INVALID_TRACE, 0, {}, ("no usable header",))
    compared = compare(Judged(CheckResult((before,)), {}, []), judged(in_time()))
    assert verdicts(compared) == (Verdict.UNKNOWN, 3)
    assert compared.meaning == "a trace of BEFORE is invalid"
    assert compared.invalid() == [before]


def test_the_text_lists_the_changes() -> None:
    """Markdown for the page of a CI job, strangers' text escaped."""
    made = fired_early(run="<b>|x")
    text = comparison_markdown(compare(judged(in_time("a"), in_time("<b>|x")), judged(made)))
    assert "before and after: VIOLATED" in text
    assert (
        "| broken | <code>&#60;b&#62;&#124;x</code> | T1 | PASS 1 | VIOLATED 1 of 1 | <code>early</code> |"
        in text
    )
    assert "### Only before" in text
    assert "→" in text


def test_the_command_on_real_runs(tmp_path: Path) -> None:
    """Kafka's classes before and after KAFKA-6653 was put back: one JSON object, status 1, and the file asked for."""
    clean, buggy = (
        str(EXAMPLES / f"kafka-{name}.parquet") for name in ("clean-pending-flag-4k", "buggy-trylock-give-up")
    )
    done = run("compare", clean, buggy, "--json", "--markdown", str(tmp_path / "c.md"))
    assert done.exit_code == 1
    (pair,) = json.loads(done.stdout)["pairs"]
    changed = {name: one["change"] for name, one in pair["clauses"].items()}
    assert changed["O4"] == "broken"
    assert "| broken |" in (tmp_path / "c.md").read_text()
