"""The control thread of a run: its measurements are in the trace, are bounded, and are about the machine only."""

from pathlib import Path

import pytest

from purgatorio_conformance.builtin.jvm_timers import jvm_timers
from purgatorio_conformance.builtin.python_timers import asyncio_loop, threading_timer
from purgatorio_conformance.builtin.reference import reference_subjects
from purgatorio_conformance.subject.contract import Subject, silent
from purgatorio_conformance.subject.oversleep import MAX_NAPS, control_params
from purgatorio_conformance.subject.plan import MS, Plan, make_plan
from stress.trace_structure import read_run


def params_of(subject: Subject, plan: Plan, folder: Path) -> dict[str, object]:
    return dict(read_run(subject.run(plan, folder / "run.jsonl", silent)).header.params)


@pytest.mark.parametrize(
    "subject",
    [jvm_timers("netty")[0], asyncio_loop("call_later"), threading_timer(), reference_subjects()[0]],
    ids=["jvm", "loop", "threads", "reference"],
)
def test_every_driver_has_a_control(subject: Subject, tmp_path: Path) -> None:
    plan = make_plan(3, 40, subject.threads, subject.tick_ns, span_ns=60 * MS, longest_ns=40 * MS)
    params = params_of(subject, plan, tmp_path)
    control = params["control_oversleep"]
    assert isinstance(control, dict)
    figures = [control[name] for name in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
    assert figures == sorted(figures)
    assert control["max_ns"] == params["control_worst_oversleep_ns"]
    assert control["naps"] == sum(count for _, _, count in control["bins"]) > 0
    assert control["nap_ns"] == 5 * MS


def test_no_nap_is_no_distribution() -> None:
    """A run that ended before the first nap did."""
    assert control_params([], 0, 5) == {"control_worst_oversleep_ns": 0}
    assert MAX_NAPS == 20_000
