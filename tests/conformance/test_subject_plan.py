"""The plan: repeatable, and aimed at the places where timers break."""

from collections import Counter
from itertools import pairwise

import pytest

from purgatorio_conformance.protocol.message import Description, Register
from purgatorio_conformance.protocol.timeline import timeline
from purgatorio_conformance.subject.plan import HUGE_NS, MAX_DELAY_NS, MS, Plan, PlannedCall, make_plan


def adds(plan: Plan) -> dict[int, PlannedCall]:
    return {step.slot: step for step in plan.calls if step.delay_ns is not None}


def test_same_seed_same_plan() -> None:
    """A finding must be repeatable from its seed; another seed must try something else."""
    assert make_plan(3, 200, 4, MS) == make_plan(3, 200, 4, MS)
    assert make_plan(3, 200, 4, MS) != make_plan(4, 200, 4, MS)


@pytest.mark.parametrize("tick_ns", [MS, 10 * MS, 100 * MS])
def test_plan_holds_every_kind_of_delay_and_cancel(tick_ns: int) -> None:
    """Uniform delays find almost nothing: equal, boundary, zero, negative and huge ones must all be there."""
    plan = make_plan(1, 2_000, 4, tick_ns)
    added = adds(plan)
    delays = [step.delay_ns for step in added.values() if step.delay_ns is not None]
    assert sorted(added) == list(range(2_000))
    assert delays.count(0) > 100
    assert delays.count(100 * MS) > 100
    assert {-1, -MAX_DELAY_NS - 1, MAX_DELAY_NS} <= set(delays)
    assert {delay % tick_ns for delay in delays} >= {0, 1, tick_ns - 1}
    lead = [
        step.at_ns - added[step.slot].at_ns - max(0, added[step.slot].delay_ns or 0)
        for step in plan.calls
        if step.delay_ns is None and (added[step.slot].delay_ns or 0) < HUGE_NS
    ]
    assert any(ns < -50 * MS for ns in lead), "well before the deadline"
    assert any(abs(ns) <= MS for ns in lead), "at the deadline"
    assert any(ns > tick_ns for ns in lead), "after the deadline"
    cancels = [step.slot for step in plan.calls if step.delay_ns is None]
    assert len(cancels) > len(set(cancels)), "twice"
    assert {step.thread for step in plan.calls} == {0, 1, 2, 3}


def test_plan_comes_to_an_end() -> None:
    """Each huge timer is cancelled, on the thread that added it and after the add; the rest ends soon."""
    plan = make_plan(1, 1_000, 4, MS, span_ns=100 * MS, longest_ns=50 * MS)
    assert all(a.at_ns <= b.at_ns for a, b in pairwise(plan.calls))
    for slot, add in adds(plan).items():
        if add.delay_ns is not None and add.delay_ns >= HUGE_NS:
            own = [step for step in plan.calls if (step.thread, step.slot) == (add.thread, slot)]
            assert [step.delay_ns is None for step in own] == [False, True]
    assert plan.end_ns <= 100 * MS + 50 * MS + 55 * MS


def test_a_long_plan_shares_its_keys_no_more_than_a_short_one() -> None:
    """A check tries all that wait under its key: with as many keys as a short plan, a long one would never end."""

    def most(timers: int) -> int:
        dues = timeline(make_plan(1, timers, 1, MS), "purgatory", Description(0, "", "x", ("purgatory",), ()))
        operations = [due.call for due in dues if isinstance(due.call, Register)]
        keys = (key for operation in operations for key in operation.keys if key.startswith("k"))
        return max(Counter(keys).values())

    assert 100 < most(2_400) < 250
    assert most(12_000) < 250


@pytest.mark.parametrize("field", ["timers", "threads", "tick_ns", "span_ns", "longest_ns"])
def test_empty_plan_is_refused(field: str) -> None:
    """A plan of nothing would be a run that passes everything."""
    sizes = {"timers": 1, "threads": 1, "tick_ns": 1, "span_ns": 1, "longest_ns": 1, field: 0}
    with pytest.raises(ValueError, match="at least 1"):
        make_plan(1, **sizes)
