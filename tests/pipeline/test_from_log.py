"""Traces of logs: what such a log can show is judged, and nothing else; what no trace can be made of is refused."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from purgatorio_pipeline.command.check import command as check
from purgatorio_pipeline.command.convert import command
from purgatorio_pipeline.log.conversion import LogConversion, convert_log
from purgatorio_pipeline.log.events import EventMaker
from purgatorio_pipeline.log.mapping import read_mapping
from purgatorio_pipeline.log.moment import BadValue, time_ns
from purgatorio_pipeline.log.rows import BreaksOff, _csv_rows
from purgatorio_pipeline.log.table import Point
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult, without_silent_pass
from purgatorio_spec.show.counterexample import counterexample
from purgatorio_spec.show.text import render
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.convert import CannotConvert
from purgatorio_spec.trace.log import LOG_CLAUSES
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict

pytest.importorskip("duckdb")

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "examples" / "logs"
PAGE = (ROOT / "docs" / "from-a-log.md").read_text()
Row = Mapping[str, object]
BASE_MS = 1_793_534_400_000
WIDE = (
    "id=r", "key=k", "enqueued=in", "completed=out", "timed_out=late", "timeout=tmo", "timeout_unit=ms", "unit=ms",
    "promises.early_ms=1", "promises.late_ms=50",
)  # fmt: skip
LONG = (
    "id=r", "key=k", "time=t", "what=w", "words.enqueued=in", "words.completed=out", "words.timed_out=late",
    "words.event=ev", "timeout=1000", "unit=ms", "promises.early_ms=1", "promises.late_ms=50",
    "promises.answer_ms=100",
)  # fmt: skip


def wide(
    r: str, enqueued: float, out: float | None = None, late: float | None = None, tmo: object = 1000
) -> Row:
    at = [None if one is None else BASE_MS + one for one in (enqueued, out, late)]
    return {"r": r, "k": "key", "in": at[0], "out": at[1], "late": at[2], "tmo": tmo}


def long(rows: str) -> list[Row]:
    """Rows such as `in 0 a k` (enqueued under a key), `ev 5 k` (an event of the key), or `out 9 a`."""
    parts = (row.split() for row in rows.split(", ") if row)
    return [
        {"r": None, "k": None, "w": w, "t": BASE_MS + int(t)}
        | dict(zip("k" if w == "ev" else "rk", of, strict=False))
        for w, t, *of in parts
    ]


def written(path: Path, rows: Sequence[Row]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows]), path)
    elif ".csv" in path.name:
        lines = [
            names,
            *(["" if row.get(name) is None else str(row[name]) for name in names] for row in rows),
        ]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def made_of(
    folder: Path, mapping: Sequence[str], *logs: Path, toml: Path | None = None, keep_going: bool = False
) -> LogConversion:
    """The trace of these logs, in place of that before."""
    given = read_mapping(toml, mapping)
    return convert_log(logs, folder / "t.jsonl", given, force=True, keep_going=keep_going)


def run_in(folder: Path) -> RunResult:
    (run,) = without_silent_pass(check_files([folder / "t.jsonl"])).runs
    return run


def judged(
    folder: Path, rows: Sequence[Row], mapping: Sequence[str] = WIDE, name: str = "log.jsonl"
) -> RunResult:
    made_of(folder, mapping, written(folder / name, rows))
    return run_in(folder)


def broken(run: RunResult) -> dict[str, list[str]]:
    """By violated clause, of which requests an example is shown."""
    return {
        name: sorted(example.subject for cause in one.causes.values() for example in cause.examples)
        for name, one in run.clauses.items()
        if one.verdict is Verdict.VIOLATED
    }


def refused(folder: Path, rows: Sequence[Row], mapping: Sequence[str] = WIDE, name: str = "log.jsonl") -> str:
    """Why no trace is made; and none is."""
    source = written(folder / name, rows)
    with pytest.raises(CannotConvert) as why:
        convert_log([source], folder / "trace.jsonl", read_mapping(None, mapping))
    assert sorted(path.name for path in folder.iterdir()) == [name]
    return str(why.value)


GOOD = [wide("a", 0, out=100), wide("b", 10, late=1_015), wide("c", 20, out=120), wide("d", 9_000, out=9_001)]
FORMS = ["log.jsonl", "log.ndjson", "service.log.1", "log.jsonl.gz", "log.csv", "log.parquet"]


@pytest.mark.parametrize("name", FORMS)
def test_a_sound_log_passes_and_says_what_it_does_not_show(name: str, tmp_path: Path) -> None:
    """Every clause that a log can show has occasions, in each form; all others are SKIPPED."""
    run = judged(tmp_path, GOOD, name=name)
    assert {name for name, one in run.clauses.items() if one.verdict is Verdict.PASS} == {
        "O1",
        "O5",
        "T1",
        "T2",
    }
    assert all(one.occasions for one in run.clauses.values() if one.verdict is Verdict.PASS)
    assert all(one.verdict in (Verdict.PASS, Verdict.SKIPPED) for one in run.clauses.values())
    assert run.clauses["O4"].reason == "the mapping of the log does not name event, promises.answer_ms"
    assert run.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("clause", "row"),
    [
        ("O1", wide("c", 20, out=130)),
        ("O1", wide("c", 20, late=1_025)),
        ("O5", wide("x", 30)),
        ("T1", wide("x", 30, late=900)),
        ("T2", wide("x", 30, late=1_200)),
        ("T2", wide("x", 30, out=5_000)),
    ],
)
def test_each_clause_can_be_broken(clause: str, row: Row, tmp_path: Path) -> None:
    """The twins: one row more than a sound log, and exactly that clause and request is named."""
    assert broken(judged(tmp_path, [*GOOD, row])) == {clause: [row["r"]]}


def test_what_is_just_in_time_is_kept(tmp_path: Path) -> None:
    """At the bounds that are promised; one millisecond beyond is broken."""
    for late, out, wanted in ((999, None, []), (1_050, None, []), (None, 1_050, []), (998, None, ["T1"]),
                              (1_051, None, ["T2"]), (None, 1_051, ["T2"])):  # fmt: skip
        run = judged(tmp_path, [*GOOD, wide("x", 0, out=out, late=late)])
        assert list(broken(run)) == wanted


def events(more: str = "", event: int = 500) -> list[Row]:
    """Requests a, b and c wait under k1, k1 and k2; an event of k1 answers a."""
    return long(f"in 0 a k1, in 100 b k1, in 200 c k2, ev {event} k1, out 510 a, late 1205 c, {more}")


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet"])
def test_an_event_answers_what_waits_under_its_key(name: str, tmp_path: Path) -> None:
    """O4: b is left to its time-out, or answered too late; not where its time-out comes before the event's bound."""
    for end in ("late 1103 b", "out 601 b"):
        assert broken(judged(tmp_path, events(end), LONG, name)) == {"O4": ["b"]}
    answered = judged(tmp_path, events("out 590 b"), LONG, name)
    assert broken(answered) == {}
    assert answered.clauses["O4"].occasions == 2
    assert broken(judged(tmp_path, events("late 1103 b", event=1_050), LONG, name)) == {}


