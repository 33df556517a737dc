"""The control thread of a run: its measurements are in the trace, are bounded, and are about the machine only."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from purgatorio_conformance.subject.contract import Subject, SubjectFailed, silent
from purgatorio_conformance.subject.jvm import JvmSubject
from purgatorio_conformance.subject.jvm_timers import netty_wheel
from purgatorio_conformance.subject.oversleep import MAX_NAPS, control_params
from purgatorio_conformance.subject.plan import MS, Plan, make_plan
from purgatorio_conformance.subject.python_timers import asyncio_loop, threading_timer
from purgatorio_conformance.subject.reference import reference_subjects
from stress.trace_structure import read_run

DONE = {
    "kind": "done",
    "events": 0,
    "dropped": 0,
    "skipped": 0,
    "open": 0,
    "oversleep_ns": 9,
    "wall_shift_ns": 0,
}


def params_of(subject: Subject, plan: Plan, folder: Path) -> dict[str, object]:
    return dict(read_run(subject.run(plan, folder / "run.jsonl", silent)).header.params)


def says(done: dict[str, object]) -> JvmSubject:
    command = (sys.executable, "-I", "-S", "-c", f"print({json.dumps(done)!r})")
    return replace(netty_wheel(MS, 512), command=command)


@pytest.mark.parametrize(
    "subject",
    [netty_wheel(MS, 512), asyncio_loop("call_later"), threading_timer(), reference_subjects()[0]],
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


def test_a_jvm_control_is_believed_within_bounds(tmp_path: Path) -> None:
    """Too many naps are cut, absurd ones are held to the format's range, none at all leaves the worst alone."""
    plan = Plan(0, 1, 0, (), 0)
    many = params_of(says(DONE | {"oversleeps_ns": [1_000] * 8_000 + [-5]}), plan, tmp_path)[
        "control_oversleep"
    ]
    assert isinstance(many, dict)
    assert (many["naps"], many["bins"][0]) == (8_001, [0, 1_000, 1])
    assert params_of(says(DONE), plan, tmp_path).get("control_oversleep") is None
    assert params_of(says(DONE), plan, tmp_path)["control_worst_oversleep_ns"] == 9


@pytest.mark.parametrize("wrong", ["x", 5, [True], ["1"], [1.5], [None]])
def test_oversleeps_that_are_no_integers_are_rubbish(wrong: object, tmp_path: Path) -> None:
    """A driver that says something else has misbehaved."""
    with pytest.raises(SubjectFailed, match="oversleeps_ns"):
        params_of(says(DONE | {"oversleeps_ns": wrong}), Plan(0, 1, 0, (), 0), tmp_path)


def test_no_nap_is_no_distribution() -> None:
    """A run that ended before the first nap did."""
    assert control_params([], 0, 5) == {"control_worst_oversleep_ns": 0}
    assert MAX_NAPS == 20_000
