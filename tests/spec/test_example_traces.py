"""The recorded runs of the real Kafka classes give exactly the figures that are known of them."""

import re
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatorio_spec.check import check_files
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.convert import convert
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.rows import as_coded, texts_of
from purgatorio_spec.verdict import EXIT_STATUS, Verdict
from spec.figures import EVENTS, FIGURES, TRACES, files, run_of

WITHOUT_OCCASION: Final[dict[str, set[str]]] = {
    "kafka-clean-race-4k": {"O3", "T1", "T3"},
    "kafka-clean-racewatch-4k": {"O3", "T1", "T3"},
    "kafka-clean-pending-flag-4k": {"O3", "T1", "T3"},
    "kafka-buggy-nonatomic-force": {"O3", "O4", "T1", "T3"},
}
"""The races have no expiry, and the race of two forces makes no operation ready. These clauses have no occasion
there."""


README: Final = {
    trace: set(re.findall(r"[A-Z]\d on [\d,]+ of [\d,]+", said))
    for said, trace in re.findall(
        r"^\| .+ \| (.+) \| `purgatorio check examples/traces/(\S+)` \|$",
        "".join(
            (TRACES.parents[1] / page).read_text(encoding="utf-8")
            for page in ("README.md", "docs/which-path.md")
        ),
        re.MULTILINE,
    )
}
"""The tables of bugs: the clause of a run, the number of violations, and the number of occasions."""


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_exactly_the_known_violations(path: Path) -> None:
    """One violation more is a false alarm on real code, one less a missed bug; both forms must agree."""
    (run,) = check_files([path]).runs
    found = {name: result.violations for name, result in run.clauses.items() if result.violations}
    assert found == FIGURES[run_of(path)]
    if path.name in README:
        said = {f"{name} on {one:,} of {run.clauses[name].occasions:,}" for name, one in found.items()}
        assert said == README[path.name]
    assert run.run == run_of(path)
    assert run.events == EVENTS[run_of(path)]
    assert run.problems == ()
    assert EXIT_STATUS[run.verdict] == (1 if found else 0)
    # A clause that never had a chance to fail proves nothing; only what a workload leaves out may be without.
    skipped = {name for name, result in run.clauses.items() if result.verdict == Verdict.SKIPPED}
    never = {name for name in skipped if run.clauses[name].reason.startswith("the program never called")}
    assert skipped - never == {"T2"}
    assert run.clauses["T2"].reason == "the header does not give late_ns"
    idle = {name for name, result in run.clauses.items() if not result.occasions} - {"T2"}
    assert idle == WITHOUT_OCCASION.get(run_of(path), set())


def test_the_table_and_the_folder_list_the_same_runs() -> None:
    """A file without figures is not tested, and figures without a file test nothing."""
    assert {run_of(path) for path in files()} == set(FIGURES) == set(EVENTS)
    assert len(README.keys() & {path.name for path in files()}) == len(README) == 5
    assert {path.name for path in files() if path.suffix != ".parquet"} == {
        "kafka-clean-1k.jsonl",
        "kafka-clean-racewatch-4k.jsonl.gz",
    }
    text = (TRACES / "README.md").read_text(encoding="utf-8")
    for run, clauses in FIGURES.items():
        cell = ", ".join(f"{clause}: {count:,}" for clause, count in clauses.items()) or "none"
        assert f"| `{run}` | {EVENTS[run]:,} | {cell} |" in text


SMALL = {"kafka-clean-1k", "kafka-buggy-no-recheck"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=() if run_of(path) in SMALL else pytest.mark.slow)
        for path in files()
        if path.suffix == ".parquet"
    ],
)
def test_round_trip_gives_identical_records(path: Path, tmp_path: Path) -> None:
    """Parquet to JSON lines to Parquet to JSON lines: no field may be lost or changed on the way."""
    forms = [tmp_path / name for name in ("a.jsonl.zst", "b.parquet", "c.jsonl.gz")]
    for source, target in zip([path, *forms], forms, strict=False):
        assert convert(source, target).valid
    first, *others = [_read(form) for form in (path, *forms)]
    assert all(other == first for other in others)


def _read(path: Path) -> tuple[object, object, pa.Table]:
    reader = TraceReader(path)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA).combine_chunks()
    return reader.header, reader.end, table


def test_what_was_written_before_a_gauge_came_is_read_as_fast() -> None:
    """Its readings lack a field: they get it, and are not made again one by one."""
    path = TRACES / "kafka-clean-10k.parquet"
    file = pq.ParquetFile(path, read_dictionary=texts_of(pq.read_metadata(path).schema))
    batch = next(file.iter_batches(1_000, row_groups=[0])).slice(1)
    state = batch.schema.field("state").type
    assert isinstance(state, pa.StructType)
    assert state.get_field_index("keys") < 0
    read = as_coded(batch, np.arange(batch.num_rows))
    assert read is not None
    before, after = (one.column("state").drop_null().to_pylist() for one in (batch, read))
    assert after == [(one or {}) | {"keys": None} for one in before]