def test_an_answer_comes_only_after_an_event_of_its_key(tmp_path: Path) -> None:
    """O2: c is answered though no event of its key came, or only later than the mapping allows."""
    mapping = [*LONG, "promises.answer_early_ms=5"]
    for answered, found in ((304, ["c"]), (305, []), (311, [])):
        rows = [*events()[:-1], *long(f"out 590 b, out {answered} c, ev 310 k2, in 700 d k1, late 1701 d")]
        run = judged(tmp_path, rows, mapping)
        assert broken(run) == ({"O2": found} if found else {})
        assert run.clauses["O2"].occasions == 4
        assert run.clauses["O4"].occasions == 2 + (answered != 304)
        assert not broken(judged(tmp_path, rows, LONG))
    for event, broken_by in ((194, {"O2": ["c"]}), (195, {}), (205, {})):
        rows = [*events()[:-1], *long(f"out 590 b, ev {event} k2, out 900 c, in 700 d k1, late 1701 d")]
        assert broken(judged(tmp_path, rows, [*mapping, "promises.skew_ms=5"])) == broken_by


def test_a_log_without_time_outs_shows_late_answers(tmp_path: Path) -> None:
    """What has no end in it may have timed out before the event: that is nobody's fault, and no PASS."""
    mapping = [
        one for one in LONG if not one.startswith(("words.timed_out", "timeout", "promises.e", "promises.l"))
    ]
    for answered, found in ((600, {}), (601, {"O4": ["b"]})):
        rows = events(f"out {answered} b, in 300 d k2")
        assert broken(judged(tmp_path, rows, mapping)) == found
    rows = events("out 600 b, in 300 d k1, in 700 e k2")
    assert "does not name timed_out" in judged(tmp_path, rows, mapping).clauses["O4"].reason
    assert judged(tmp_path, [*rows, *long("out 600 d")], mapping).verdict is Verdict.PASS


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_a_column_may_be_a_field_of_an_object(name: str, tmp_path: Path) -> None:
    """`a.b` is the field `b` of `a`, if no column is called so; what is nowhere is refused by its whole name."""
    rows = [{**row, "r": {"id": row["r"], "of": {"k.k": row["k"]}}, "w.w": row["w"]} for row in events()]
    mapping = ["id=r.id", "key=k", "what=w.w", *(one for one in LONG[2:] if one != "what=w")]
    assert broken(judged(tmp_path, rows, mapping, name)) == {"O4": ["b"], "O5": ["b"]}


def test_an_event_before_the_request_owes_nothing(tmp_path: Path) -> None:
    """Nor one of the same moment: which came first, the log does not say. The notes count such requests."""
    for t, end, unordered in (
        (50, "late 1103", 0),
        (100, "late 1103", 1),
        (100, "out 200", 0),
        (100, "out 201", 1),
    ):
        log = written(tmp_path / "log.jsonl", long(f"in 100 b k1, ev {t} k1, {end} b"))
        notes = made_of(tmp_path, LONG, log).notes
        assert [note[:21] for note in notes if "finer times" in note] == ["1 requests (first: b)"] * unordered
        assert broken(run_in(tmp_path)) == {}
    log = written(tmp_path / "log.jsonl", long("in 100 b k1, ev 101 k1, late 1103 b"))
    (note,) = [
        one for one in made_of(tmp_path, [*LONG, "promises.skew_ms=1"], log).notes if "at the same" in one
    ]
    assert note.endswith("set a smaller promises.skew_ms")


@pytest.mark.parametrize("before", [[], [960], [976], [995, 1_005], [1_010, 1_026], [976, 1_026, 1_040]])
def test_events_about_the_time_of_a_request_owe_nothing(before: list[int], tmp_path: Path) -> None:
    """Each of them may have come before the request, however many there are. One event later, it is owed."""
    mapping = [*LONG, "promises.answer_early_ms=1", "promises.skew_ms=40"]
    for more, found in (([], {}), ([1_041], {"O4": ["b"]})):
        about = "".join(f"ev {t} k1, " for t in (*before, *more))
        rows = long(f"{about}in 1000 b k1, ev 1795 k1, out 1800 b, in 2000 c k2, late 3001 c")
        assert broken(judged(tmp_path, rows, mapping)) == found


def test_lines_may_be_written_late(tmp_path: Path) -> None:
    """`skew_ms`: lines stand in the other order. What is wrong by more than that is still found."""
    ends = "late 1103 b, in 495 d k1, late 1495 d, out 690 f, in 700 f k2, in 20 e k2, late 1009 e, "
    rows = events(f"{ends}in 30 g k2, late 1090 g")
    assert "set promises.skew_ms" in refused(tmp_path, rows, [*LONG, "promises.skew_ms=9"])
    assert broken(judged(tmp_path, rows, [*LONG, "promises.skew_ms=10"])) == {"O4": ["b"]}
    made = made_of(tmp_path, [*LONG, "promises.skew_ms=10"], tmp_path / "log.jsonl")
    assert "1 ends up to skew_ms before their request: the request ended at once" in made.notes
    early = [*rows, *long("in 40 x k2, late 1028 x, in 40 y k2, late 1101 y")]
    assert broken(judged(tmp_path, early, [*LONG, "promises.skew_ms=10"])) == {
        "O4": ["b"],
        "T1": ["x"],
        "T2": ["y"],
    }


