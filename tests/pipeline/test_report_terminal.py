"""The summary in the terminal: 80 columns, words for colours, one counterexample a cause. Lists are whole in a pipe."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from golden import Golden
from pipeline.hostile import hostile_check, many_violations
from purgatorio_pipeline.command.line import echo_line, wrapped
from purgatorio_pipeline.report.terminal import print_check, under_headings
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.event_words import broken_here
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.verdict import Verdict
from spec.shown_trace import fired_early, lost_with_a_flag
from spec.trace_builder import Trace


def printed(
    result: CheckResult,
    examples: dict[CauseKey, Counterexample],
    *,
    verbose: bool = False,
) -> str:
    out = io.StringIO()
    print_check(
        Console(file=out, width=80),
        result,
        examples,
        verbose=verbose,
    )
    return out.getvalue()


def test_a_violated_run_shows_count_lanes_and_replay() -> None:
    """Everything that the reader needs next stands there: how often, how it came about, how to see it again."""
    made = lost_with_a_flag()
    text = printed(made.result(), made.examples())
    assert re.search(r"\ngive-up +VIOLATED +\d+ +O4 1 of 1\b", text)
    assert "O4 VIOLATED: 1 operation of Hand 1" in text
    assert broken_here("O4") in text
    assert "replay   purgatorio check hand-made.jsonl --run give-up" in text
    assert text.endswith("VIOLATED: 1 VIOLATED; 1 violation of 1 cause; 1 clause SKIPPED (T2)\n")


def test_skipped_clauses_and_reasons_wait_for_verbose() -> None:
    """Long lists by default would hide the important line. But the reason of a SKIPPED clause must be available."""
    made = lost_with_a_flag()
    assert "skipped" not in printed(made.result(), made.examples())
    assert "T2 skipped: the header" in printed(made.result(), made.examples(), verbose=True)


def test_a_pass_says_why_clauses_were_not_looked_for() -> None:
    """A PASS without O4 needs the reason. Clauses that were skipped in some runs are listed with --verbose."""
    kept, skipped = ClauseResult("O1", Verdict.PASS, 3), ClauseResult("O4", Verdict.SKIPPED, reason="no try")
    run = RunResult("a", "a.jsonl", "x", "locked", Verdict.PASS, 9, {"O1": kept, "O4": skipped})
    other = replace(run, run="b", clauses={"O1": replace(skipped, clause="O1"), "O4": skipped})
    told = printed(CheckResult((run, other)), {})
    assert " ".join(told.split()).endswith(
        "SKIPPED clauses were not tested (why: --verbose) O4 skipped: no try"
    )
    assert "; 1 clause SKIPPED; 1 clause SKIPPED in some runs\n" in told
    told = printed(CheckResult((run, other)), {}, verbose=True)
    assert told.endswith("SKIPPED clauses were not tested\n")
    assert "O1, O4 skipped: no try\n" in told
    alone = replace(run, verdict=Verdict.SKIPPED, clauses={"O4": skipped})
    assert printed(CheckResult((alone,)), {}).endswith(
        "SKIPPED: 1 SKIPPED; 1 clause SKIPPED\nO4 skipped: no try\n"
    )


def test_a_check_that_had_no_occasion_says_so() -> None:
    """A PASS that could not have failed must not look like one that could."""
    made = Trace()
    made.register("op-1")
    text = " ".join(printed(made.result(), {}).split())
    assert "occasions: 0 for O1, O2, O3, O5" in text
    assert "O4 skipped: the program never called check_and_complete" in text


def test_one_cause_is_printed_once_over_all_its_runs() -> None:
    """Five hundred runs of a campaign that break alike: one counterexample, the sum, and how many runs."""
    (run,) = many_violations(3).runs
    runs = tuple(replace(run, run=f"run-{number}", file=f"{number}.jsonl") for number in range(500))
    text = printed(CheckResult(runs), {})
    assert text.count("T1 VIOLATED") == 1
    assert "T1 VIOLATED: 1,500 tasks of Hand 1 in 500 runs" in text
    assert "... 400 more runs" in text


def test_the_counterexample_is_of_the_run_that_is_broken_the_earliest() -> None:
    """Which of the runs came first says nothing about which there is least to read of."""
    made = fired_early()
    (run,) = made.result().runs
    early = made.example("T1")
    late = replace(
        early,
        file="late.jsonl",
        run="late",
        violation=replace(early.violation, events=(*early.violation.events, early.breaks_at + 1)),
    )
    both = CheckResult((replace(run, run="late", file="late.jsonl"), run))
    examples = {CauseKey(one.file, one.run, "T1", one.violation.cause): one for one in (late, early)}
    text = printed(both, examples)
    assert f'in the run "{early.run}"' in text
    assert 'in the run "late"' not in text


def test_problems_and_quarantined_lines_have_a_remedy() -> None:
    """A broken trace is the user's next task: which file, which line, why, what to do; the rest is counted."""
    result, _, _ = hostile_check("plain")
    result = replace(result, quarantined=7)
    text = printed(result, {})
    assert "plain: plain" in text
    assert "quarantined lines: 7" in text
    assert "plain:3: field 'plain': plain; plain" in text
    assert "... 6 more" in text


