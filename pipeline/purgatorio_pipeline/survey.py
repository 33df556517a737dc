"""Makes a survey of subjects: drives each subject by a plan, records and judges the run, and collects its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_conformance.recording import RunRecord, record_runs
from purgatorio_conformance.subject.contract import Progress, Subject, silent
from purgatorio_pipeline.documents import fields_of
from purgatorio_pipeline.printed import run_of
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import TimerConstants
from purgatorio_spec.verdict import Verdict

RECORDERS = 2
"""The number of concurrent recordings. More recordings would disturb each other's times."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The outcomes of the timers of a run. `cancelled`: by a successful cancel. If cancel returns no result: a cancel
    after which the timer did not fire. `refused`: adds that raised, by name of the exception."""

    timers: int
    fired: int
    cancelled: int
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One configuration. Without `result`, it could not be driven, and `why` has the reason.

    `failed`: it misbehaved during the run, so its recorded events prove nothing.
    """

    name: str
    profile: str
    why: str = ""
    failed: bool = False
    implementation: str = ""
    version: str = ""
    constants: TimerConstants | None = None
    counts: Totals | None = None
    result: RunResult | None = None
    lateness: Lateness | None = None
    examples: tuple[Counterexample, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run. UNKNOWN if the subject misbehaved, SKIPPED if it is not available."""
        if self.result is not None:
            return self.result.verdict
        return Verdict.UNKNOWN if self.failed else Verdict.SKIPPED

    def as_json(self) -> dict[str, object]:
        if self.result is None or self.counts is None:
            return fields_of(self, "name profile verdict why")
        shape = fields_of(self, "name profile verdict implementation version")
        shape |= fields_of(self.counts, "timers fired cancelled refused")
        if self.lateness is not None:
            late = self.lateness
            shape |= {"before_deadline": late.early, "lateness_counted": late.count}
            shape |= {"lateness_ns": {"p50": late.p50_ns, "p99": late.p99_ns, "max": late.max_ns}}
        return shape | {"clauses": run_of(self.result).clauses}


def survey(
    subjects: Sequence[Subject], folder: Path, seed: int, operations: int, progress: Progress = silent
) -> list[Surveyed]:
    """Drive, record and judge each subject, in the order given. Traces stay in `folder`."""
    records = record_runs(subjects, folder, seed, operations, progress, workers=RECORDERS)
    return [_surveyed(subject, record) for subject, record in zip(subjects, records, strict=True)]


def _surveyed(subject: Subject, record: RunRecord) -> Surveyed:
    failure = record.failure
    if failure is None:
        assert record.path is not None, "a run has a trace or a failure"
        return _judged(subject, record.path)
    why = failure.why if failure.kind == "unavailable" else f"{failure.kind}: {failure.why}"
    if failure.trace is not None:
        # An incomplete run proves no promise, but it may violate one.
        broken = _judged(subject, failure.trace)
        if broken.verdict is Verdict.VIOLATED:
            return replace(broken, why=why, failed=True)
    return Surveyed(subject.name, subject.profile, why, failed=failure.kind != "unavailable")


def _judged(subject: Subject, path: Path) -> Surveyed:
    judged = judge_in_process([path])
    reader = TraceReader(path)
    table = pa.Table.from_batches(reader.batches(), EVENT_SCHEMA)
    header = reader.header
    assert header is not None, "the run was recorded here"
    return Surveyed(
        subject.name,
        header.profile,
        implementation=header.implementation.name,
        version=header.implementation.version,
        constants=header.timer,
        counts=counts_of(table),
        result=judged.result.runs[0],
        lateness=next(iter(judged.lateness), None),
        examples=tuple(judged.examples.values()),
    )


def counts_of(events: pa.Table) -> Totals:
    returned = events.filter(pc.is_in(events.column("ph"), pa.array(["ret", "at"])))
    adds = _of(returned, "timer_add")
    fired = set(_of(returned, "timer_fire").column("id").to_pylist())
    cancels = _of(returned, "timer_cancel").select(["id", "out", "err"]).to_pylist()
    won = {one["id"] for one in cancels if one["out"] == 1}
    silent = {one["id"] for one in cancels if one["out"] is None and one["err"] is None}
    refused = [err for err in adds.column("err").to_pylist() if err is not None]
    return Totals(
        adds.num_rows,
        len(fired),
        len(won | (silent - fired)),
        {name: refused.count(name) for name in sorted(set(refused))},
    )


def _of(events: pa.Table, function: str) -> pa.Table:
    return events.filter(pc.equal(events.column("f"), pa.scalar(function)))