def test_the_end_of_a_log_accuses_nobody(tmp_path: Path) -> None:
    """What was not yet overdue when the log ends, also by an event that is still being answered."""
    run = judged(tmp_path, long("in 0 a k1, in 10 b k2, ev 1040 k1, out 1040 b"), LONG)
    assert broken(run) == {}
    assert run.clauses["O5"].occasions == 1


@pytest.mark.parametrize(
    ("gone_t", "more", "found"),
    [
        (590, "", {}),  # the answer was not yet owed
        (900, "", {"O4": ["b"]}),
        (900, "late 1103 b, gone 1104 b, ", {"O4": ["b"]}),
        (590, "late 1600 b, ", {}),  # the log says nothing about later
        (600, "out 590 b, ", {}),
        (1_200, "", {"O4": ["b"], "T2": ["b"]}),
    ],
)
def test_a_request_is_judged_until_its_client_gives_it_up(
    gone_t: int, more: str, found: object, tmp_path: Path
) -> None:
    about = (
        f"in 100 b k1, ev 495 k1, gone {gone_t} b, {more}in 0 c k2, late 1003 c, in 1700 d k1, ev 1710 k1, "
    )
    run = judged(tmp_path, long(f"{about}out 1720 d, ev 2000 k1"), [*LONG, "words.gone=gone"])
    assert broken(run) == found
    assert run.verdict is (Verdict.VIOLATED if found else Verdict.PASS)


def test_a_rotated_log_starts_and_ends_anywhere(tmp_path: Path) -> None:
    """Inside a line, or after a request was enqueued. Two bad lines at a place are refused, and what a lost row
    cannot excuse is VIOLATED all the same."""
    rows = sorted(events("late 1103 b, out 1200 old"), key=lambda row: str(row["t"]))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    log = tmp_path / "log.jsonl.1"
    log.write_text(f'ms": 12}}\n{text}{{"r": "b", "w"')
    made = made_of(tmp_path, LONG, log)
    assert (broken(run_in(tmp_path)), made.left_out) == ({"O4": ["b"]}, 0)
    assert [note[:24] for note in made.notes] == [
        "the first line is cut (l",
        "the last line is cut (li",
        "1 requests end in this l",
    ]
    log.write_text(f"cut\ncut\n{text}")
    with pytest.raises(CannotConvert, match="line 1 is not a JSON object"):
        made_of(tmp_path, LONG, log)
    made = made_of(tmp_path, LONG, log, keep_going=True)
    assert (broken(run_in(tmp_path)), made.left_out) == ({"O4": ["b"]}, 2)
    log = written(tmp_path / "log.csv-20261128", [*GOOD, {**wide("x", 0, out=30), "in": None}])
    made = made_of(tmp_path, WIDE, log)
    assert made.notes == ("1 requests end in this log, but are not enqueued in it (such as 'x'): left out",)


def test_several_columns_say_what_happened(tmp_path: Path) -> None:
    rows = [
        {**row, "w": "poll", "v": row["w"] if row["w"] != "in" else None} for row in events("late 1103 b")
    ]
    mapping = [one for one in LONG if not one.startswith(("what", "words"))]
    mapping += ["what=w,v", "words.enqueued=poll", "words.completed=poll/out", "words.timed_out=poll/late"]
    assert broken(judged(tmp_path, rows, [*mapping, "words.event=poll/ev"])) == {"O4": ["b"]}


def test_ids_of_two_columns_are_never_mixed_up(tmp_path: Path) -> None:
    """`a/b` of host `c` is not `a` of host `b/c`: each was answered once."""
    rows = [{**wide("a/b", 0, out=10), "host": "c"}, {**wide("a", 0, out=10), "host": "b/c"}, *(
        {**row, "host": "x"} for row in GOOD
    )]  # fmt: skip
    assert broken(judged(tmp_path, rows, ["id=r,host", *WIDE[1:]])) == {}


@pytest.mark.parametrize(("key", "left"), [("k,k2", {}), ("k;k2", {"O4": ["1/x"]})])
def test_several_columns_are_one_key_and_several_lists_several_keys(
    key: str, left: dict[str, list[str]], tmp_path: Path
) -> None:
    """As the columns of an id. An event of one key of two answers; one that shares a part of its key owes nothing."""
    told = long(
        "in 0 1 p, in 0 1 p2, in 0 1 other, ev 300 q, ev 300 other, out 310 1, late 1003 1, late 1003 1"
    )
    seconds = zip(
        ["x", "y", "z", None, None, "z", "x", "y"], ["q", "q2", "q3", "q", "q3", *[None] * 3], strict=True
    )
    rows = [{**row, "host": host, "k2": k2} for row, (host, k2) in zip(told, seconds, strict=True)]
    run = judged(tmp_path, rows, ["id=r,host", f"key={key}", *LONG[2:]])
    assert run.clauses["O4"].occasions
    assert broken(run) == left


@pytest.mark.parametrize(
    "gone", ["completed", "timed_out", "timeout", "promises.early_ms", "promises.late_ms"]
)
def test_a_clause_whose_column_is_lacking_is_skipped_by_its_name(gone: str, tmp_path: Path) -> None:
    """And is not judged by a default: with a log that breaks all of them, only the others are broken."""
    rows = [*GOOD, wide("c", 20, out=130), wide("x", 30), wide("y", 30, late=900), wide("z", 30, late=1_200)]
    mapping = [one for one in WIDE if not one.startswith(f"{gone}=")]
    run = judged(tmp_path, rows, mapping)
    lacking = {name for name, one in run.clauses.items() if gone in one.reason}
    assert lacking == {
        "completed": {"O2", "O4", "O5"}, "timed_out": {"O5", "T1", "T2"}, "timeout": {"O5", "T1", "T2"},
        "promises.early_ms": {"T1"}, "promises.late_ms": {"O5", "T2"},
    }[gone]  # fmt: skip
    assert all(run.clauses[name].verdict is Verdict.SKIPPED for name in lacking)
    assert set(broken(run)) <= set(LOG_CLAUSES) - lacking


