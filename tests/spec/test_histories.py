"""Small histories that a checker got wrong once: what must be said of each, and of its twin.

The twin is the same history with the smallest change that must get the other verdict.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

HISTORIES: Final = Path(__file__).parent / "histories"
MS: Final = 1_000_000
Record = dict[str, Any]
Edit = Callable[[list[Record]], None]
"""Changes the records of a trace, the header first and the end last."""

Said = dict[str, str]
"""Clause to cause for what is VIOLATED, to UNKNOWN for what is not decided; nothing: PASS."""


def event(i: int, **fields: object) -> Edit:
    """Change fields of the event `i`; None takes a field out."""

    def edit(records: list[Record]) -> None:
        (found,) = (record for record in records if record.get("i") == i)
        found |= fields
        for name in [name for name, value in found.items() if value is None]:
            del found[name]

    return edit


def header(**timer: int) -> Edit:
    return lambda records: records[0]["timer"].update(timer)


def without(*positions: int) -> Edit:
    def edit(records: list[Record]) -> None:
        records[:] = [record for record in records if record.get("i") not in positions]

    return edit


def then(**fields: object) -> Edit:
    """One event more at the end; `c` counts from the first event."""

    def edit(records: list[Record]) -> None:
        first, last = records[1]["i"], records[-2]["i"]
        added = {"kind": "event", "i": last + 1} | fields
        if "c" in fields:
            added["c"] = first + int(str(fields["c"]))
        records.insert(len(records) - 1, added)

    return edit


def more_watched(by: int) -> Edit:
    def edit(records: list[Record]) -> None:
        last = [record for record in records if "state" in record][-1]
        last["state"]["watched"] += by

    return edit


def state(i: int, **fields: int) -> Edit:
    return event(i, state=fields)


def first(**fields: object) -> Edit:
    def edit(records: list[Record]) -> None:
        for record in records[1:-1]:
            record |= {name: record[name] + 1 for name in ("i", "c") if name in record}
        records.insert(1, {"kind": "event", "i": 0} | fields)

    return edit


LOST: Final[Said] = {"O4": "unclaimed-on-return"}
CASES: Final[dict[str, tuple[Said, tuple[Edit, ...], Said]]] = {
    # The expiry's force was under way; in the twin it had lost, so nothing claimed the operation.
    "E1-open-force-O4.jsonl": (
        {"O4": "UNKNOWN"},
        (then(th="x", t=10_000_015, ph="ret", f="force_complete", id="a", c=9, out=0),),
        LOST,
    ),
    "E2-force-waits-for-slow-try-O5.jsonl": (
        {"O5": "UNKNOWN"},
        (header(late_ns=MS), without(10, 11)),
        {"O5": "never-completed", "T3": "never-fired"},
    ),
    "E3-no-late-bound-slow-executor.jsonl": (
        {"O5": "UNKNOWN", "T3": "UNKNOWN"},
        (header(late_ns=5 * MS),),
        {"O5": "never-completed", "T3": "never-fired"},
    ),
    "E4-late-add-T3.jsonl": ({}, (event(2, t=116 * MS), event(3, t=116 * MS + 5)), {"T3": "never-fired"}),
    "E4b-late-add-then-fires.jsonl": ({}, (event(4, t=116 * MS), event(5, t=117 * MS)), {"T2": "late"}),
    "E5-long-registration-O5.jsonl": (
        {},
        (header(late_ns=MS), event(3, t=2_012 * MS)),
        {"O5": "never-completed"},
    ),
    "E6-readd-after-handover-T1.jsonl": (
        {},
        (event(2, t=5 * MS), event(3, t=5 * MS + 1)),
        {"T1": "early", "T3": "fired-twice"},
    ),
    "E6b-readd-after-handover-T4.jsonl": (
        {},
        (event(2, t=5 * MS), event(3, t=5 * MS + 1)),
        {"T1": "early", "T4": "fired-after-cancel"},
    ),
    "E7-two-adds-at-once-T4.jsonl": (
        {},
        (event(0, delay_ns=200 * MS, deadline_t=200 * MS),),
        {"T1": "early", "T4": "fired-after-cancel"},
    ),
    "E8a-lost-small-i.jsonl": (LOST, (without(8),), {}),
    "E8b-lost-i-above-2e62.jsonl": (LOST, (without((1 << 62) + 13),), {}),
    "E8c-open-force-small-i.jsonl": (
        {},
        (then(th="x", t=10_000_014, ph="ret", f="force_complete", id="a", c=9, out=0),),
        {"O1": "loser-ran-callback"},
    ),
    "E8d-open-force-i-above-2e62.jsonl": (
        {},
        (then(th="x", t=10_000_014, ph="ret", f="force_complete", id="a", c=9, out=0),),
        {"O1": "loser-ran-callback"},
    ),
    "E10-open-cancel-key.jsonl": (
        {"O4": "UNKNOWN", "O5": "UNKNOWN", "T3": "UNKNOWN"},
        (then(th="w", t=3_000_000_003, ph="ret", f="cancel_for_key", c=8, out=0),),
        LOST | {"O5": "UNKNOWN", "T3": "UNKNOWN"},
    ),
    "E11-quiesce-within-late.jsonl": ({}, (event(2, t=21 * MS),), {"T3": "never-fired"}),
    "E12-mass-expiry-P1.jsonl.gz": (
        {},
        (more_watched(1_500),),
        {"P1": "garbage", "P2": "watched-out-of-bounds"},
    ),
    "P1-race-p-38.jsonl": ({}, (more_watched(16),), {"P1": "garbage"}),
    # A check that an exception ended owes nothing; one that returned does.
    "E13-exception-aborts-check-O4.jsonl": ({}, (event(20, err=None, out=0),), LOST),
    # Documented: one `th` is one line of nested calls. With a name for each coroutine it is judged well.
    "E14-coroutines-one-thread.jsonl": (
        {"O7": "check-miscounted"},
        (event(10, th="loop/z"), event(17, th="loop/z")),
        {},
    ),
    "E20-plain-tasks-in-purgatory-P2.jsonl": (
        {},
        (state(2, watched=0, delayed=2),),
        {"P2": "delayed-above-live", "T5": "size-wrong"},
    ),
    "E21-restart-lost.jsonl": (
        {"T3": "never-fired"},
        (event(6, th="x", t=10 * MS, f="timer_fire", id="a", state=None),),
        {},
    ),
    "E22-failed-cancel-then-lost.jsonl": ({"T3": "never-fired"}, (event(3, out=1),), {}),
    "E25-fire-without-add.jsonl": (
        {"T3": "fired-and-never-added"},
        (first(th="w", t=1, ph="at", f="timer_add", id="ghost", delay_ns=0, deadline_t=1),),
        {},
    ),
}


def said(run: RunResult) -> Said:
    assert run.verdict is not Verdict.INVALID_TRACE, run.problems
    return {
        name: next(iter(result.causes), result.verdict.value)
        for name, result in run.clauses.items()
        if result.verdict not in (Verdict.PASS, Verdict.SKIPPED)
    }


@pytest.mark.parametrize("name", CASES)
def test_what_must_be_said_of_it(name: str) -> None:
    """As the contract has it, clause by clause."""
    (run,) = check_files([HISTORIES / name]).runs
    assert said(run) == CASES[name][0]


@pytest.mark.parametrize("name", CASES)
def test_its_twin_gets_another_verdict(name: str, tmp_path: Path) -> None:
    """One step away it is the other way round: neither a false alarm nor silence."""
    path = HISTORIES / name
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in raw.splitlines()]
    for edit in CASES[name][1]:
        edit(records)
    records[-1]["events"] = len(records) - 2
    twin = tmp_path / "twin.jsonl"
    twin.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (run,) = check_files([twin]).runs
    assert said(run) == CASES[name][2]
    assert said(run) != CASES[name][0]


@pytest.mark.parametrize("name", ["dupcol.parquet", "badutf.parquet"])
def test_a_broken_parquet_file_is_an_invalid_trace(name: str) -> None:
    """Its problem is named, and the other files are judged all the same."""
    result = check_files([HISTORIES / name, HISTORIES / "E8a-lost-small-i.jsonl"])
    broken, other = result.runs
    assert (broken.verdict, EXIT_STATUS[broken.verdict]) == (Verdict.INVALID_TRACE, 2)
    assert broken.problems
    assert said(other) == LOST


def test_every_history_is_judged() -> None:
    """A file that no test reads shows nothing."""
    judged = {*CASES, "dupcol.parquet", "badutf.parquet"}
    assert {path.name for path in HISTORIES.iterdir()} == judged
