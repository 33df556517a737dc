"""The reference under real threads, recorded at its boundary and judged like any other subject. And the control thread
of each run: its measurements are in the trace, are bounded, and are about the machine only."""

from pathlib import Path

import pytest

from purgatorio import DelayedOperation
from purgatorio.delayed.pending_flag import PendingFlag
from purgatorio_conformance.builtin.jvm_timers import jvm_timers
from purgatorio_conformance.builtin.python_timers import asyncio_loop, threading_timer
from purgatorio_conformance.builtin.reference import ReferenceSubject, reference_subject, reference_subjects
from purgatorio_conformance.subject.contract import Subject, silent
from purgatorio_conformance.subject.oversleep import MAX_NAPS, control_params
from purgatorio_conformance.subject.plan import MS, Plan, make_plan
from purgatorio_spec.check import check_files
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from stress.trace_structure import read_run


def judged(subject: ReferenceSubject, folder: Path, operations: int, seed: int = 1) -> RunResult:
    plan = make_plan(
        seed, operations, subject.threads, subject.tick_ns, span_ns=500 * MS, longest_ns=200 * MS
    )
    trace = subject.run(plan, folder / f"{subject.name}.jsonl", lambda name, done, planned: None)
    (result,) = check_files([trace]).runs
    return result


def assert_all_promises_kept(result: RunResult) -> None:
    told = {name: (clause.verdict, clause.occasions) for name, clause in result.clauses.items()}
    assert {verdict for verdict, _ in told.values()} == {Verdict.PASS}, told
    assert min(occasions for _, occasions in told.values()) > 0, told


@pytest.mark.parametrize(
    "subject",
    [
        reference_subject("locked", 10, 3),
        reference_subject("pending-flag", 1, 20),
        reference_subject("pending-flag", 1, 256, intrusive=True),
    ],
)
def test_the_reference_keeps_its_promises(subject: ReferenceSubject, tmp_path: Path) -> None:
    assert_all_promises_kept(judged(subject, tmp_path, 300))


@pytest.mark.slow
@pytest.mark.parametrize("subject", reference_subjects(), ids=lambda subject: subject.name)
@pytest.mark.parametrize("seed", [2, 3])
def test_every_configuration_keeps_its_promises(subject: ReferenceSubject, seed: int, tmp_path: Path) -> None:
    assert_all_promises_kept(judged(subject, tmp_path, 400, seed))


def test_a_reference_that_forgets_the_timer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin (KAFKA-16663): completion without the cancel leaves timers that fire; T4 says so."""

    def without_cancel(self: PendingFlag, operation: DelayedOperation) -> bool:
        if not operation.completed.compare_and_set(False, True):
            return False
        operation.call_on_complete()
        return True

    monkeypatch.setattr(PendingFlag, "force_complete", without_cancel)
    result = judged(reference_subject("pending-flag", 1, 20), tmp_path, 300)
    assert result.clauses["T4"].verdict is Verdict.VIOLATED
    assert result.clauses["T4"].violations > 10


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