def test_an_hour_without_time_outs_is_judged(tmp_path: Path) -> None:
    """The request that nobody ended is found; without it, nothing could break T1."""
    rows = [row for row in GOOD if row["late"] is None]
    healthy = judged(tmp_path, rows)
    assert not broken(healthy)
    assert healthy.clauses["T1"].verdict is Verdict.UNKNOWN
    hung = [*rows, wide("x", 30), wide("y", 9_900, out=9_901)]
    assert broken(judged(tmp_path, hung)) == {"O5": ["x"]}
    made = made_of(tmp_path, WIDE, tmp_path / "log.jsonl")
    assert "'late' is empty in all 5 rows, so no request timed out" in made.notes[0]


def test_times_are_read_and_said_in_the_owners_form(tmp_path: Path) -> None:
    """`time_format` reads them, and a counterexample says them in the zone of the log; without it they are refused."""
    told = "a 00.120 out 00.480, b 01.000 late 01.900, c 20.000, d 01.500 out 01.600"
    day = "20.10.2026 09:15:"
    rows: list[Row] = [
        {"r": r, "k": "key", "in": day + begun, "tmo": None if r == "d" else 2000}
        | {what: day + t for what, t in zip(end[::2], end[1::2], strict=True)}
        for r, begun, *end in map(str.split, told.split(", "))
    ]
    mapping = [one for one in WIDE if one != "unit=ms"] + ["timeout_unit=ms", "time_zone=Europe/Berlin"]
    assert "for another form set time_format" in refused(tmp_path, rows, mapping)
    assert "does not match time_format = '%d.%m.%y'" in refused(
        tmp_path, rows, [*mapping, "time_format=%d.%m.%y"]
    )
    mapping.append("time_format=%d.%m.%Y %H:%M:%S.%f")
    run = judged(tmp_path, rows, mapping)
    (cause,) = run.clauses["T1"].causes.values()
    assert cause.examples[0].seen == "fired at t = 2026-10-20 09:15:01.900+02:00, 1.099 s early"
    made = made_of(tmp_path, mapping, tmp_path / "log.jsonl")
    assert list(made.ends.values()) == [2, 1, 1, 1, 1]


