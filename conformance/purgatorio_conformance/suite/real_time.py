"""Tests a timer with its own clock in the way of `purgatorio verify`: random plans in real time, on several threads.

The timer is a built-in subject (`purgatorio_conformance.subject.contract.Subject`): the subject executes the plan and
records the calls. A run takes a few seconds, and mostly sleeps. The machine may delay tasks, so lateness below the
declared bound is no violation.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from purgatorio_conformance.subject.contract import Subject
from purgatorio_conformance.subjects import record_runs
from purgatorio_conformance.suite.contract import BadPromise, Promise
from purgatorio_conformance.suite.program import PlanProgram, Scenario
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.recording import Judged, judge_file

PLAN: Final = "plan"

SubjectFactory = Callable[[Promise], Subject]
"""Makes a subject for each run."""


def plan_scenario(promise: Promise, seeds: tuple[int, ...], timers: int) -> Scenario:
    """One run for each seed, for all clauses of the profile that are judged from traces."""
    promised = PROFILES[promise.profile].clauses
    clauses = tuple(name for name, one in CLAUSES.items() if name in promised and not one.asked_by)
    programs = tuple(PlanProgram(f"{PLAN}-{seed}", seed, timers) for seed in seeds)
    return Scenario(PLAN, clauses, programs)


def run_plan(program: PlanProgram, promise: Promise, factory: SubjectFactory, folder: Path) -> Judged:
    """Record the run in `folder`, and judge the trace. Misbehavior of the subject is in `broken_off`.

    Raises BadPromise if the subject declares another profile.
    """
    subject = factory(promise)
    if subject.profile != promise.profile:
        raise BadPromise(f"{subject.name} declares the profile {subject.profile}, not {promise.profile}")
    (record,) = record_runs([subject], folder, program.seed, program.timers, workers=1, suffix=".jsonl")
    return judge_file(record.trace, record.run, "" if record.failure is None else str(record.failure))
