"""From what the user names to what is to be shown: traces, lakes, campaigns and files of results, together.

Traces are judged here, in this process; everything else was judged by the command that wrote it.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import orjson

from purgatorio_pipeline.campaign.outcome import Outcome, outcome_from
from purgatorio_pipeline.campaign.run import left_of
from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.judging import Judged, judge_in_process
from purgatorio_pipeline.results.checked import of_check, of_lake
from purgatorio_pipeline.results.kills import KillMatrix, joined, of_kept, of_mutants
from purgatorio_pipeline.results.known import with_known
from purgatorio_pipeline.results.outcomes import (
    OutcomeLine,
    OutcomeTables,
    ScenarioOutcomes,
    merged,
    of_explore,
    of_stress,
)
from purgatorio_pipeline.results.shape import BadResults, Shape, shape_of
from purgatorio_pipeline.results.total import verdict_of
from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.scenario.grade import Grade

MAX_BYTES: Final = 256 << 20
"""Of one file of results; it is read whole."""

_HEAD_BYTES: Final = 1 << 16
_HEADERS: Final = (b'"header"', b'"kind"')
_KNOWN: Final = (
    "what `purgatorio stress`, `explore`, `mutants`, `check` or `verify` print with --json, or a file of "
    "`mutants --kept`"
)


@dataclass(slots=True)
class Gathered:
    """All that was named. What nobody named is empty."""

    judged: Judged
    outcomes: OutcomeTables
    kills: KillMatrix | None

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return verdict_of(self.judged.result, self.outcomes, self.kills)

    def as_json(self) -> dict[str, object]:
        """For `purgatorio report --json`; of the matrix the sums alone, its rows are in what `mutants` printed."""
        checked = self.judged.result.as_json() if self.judged.result.runs else {}
        bugs: dict[str, object] = {}
        if self.kills is not None:
            bugs = {"asked": len(self.kills.rows), "survive": [row.number for row in self.kills.survivors]}
        return {
            **checked,
            "kind": "report",
            "verdict": str(self.verdict),
            "scenarios": [asdict(one) for one in self.outcomes.scenarios],
            "unfinished": list(self.outcomes.unfinished),
            "bugs": bugs,
        }


@dataclass(slots=True)
class _Found:
    """What the sources gave so far."""

    traces: list[str] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    lakes: list[Judged] = field(default_factory=list)
    tables: list[ScenarioOutcomes] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    matrices: list[KillMatrix] = field(default_factory=list)

    def add(self, argument: str) -> None:
        place = Path(argument)
        if is_uri(argument):
            raise BadResults(
                f"{argument}: a URI is read by Spark alone; `purgatorio check` has --report for it"
            )
        lake, campaign = (place / "gold" / "verdicts").is_dir(), (place / "verdicts").is_dir()
        if lake:
            self.lakes.append(with_known(place, *of_lake(place)))
        if campaign:
            self._campaign(place)
        if lake or campaign:
            return
        # What is not there is said by who looks for traces.
        named = [place] if place.exists() else [Path(name) for name in sorted(glob.glob(argument))]
        for one in named or [place]:
            self._file(one)

    def _file(self, file: Path) -> None:
        if not file.is_file() or _is_trace(file):
            self.traces.append(str(file))
            return
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise BadResults(f"{file}: {size:,} bytes are more than results have; {MAX_BYTES:,} are read")
        try:
            self._results(file.read_bytes())
        except BadResults as wrong:
            raise BadResults(f"{file}: {wrong}") from None

    def _results(self, held: bytes) -> None:
        if not held.strip():
            raise BadResults(f"it is empty; known are {_KNOWN}")
        try:
            shape = shape_of(orjson.loads(held), "it")
        except orjson.JSONDecodeError:
            self.matrices.append(of_kept(_lines(held)))
            return
        match shape.get("kind"):
            case "check":
                self.checks.append(of_check(shape))
            case "stress":
                self.tables += of_stress(shape)
            case "explore":
                self.tables += of_explore(shape)
            case "mutants":
                self.matrices.append(of_mutants(shape))
            case "mutant":
                self.matrices.append(of_kept([shape]))
            case "campaign":
                raise BadResults(
                    "the sums of a campaign: name its folder (--out) instead, which has the outcomes"
                )
            case kind:
                said = "no `kind`" if kind is None else f"the kind {visible(str(kind), 60)!r}"
                raise BadResults(
                    f"neither a trace nor results that are read here ({said}): known are {_KNOWN}"
                )

    def _campaign(self, place: Path) -> None:
        for file in sorted((place / "verdicts").glob("[!.]*.json")):
            try:
                self.tables += _tables_of(outcome_from(dict(shape_of(orjson.loads(file.read_bytes()), "it"))))
            except (AssertionError, KeyError, TypeError, ValueError) as wrong:
                raise BadResults(f"{file}: no row of a campaign: {visible(str(wrong), 200)}") from None
        left = left_of(place)
        self.unfinished += [left] if left else []


def gather(arguments: Iterable[str]) -> Gathered:
    """Read and, for traces, judge all that is named. Raises `BadResults`, `NoTraces`, OSError."""
    found = _Found()
    for argument in arguments:
        found.add(argument)
    judged = judge_in_process(find_traces(found.traces) if found.traces else ())
    whole = [judged, *found.lakes]
    results = [*(one.result for one in whole), *found.checks]
    result = CheckResult(
        tuple(run for one in results for run in one.runs),
        sum(one.quarantined for one in results),
        tuple(line for one in results for line in one.broken),
    )
    shown = Judged(
        result,
        {key: example for one in whole for key, example in one.examples.items()},
        [late for one in whole for late in one.lateness],
        [gauges for one in whole for gauges in one.gauges],
    )
    return Gathered(
        shown, OutcomeTables(tuple(merged(found.tables)), tuple(found.unfinished)), joined(found.matrices)
    )


def _is_trace(file: Path) -> bool:
    """Whether it looks like one; what looks like neither trace nor results is left to who reads results."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES).lstrip()
    if head[:1] != b"{":
        return file.suffix != ".json"
    first = head.split(b"\n", 1)[0][:200]
    return all(word in first for word in _HEADERS)


def _lines(held: bytes) -> Iterator[Shape]:
    try:
        for line in held.splitlines():
            yield shape_of(orjson.loads(line), "a line")
    except orjson.JSONDecodeError:
        raise BadResults(f"it is no JSON: known are {_KNOWN}") from None


def _tables_of(outcome: Outcome) -> Iterator[ScenarioOutcomes]:
    """The tables of a job; of one that failed, or was committed before there were tables, what its row says."""
    job = outcome.job
    how = job.kind if job.kind == "stress" else f"{job.kind} {job.strategy}"
    if outcome.tables:
        yield from outcome.tables
        return
    lines = tuple(
        OutcomeLine(one.seen, 1, Grade.FORBIDDEN, one.clause.replace("outcome", ""), one.repeat)
        for one in outcome.broken
    )
    notes = (f"a job failed: {outcome.failure}",) if outcome.failure else ()
    yield ScenarioOutcomes(job.scenario, how, outcome.verdict, outcome.runs, lines, job.mutant, notes=notes)