REFUSED: dict[str, tuple[Sequence[Row], Sequence[str], str]] = {
    "one column for two": (GOOD, [*WIDE, "timed_out=out"], "the same column, 'out', so every"),
    "no column": ([{"id": "a", "in": 1}], WIDE, "has no column 'r'; it has id, in"),
    "no column, but one inside": ([{"id": {"r": 1, "s": 2}, "in": 1}], WIDE, "it has id.r, id.s, in"),
    "an empty column": ([{**row, "tmo": None} for row in GOOD], WIDE, "'tmo' is empty in all 4 rows"),
    "a text": ([*GOOD, {**wide("x", 0), "in": "soon"}], WIDE, "row 5, 'in': 'soon' is not a time"),
    "mixed types": ([*GOOD, {**wide("x", 0), "out": True}], WIDE, "row 5, 'out': 'true' is not a time"),
    "NaN": ([*GOOD, {**wide("x", 0), "out": "NaN"}], WIDE, "row 5, 'out': NaN is not a number"),
    "infinity": ([*GOOD, {**wide("x", 0), "tmo": "inf"}], WIDE, "row 5, 'tmo': inf is not a number"),
    "below 0": ([*GOOD, wide("x", 0, tmo=-1)], WIDE, "row 5, 'tmo': -1 is below 0"),
    "no time": ([*GOOD, {**wide("x", 0), "in": None}], WIDE, "row 5: 'in' is empty"),
    "a row of another kind": ([*GOOD, {**wide("x", 0), "in": None}], WIDE, "name the column of its time in event"),
    "no id": ([*GOOD, {**wide("x", 0), "r": ""}], WIDE, "row 5: 'r' is empty"),
    "before it came": ([*GOOD, wide("x", 30, out=20)], WIDE, "'x' is completed in row 5, 10 ms before it is enqueued"),
    "an id again": ([*GOOD, wide("a", 5_000)], WIDE, "'a' is enqueued in row 1 and again, at another time, in row 5"),
    "the same again": ([*GOOD, GOOD[2]], WIDE, "row 3 and row 5 are equal: 'c' completed at one time"),
    "no unit": (GOOD, [one for one in WIDE if one != "unit=ms"], 'if it counts from 1970, add unit = "ms"'),
    "no unit, and nanoseconds": (
        [{**row, "in": row["in"] * 1_000_000} for row in GOOD[:1]],  # type: ignore[operator]  # an object, here a number
        [one for one in WIDE if one != "unit=ms"], 'add unit = "ns"',
    ),
    "another unit": (GOOD, [*WIDE, "unit=s"], "the unit is probably wrong"),
    "an event without a key": (events("ev 600"), LONG, "row 7: an event without its key, 'k'; if it is in"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_sound_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    """With the row, and what to do; no file is left."""
    rows, mapping, said = REFUSED[kind]
    assert said in refused(tmp_path, rows, mapping)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("log.jsonl", b"", "has no rows"),
        ("log.csv", b"", "has no rows"),
        ("log.csv", b"r,in,r\na,1,b\n", "has 2 columns 'r'"),
        ("log.csv", "r,in\na,1\n".encode("utf-16"), "line 1 cannot be read (it is not UTF-8)"),
        ("log.csv", b"r,in\n", "has no column"),
        ("log.jsonl", b'{"r": \n', "cannot be read: line 1 is not a JSON object"),
        ("log.jsonl", b'{"r": "a", "in": 1}\n\n{"r":\n{"r": "b"}\n', "line 3 is not a JSON object"),
        ("log.csv", b"r,in,out\na,1,2\nb,1\nc,1,2\n", "line 3 has 2 columns, and the first line has 3"),
        ("log.jsonl", b'{"r": "a", "k": "\x1b[31m", "in"\n', "cannot be read"),
        ("log.parquet", b"PAR1nothing", "cannot be read"),
        ("log.csv", b"a\x1b[31m,b\xe2\x80\xae\n1,2\n", "has no column 'r'; it has a\\x1b[31m, b\\u202e"),
        ("log.doc", b"r,in\n", "a log is .jsonl"),
    ],
)
def test_files_that_are_no_log(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CannotConvert) as why:
        convert_log([tmp_path / name], tmp_path / "trace.jsonl", read_mapping(None, WIDE))
    assert said in str(why.value)
    assert "\x1b" not in str(why.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_doubles_are_dropped_or_kept_as_the_mapping_says(tmp_path: Path) -> None:
    """Shipped twice: one answer. Happened twice: two."""
    rows = [*GOOD, GOOD[2]]
    assert broken(judged(tmp_path, rows, [*WIDE, "duplicates=drop"])) == {}
    assert broken(judged(tmp_path, rows, [*WIDE, "duplicates=keep"])) == {"O1": ["c"]}


def test_what_is_put_right_is_told(tmp_path: Path) -> None:
    """Rows out of order, requests from before the log, words that nobody named."""
    rows = [*reversed(events("out 590 b")), *long("out 5 old, ping 6")]
    made = made_of(tmp_path, LONG, written(tmp_path / "log.jsonl", rows))
    assert [note.split(" ", 2)[:2] for note in made.notes] == [
        ["rows", "whose"], ["6", "rows"], ["1", "requests"],
    ]  # fmt: skip
    assert "'ping' (1)" in made.notes[0]
    assert "'old'" in made.notes[2]
    assert made.requests == 3


@pytest.mark.parametrize(
    ("assigned", "said"),
    [
        (["id=r"], "the mapping has no enqueued"),
        (["enqueued=in"], "has no id"),
        (["id=r", "enqueued=in"], "has neither completed nor timed_out"),
        (["id=r", "enqueud=in"], "did you mean enqueued?"),
        (["id"], "write --map NAME=VALUE"),
        (["id=r", "time=t"], "needs the entries time, what and [words]"),
        ([*LONG, "enqueued=in"], "enqueued is a column and words.enqueued a word"),
        ([*LONG, "words.event=in"], "means both enqueued and event"),
        ([*WIDE, "time_zone=Berlin"], "time_zone = 'Berlin' is unknown"),
        ([*WIDE, "time_format=%Q"], "'Q' is a bad directive"),
        ([*WIDE, "time_format=%Y%Y"], "redefinition of group name"),
        ([*WIDE, "words=in"], "the mapping has no 'words'"),
        ([*WIDE, "unit=minutes"], "one of s, ms, us, ns"),
        ([*WIDE, "promises.late_ms=-1"], "milliseconds, from 0 on"),
        ([*WIDE, "promises.late_ms=nan"], "milliseconds, from 0 on"),
        ([*WIDE, "duplicates=maybe"], "one of refuse, drop, keep"),
        (["id=r", "enqueued=in", "completed=out", "timeout=5"], "timeout has no unit"),
        ([one for one in LONG if one != "key=k"], "event needs key"),
    ],
)
def test_a_mapping_is_checked_before_the_log_is_read(assigned: Sequence[str], said: str) -> None:
    """In words, with what to write."""
    with pytest.raises(CannotConvert, match=re.escape(said)):
        read_mapping(None, assigned)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\ufeffid = 5", "id = 5: a name in quotes, or a list of such names"),
        (f"id = {'[' * 2_000}{']' * 2_000}", "is not valid TOML: maximum recursion depth"),
        (f"id = {'9' * 5_000}", "is not valid TOML: Exceeds the limit"),
        ('id = "r"\nkey = [[]]', "key = [[]]: a name in quotes, or a list of such names"),
    ],
    ids=["a number", "too deep", "too long", "a key of no columns"],
)
def test_a_mapping_of_nonsense_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CannotConvert, match=re.escape(said)):
        read_mapping(tmp_path / "m.toml", [])


def test_times_are_read_as_logs_write_them() -> None:
    noon = 1_793_534_400 * 10**9
    berlin = read_mapping(None, [*WIDE, "time_zone=Europe/Berlin"])
    for text, wanted in {
        "2026-11-01T12:00:00Z": noon, "2026-11-01 12:00:00 UTC": noon, "2026-11-01T13:00:00+01:00": noon,
        "2026-11-01 13:00:00+01": noon, "2026-11-01T13:00": noon, "2026-11-01T13:00:00.000000001": noon + 1,
        "2026-11-01T12:00:00,5Z": noon + 500_000_000, "1793534400000": noon, "1793534400000.25": noon + 250_000,
        "1.7935344e12": noon,
    }.items():  # fmt: skip
        assert time_ns(text, berlin) == wanted, text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-10-25T02:30:00", "comes twice in Europe/Berlin"),
        ("2026-03-29T02:30:00", "does not exist in Europe/Berlin"),
    ],
)
def test_times_at_which_clocks_are_changed_are_refused(text: str, said: str) -> None:
    """They are not guessed; the hours around them are read."""
    berlin = read_mapping(None, [*WIDE, "time_zone=Europe/Berlin"])
    with pytest.raises(BadValue, match=said):
        time_ns(text, berlin)
    for hour in ("01:59:59", "03:00:00"):
        local = datetime.fromisoformat(f"{text[:11]}{hour}").replace(tzinfo=ZoneInfo("Europe/Berlin"))
        assert time_ns(f"{text[:11]}{hour}", berlin) == int(local.timestamp()) * 10**9
    for wrong, why in (("+99:99", "is not a time"), ("", "has no zone")):
        with pytest.raises(BadValue, match=why):
            time_ns(f"{text}{wrong}", read_mapping(None, WIDE))
    with pytest.raises(BadValue, match="more than 146 years"):
        time_ns("1e999999", berlin)
    with pytest.raises(BadValue, match="is not between the years 1824 and 2116"):
        time_ns("9999-12-31T23:59:59Z", berlin)


