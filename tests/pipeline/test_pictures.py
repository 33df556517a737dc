"""The drawings of lateness and gauges, compared with their definitions: one task and one reading at a time."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio_pipeline.pictures import POINTS_SHOWN, GaugeSeries, pending_at, pictures
from purgatorio_spec.check import Folded, fold_reader
from purgatorio_spec.history.operation import NEVER, OperationHistory, histories
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.lateness import EDGES_NS, Lateness, lateness_of
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict
from spec.shown_trace import fired_after_completion, fired_early
from spec.trace_builder import MS, Trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traces"


def drawn(made: Trace) -> tuple[Lateness | None, GaugeSeries | None]:
    """The drawings of a run that is written by hand, in two batches."""
    fold = made.recorded().fold(len(made.events) // 2 + 1)
    unjudged = RunResult(made.header.run, made.file, "", "", Verdict.UNKNOWN, 0, {})
    return pictures(Folded(unjudged, fold, list))


def late_ns(task: OperationHistory) -> int | None:
    """How late a task was, by the definition; None of one that does not count."""
    stops = min((call.call_i for call in (*task.cancels, *task.forces)), default=NEVER)
    if len(task.adds) != 1 or not task.fires or stops <= task.fires[0].call_i:
        return None
    (add,), fired_t = task.adds, task.fires[0].call_t
    if add.deadline_t is None:
        return None
    raw = fired_t - add.deadline_t
    return raw if raw < 0 else max(0, fired_t - max(add.deadline_t, add.ret_t or add.deadline_t))


def pending(operation: OperationHistory) -> tuple[int, int, int]:
    """Between which positions it is pending, and its entries."""
    won_i = min((force.end_i for force in operation.winners), default=NEVER)
    registered = operation.registration
    return NEVER if registered is None else registered.call_i, won_i, len(operation.keys)


@pytest.mark.parametrize("name", ["clean-1k", "clean-race-4k"])
def test_drawings_of_real_runs_match_their_definitions(name: str) -> None:
    """With few readings, and with more than are kept: of those the ends and the peaks are."""
    path = EXAMPLES / f"kafka-{name}.parquet"
    folded = fold_reader(TraceReader(path))
    table = pa.Table.from_batches(TraceReader(path).batches(), EVENT_SCHEMA)
    late, read = pictures(folded)
    every = list(histories(table, ()))
    values = [ns for one in every if (ns := late_ns(one)) is not None]
    assert late == lateness_of(folded.result.run, np.array(values, np.int64))
    readings = {
        row["i"]: (row["t"], row["state"]["watched"], row["state"]["delayed"])
        for row in table.select(["i", "t", "f", "ph", "state"]).to_pylist()
        if row["f"] in ("gauge", "quiesce") and row["ph"] != "call"
    }
    assert read is not None
    assert read.count == len(readings)
    points = {point.i: point for point in read.points}
    assert len(points) <= POINTS_SHOWN
    assert len(points) == len(readings) or len(points) > POINTS_SHOWN // 2
    assert {min(readings), max(readings)} <= points.keys()
    for gauge in (1, 2):
        assert max(one[gauge] for one in readings.values()) in [readings[i][gauge] for i in points]
    first_t, spans = readings[min(readings)][0], list(map(pending, every))
    for i, point in points.items():
        assert (first_t + point.since_ns, point.watched, point.delayed) == readings[i]
        held = [entries for from_i, to_i, entries in spans if from_i < i < to_i]
        assert (point.pending, point.entries) == (len(held), sum(held))
        assert point.garbage == max(0, readings[i][1] - sum(held))


def test_late_and_early_count_from_the_deadline() -> None:
    """Early is negative. The lateness of a task that was added after its deadline counts from the add."""
    for delay_ms, fires_after_ms, wanted in (
        (10, 13, 3 * MS + 2_000),
        (10, 7, -3 * MS + 2_000),
        (-1_000, 0, 1_000),
    ):
        made = Trace()
        made.add("task", delay_ns=delay_ms * MS)
        made.wait(fires_after_ms * MS)
        made.fire("task")
        late, _ = drawn(made)
        assert late is not None
        assert (late.count, late.max_ns, late.early) == (1, wanted, wanted < 0)


def test_what_says_nothing_of_the_timer_is_left_out() -> None:
    """Fired though completed, cancelled first, added twice, never fired; not an expiry's own completion."""
    assert drawn(fired_after_completion())[0] is None
    made = Trace()
    made.add("cancelled", delay_ns=5 * MS)
    made.cancel("cancelled", None)
    made.fire("cancelled")
    made.add("twice", delay_ns=5 * MS)
    made.add("twice", delay_ns=9 * MS)
    made.fire("twice")
    made.add("never", delay_ns=5 * MS)
    assert drawn(made)[0] is None
    late, _ = drawn(fired_early())
    assert late is not None
    assert (late.count, late.early) == (1, 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 200), st.integers(0, 300), st.booleans()), max_size=12))
