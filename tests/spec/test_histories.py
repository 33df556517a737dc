"""Small histories that a checker got wrong once: what must be said of each, and of its twin.

The twin is the same history with the smallest change that must get the other verdict.
"""

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from spec.trace_builder import MS, Trace

HISTORIES: Final = Path(__file__).parent / "histories"
Record = dict[str, Any]
Said = dict[str, str]
"""By clause: the cause of a violation, UNKNOWN if it is undecided. Other clauses are PASS."""


def edit(records: list[Record], change: Record) -> None:
    """Fields of the event `change` (null takes one out), of the header's `timer`, events that are `without`, one event
    more at the end (`then`; its `c` counts from the first event) or as the `first`, or the last reading's `watched`."""
    match change:
        case {"change": i, **changed}:
            (found,) = (record for record in records if record.get("i") == i)
            found |= changed
            for name in [name for name, value in found.items() if value is None]:
                del found[name]
        case {"timer": fields}:
            records[0]["timer"].update(fields)
        case {"without": positions}:
            records[:] = [record for record in records if record.get("i") not in positions]
        case {"then": fields}:
            added = {"kind": "event", "i": records[-2]["i"] + 1} | fields
            if "c" in fields:
                added["c"] += records[1]["i"]
            records.insert(len(records) - 1, added)
        case {"first": fields}:
            for record in records[1:-1]:
                record |= {name: record[name] + 1 for name in ("i", "c") if name in record}
            records.insert(1, {"kind": "event", "i": 0} | fields)
        case {"watched": by}:
            [record for record in records if "state" in record][-1]["state"]["watched"] += by
        case _:
            raise AssertionError(change)


LOST: Final[Said] = {"O4": "unclaimed-on-return"}
CASES: Final[dict[str, tuple[Said, list[Record], Said]]] = {
    name: (first, edits, second)
    for name, first, edits, second, *_ in map(
        json.loads, HISTORIES.with_suffix(".jsonl").read_text("utf-8").splitlines()
    )
}
"""By file: what must be said of it, the edits that make its twin, and what must be said of that; perhaps why."""


def said(run: RunResult) -> Said:
    assert run.verdict is not Verdict.INVALID_TRACE, run.problems
    return {
        name: next(iter(result.causes), result.verdict.value)
        for name, result in run.clauses.items()
        if result.verdict not in (Verdict.PASS, Verdict.SKIPPED)
    }


@pytest.mark.parametrize("name", CASES)
def test_what_must_be_said_of_it(name: str) -> None:
    (run,) = check_files([HISTORIES / name]).runs
    assert said(run) == CASES[name][0]


@pytest.mark.parametrize("name", CASES)
def test_its_twin_gets_another_verdict(name: str, tmp_path: Path) -> None:
    """One step away it is the other way round: neither a false alarm nor silence."""
    path = HISTORIES / name
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in raw.splitlines()]
    for change in CASES[name][1]:
        edit(records, change)
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
    assert ("hold text that is not UTF-8" in "".join(broken.problems)) == (name == "badutf.parquet")
    assert broken.problems
    assert said(other) == LOST


def test_a_damaged_parquet_file_is_not_blamed_on_its_texts(tmp_path: Path) -> None:
    data = bytearray((HISTORIES.parents[2] / "examples/traces/kafka-clean-1k.parquet").read_bytes())
    middle, noise = len(data) // 2, random.Random(3)
    data[middle : middle + 2_000] = bytes(noise.randrange(256) for _ in range(2_000))
    (tmp_path / "noise.parquet").write_bytes(data)
    (run,) = check_files([tmp_path / "noise.parquet"]).runs
    assert run.verdict is Verdict.INVALID_TRACE
    assert "rows from here on are damaged" in "".join(run.problems)


def test_every_history_is_judged() -> None:
    """A file that no test reads shows nothing."""
    judged = {*CASES, "dupcol.parquet", "badutf.parquet"}
    assert {path.name for path in HISTORIES.iterdir()} == judged


def _calls_to_judge(rounds: int) -> int:
    """The number of Python calls to judge a task that is added so many times, and fires or is cancelled in turn."""
    made = Trace("asyncio")
    for turn in range(rounds):
        made.add("a", delay_ns=1000)
        made.wait(1000)
        (made.fire if turn % 2 else made.cancel)("a")
    calls = 0

    def count(_frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert made.judge().verdict == Verdict.PASS
    finally:
        sys.setprofile(None)
    return calls


def test_a_task_that_is_added_again_and_again_costs_at_most_the_square() -> None:
    """(The cost was cubic: minutes for a heartbeat of 800 rounds.)"""
    few, many = map(_calls_to_judge, (50, 150))
    assert many < 10 * few


@pytest.mark.parametrize("profile", ["locked", "pending-flag"])
def test_both_paths_agree_on_times_that_are_far_apart(profile: str, tmp_path: Path) -> None:
    """The difference of these times needs more than 64 bits."""
    made = Trace(profile)
    made.t = -6 * 10**18
    made.register("a", delay_ns=MS)
    made.t = 6 * 10**18
    made.gauge(9, 9, "gauge")
    path = made.write(tmp_path / "a.jsonl")
    fast, plain = (check_files([path], full=full).runs[0].clauses for full in (False, True))
    assert fast == plain
    assert fast["P1"].verdict == Verdict.VIOLATED