def test_parquet_with_its_own_times(tmp_path: Path) -> None:
    """Timestamps with and without a zone, in microseconds and nanoseconds."""
    for kind in (
        pa.timestamp("us"),
        pa.timestamp("ns"),
        pa.timestamp("ms", "UTC"),
        pa.timestamp("ns", "America/New_York"),
    ):
        names = ("in", "out", "late")
        table = pa.Table.from_pylist([dict(row) for row in GOOD])
        for name in names:
            place = table.schema.get_field_index(name)
            moments = pa.array(
                [None if one is None else int(one) for one in table[name].to_pylist()], pa.timestamp("ms")
            )
            table = table.set_column(place, name, moments.cast(kind))
        pq.write_table(table, tmp_path / "log.parquet")
        made_of(tmp_path, [*WIDE, "time_zone=UTC"], tmp_path / "log.parquet")
        assert broken(run_in(tmp_path)) == {}
        assert '"t":1793534400000000000,' in (tmp_path / "t.jsonl").read_text()


def code(marker: str) -> str:
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("log", "mapping"), [("requests.csv", "requests.toml"), ("events.jsonl", "events.toml")]
)
def test_the_page_shows_its_logs_and_what_is_found(log: str, mapping: str, tmp_path: Path) -> None:
    """The files, what `convert` prints, and which request breaks which clause."""
    name = log.split(".")[0]
    assert code(log) == (LOGS / log).read_text()
    assert code(mapping) == (LOGS / mapping).read_text()
    out = tmp_path / f"{name}.trace.jsonl"
    ran = CliRunner().invoke(command, [str(LOGS / log), str(out), "--from-log", str(LOGS / mapping)])
    assert ran.exit_code == 0, ran.output
    if name == "requests":
        assert ran.stdout.replace(str(tmp_path) + "/", "") == code("requests.convert")
    (run,) = check_files([out]).runs
    table = PAGE.split(f"<!-- {name}.found -->\n")[1].split("\n\n")[0]
    shown = dict(re.findall(r"^\| ([OT]\d) \| (\w+) \|", table, re.MULTILINE))
    assert {clause: [request] for clause, request in shown.items()} == broken(run)


def test_rows_of_both_kinds_stand_in_one_log(tmp_path: Path) -> None:
    """One column for two ends, rows of events, and a request that its client gave up, which nobody must answer."""
    snippet, whole = code("gateway.toml"), (LOGS / "gateway.toml").read_text()
    assert snippet in whole
    for more, found in (
        ([], {"O4": ["c2"]}),
        (["words.gone=none"], {"O4": ["c2"]}),
        (["words.gone=none", "words.ignored=client_gone"], {"O4": ["c2", "c3"]}),
    ):
        made = made_of(tmp_path, more, LOGS / "gateway.jsonl", toml=LOGS / "gateway.toml")
        run = run_in(tmp_path)
        assert broken(run) == found
        told = [text for text in run.problems if "'client_gone' ends a request" in text]
        assert (len(told), made.left_out) == ((1, 1) if len(more) == 1 else (0, 0))


def test_a_word_that_may_end_a_request_accuses_nobody(tmp_path: Path) -> None:
    """Only what such a word may have ended is left out: b, but not a, which an answer ended."""
    rows = events("seen 5 a, seen 20 b, gone 300 b")
    run = judged(tmp_path, rows, LONG)
    assert broken(run) == {}
    assert run.clauses["O5"].verdict is Verdict.UNKNOWN
    assert [text[:70] for text in run.problems] == [
        "requests left out (1): the mapping does not say whether 'gone' ends a "
    ]
    assert broken(judged(tmp_path, rows, [*LONG, "words.ignored=seen,gone"])) == {"O4": ["b"], "O5": ["b"]}
    assert judged(tmp_path, rows, [*LONG, "words.ignored=seen", "words.gone=gone"]).verdict is Verdict.PASS
    log = written(tmp_path / "again.jsonl", [*rows, *long("out 400 b")])
    notes = made_of(tmp_path, [*LONG, "words.ignored=seen", "words.gone=gone"], log).notes
    assert any("after their clients had given them up: 1." in text for text in notes)
    assert broken(judged(tmp_path, [*rows, *long("late 1103 b")], LONG)) == {"O4": ["b"]}


