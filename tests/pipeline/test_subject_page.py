"""The page of foreign timers: one layout whatever was measured; and the command that makes it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from golden import Golden
from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.report.subject_page import subject_page
from purgatorio_pipeline.survey import Counts, Surveyed, counts_of
from purgatorio_spec.history.lateness import Lateness
from purgatorio_spec.judge.result import ClauseResult, RunResult
from purgatorio_spec.judge.tally import Cause
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.record import TimerConstants
from purgatorio_spec.verdict import Verdict, Violation

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
                counts=Counts(2_000, 1_500, 450, {"ValueError": 50}),
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
    made.append(Surveyed("bazaar-timer-wheel", "bazaar-timer-wheel", "needs another Python"))
    return made


def test_the_layout_is_the_one_of_the_golden_file(golden: Golden) -> None:
    """A difference between two pages is a difference of figures and verdicts, not of the layout."""
    machine = {"python": "3.11", "system": "Linux", "processors": 2, "load": 1.0}
    golden("pipeline/golden/subjects.md", subject_page(rows(), machine, 1, 2_000))


def test_verdicts_of_rows() -> None:
    """What misbehaved proves nothing; what is not there is SKIPPED and fails nobody's job."""
    assert [row.verdict for row in rows()] == [
        Verdict.PASS,
        Verdict.VIOLATED,
        Verdict.UNKNOWN,
        Verdict.SKIPPED,
    ]


def test_timers_are_counted_by_what_became_of_them() -> None:
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
    assert counts_of(pa.Table.from_pylist(events, schema=EVENT_SCHEMA)) == Counts(5, 2, 2, {"ValueError": 1})


def test_the_command_drives_what_is_named(tmp_path: Path) -> None:
    """One JSON object, a trace that stays, and status 0."""
    said = CliRunner().invoke(
        purgatorio, ["subjects", "sched", "--operations", "40", "--json", "--traces", str(tmp_path)]
    )
    assert said.exit_code == 0, said.output
    (row,) = json.loads(said.stdout)["subjects"]
    assert row["name"] == "sched"
    assert row["clauses"]["T1"]["verdict"] == "PASS"
    assert row["fired"] + row["cancelled"] == row["timers"] == 40
    assert [path.name for path in tmp_path.iterdir()] == ["sched-seed1.jsonl.gz"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nobody"], 2, "no subject 'nobody'"),
        (["sched", "--write", "page.md"], 2, "leave the names out"),
        (["--list"], 0, "jetty            jetty-executor, jetty-timer"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], status: int, said: str) -> None:
    """Usage errors have status 2 and a sentence."""
    done = CliRunner().invoke(purgatorio, ["subjects", *arguments])
    assert done.exit_code == status
    assert said in done.output
