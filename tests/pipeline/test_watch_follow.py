"""The fold of a watch: a run in pieces comes to the same result as in one piece, for any pieces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from purgatorio_pipeline.watch.follow import Followed, RunTask, TaskResult, carry_place, follow
from purgatorio_pipeline.watch.segments import event_rows, events_folder
from purgatorio_spec.check import fold_reader
from purgatorio_spec.fast_path.carry import read_carry
from purgatorio_spec.fast_path.fold import Fold
from purgatorio_spec.fast_path.recheck import FirstChecks
from purgatorio_spec.history.run import BACKWARDS, run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.judge.result import RunResult, TraceFacts, conclude
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import Violation
from spec.drawn_history import FAULTS, draw
from spec.figures import TRACES


@dataclass
class Watched:
    """A run that comes in batches into a folder."""

    silver: Path
    header: Header
    followed: Followed
    batch: int = 0

    def bring(self, events: pa.Table, closing: TraceFacts | None = None) -> TaskResult:
        self.silver.mkdir(exist_ok=True)
        folder = events_folder(self.silver, self.batch)
        if events.num_rows:
            folder.mkdir(parents=True)
            rows = pa.Table.from_batches([event_rows(self.header.run, one) for one in events.to_batches()])
            pq.write_table(rows.drop_columns(["kind"]), folder / "part-0.parquet")
        task = RunTask(self.header.run, self.header, self.batch, self.silver, self.followed, closing)
        told = follow(task)
        self.followed = told.followed
        self.batch += 1
        return told


@dataclass
class Seen:
    result: RunResult
    early: list[Violation]
    followed: Followed


def watched(folder: Path, facts: TraceFacts, events: pa.Table, cuts: Sequence[int]) -> Seen:
    """The run cut at these rows; its end comes in a batch of its own."""
    assert facts.header is not None
    watch = Watched(folder, facts.header, Followed())
    early: list[Violation] = []
    for start, end in zip([0, *cuts], [*cuts, events.num_rows], strict=True):
        early += watch.bring(events.slice(start, end - start)).found
    closed = watch.bring(events.slice(0, 0), facts)
    assert closed.result is not None
    return Seen(closed.result, early, closed.followed)


def drawn_cuts(random: Random, rows: int) -> list[int]:
    return sorted(random.sample(range(rows), min(random.choice((0, 1, 3, 8)), rows)))


def drawn(seed: int) -> tuple[TraceFacts, pa.Table, RunResult]:
    """A drawn run, with a fault or without, and what the clauses say of it row by row."""
    random = Random(seed)
    fault = random.choice(("", *FAULTS))
    played = draw(seed, fault)
    run, events = played.run(), played.table()
    facts = TraceFacts("drawn", played.header, events.num_rows, dropped=played.dropped, has_end=played.whole)
    return facts, events, conclude(facts, run, judge_run(run, events))


def broken_by(result: RunResult) -> set[tuple[str, str]]:
    """Clauses and the causes in which they are broken."""
    return {(name, cause) for name, one in result.clauses.items() for cause in one.causes}


def same_in_pieces(seeds: Iterable[int], folder: Path) -> tuple[int, list[str]]:
    """The number of early violations, and the differences."""
    early, different = 0, []
    for seed in seeds:
        facts, events, expected = drawn(seed)
        cuts = drawn_cuts(Random(seed), events.num_rows)
        seen = watched(folder / str(seed), facts, events, cuts)
        if seen.result != expected:
            different.append(f"seed {seed}")
        wrong = {(one.clause, one.cause) for one in seen.early} - broken_by(expected)
        # Of a run that turns out to lack records less is said at its end.
        wrong = set() if facts.dropped else wrong
        different += [f"seed {seed}, early: {one}" for one in sorted(wrong)]
        early += len(seen.early)
    return early, different


def test_random_runs_in_random_pieces_agree_with_the_clauses(tmp_path: Path) -> None:
    """A violation that is reported for an open run stays when the run is closed."""
    early, different = same_in_pieces(range(10), tmp_path)
    assert different == []
    assert early > 5


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_a_thousand_drawn_runs_in_drawn_pieces(block: int, tmp_path: Path) -> None:
    assert same_in_pieces(range(1_000 + 250 * block, 1_250 + 250 * block), tmp_path)[1] == []


def test_a_carry_that_forgets_waiting_operations_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the restored state lacks one thing."""

    def forgetful(header: Header, place: Path) -> Fold:
        fold = read_carry(header, place)
        fold.first_checks = FirstChecks()
        return fold

    monkeypatch.setattr("purgatorio_pipeline.watch.follow.read_carry", forgetful)
    assert same_in_pieces((40, 41, 44), tmp_path)[1] != []