def test_the_command_says_all_in_json(tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    options = ["--from-log", str(LOGS / "requests.toml"), "--json"]
    ran = CliRunner().invoke(command, [str(LOGS / "requests.csv"), str(out), *options])
    said = json.loads(ran.stdout)
    assert (said["requests"], said["lacking"]) == (
        7,
        {"O2": ["event", "promises.answer_early_ms"], "O4": ["event", "promises.answer_ms"]},
    )
    bad = CliRunner().invoke(
        command, [str(LOGS / "requests.csv"), str(out), *options, "--force", "--map", "id=nosuch"]
    )
    assert bad.exit_code == 2
    assert any(line.startswith("Error: ") for line in bad.stderr.splitlines())
    assert "has no column 'nosuch'; it has request_id" in " ".join(bad.stderr.split())
    assert "Usage" not in bad.stderr


def test_a_bad_row_may_be_left_out_and_accuses_nobody(tmp_path: Path) -> None:
    """All rows of its request go with it; what an unknown row may excuse is UNKNOWN, what is certain stays."""
    rows = [
        *GOOD,
        {**wide("bad", 0), "out": "soon"},
        wide("bad", 0),
        wide("again", 0, out=1),
        wide("again", 5, out=6),
        wide("back", 30, out=20),
        wide("lost", 30),
        wide("c", 20, out=130),
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    log = tmp_path / "log.jsonl"
    log.write_text(f'{lines[: lines.index("soon")]}\n{lines}{{"r": "cut', encoding="utf-8")
    with pytest.raises(CannotConvert, match="line 5 is not a JSON object"):
        made_of(tmp_path, WIDE, log)
    log.write_text(f'{lines}{{"r": "cut', encoding="utf-8")
    made = made_of(tmp_path, WIDE, log, keep_going=True)
    assert made.left_out == 3
    assert [note[:30] for note in made.notes] == [
        "the last line is cut (line 12 ", "3 bad rows left out, with all ", "1: row 5, 'out': 'soon' is not",
        "1: the id 'again' is enqueued ", "1: 'back' is completed in row ",
    ]  # fmt: skip
    run = run_in(tmp_path)
    assert broken(run) == {"O1": ["c"]}
    assert run.clauses["O5"].verdict is Verdict.UNKNOWN
    assert run.problems == ("bad rows of the log are left out (3): mend them, and convert it again",)
    assert not {"bad", "again", "back"} & set(re.findall('"id":"(.*?)"', (tmp_path / "t.jsonl").read_text()))


def test_bad_lines_of_a_csv_keep_the_numbers_of_the_others(tmp_path: Path) -> None:
    """A column too few, a quote that is not closed, a text with line ends, an archive that breaks off."""
    mapping = ("id=r", "enqueued=in", "completed=out", "unit=ms")
    text = '\ufeffr,in,out\na,1,2\nb,1\n"c\nd",3,4\n"e,5,6\nf,7,8\ng,9,soon\n'
    (tmp_path / "log.csv").write_text(text)
    made = made_of(tmp_path, mapping, tmp_path / "log.csv", keep_going=True)
    assert (made.rows, made.requests) == (6, 3)
    assert [note.split(", ")[0] for note in made.notes[1:]] == [
        "1: line 3 has 2 columns", "1: line 6 cannot be read (a quote is not closed)", "1: row 6",
    ]  # fmt: skip
    whole = "r,in,out\n" + "".join(f"{n},{n},{n * n}\n" for n in range(9_999))
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(whole.encode())[:-40_000])
    made = made_of(tmp_path, mapping, tmp_path / "log.csv.gz", keep_going=True)
    assert 0 < made.requests < 9_999
    assert f"the file breaks off after row {made.rows:,}" in made.notes[1]
    assert run_in(tmp_path).verdict is Verdict.UNKNOWN


def test_a_word_that_no_row_has_is_told(tmp_path: Path) -> None:
    """With the nearest word of the log; it would accuse every request of a time-out that was logged."""
    made = made_of(tmp_path, [*LONG, "words.timed_out=lates"], written(tmp_path / "log.jsonl", events()))
    said = "no row has the word 'lates', which [words] gives for timed_out: did you mean 'late'?"
    assert made.notes[0] == said


@pytest.mark.parametrize(
    ("offsets", "shown"),
    [(("+01:00", "+0100"), "13:00:00.000+01:00"), (("Z", "+01:00"), "13:00:00.000+00:00")],
)
def test_times_are_shown_at_the_offset_of_the_log(offsets: Sequence[str], shown: str, tmp_path: Path) -> None:
    rows = [
        {"r": "a", "in": f"2026-11-01T13:00:00{offsets[0]}", "late": f"2026-11-01T13:00:00.4{offsets[1]}"}
    ]
    mapping = (
        "id=r", "enqueued=in", "timed_out=late", "timeout=9000", "timeout_unit=s", "promises.early_ms=1",
        "promises.skew_ms=3600000",
    )  # fmt: skip
    made_of(tmp_path, mapping, written(tmp_path / "log.jsonl", rows))
    (example,) = judge_in_process([tmp_path / "t.jsonl"]).examples.values()
    assert example.start == f"2026-11-01 {shown}"


def test_all_requests_of_a_cause_are_listed(tmp_path: Path) -> None:
    run = judged(tmp_path, [*GOOD, *(wide(f"x{n}", n, late=900) for n in range(40))])
    assert broken(run)["T1"] == sorted(f"x{n}" for n in range(40))


def test_a_counterexample_says_the_rows_of_the_log(tmp_path: Path) -> None:
    """And none of the calls in which the trace puts them."""
    text = CliRunner().invoke(command, [str(LOGS / "events.jsonl"), str(tmp_path / "t.jsonl"), "--from-log",
                                        str(LOGS / "events.toml")])  # fmt: skip
    assert text.exit_code == 0, text.output
    table = TraceReader(tmp_path / "t.jsonl")
    run = run_in(tmp_path)
    (cause,) = run.clauses["O4"].causes.values()
    events = pa.Table.from_batches(table.batches(), EVENT_SCHEMA)
    example = counterexample("t.jsonl", run.run, cause.examples[0], events)
    assert [row.said for row in example.rows] == [
        "row 2: enqueued, key orders, time-out 2 s", "row 4: an event of its key", "row 6: timed out",
    ]  # fmt: skip
    assert (example.illegal_row, example.left_out) == (2, 0)
    of_log = replace(example, profile=run.profile)
    assert of_log.wording.promise == "Each request is answered in time by an event of its key."
    assert example.violation.allowed == "answered within 100 ms of the event of orders"
    assert "ms is the time since 2026-11-01 12:00:00.100+00:00" in " ".join(render(example).split())
    checked = CliRunner().invoke(check, [str(tmp_path / "t.jsonl")])
    assert of_log.wording.promise in checked.output
    assert "force_complete" not in checked.output


REQUESTS = ("id=r", "key=k", "enqueued=in", "timeout=1000", "timeout_unit=ms", "unit=ms", *LONG[-3:])


@pytest.mark.parametrize(
    ("mapping", "columns"),
    [
        (("enqueued=in", "duration=took", "duration_unit=ms"), {"in", "took"}),
        (("time=out", "duration=took", "duration_unit=ms"), {"out", "took"}),
        (("enqueued=in", "time=out"), {"in", "out"}),
    ],
    ids=["start and duration", "end and duration", "start and end"],
)
def test_a_duration_takes_the_place_of_a_time(
    mapping: tuple[str, ...], columns: set[str], tmp_path: Path
) -> None:
    """The three logs say the same, so the same is found in them."""
    words = ("what=w", "words.completed=ok", "words.timed_out=late", "promises.skew_ms=1")
    ends = {"a": (0, 300, "ok"), "b": (5, 400, "late"), "c": (9, 1700, "ok"), "d": (20, 1021, "late")}
    rows = [
        {"r": r, "k": "key", "w": w, "in": BASE_MS + start, "out": BASE_MS + end, "took": end - start}
        for r, (start, end, w) in ends.items()
    ]
    kept = [{name: row[name] for name in row if name in {"r", "k", "w", *columns}} for row in rows]
    base = [one for one in REQUESTS if one != "enqueued=in"]
    run = judged(tmp_path, kept, [*base, *words, *mapping])
    assert broken(run) == {"T1": ["b"], "T2": ["c"]}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["duration=took"], "duration has no unit"),
        (["duration=took", "duration_unit=ms", "time=out"], "takes the place of one time"),
        (["duration=none", "duration_unit=ms"], "no column 'none'"),
    ],
)
def test_a_duration_needs_its_unit_and_one_time(more: list[str], why: str, tmp_path: Path) -> None:
    words = ["what=w", "words.completed=ok"]
    rows = [{"r": "a", "k": "key", "w": "ok", "in": BASE_MS, "out": BASE_MS, "took": 5}]
    assert why in refused(tmp_path, rows, [*REQUESTS, *words, *more])
    short = [{**rows[0], "took": None}]
    assert "'took' is empty" in refused(
        tmp_path, [*rows, {**short[0], "r": "b"}], [*REQUESTS, *words, "duration=took", "duration_unit=ms"]
    )


