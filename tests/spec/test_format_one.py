"""Version 1 of the trace format is read for ever: the same bytes, the same events, the same verdicts.

The files under `tests/spec/format1` hold every function and every field of `purgatorio-trace/1`, in each form, as the
writer of release 0.1.0 wrote them. They are never written anew: whoever changes the format gives it another version and
leaves this test as it is.
"""

import hashlib
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import FUNCTIONS, SINCE_2, Event, names_of
from purgatorio_spec.verdict import Verdict

FOLDER: Final = Path(__file__).resolve().parent / "format1"
BYTES: Final = {
    "run.jsonl": "907985f934a6cbf5682641944a5dce4469dde6c8625862a0cb0085fdec3e1b69",
    "run.jsonl.gz": "7336fdcf4c4c8e3e6734f5977e57202a5a521d425fb386b4bfaa6d59aeeb40ce",
    "run.jsonl.zst": "23938407b96755f65a9b7984d86f797be355f66c58a8152e75da99eb847db5be",
    "run.parquet": "aba4fdad6140207c0fadcd0f7918664f1791cd30883ae4d662fadd0843aaa803",
}
"""SHA-256 of each file."""
EVENTS: Final = "cbc72a725ab627267a3e39a4a88966dc9b7577bc0ec3834f3ff1497a364d76ad"
"""SHA-256 of what the reader makes of each of them, as JSON."""
VIOLATIONS: Final = {"O4": 1, "O5": 1, "T1": 1, "T3": 1}
PASSED: Final = {"O1", "O2", "O3", "O6", "O7", "P1", "P2", "T2", "T4", "T5"}


def digest(path: Path) -> str:
    """The events as the reader gives them; the line says where one was, and a Parquet row is another place."""
    table = pa.Table.from_batches(list(TraceReader(path).batches())).drop_columns(["line"])
    rows = table.to_pylist()
    # The gauge of keys is newer.
    assert not any(row["state"] and row["state"].pop("keys") for row in rows)
    return hashlib.sha256(orjson.dumps(rows, option=orjson.OPT_SORT_KEYS)).hexdigest()


@pytest.mark.parametrize("name", list(BYTES))
def test_version_one_in_every_form(name: str) -> None:
    path = FOLDER / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == BYTES[name], "the file itself was changed"
    assert digest(path) == EVENTS
    (run,) = check_files([path]).runs
    assert (run.run, run.events, run.problems, run.verdict) == ("format-1", 76, (), Verdict.VIOLATED)
    found = {clause: one.violations for clause, one in run.clauses.items() if one.verdict is Verdict.VIOLATED}
    assert found == VIOLATIONS
    assert {clause for clause, one in run.clauses.items() if one.verdict is Verdict.PASS} == PASSED
    assert run.header is not None
    assert run.header.x == {"x_host": "h1"}
    assert dict(run.header.params)["seed"] == 7


def test_the_files_hold_all_of_version_one() -> None:
    """The files have every function and every field, so that none can be lost."""
    events = [orjson.loads(line) for line in (FOLDER / "run.jsonl").read_bytes().splitlines()][1:-1]
    assert {event["f"] for event in events} == set(FUNCTIONS) - SINCE_2
    fields = {name for event in events for name in event}
    assert {*names_of(Event)} <= fields


def test_the_digest_can_differ(tmp_path: Path) -> None:
    """The twin: one number changed is another digest."""
    text = (FOLDER / "run.jsonl").read_bytes()
    changed = tmp_path / "run.jsonl"
    changed.write_bytes(text.replace(b'"t":1000', b'"t":1001', 1))
    assert changed.read_bytes() != text
    assert digest(changed) != EVENTS


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("purgatorio-trace/3", "version 3 is newer than this release: upgrade purgatorio"),
        ("purgatorio-trace/0", "there is no version 0"),
        ("other/1", "this reader knows purgatorio-trace/1 and purgatorio-trace/2 only"),
    ],
)
@pytest.mark.parametrize("form", ["run.jsonl", "run.parquet"])
def test_a_version_that_is_not_known(version: str, hint: str, form: str, tmp_path: Path) -> None:
    """It is refused with what to do, in both forms, and never judged as if it were version 1."""
    path = tmp_path / form
    if form == "run.jsonl":
        text = (FOLDER / form).read_text(encoding="utf-8")
        path.write_text(text.replace("purgatorio-trace/1", version, 1), encoding="utf-8")
    else:
        table = pq.read_table(FOLDER / form)
        at = table.schema.get_field_index("format")
        texts = [
            None if text is None else text.replace("purgatorio-trace/1", version)
            for text in table.column(at).to_pylist()
        ]
        pq.write_table(table.set_column(at, table.schema.field(at), [texts]), path)
    reader = TraceReader(path)
    list(reader.batches())
    assert reader.header is None
    assert any(hint in one.hint for one in reader.broken), reader.broken[:3]
    (run,) = check_files([path]).runs
    assert run.verdict is Verdict.INVALID_TRACE
    assert not run.clauses
