"""The summary in the terminal: 80 columns, words for colours, one counterexample a cause. Lists are whole in a pipe."""

import io
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from rich.console import Console

from golden import Golden
from pipeline.hostile import hostile_check, many_violations
from purgatorio_pipeline.command.line import echo_line, wrapped
from purgatorio_pipeline.report.terminal import print_check, under_headings
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.counterexample import Counterexample
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


def test_the_proof_of_a_deadlock_is_not_cut_off() -> None:
    """It ends with where each thread stands, which a limit for short texts would cut off; a longer one is bounded."""
    result, _, _ = hostile_check("plain")
    (run, *_) = result.runs
    for words, shown in ((200, True), (4_000, False)):
        problem = " ".join(["silent"] * words + ["at", "Wheel.java:12"])
        text = printed(replace(result, runs=(replace(run, problems=(problem,)),)), {})
        assert ("Wheel.java:12" in " ".join(text.split())) is shown


def several_kinds() -> str:
    """Violated, invalid, and what to do; nothing of it is cut."""
    first, second, quiet = lost_with_a_flag(), fired_early(), Trace(run="quiet")
    quiet.file = "quiet.jsonl"
    quiet.register("op-1")
    broken = BrokenLine("cut.jsonl", 7, "t", "not an integer", "write nanoseconds as an integer", '"t":"now"')
    why = (f"1 broken line, first {broken}",)
    cut = RunResult("cut", "cut.jsonl", "Hand 1", "locked", Verdict.INVALID_TRACE, 5, {}, why)
    examples = {
        key: replace(one, violation=replace(one.violation, allowed="what may be", seen="what was"))
        for key, one in {**first.examples(), **second.examples()}.items()
    }
    runs = (first.judge(), second.judge(), quiet.judge(), cut)
    return printed(CheckResult(runs, 1, (broken,)), examples, verbose=True)


def partly_skipped() -> tuple[CheckResult, CheckResult]:
    """O4 is SKIPPED in both runs, O1 in one of them; and in the only run."""
    kept, skipped = ClauseResult("O1", Verdict.PASS, 3), ClauseResult("O4", Verdict.SKIPPED, reason="no try")
    run = RunResult("a", "a.jsonl", "x", "locked", Verdict.PASS, 9, {"O1": kept, "O4": skipped})
    other = replace(run, run="b", clauses={"O1": replace(skipped, clause="O1"), "O4": skipped})
    alone = replace(run, verdict=Verdict.SKIPPED, clauses={"O4": skipped})
    return CheckResult((run, other)), CheckResult((alone,))


def alike(names: Iterable[str]) -> str:
    """Many runs that break alike: one counterexample, the sum, and how many runs; a run is one line."""
    (run,) = many_violations(3).runs
    text = printed(CheckResult(tuple(replace(run, run=name, file=f"{name}.jsonl") for name in names)), {})
    return re.sub(r"  [1-9]\d  VIOLATED .*\n.*\n", "", text)


CASES: dict[str, Callable[[], str]] = {
    "several kinds": several_kinds,
    "violated": lambda: printed(lost_with_a_flag().result(), {}),
    "skipped in some runs": lambda: printed(partly_skipped()[0], {}),
    "skipped in some runs, verbose": lambda: printed(partly_skipped()[0], {}, verbose=True),
    "skipped": lambda: printed(partly_skipped()[1], {}),
    "quarantined": lambda: printed(replace(hostile_check("plain")[0], quarantined=7), {}),
    "500 runs": lambda: alike(f"reference-pending-flag-tick10-intrusive256-shard-{n}-seed1" for n in range(500)),
}  # fmt: skip


def test_the_summary_is_the_golden_one(golden: Golden) -> None:
    """The first thing that a user reads changes only on purpose: how often, how it came about, how to see it again;
    what was not looked for and why; which line of which file is broken. Without a counterexample (`500 runs`) there is
    what was allowed and seen. Reasons wait for --verbose."""
    texts = {
        name: "".join(f"{line.rstrip()}\n" for line in make().splitlines()) for name, make in CASES.items()
    }
    assert all(len(line) <= 80 for line in texts["several kinds"].splitlines())
    golden("pipeline/golden/terminal.txt", "\n".join(f"== {name}\n{text}" for name, text in texts.items()))


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