def test_an_access_log_with_a_decimal_comma_is_judged(tmp_path: Path) -> None:
    """The end is rounded to milliseconds, so the two rows of a request that was answered twice differ in its start.
    A request that never ends has no row, so O5 is not judged. The terminal names all requests of a cause."""
    ends = [("a", 300, "0,2998"), ("b", 400, "0,3995"), ("a", 500, "0,5004"), ("b", 600, "0,6001")]
    rows = [{"r": r, "w": "ok", "out": BASE_MS + end, "took": took} for r, end, took in ends]
    words = ("what=w", "words.completed=ok", "words.timed_out=late", "time=out", "duration=took")
    base = [one for one in REQUESTS if one not in ("enqueued=in", "key=k")]
    mapping = [*base, *words, "duration_unit=s"]
    assert 'set decimal = ","' in refused(tmp_path, rows, mapping)
    far = [*rows, {**rows[0], "out": BASE_MS + 303}]
    assert "again, at another time" in refused(tmp_path, far, [*mapping, "decimal=,"])
    run = judged(tmp_path, rows, [*mapping, "decimal=,"])
    assert broken(run) == {"O1": ["a", "b"]}
    assert run.clauses["O5"].verdict is Verdict.SKIPPED
    assert "all      a, b\n" in CliRunner().invoke(check, [str(tmp_path / "t.jsonl")]).output


def test_a_log_may_be_several_files(tmp_path: Path) -> None:
    """Requests in one, the events of their keys in another, whose key has another name. A message and a counterexample
    name the row and the file."""
    mapping = [*REQUESTS, "completed=out", "timed_out=late", "event=at", "event_key=of"]
    requests = written(tmp_path / "requests.csv", [wide("a", 0, out=110), wide("b", 50, late=1051)])
    happened = written(tmp_path / "events.jsonl", [{"of": "key", "at": BASE_MS + 100}])
    made = made_of(tmp_path, mapping, requests, happened)
    assert (made.rows, made.requests) == (3, 2)
    assert broken(run_in(tmp_path)) == {"O4": ["b"]}
    shown = CliRunner().invoke(check, [str(tmp_path / "t.jsonl")]).output
    assert "row 2 of requests.csv: enqueued" in shown
    assert "row 1 of events.jsonl: an event of its key" in shown
    wrong = written(tmp_path / "wrong.csv", [{"of": "key", "at": "noon"}])
    with pytest.raises(CannotConvert, match=r"row 1 of wrong\.csv, 'at': 'noon'"):
        made_of(tmp_path, mapping, requests, wrong)
    why = r"requests\.csv has no column 'no'.*events\.jsonl has no column 'no'"
    with pytest.raises(CannotConvert, match=why):
        made_of(tmp_path, [*mapping, "event=no"], requests, happened)
    ran = CliRunner().invoke(command, [str(requests), str(happened), str(tmp_path / "t.jsonl")])
    assert (ran.exit_code, "more than one TRACE" in ran.output) == (2, True)


@pytest.mark.parametrize("last", [700, 1_000_000])
def test_requests_from_a_time_without_events_are_no_pass(last: int, tmp_path: Path) -> None:
    """The events may be in a file that was rotated away. Some time after the last event is usual."""
    woken = "in 0 a k1, ev 100 k1, out 110 a, in 200 b k1, ev 300 k1, out 310 b"
    rows = long(f"{woken}, in {last} e k2, late {last + 1001} e")
    o4 = judged(tmp_path, rows, LONG).clauses["O4"]
    assert (o4.verdict, o4.reason) == (
        (Verdict.PASS, "")
        if last == 700
        else (Verdict.UNKNOWN, "the log has no events of keys from the time of 1 request")
    )


def test_a_quote_opens_a_text_only_at_the_begin_of_a_field(tmp_path: Path) -> None:
    """`5" disk` is a whole field. A quote that is open when the file ends or breaks off makes a bad row, also in the
    last column, where the number of columns is right."""
    mapping = ("id=r", "enqueued=in", "completed=out", "unit=ms")
    (tmp_path / "log.csv").write_text('r,in,out,of\na,1,2,5" disk\nb,1,2,"x"\nc,1,2,"cut\n')
    made = made_of(tmp_path, mapping, tmp_path / "log.csv")
    assert (made.requests, made.notes[0].partition(":")[0]) == (
        2, "the last line is cut (line 4 cannot be read (a quote is not closed))",
    )  # fmt: skip
    broken_off = BreaksOff("cut")
    rows = [*_csv_rows(iter(["r,of\n", 'a,"one\n', broken_off]))]
    assert rows == [["r", "of"], "line 2 cannot be read (a quote is not closed)", broken_off]


def test_memory_does_not_grow_with_the_events_of_a_log() -> None:
    """An event counts for the requests of its time only."""
    maker = EventMaker(True, read_mapping(None, LONG))
    points = (Point(t, 0, t, "event", keys='["k"]') for t in range(1_000))
    assert sum(1 for point in points for _ in maker.events(point)) >= 1_000
    assert len(maker._recent) == 1
