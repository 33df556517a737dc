"""The conversion of a trace: no event is lost, no half-written file is left, and broken lines are reported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
from click.testing import CliRunner

from purgatorio_pipeline.command.convert import command
from purgatorio_spec.trace.columns import EVENT_SCHEMA, event_batch, fields_of
from purgatorio_spec.trace.convert import FORMS, CannotConvert, convert
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import MAX_INT, MIN_INT, End, Event, State
from purgatorio_spec.trace.writer import ROW_GROUP_ROWS, TraceWriter
from spec.trace_builder import HEADER, Trace


def own_fields() -> Trace:
    """A run in which the producer has fields of its own everywhere: in all three records and inside objects."""
    made = Trace()
    made.header = replace(
        HEADER, x={"x_host": "a", "timer.x_phase": 3, "clock.x_skew": None}, params={"n": [1.5]}
    )
    made.add("a")
    made.gauge(1, None)
    made.events[0] = made.events[0]._replace(x={"x_trace": {"span": "7"}, "x_zero": 0})
    made.events[-1] = made.events[-1]._replace(state=State(1), x={"state.x_seen": True})
    return made


def held(path: Path) -> tuple[object, object, list[object]]:
    reader = TraceReader(path)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    assert (reader.broken, reader.cut) == ([], None)
    return reader.header, reader.end, list(table.to_pylist())


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("target", FORMS)
def test_the_producers_own_fields_survive(source: str, target: str, tmp_path: Path) -> None:
    """They are kept and not interpreted: a conversion that drops them loses what their owner put there."""
    made = own_fields()
    end = End(len(made.events), 0, {"x_done": "yes"})
    first = made.write(tmp_path / f"a{source}", end=end)
    second = tmp_path / f"b{target}"
    assert convert(first, second).valid
    header, last, rows = held(second)
    assert (header, last, rows) == held(first)
    assert (header, last) == (made.header, end)
    assert [row["x"] for row in rows if isinstance(row, dict) and row["x"]] == [
        '{"x_trace":{"span":"7"},"x_zero":0}',
        '{"state.x_seen":true}',
    ]


TEXTS = ("", "a", 'quote " and \\\\ back', "tab\\t and \\x01", "käse 漢 🦊", "a,b", "]}", "null", "2")


def test_columns_are_written_as_records_are(tmp_path: Path) -> None:
    """Columns are put together as text by hand: byte for byte what the JSON library makes of each record."""
    numbers = (0, -1, 7, MAX_INT, MIN_INT, None)
    events = [
        Event(
            i=at, th=text, t=numbers[at % 5] or 0, ph="at", f="ready", id=text,
            keys=(None, (), TEXTS[:3], (text,))[at % 4],
            delay_ns=numbers[at % 6], out=numbers[at % 3], err=(None, text)[at % 2],
            state=(None, State(), State(3), State(None, 0), State(1, MAX_INT))[at % 5],
        )
        for at, text in enumerate(TEXTS * 7)
    ]  # fmt: skip
    batch = event_batch(enumerate(events))
    for some, name in ((batch, "all"), (batch.slice(20, 11), "some"), (batch.slice(3, 0), "none")):
        with TraceWriter(tmp_path / name, HEADER) as writer:
            writer.write_batch(some)
        wanted = [orjson.dumps(fields_of(events[at])) for at in some.column("i").to_numpy()]
        assert (tmp_path / name).read_bytes().splitlines()[1:-1] == wanted


def test_a_trace_without_end_stays_without(tmp_path: Path) -> None:
    """An end record made up by a conversion would turn UNKNOWN into PASS."""
    path = Trace().write(tmp_path / "a.jsonl")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    result = convert(path, tmp_path / "b.parquet")
    assert (result.valid, result.end) == (True, None)
    assert held(tmp_path / "b.parquet")[1] is None


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    """The output may be the only copy of another run."""
    path, target = own_fields().write(tmp_path / "a.jsonl"), tmp_path / "b.jsonl"
    target.write_text("precious")
    with pytest.raises(CannotConvert, match="--force"):
        convert(path, target)
    assert target.read_text() == "precious"
    assert convert(path, target, force=True).valid
    assert held(target) == held(path)


def broken(tmp_path: Path) -> Path:
    path = own_fields().write(tmp_path / "a.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b'{"kind":"event"}\n'
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_broken_line_means_no_output_and_no_leftover(form: str, tmp_path: Path) -> None:
    """A half-converted trace under its final name would be taken for a whole one."""
    path = broken(tmp_path)
    result = convert(path, tmp_path / f"b{form}")
    assert (result.valid, result.written, [b.line for b in result.broken]) == (False, False, [3])
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_keep_going_counts_broken_lines_as_dropped(tmp_path: Path) -> None:
    """The copy must not claim to be whole: it cannot pass what needs every record."""
    result = convert(broken(tmp_path), tmp_path / "b.jsonl", keep_going=True)
    assert (result.valid, result.written) == (False, True)
    assert held(tmp_path / "b.jsonl")[1] == End(2, dropped=1)


def test_an_error_under_way_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a long conversion leaves neither a half file nor a hidden one."""

    def interrupted(events: int) -> None:
        raise KeyboardInterrupt

    path = own_fields().write(tmp_path / "a.jsonl")
    for form in FORMS:
        with pytest.raises(KeyboardInterrupt):
            convert(path, tmp_path / f"b{form}", progress=interrupted)
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_conversion_holds_a_bounded_part(tmp_path: Path) -> None:
    """Traces are larger than memory: the memory must not grow with the events."""
    peaks = []
    for groups in (2, 4):
        count = groups * ROW_GROUP_ROWS
        path = long_trace(tmp_path / f"{groups}.parquet", count)
        seen: list[int] = []
        held_bytes: list[int] = []

        def watch(events: int, seen: list[int] = seen, held_bytes: list[int] = held_bytes) -> None:
            seen.append(events)
            held_bytes.append(pa.total_allocated_bytes())

        assert convert(path, tmp_path / f"{groups}-copy.parquet", progress=watch).events == count
        assert len(seen) >= groups
        assert max(np.diff(seen)) <= ROW_GROUP_ROWS
        peaks.append(max(held_bytes))
    assert peaks[1] < 1.5 * peaks[0]


def long_trace(path: Path, count: int) -> Path:
    """Many points of one kind, made without an object an event."""
    i = pa.array(np.arange(count))
    columns = {"i": i, "t": i} | {
        name: pa.array([text] * count)
        for name, text in (("th", "w"), ("ph", "at"), ("f", "ready"), ("id", "a"))
    }
    made = [columns.get(f.name, pa.array([None] * count, f.type)) for f in EVENT_SCHEMA]
    with TraceWriter(path, HEADER) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(made, schema=EVENT_SCHEMA))
    return path


def test_the_command_reports_file_line_field_and_why(tmp_path: Path) -> None:
    """The report is what a user mends the trace by; scripts go by the exit status."""
    path = broken(tmp_path)
    run = CliRunner().invoke(command, [str(path), str(tmp_path / "b.parquet")])
    assert run.exit_code == 2
    assert f"{path}:3: field 'ph': None is none of call, ret, at; set ph to one of them" in run.stderr
    assert "--keep-going" in run.stderr


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    """Machines read standard output, and nothing else may be there."""
    path = own_fields().write(tmp_path / "a.jsonl")
    run = CliRunner().invoke(command, [str(path), str(tmp_path / "b.parquet"), "--json"])
    assert run.exit_code == 0
    assert run.stdout.startswith('{"kind":"convert","verdict":"PASS",')
    assert '"events":3' in run.stdout