def test_the_proof_of_a_deadlock_is_not_cut_off() -> None:
    """It ends with where each thread stands, which a limit for short texts would cut off; a longer one is bounded."""
    result, _, _ = hostile_check("plain")
    (run, *_) = result.runs
    for words, shown in ((200, True), (4_000, False)):
        problem = " ".join(["silent"] * words + ["at", "Wheel.java:12"])
        text = printed(replace(result, runs=(replace(run, problems=(problem,)),)), {})
        assert ("Wheel.java:12" in " ".join(text.split())) is shown


def test_examples_may_be_missing() -> None:
    made = fired_early()
    text = printed(made.result(), {})
    (cause,) = made.result().runs[0].clauses["T1"].causes.values()
    assert f"allowed  {cause.examples[0].allowed}" in text
    assert f"seen     {cause.examples[0].seen}" in text
    assert "first op-13" in text


def test_the_summary_is_the_golden_one(golden: Golden) -> None:
    """The first thing that a user reads changes only on purpose: violated, invalid, and what to do."""
    first, second = lost_with_a_flag(), fired_early()
    quiet = Trace(run="quiet")
    quiet.file = "quiet.jsonl"
    quiet.register("op-1")
    broken = BrokenLine("cut.jsonl", 7, "t", "not an integer", "write nanoseconds as an integer", '"t":"now"')
    cut = RunResult(
        "cut",
        "cut.jsonl",
        "Hand 1",
        "locked",
        Verdict.INVALID_TRACE,
        5,
        {},
        (f"1 broken line, first {broken}",),
    )
    runs = (first.judge(), second.judge(), quiet.judge(), cut)
    examples = {
        key: replace(one, violation=replace(one.violation, allowed="what may be", seen="what was"))
        for key, one in {**first.examples(), **second.examples()}.items()
    }
    text = printed(CheckResult(runs, 1, (broken,)), examples, verbose=True)
    assert max(map(len, text.splitlines())) <= 80
    golden("pipeline/golden/terminal.txt", "".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def test_long_names_are_listed_under_their_common_part() -> None:
    """`make verify` on 80 columns: one line a run, and the whole name can still be read."""
    names = ["reference-tick1-wheel2-seed1", "reference-tick10-wheel20-seed1", "asyncio-seed1"]
    assert under_headings(names, 80) == [("", name) for name in names]
    assert under_headings(names, 20) == [
        ("reference-*-seed1", "  tick1-wheel2"),
        ("reference-*-seed1", "  tick10-wheel20"),
        ("", "asyncio-seed1"),
    ]


@pytest.mark.parametrize(
    "names", [["a-b", "a-b-c"], ["a", "a"], ["a-b-b", "a-b"], ["x--y", "x-y"], ["-", "--"]]
)
def test_nothing_of_a_name_is_lost_under_a_heading(names: list[str]) -> None:
    for name, (heading, rest) in zip(names, under_headings(names, 0), strict=True):
        assert heading.replace("*", rest.strip()) == name if heading else rest == name


def test_a_run_is_one_line() -> None:
    made = lost_with_a_flag()
    (run,) = made.result().runs
    long = "reference-pending-flag-tick10-intrusive256-shard"
    runs = tuple(replace(run, run=f"{long}-{number}-seed1") for number in range(3))
    lines = printed(CheckResult(runs), {}).splitlines()
    assert lines[0].split() == ["run", "verdict", "events", "clauses"]
    assert lines[1] == "reference-pending-flag-tick10-intrusive256-shard-*-seed1"
    assert [line.split()[:2] for line in lines if line.startswith("  ") and "VIOLATED" in line] == [
        [str(number), "VIOLATED"] for number in range(3)
    ]


ENTRY = f"{3:3} {'orphan-watcher-list':36} the list is looked up under the lock, appended after it [WatcherList.watch]"


def test_a_long_line_goes_on_under_its_text() -> None:
    """Nothing is lost, no line is too long, and the head stands alone."""
    lines = wrapped(ENTRY, 41, 80).splitlines()
    assert len(lines) == 2
    assert all(len(line) <= 80 for line in lines)
    assert all(line.startswith(" " * 41) for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(ENTRY.split())


def test_a_line_that_fits_stays() -> None:
    assert wrapped("a   b", 2, 5) == "a   b"


def test_a_pipe_gets_it_whole(capsys: pytest.CaptureFixture[str]) -> None:
    echo_line(ENTRY, 41)
    assert capsys.readouterr().out == ENTRY + "\n"
