"""asyncio's loop for real, on a small plan; and the registry of subjects."""

import asyncio
import math
import time
from pathlib import Path

import pytest

from purgatorio_conformance.subject.contract import SubjectFailed, silent
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, MS, Plan, Step, make_plan
from purgatorio_conformance.subject.python_timer import PythonSubject
from purgatorio_conformance.subject.python_timers import asyncio_loop, early_bound_ns
from purgatorio_conformance.subjects import SUBJECTS, subjects_named
from stress.trace_structure import check_whole_run, read_run


@pytest.mark.parametrize(
    "subject", [asyncio_loop("call_later"), asyncio_loop("call_at")], ids=lambda subject: subject.name
)
def test_real_loop_leaves_a_whole_trace(subject: PythonSubject, tmp_path: Path) -> None:
    """The second foreign timer: everything on the loop's thread, no count of the pending, no answer of cancel."""
    plan = make_plan(2, 300, 1, MS, span_ns=100 * MS, longest_ns=80 * MS)
    seen: list[int] = []
    path = subject.run(plan, tmp_path / "run.jsonl", lambda run, settled, planned: seen.append(settled))
    run = read_run(path)
    assert run.count("timer_add") == 300
    assert run.count("timer_cancel") > 50
    assert {e.th for e in run.events if e.id is not None} == {"loop"}
    assert {e.out for e in run.events} == {None}
    assert "gauge" not in run.header.recorded
    assert run.header.profile == "asyncio"
    assert seen[-1] == 300
    fired = set(run.ids("timer_fire"))
    first_cancel = {str(e.id) for e in run.events if e.f == "timer_cancel"}
    assert fired & first_cancel, "some were cancelled too late"
    assert first_cancel - fired, "some in time"
    check_whole_run(run)


def test_delays_that_asyncio_does_not_document(tmp_path: Path) -> None:
    """Below zero is due at once; 292 years is held, and does not upset the selector's timeout."""
    delays = [-MAX_DELAY_NS - 1, -1, 0, MAX_DELAY_NS]
    steps = tuple(Step(0, 0, slot, delay) for slot, delay in enumerate(delays))
    plan = Plan(0, 1, 4, (*steps, Step(20 * MS, 0, 3, None)), 20 * MS)
    run = read_run(asyncio_loop("call_later").run(plan, tmp_path / "run.jsonl", silent))
    check_whole_run(run)
    assert set(run.ids("timer_fire")) == {"t-0", "t-1", "t-2"}
    held = [e.deadline_t for e in run.events if e.f == "timer_add" and e.ph == "ret" and e.id == "t-3"]
    assert held == [MAX_DELAY_NS]


def test_refused_add_is_recorded_with_its_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that says no: the refusal is an event with `err`, and the run still comes to its end."""
    plain = asyncio.SelectorEventLoop.call_at

    def refuse_ours(
        loop: asyncio.SelectorEventLoop, when: float, callback: object, *arguments: object, **more: object
    ) -> asyncio.TimerHandle:
        if "_Run._add" in getattr(callback, "__qualname__", ""):
            raise OverflowError("too far")
        return plain(loop, when, callback, *arguments, **more)  # type: ignore[arg-type] # passed on as it came

    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_at", refuse_ours)
    plan = Plan(0, 1, 1, (Step(0, 0, 0, 5 * MS),), 5 * MS)
    run = read_run(asyncio_loop("call_at").run(plan, tmp_path / "run.jsonl", silent))
    assert [(e.ph, e.f, e.err) for e in run.events] == [
        ("call", "timer_add", None),
        ("ret", "timer_add", "OverflowError"),
        ("at", "quiesce", None),
    ]
    assert run.end is not None


def test_loop_that_dies_leaves_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash inside the loop is reported as `died`. The trace has the events until then, and no end record."""

    def explode(*arguments: object, **more: object) -> asyncio.TimerHandle:
        raise OverflowError("too far")

    # What carries out the plan sleeps by call_later; the subject under test is asked by call_at.
    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_later", explode)
    # So late that no busy machine has come to it without a sleep; nobody waits for it.
    late_ns = 5_000 * MS
    plan = Plan(0, 1, 1, (Step(0, 0, 0, MAX_DELAY_NS), Step(late_ns, 0, 0, None)), late_ns)
    with pytest.raises(SubjectFailed, match="too far") as caught:
        asyncio_loop("call_at").run(plan, tmp_path / "run.jsonl", silent)
    assert caught.value.kind == "died"
    assert caught.value.trace is not None
    run = read_run(caught.value.trace)
    assert [(e.ph, e.f) for e in run.events] == [("call", "timer_add"), ("ret", "timer_add")]
    assert run.end is None


def test_early_bound_is_the_resolution_and_the_roundings() -> None:
    """The bound comes from the documentation and the number format, not from a measurement."""
    resolution_ns = time.get_clock_info("monotonic").resolution * 1e9
    assert early_bound_ns(0) > resolution_ns
    assert early_bound_ns(0) <= math.ceil(resolution_ns + 2.5 * math.ulp(2 * time.monotonic()) * 1e9)
    assert early_bound_ns(MAX_DELAY_NS) > 1_000, "a time of 292 years has microseconds of rounding"


def test_registry_names_every_configuration_once() -> None:
    """Names become file names and rows of a report: two of the same would hide one another."""
    names = [subject.name for name in SUBJECTS for subject in subjects_named(name)]
    assert {"netty-tick1-wheel512", "netty-tick10-wheel8", "netty-tick100-wheel512"} < set(names)
    assert len(names) == len(set(names))
    with pytest.raises(KeyError, match="there are: reference, netty, asyncio"):
        subjects_named("nety")