def test_columns_agree_with_one_task_at_a_time(tasks: list[tuple[int, int, bool]]) -> None:
    """Some are completed before they fire."""
    made = Trace()
    for number, (delay_ms, wait_ms, completed) in enumerate(tasks):
        made.add(f"task-{number}", delay_ns=delay_ms * MS)
        made.wait(wait_ms * MS)
        if completed:
            made.complete(f"task-{number}")
        made.fire(f"task-{number}")
    values = [ns for one in histories(made.table(), ()) if (ns := late_ns(one)) is not None]
    assert len(values) == sum(not completed for _, _, completed in tasks)
    late = drawn(made)[0] if made.events else None
    assert late == lateness_of(made.header.run, np.array(values, np.int64))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=300))
def test_bins_hold_every_value_once(given_ns: list[int]) -> None:
    """Nothing falls between two bins or off the ends, and percentiles are values that occurred."""
    found = lateness_of("run", np.array(given_ns, np.int64))
    assert found is not None
    assert found.count == len(given_ns)
    assert found.early == sum(value < 0 for value in given_ns)
    for low, high, count in found.bins:
        first, last = low == EDGES_NS[0], high == EDGES_NS[-1]
        assert count == sum((first or low <= value) and (last or value < high) for value in given_ns)
    assert {found.p50_ns, found.p90_ns, found.p99_ns, found.max_ns} <= set(given_ns)
    ordered = sorted(given_ns)
    assert sum(value <= found.p90_ns for value in ordered) * 100 >= 90 * len(ordered)


def test_pending_and_garbage_follow_the_operations() -> None:
    """Entries of a completed operation are garbage. Of a timer alone, or of one reading, there is no picture."""
    made = Trace()
    made.gauge(0, 0)
    assert drawn(made)[1] is None
    made.gauge(0, 1)
    _, found = drawn(made)
    assert found is not None
    assert {(point.pending, point.garbage) for point in found.points} == {(None, None)}
    made.register("op-1", ["k1"], delay_ns=50 * MS)
    made.register("op-2", ["k1", "k2"], delay_ns=50 * MS)
    made.gauge(3, 2)
    made.complete("op-2")
    made.gauge(3, 1)
    _, found = drawn(made)
    assert found is not None
    seen = [(one.pending, one.entries, one.garbage, one.delayed) for one in found.points]
    assert seen == [(0, 0, 0, 0), (0, 0, 0, 1), (2, 3, 0, 2), (1, 1, 2, 1)]
    assert found.points[0].since_ns == 0 < found.points[1].since_ns < found.span_ns


def test_batches_add_up() -> None:
    """The sums over two halves of the operations are the sum over all, whatever ends before it begins included."""
    reading_i = np.array([5, 10, 20], np.int64)
    from_i = np.array([0, 6, 12, 7], np.int64)
    to_i = np.array([11, NEVER, 13, 3], np.int64)
    entries = np.array([1, 2, 3, 4], np.int64)
    open_then, held = pending_at(reading_i, from_i, to_i, entries)
    assert open_then.tolist() == [1, 2, 1]
    assert held.tolist() == [1, 3, 2]
    halves = [
        pending_at(reading_i, from_i[half], to_i[half], entries[half]) for half in (slice(2), slice(2, 4))
    ]
    assert (halves[0][0] + halves[1][0]).tolist() == open_then.tolist()
