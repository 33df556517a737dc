"""The requests of a counterexample name their objects, and the fields that decide the verdict."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from purgatorio_pipeline.printed import check_of
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import counterexample
from purgatorio_wire.counterexample import counterexamples, words
from purgatorio_wire.history.bound import MS
from purgatorio_wire.history.error_code import ERRORS
from purgatorio_wire.judge import judge_trace
from purgatorio_wire.trace.file import WireTrace
from purgatorio_wire.trace.record import Kind, WireEnd, WireEvent, WireHeader


@pytest.mark.parametrize("line", (Path(__file__).parent / "words.jsonl").read_text().splitlines())
def test_a_request_shows_its_fields(line: str) -> None:
    said, api, body = json.loads(line)
    assert words(WireEvent(0, 0, "request", api=api, body=body)) == said


def early_by_id(**broker: object) -> WireTrace:
    """A fetch that names its topic by the id, and is answered before its max_wait."""
    made = {"topics": [{"name": "the-topic", "topic_id": "the-id", "error_code": 0}]}
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    asked = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 9,
        "topics": [{"topic_id": "the-id", "partitions": [part]}],
    }
    nothing = {"partition_index": 0, "error_code": 0, "high_watermark": 0, "records": []}
    got = {"error_code": 0, "responses": [{"topic_id": "the-id", "partitions": [nothing]}]}
    creates = {"topics": [{"name": "the-topic", "num_partitions": 1}]}
    events: list[WireEvent] = []

    def exchange(
        t: int, api: str, version: int, body: Mapping[str, object], told: Mapping[str, object]
    ) -> None:
        i = len(events)
        events.append(WireEvent(i, t * MS, "request", "c", "s#1", i, None, api, version, body))
        events.append(WireEvent(i + 1, (t + 2) * MS, "answer", "c", "s#1", i, i, api, version, told))

    exchange(0, "create_topics", 7, creates, made)
    for t in (10, 20):
        exchange(t, "fetch", 13, {**asked, "max_wait_ms": 0 if t == 10 else 500}, got)
    header = WireHeader("run", {"address": "here:1", **broker}, params={"seed": 3})
    return WireTrace("x.jsonl", header, events, WireEnd(len(events)))


def example(trace: WireTrace) -> Counterexample:
    found = counterexamples(trace, judge_trace(trace))
    return next(one for key, one in found.items() if key.clause == "F1")


def test_a_topic_has_one_name_in_a_table() -> None:
    trace = early_by_id()
    shown = example(trace)
    assert [row.said for row in shown.rows if "fetch(" in (row.said or "")] == [
        "fetch(the-topic-0 @0; 0 ms, 1 B)", "fetch(the-topic-0 @0; 500 ms, 1 B)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("broker", "options"),
    [
        ({"second": "here:2", "second_pid": 42}, "--second here:2 --second-pid 42"),
        (
            {"second": "here:2", "second_stop": "stop it", "second_go_on": "go on"},
            "--second here:2 --stop-command 'stop it' --continue-command 'go on'",
        ),
        ({}, ""),
    ],
)
def test_what_plays_it_again_names_the_second_broker(broker: dict[str, object], options: str) -> None:
    trace = early_by_id(**broker)
    shown = example(trace)
    told = " ".join(shown.again)
    assert told.startswith("purgatorio wire here:1 --only s --seed 3 --declare")
    assert told.endswith(options)
    assert ("--second" in told) is bool(options)


def test_the_events_of_a_long_scene_are_read_once_for_each_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was answered twice, at the end of many: what each event names was read again for each other one."""
    read: list[object] = []

    def counted(body: Mapping[str, object] | None) -> Iterator[str]:
        read.append(body)
        return things(body)

    things = counterexample._things
    monkeypatch.setattr(counterexample, "_things", counted)
    events: list[WireEvent] = []

    def told(ev: Kind, corr: int, c: int | None = None) -> None:
        body, i = {"topics": [{"name": f"t{corr % 7}"}]}, len(events)
        events.append(WireEvent(i, i * MS, ev, "c", "s#1", corr, c, "metadata", 9, body))

    for corr in range(200):
        told("request", corr)
        told("answer", corr, len(events) - 1)
    told("answer", 199, events[-1].c)
    trace = WireTrace("long", WireHeader("long", {"address": "here:1"}), events, WireEnd(len(events)))
    shown = counterexamples(trace, judge_trace(trace))
    assert [key.clause for key in shown] == ["X1"]
    assert len(read) < 10 * len(events)


def test_errors_have_kafkas_names() -> None:
    assert {one.value: one.name.upper() for one in ErrorCode} == ERRORS


def test_a_missing_response_comes_first_with_its_connection_alone() -> None:
    """It explains what follows. The JSON has the command that shows it again."""
    trace = early_by_id()
    kinds: tuple[tuple[Kind, int, int | None], ...] = (
        ("request", 1, None), ("answer", 1, 6), ("request", 2, None), ("request", 3, None), ("answer", 3, 9),
    )  # fmt: skip
    more = [
        WireEvent(at, at * 10 * MS, ev, "d", "s#1", corr, c, "list_groups", 2, {"groups": []})
        for at, (ev, corr, c) in enumerate(kinds, 6)
    ]
    trace = replace(trace, events=[*trace.events, *more], end=WireEnd(11))
    run = judge_trace(trace)
    found = counterexamples(trace, run)
    broken = {one: result for one, result in run.clauses.items() if result.verdict is Verdict.VIOLATED}
    assert [*broken] == ["X1", "F1"]
    (lost,) = (one for key, one in found.items() if key.clause == "X1")
    assert {row.th for row in lost.rows} == {"d"}
    (shown,) = check_of(CheckResult((run,), 0, ()), found).runs
    assert shown.seed == 3
    assert (
        shown.clauses["X1"]
        .causes["never-answered"]
        .replay.startswith("purgatorio wire here:1 --only s --seed 3 ")
    )


def test_a_response_for_which_no_request_waits_has_its_size() -> None:
    event = WireEvent(0, 0, "answer", "c", "s#1", 7, body={"bytes": 9})
    assert words(event) == "= 9 bytes, for which no request waits"
