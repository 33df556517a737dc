"""Wire traces as files: events are read as they were written, and broken lines are reported."""

from pathlib import Path

import pytest

from purgatorio_spec.verdict import Verdict
from purgatorio_wire.judge import judge_file
from purgatorio_wire.trace.file import WireWriter, convert_wire, is_wire_trace, read_trace
from purgatorio_wire.trace.record import WireEvent, WireHeader

HEADER = WireHeader("one", {"address": "here:1"}, {"fetch": (4, 12)})
EVENTS = [
    WireEvent(0, 5, "open", conn="c", scene="s#1"),
    WireEvent(1, 6, "request", conn="c", scene="s#1", corr=1, api="api_versions", version=0, body={"a": [1]}),
    WireEvent(2, 9, "answer", conn="c", scene="s#1", corr=1, c=1, api="api_versions", version=0, body={}),
    WireEvent(3, 9, "control", t_from=1, late_ns=2, rtt_ns=3),
]


def written(path: Path) -> Path:
    writer = WireWriter(path, HEADER)
    for event in EVENTS:
        writer.write(event)
    writer.close({"F1": "not played", "X1": "never mind"}, {"F4": "it broke off", "X3": "it broke off"})
    return path


@pytest.mark.parametrize(
    ("name", "magic"), [("x.jsonl.zst", b"\x28\xb5\x2f\xfd"), ("x.jsonl.gz", b"\x1f\x8b")]
)
def test_a_trace_is_packed_as_its_name_says(tmp_path: Path, name: str, magic: bytes) -> None:
    path = written(tmp_path / name)
    assert path.read_bytes().startswith(magic)
    assert read_trace(path).whole


@pytest.mark.parametrize("form", ["", ".parquet", ".jsonl.gz", ".jsonl.zst"])
def test_what_was_written_is_read_back(tmp_path: Path, form: str) -> None:
    path = written(tmp_path / "wire.jsonl")
    if form:
        assert convert_wire(path, tmp_path / f"other{form}").valid
        path = tmp_path / f"other{form}"
    assert is_wire_trace(path)
    trace = read_trace(path)
    assert (trace.header, trace.events) == (HEADER, EVENTS)
    assert trace.whole
    _, result = judge_file(path)
    assert result.clauses["X1"].verdict is Verdict.PASS
    found = {
        name: (one.verdict, one.reason.partition(";")[0])
        for name, one in result.clauses.items() if name in ("F1", "F4", "X3")
    }  # fmt: skip
    lost = Verdict.UNKNOWN, "it broke off"
    assert found == {"F1": (Verdict.SKIPPED, "not played"), "F4": lost, "X3": lost}, (
        "whatever X3's rows decided"
    )


def test_broken_lines_are_converted_only_when_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "wire.jsonl")
    path.write_text(path.read_text().replace('"kind":"end"', '"kind":"event"', 1))
    target = tmp_path / "wire.parquet"
    assert not convert_wire(path, target).written
    assert list(tmp_path.iterdir()) == [path]
    assert convert_wire(path, target, keep_going=True).written
    assert judge_file(target)[1].clauses["X1"].verdict is Verdict.UNKNOWN


def test_a_trace_that_was_cut_is_not_pass(tmp_path: Path) -> None:
    path = written(tmp_path / "wire.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    _, result = judge_file(path)
    assert result.clauses["X1"].verdict is Verdict.UNKNOWN
    assert any("no end record" in problem for problem in result.problems)


def test_a_clock_that_goes_back_cuts_the_trace(tmp_path: Path) -> None:
    path = written(tmp_path / "wire.jsonl")
    path.write_text(path.read_text().replace('"i":2,"t":9', '"i":2,"t":4'))
    _, result = judge_file(path)
    assert result.verdict is Verdict.UNKNOWN, "nothing that comes before it tells anything"
    assert any("goes back at i = 2" in problem for problem in result.problems)


@pytest.mark.parametrize(
    "line",
    ['{"kind":"event","i":9,"t":1,"ev":"request","conn":"c"}', '{"kind":"event","i":0,"t":1,"ev":"open"}', "[]", "{",
     '{"kind":"event","i":9,"t":1,"ev":"close","body":7}', '{"kind":"event","i":9,"t":true,"ev":"close"}',
     '{"kind":"end","events":4}'],
)  # fmt: skip
def test_what_is_no_record_is_said(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "wire.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], line, lines[-1]]) + "\n")
    _, result = judge_file(path)
    assert result.verdict is Verdict.INVALID_TRACE
    assert result.quarantined == 1