RECORDED = sorted(
    path for path in TRACES.iterdir() if path.suffix in (".parquet", ".jsonl") and "README" not in path.name
)


def at_once(path: Path) -> RunResult:
    return fold_reader(TraceReader(path)).result


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_runs_of_kafka_in_drawn_pieces(path: Path, tmp_path: Path) -> None:
    reader = TraceReader(path)
    events = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    facts = TraceFacts(reader.name, reader.header, events.num_rows)
    cuts = sorted(Random(path.name).sample(range(events.num_rows), 3))
    seen = watched(tmp_path, facts, events, cuts)
    expected = at_once(path)
    assert seen.result == expected
    assert {one.clause for one in seen.early} <= {name for name, _ in broken_by(seen.result)}
    if seen.result.verdict == "VIOLATED":
        assert seen.early, "what is broken shows before the end"


def test_a_batch_that_is_done_again_comes_to_the_same(tmp_path: Path) -> None:
    """As after a kill: from the state before it, over what the killed one left."""
    facts, events, expected = drawn(7)
    watch = Watched(tmp_path, expected.header or pytest.fail("no header"), Followed())
    watch.bring(events.slice(0, 30))
    before = replace(watch.followed, parts=list(watch.followed.parts))
    first = watch.bring(events.slice(30, 30))
    again = follow(RunTask(expected.run, watch.header, 1, tmp_path, before))
    assert again == first
    watch.bring(events.slice(60))
    told = watch.bring(events.slice(0, 0), facts)
    assert told.result is not None
    assert told.result == expected


def test_pieces_in_any_order_come_to_the_same(tmp_path: Path) -> None:
    """No state can be carried then: the whole run is judged again."""
    facts, events, expected = drawn(7)
    third = events.num_rows // 3
    pieces = [events.slice(0, third), events.slice(third, third), events.slice(2 * third)]
    watch = Watched(tmp_path, expected.header or pytest.fail("no header"), Followed())
    for at in (0, 2, 1):
        watch.bring(pieces[at])
    assert watch.followed.mixed
    assert not carry_place(tmp_path, 2, expected.run).exists()
    told = watch.bring(events.slice(0, 0), facts)
    assert told.result is not None
    assert told.result == expected


@pytest.mark.parametrize("cuts", [(), (3,)], ids=["in one batch", "in two"])
def test_an_event_that_comes_twice_makes_the_run_invalid(tmp_path: Path, cuts: Sequence[int]) -> None:
    facts, events, expected = drawn(7)
    twice = pa.concat_tables([events.slice(0, 5), events.slice(2)])
    seen = watched(tmp_path, replace(facts, events=twice.num_rows), twice, cuts)
    assert expected.verdict != "INVALID_TRACE"
    assert seen.result.verdict == "INVALID_TRACE"
    assert "3 broken lines, first drawn: 3 event(s) with an i that an earlier one has" in str(
        seen.result.problems
    )
    assert seen.followed.repeated == 3


def test_time_that_runs_backwards_over_a_border_makes_the_run_invalid(tmp_path: Path) -> None:
    """The time of each thread's last event is carried; across threads times may be in any order."""
    facts, events, _ = drawn(7)
    assert facts.header is not None
    th, t = events.column("th").to_pylist(), events.column("t").to_numpy().tolist()
    at = next(at for at in range(20, len(th)) if th[at] == th[at - 1])
    for name, seen_at in (("back", t[at - 1] - 1), ("level", t[at - 1])):
        moved = pa.array([*t[:at], seen_at, *t[at + 1 :]], pa.int64())
        changed = events.set_column(events.schema.get_field_index("t"), events.schema.field("t"), moved)
        seen = watched(tmp_path / name, facts, changed, [at])
        run = run_of(facts.header, run_facts(changed, facts.header), whole=True)
        assert (BACKWARDS in run.facts.broken) == (name == "back")
        assert seen.result == conclude(facts, run, judge_run(run, changed))
        first = f"time runs backwards on a thread, 1 time, first at i = {events.column('i')[at]}"
        assert (first in str(seen.result.problems)) == (name == "back")


def test_an_unknown_profile_is_invalid(tmp_path: Path) -> None:
    facts, events, _ = drawn(7)
    assert facts.header is not None
    facts = replace(facts, header=replace(facts.header, profile="none"))
    seen = watched(tmp_path, facts, events, [4])
    assert seen.result.verdict == "INVALID_TRACE"
    assert "unknown profile 'none'" in str(seen.result.problems)
