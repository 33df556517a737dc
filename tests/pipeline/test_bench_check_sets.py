"""`python -m benchmarks forms | skew`: the sets that they check, in small, and what they say of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from benchmarks import forms, skew
from benchmarks.check_peer import check_in_process
from benchmarks.event_log import Stage, read_stages
from benchmarks.process_tree import Cost
from benchmarks.trace_set import violations_of
from purgatorio_pipeline.sources import find_traces


def test_every_form_gives_what_was_put_in() -> None:
    """One object on standard output, a result a form, and in each the violations that had been put in."""
    done = CliRunner().invoke(
        forms.command, ["--engine", "process", "--events", "4000", "--files", "12", "--json"]
    )
    assert done.exit_code == 0, done.output
    rows = {row["form"]: row for row in json.loads(done.stdout)["results"]}
    assert rows.keys() == set(forms.FORMS)
    assert {name: row["files"] for name, row in rows.items()} == {
        "parquet": 1, "jsonl.gz": 1, "many": 12, "many.jsonl": 12,
    }  # fmt: skip
    assert rows["parquet"]["events"] == rows["jsonl.gz"]["events"]
    assert rows["jsonl.gz"]["found"] == violations_of(1)
    assert rows["many.jsonl"]["found"] == violations_of(2)
    assert all(row["right"] and row["cpu_s"] > 0 and row["peak_bytes"] > 0 for row in rows.values())


def test_a_form_that_gives_something_else_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a violation more was wanted than was found, and the table says so."""
    monkeypatch.setattr(forms, "violations_of", lambda broken: violations_of(broken + 1))
    done = CliRunner().invoke(forms.command, ["--engine", "process", "--events", "2000", "--form", "parquet"])
    assert done.exit_code == 1
    assert "WRONG" in done.stdout


@pytest.mark.parametrize("shape", skew.SHAPES)
def test_a_shape_is_as_hot_as_it_says(shape: str, tmp_path: Path) -> None:
    """What is hot has nine tenths of what it should have, what is not has not, and all violations are found."""
    events, broken = skew.write_shape(shape, tmp_path, 60_000)
    paths = find_traces([str(tmp_path)])
    sizes = [pq.read_metadata(path).num_rows - 2 for path in paths]
    assert sum(sizes) == events
    rows = pq.read_table(paths[0], columns=["th", "keys"]).to_pydict()
    keys = Counter(keys[0] for keys in rows["keys"] if keys)
    key_share = max(keys.values()) / keys.total()
    threads = {th for th in rows["th"] if th is not None and th.startswith("worker")}
    assert (sizes[0] / events > 0.5) == (shape != "even")
    assert (key_share > 0.85) == (shape == "hot key")
    # Two others break a promise and read the gauges.
    assert (len(threads) <= 3) == (shape == "hot thread")
    assert check_in_process(paths) == violations_of(broken)


def test_the_event_log_says_which_task_was_hot(tmp_path: Path) -> None:
    """Times and rows of tasks by stage, under the name of the table that the stage was part of."""

    def task(stage: int, ms: int, rows: int) -> dict[str, object]:
        read = {"Input Metrics": {"Records Read": rows}, "Shuffle Read Metrics": {"Total Records Read": 0}}
        return {
            "Event": "SparkListenerTaskEnd",
            "Stage ID": stage,
            "Task Metrics": {"Executor Run Time": ms, **read},
        }

    started = {
        "Event": "SparkListenerJobStart",
        "Stage IDs": [3],
        "Properties": {"spark.job.description": "silver/operations"},
    }
    events = [started, task(3, 8000, 90), task(3, 1000, 5), task(3, 1000, 5), task(4, 500, 0)]
    (tmp_path / "events_1_local").write_text("\n".join(map(json.dumps, events)))
    hot, other = read_stages(tmp_path)
    assert hot == Stage("silver/operations", [8000, 1000, 1000], [90, 5, 5])
    assert (hot.longest_s, hot.longest_share, hot.rows_share) == (8, 0.8, 0.9)
    assert hot.beyond_s == pytest.approx(8 - 10 / 3)
    assert other.part_of == ""
    assert other.beyond_s == 0.25, "a stage of one task could have been two"


def test_lines_for_people_fit_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, and exit status 1 for a set that was not found to be what it is."""
    stage = Stage("the driver's questions", [123_456] * 16, [1_000_000] * 16)
    right = skew.Measured("hot thread", 100_000_000, Cost("", 1234.5, 1.0, 3 << 30), {}, {}, [stage] * 9)
    monkeypatch.setattr(skew, "measure", lambda shape, events: right)
    done = CliRunner().invoke(skew.command, ["--shape", "hot thread"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + skew.SHOWN
    assert max(map(len, lines)) <= 80
    wrong = replace(right, wanted=violations_of(1))
    monkeypatch.setattr(skew, "measure", lambda shape, events: wrong)
    assert CliRunner().invoke(skew.command, ["--json"]).exit_code == 1
