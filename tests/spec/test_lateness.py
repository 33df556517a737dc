"""The lateness of tasks, computed by columns, against the definition computed one task at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio_spec.lateness import EDGES_NS, lateness_of
from spec.pictures_by_table import lateness, lateness_ns
from spec.shown_trace import fired_after_completion, fired_early
from spec.trace_builder import MS, Trace


def values(made: Trace) -> list[int]:
    return sorted(int(value) for value in lateness_ns(made.table()))


def one_task(delay_ms: int, fires_after_ms: int) -> Trace:
    """A task that fires so long after its add."""
    made = Trace()
    made.add("task", delay_ns=delay_ms * MS)
    made.wait(fires_after_ms * MS)
    made.fire("task")
    return made


def test_late_and_early_count_from_the_deadline() -> None:
    """The sign is the point of the picture: early is negative."""
    assert values(one_task(10, 13)) == [3 * MS + 2_000]
    assert values(one_task(10, 7)) == [-3 * MS + 2_000]


def test_a_deadline_in_the_past_is_late_from_the_add_on() -> None:
    """A task added with delay -1 s is not a second late: nobody could have fired it before."""
    made = one_task(-1_000, 0)
    assert values(made) == [1_000]


def test_what_clause_t2_leaves_out_is_left_out() -> None:
    """Fired though completed, cancelled first, added twice, never fired: none of these says how late the timer is."""
    assert values(fired_after_completion()) == []
    made = Trace()
    made.add("cancelled", delay_ns=5 * MS)
    made.cancel("cancelled", None)
    made.fire("cancelled")
    made.add("twice", delay_ns=5 * MS)
    made.add("twice", delay_ns=9 * MS)
    made.fire("twice")
    made.add("never", delay_ns=5 * MS)
    assert values(made) == []
    assert lateness("none", made.table()) is None


def test_the_completion_by_the_expiry_itself_does_not_count_against_it() -> None:
    """In Kafka every fire forces completion, and that cancels the task: both come after the fire."""
    found = lateness("early-fire", fired_early().table())
    assert found is not None
    assert (found.count, found.early) == (1, 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 200), st.integers(0, 300), st.booleans()), max_size=12))
def test_columns_agree_with_one_task_at_a_time(tasks: list[tuple[int, int, bool]]) -> None:
    """The column-wise computation is fast and terse; the dumb twin beside it is the definition."""
    made = Trace()
    expected: list[int] = []
    for number, (delay_ms, wait_ms, cancelled) in enumerate(tasks):
        made.add(f"task-{number}", delay_ns=delay_ms * MS)
        added_t = made.t
        deadline_t = added_t - 1000 + delay_ms * MS
        made.wait(wait_ms * MS)
        if cancelled:
            made.complete(f"task-{number}")
        else:
            fired_t = made.t + 1000
            raw = fired_t - deadline_t
            expected.append(raw if raw < 0 else max(0, fired_t - max(deadline_t, added_t)))
        made.fire(f"task-{number}")
    assert values(made) == sorted(expected)


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
