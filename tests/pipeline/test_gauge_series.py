"""Gauges over time: what was pending is counted right at each reading, and long series are thinned without their peaks
being lost."""

from __future__ import annotations

import numpy as np

from purgatorio_pipeline.pictures import (
    POINTS_SHOWN,
    Raw,
    pending_at,
    series,
)
from purgatorio_spec.history.operation import NEVER
from spec.pictures_by_table import gauge_series, kept
from spec.shown_trace import fired_early
from spec.trace_builder import MS, Trace


def test_pending_and_garbage_follow_the_operations() -> None:
    """Two registered under three keys, one completed and still watched: its entries are garbage."""
    made = Trace()
    made.gauge(0, 0)
    made.register("op-1", ["k1"], delay_ns=50 * MS)
    made.register("op-2", ["k1", "k2"], delay_ns=50 * MS)
    made.gauge(3, 2)
    made.complete("op-2")
    made.gauge(3, 1)
    found = gauge_series("run", made.table())
    assert found is not None
    assert [point.pending for point in found.points] == [0, 2, 1]
    assert [point.entries for point in found.points] == [0, 3, 1]
    assert [point.garbage for point in found.points] == [0, 0, 2]
    assert [point.delayed for point in found.points] == [0, 2, 1]
    assert found.points[0].since_ns == 0 < found.points[1].since_ns < found.span_ns


def test_a_timer_alone_has_no_pending() -> None:
    """Where no operation is registered, nothing is said of garbage."""
    made = Trace()
    made.gauge(0, 0)
    made.gauge(0, 1)
    found = gauge_series("run", made.table())
    assert found is not None
    assert {(point.pending, point.garbage) for point in found.points} == {(None, None)}


def test_fewer_than_two_readings_are_no_picture() -> None:
    """No readings, and one."""
    made = fired_early()
    assert gauge_series("run", made.table()) is None
    made.gauge(1, 1)
    assert gauge_series("run", made.table()) is None
    assert series("run", [], 0) is None


def test_a_long_series_keeps_its_ends_and_its_peaks() -> None:
    """100,000 readings become a few hundred; the one spike of each gauge is among them."""
    readings: list[Raw] = [(i, i, 1, 1) for i in range(100_000)]
    readings[70_001] = (70_001, 70_001, 99, 1)
    readings[33_333] = (33_333, 33_333, 1, 77)
    few = kept(readings)
    assert len(few) <= POINTS_SHOWN
    assert few[0] == readings[0]
    assert few[-1] == readings[-1]
    assert readings[70_001] in few
    assert readings[33_333] in few


def test_batches_add_up() -> None:
    """The sums over two halves of the operations are the sum over all, whatever ends before it begins included."""
    reading_i = np.array([5, 10, 20], np.int64)
    from_i = np.array([0, 6, 12, 7], np.int64)
    to_i = np.array([11, NEVER, 13, 3], np.int64)
    entries = np.array([1, 2, 3, 4], np.int64)
    pending, held = pending_at(reading_i, from_i, to_i, entries)
    assert pending.tolist() == [1, 2, 1]
    assert held.tolist() == [1, 3, 2]
    halves = [
        pending_at(reading_i, from_i[half], to_i[half], entries[half]) for half in (slice(2), slice(2, 4))
    ]
    assert (halves[0][0] + halves[1][0]).tolist() == pending.tolist()
