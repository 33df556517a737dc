"""The page of foreign timers: one layout whatever was measured; and the command that makes it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from docs.makers.subject_page import promise_lines, subject_page
from golden import Golden
from pipeline.test_commands import fired, run
from purgatorio_conformance.subject.contract import Progress, SubjectFailed
from purgatorio_conformance.subject.plan import Plan
from purgatorio_conformance.subjects import FOREIGN, subjects_named
from purgatorio_pipeline.survey import Surveyed, Totals, counts_of, survey
from purgatorio_spec.judge.result import Cause, ClauseResult, RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.record import TimerConstants
from purgatorio_spec.verdict import Verdict, Violation

ROOT = Path(__file__).resolve().parents[2]
BROKEN = Violation("T1", "t-1", "early", (0, 2), "fires at t >= 9", "fired at t = 4, 5 ns early")


def rows() -> list[Surveyed]:
    """One that passes, one that is violated, one that misbehaved, one that is not there."""
    skipped = ClauseResult("T2", Verdict.SKIPPED, reason="the header does not give late_ns")
    passed = {name: ClauseResult(name, Verdict.PASS, 7) for name in ("T1", "T3")}
    good = passed | {"T2": skipped, "T4": ClauseResult("T4", Verdict.PASS, 0)}
    bad = good | {"T1": ClauseResult("T1", Verdict.VIOLATED, 1_400, {"early": Cause(1_200, [BROKEN])})}
    made = []
    for name, clauses, verdict in (("sched", good, Verdict.PASS), ("sched-2", bad, Verdict.VIOLATED)):
        made.append(
            Surveyed(
                name,
                "python-sched",
                implementation="sched.scheduler",
                version="3.11 | <b>`x`",
                constants=TimerConstants(early_ns=1_000),
                counts=Totals(2_000, 1_500, 450, {"ValueError": 50}),
                result=RunResult(name, "x.jsonl", "sched", "python-sched", verdict, 9, clauses),
                lateness=Lateness(
                    name, ((0, 1_000, 3),), 1_000_000, 2_000_000, 30_250_000, 4_000_000_000, 1_200
                ),
                examples=()
                if verdict is Verdict.PASS
                else (Counterexample("x.jsonl", name, BROKEN, 1_200, ()),),
            )
        )
    made.append(Surveyed("jdk-timer", "java-util-timer", "hang: silent for 20 s", failed=True))
    made.append(Surveyed("caffeine", "caffeine-expiry", "libcaffeine-java is not installed"))
    return made


def test_the_layout_is_the_one_of_the_golden_file(golden: Golden) -> None:
    """A difference between two pages is a difference of figures and verdicts, not of the layout."""
    machine = {"python": "3.11", "system": "Linux", "processors": 2, "load": 1.0}
    golden("pipeline/golden/subjects.md", subject_page(rows(), machine, 1, 2_000))


def test_the_page_in_the_repository_is_of_these_subjects_and_promises() -> None:
    """Figures vary, so no test generates them again. But the promises and the list of timers must be current."""
    page = (ROOT / "docs" / "measured" / "subjects.md").read_text()
    subjects = [subject for family in FOREIGN for subject in subjects_named(family)]
    for subject in subjects:
        assert f"\n| {subject.name} |" in page, f"{subject.name}: python -m docs.makers.subject_page"
    for profile in {subject.profile for subject in subjects}:
        assert "\n".join(promise_lines(profile)) in page, profile
    summary = page.split("| subject | version |", 1)[1].split("\n\n", 1)[0]
    assert summary.count("\n| ") >= 8, "eight subjects with figures"


def test_verdicts_of_rows() -> None:
    """A subject that misbehaved proves nothing. A missing subject is SKIPPED and fails no job."""
    assert [row.verdict for row in rows()] == [
        Verdict.PASS,
        Verdict.VIOLATED,
        Verdict.UNKNOWN,
        Verdict.SKIPPED,
    ]


def test_timers_are_counted_by_their_results() -> None:
    """A cancel counts when it says that it won; one that says nothing, when the timer did not fire after it."""
    events: list[dict[str, object]] = [{"ph": "ret", "f": "timer_add", "id": name} for name in "abcd"]
    events += [
        {"ph": "ret", "f": "timer_add", "id": "e", "err": "ValueError"},
        {"ph": "ret", "f": "timer_cancel", "id": "a", "out": 1},
        {"ph": "ret", "f": "timer_cancel", "id": "a", "out": 0},
        {"ph": "ret", "f": "timer_cancel", "id": "b"},
        {"ph": "ret", "f": "timer_cancel", "id": "c"},
        {"ph": "ret", "f": "timer_fire", "id": "c"},
        {"ph": "ret", "f": "timer_fire", "id": "d"},
        {"ph": "call", "f": "timer_fire", "id": "x"},
    ]
    assert counts_of(pa.Table.from_pylist(events, schema=EVENT_SCHEMA)) == Totals(5, 2, 2, {"ValueError": 1})


@dataclass(frozen=True)
class Broken:
    """A subject that dies after its one task has fired at `fired_t`."""

    fired_t: int
    name: str = "broken"
    version: str = "1"
    profile: str = "asyncio"
    threads: int = 1
    tick_ns: int = 1_000_000

    def run(self, plan: Plan, out_path: Path, progress: Progress) -> Path:
        path = out_path.with_suffix("").with_suffix(".jsonl")
        path.write_text(fired(str(self.fired_t), end=""))
        raise SubjectFailed(self.name, "died", "exit status 9", path)


@pytest.mark.parametrize(("fired_t", "verdict"), [(4, Verdict.VIOLATED), (5, Verdict.UNKNOWN)])
def test_what_a_subject_left_behind_is_judged(fired_t: int, verdict: Verdict, tmp_path: Path) -> None:
    """A run that broke off proves nothing kept, and may show something broken; the page says why it ended."""
    (row,) = survey([Broken(fired_t)], tmp_path, 1, 10)
    assert row.verdict is verdict
    assert row.why == "died: exit status 9"
    assert "died: exit status 9" in subject_page([row], {"processors": 2}, 1, 10)


def test_the_command_drives_the_named_subjects(tmp_path: Path) -> None:
    """One JSON object, a trace that stays, and status 0."""
    said = run("subjects", "sched", "--operations", "40", "--json", "--traces", tmp_path)
    assert said.exit_code == 0, said.output
    (row,) = json.loads(said.stdout)["subjects"]
    assert row["name"] == "sched"
    assert row["clauses"]["T1"]["verdict"] == "PASS"
    assert row["fired"] + row["cancelled"] == row["timers"] == 40
    assert [path.name for path in tmp_path.iterdir()] == ["sched-seed1.jsonl.gz"]


def test_the_command_shows_violations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The counterexample, with a replay line that works where the trace was kept; and why a run broke off."""
    monkeypatch.setattr(
        "purgatorio_pipeline.command.subjects.survey",
        lambda _chosen, folder, *_: survey([Broken(4)], folder, 1, 10),
    )
    kept = run("subjects", "sched", "--traces", tmp_path)
    assert kept.exit_code == 1, kept.output
    assert "VIOLATED 1 of 1 fired, 1 before the deadline;" in kept.output
    assert "; died: exit status 9\n" in kept.output
    assert f"replay   purgatorio check {tmp_path}" in kept.output.replace("\\\n", "")
    assert "The traces were deleted" not in kept.output
    gone = run("subjects", "sched")
    assert "\n\nThe traces were deleted. To use the replay lines, run with --traces DIR." in gone.output


def test_the_command_lists_the_subjects() -> None:
    assert "jetty            jetty-executor, jetty-timer" in run("subjects", "--list").output
