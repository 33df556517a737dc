"""Broken traces: each is reported with the remedy, gets the right verdict, and changes no verdict of valid runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from golden import Golden
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.trace import block
from purgatorio_spec.trace.parse import Refusal, parse_line
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from spec.broken_cases import CASES, INVALID, UNKNOWN, good, text
from spec.trace_builder import Trace


def checked(tmp_path: Path, name: str) -> tuple[RunResult, CheckResult]:
    """The result on one case, judged between two valid runs. Broken input is never PASS and never a crash."""
    file, wanted, write = CASES[name]
    folder = tmp_path / name.replace(" ", "-")
    folder.mkdir()
    write(folder / file)
    beside = [good().write(folder / other) for other in ("0.jsonl", "z.parquet")]
    result = check_files([beside[0], folder / file, beside[1]])
    first, run, last = result.runs
    assert (first.verdict, run.verdict, last.verdict) == (Verdict.PASS, wanted, Verdict.PASS), name
    assert EXIT_STATUS[result.verdict] == {INVALID: 2, UNKNOWN: 3}[wanted]
    assert run.problems, name
    for clause in ("O5", "P1", "T3"):
        assert clause not in run.clauses or run.clauses[clause].verdict != Verdict.PASS, name
    assert all(one.verdict != Verdict.VIOLATED for one in run.clauses.values()), name
    return run, result


def test_what_is_said_of_each(tmp_path: Path, golden: Golden) -> None:
    """The message has the place, the problem and the remedy."""
    parts = []
    for name, (file, _, _) in CASES.items():
        run, result = checked(tmp_path, name)
        folder = str(tmp_path / name.replace(" ", "-")) + "/"
        lines = [f"== {name} ({file}): {run.verdict}, {result.quarantined} quarantined, {run.events} events"]
        lines += [f"  {problem}" for problem in run.problems]
        lines += [f"  > {broken}" for broken in result.broken[:2]]
        parts.append("\n".join(lines).replace(folder, ""))
    golden("spec/golden/broken_traces.txt", "\n".join(parts) + "\n")


def test_a_header_without_constants_skips_the_clauses_that_need_them(tmp_path: Path) -> None:
    """A constant is never guessed: what cannot be judged says which constant it lacks."""
    path = tmp_path / "bare.jsonl"
    lines = text(path)
    start = lines[0].index(b'"timer"')
    stop = lines[0].index(b'"clock"')
    path.write_bytes(lines[0][:start] + lines[0][stop:] + b"".join(lines[1:]))
    (run,) = check_files([path]).runs
    assert {
        name: result.reason for name, result in run.clauses.items() if result.verdict == Verdict.SKIPPED
    } == {
        "P1": "the header does not give purge_interval",
        "T1": "the header does not give early_ns",
        "T2": "the header does not give late_ns",
        "T4": "the header does not give early_ns",
        "T5": "the header does not give tick_ns",
    }
    assert (run.verdict, run.problems) == (Verdict.PASS, ())


def test_what_is_not_recorded_or_not_promised_is_skipped(tmp_path: Path) -> None:
    """Not recorded is not the same as did not happen; nor does a timer promise what a purgatory does."""
    made = Trace("asyncio")
    made.header = _recording(made, "timer_add", "timer_fire")
    made.add("a", delay_ns=1000)
    made.fire("a")
    (run,) = check_files([made.write(tmp_path / "a.jsonl")]).runs
    reasons = {
        name: result.reason for name, result in run.clauses.items() if result.verdict == Verdict.SKIPPED
    }
    assert reasons == {
        **dict.fromkeys(
            ["O1", "O2", "O3", "O4", "O5", "O6", "O7", "P1", "P2"],
            "the profile asyncio does not contain the clause",
        ),
        "T3": "the trace does not record timer_cancel",
        "T4": "the trace does not record timer_cancel or force_complete or cancel_for_key or halted",
        "T5": "the trace does not record timer_cancel, gauge or quiesce",
    }
    assert run.clauses["T1"].verdict == Verdict.PASS


def _recording(made: Trace, *functions: str) -> Header:
    return replace(made.header, recorded=functions)


def test_a_violation_counts_even_in_a_trace_without_end(tmp_path: Path) -> None:
    """A violation that a killed recorder has recorded counts: exit status 1, not 3."""
    made = Trace()
    made.add("a", delay_ns=10_000_000)
    made.fire("a")
    path = made.write(tmp_path / "a.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    result = check_files([path])
    assert (result.verdict, EXIT_STATUS[result.verdict]) == (Verdict.VIOLATED, 1)
    assert result.runs[0].clauses["T3"].verdict == UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "sound"),
    [
        (b"}\n$", b"}", True),  # many writers leave the last line feed out
        (b"\n", b"\r\n", True),
        (b'"i":4,', b'"i" : 4,"x_a":"\\"b\\":",', True),  # text that looks like a key
        (b'"i":4,', b'"i":77777,"i":4,', False),
        (b'"i":4,', b'"i" :77777,"i":4,', False),
        (b'"i":4,', b'"i":4,"x_a":{"b":1,"b":"\\":"},', False),
    ],
)
def test_lines_are_read_whatever_their_ends_and_no_key_counts_twice(
    old: bytes, new: bytes, sound: bool, tmp_path: Path
) -> None:
    """Of a key that is given twice, readers differ in which value counts; at any depth."""
    path = tmp_path / "a.jsonl"
    path.write_bytes((b"".join(text(path)) + b"$").replace(old, new).rstrip(b"$"))
    result = check_files([path])
    assert result.runs[0].verdict == (Verdict.PASS if sound else Verdict.INVALID_TRACE)
    assert sound or "stands twice" in result.broken[0].why


def test_a_repeated_name_among_very_many_is_refused() -> None:
    """The search for the repeated name is linear. (It was quadratic: minutes for this line.)"""
    names = ",".join(f'"x_{number}":1' for number in range(50_000))
    with pytest.raises(Refusal, match="stands twice"):
        parse_line(f'{{"kind":"end",{names},"x_7":1}}'.encode())


def test_without_a_header_no_line_is_asked_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines of such a file are broken ones: Arrow, quick with many lines at once, is slow with one."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(text(path)[1:]))
    asked: list[bytes] = []
    monkeypatch.setattr(block, "parse_events", lambda data, numbers: asked.append(data))
    assert check_files([path]).runs[0].verdict == Verdict.INVALID_TRACE
    assert not asked
