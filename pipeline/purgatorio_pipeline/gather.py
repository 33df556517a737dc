"""Collects the results that the user names: traces, folders of `--out`, campaigns and files of results.

The module judges traces. All other results were judged before, by the command that wrote them.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from purgatorio_pipeline.campaign import run as campaign
from purgatorio_pipeline.documents import Unreadable, decoded
from purgatorio_pipeline.finding import Finding, verdict_of
from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.incremental import check
from purgatorio_pipeline.judging import Judged, together
from purgatorio_pipeline.lake import MARK, Lake
from purgatorio_pipeline.printed import Check, Printed, Report, check_of, findings_of
from purgatorio_pipeline.process_engine import judge_in_process
from purgatorio_pipeline.report.grouped import worst_first
from purgatorio_pipeline.sources import find_traces
from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict

MAX_BYTES: Final = 256 << 20
"""The maximum size of a file of results, which is read as a whole."""

_HEAD_BYTES: Final = 1 << 16
_HEADERS: Final = (b'"header"', b'"kind"')
_KNOWN: Final = (
    "what `purgatorio stress`, `explore`, `check`, `verify` or `wire` print with --json, and the folders of "
    "`check --out` and `campaign --out`"
)


@dataclass(slots=True)
class Gathered:
    """The collected results: the check of the traces, and the findings of other commands, the worst first."""

    judged: Judged
    findings: list[Finding]

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.judged.result, self.findings)

    def printed(self) -> Report:
        check = check_of(self.judged.result, self.judged.examples)
        return Report(
            verdict=self.verdict,
            runs=check.runs,
            quarantined=check.quarantined,
            broken=check.broken,
            findings=self.findings,
        )


@dataclass(slots=True)
class _Named:
    traces: list[str] = field(default_factory=list)
    checks: list[Judged] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, argument: str) -> None:
        place = Path(argument)
        if is_uri(argument):
            raise Unreadable(f"{argument}: only Spark can read a URI; use `purgatorio check --report` for it")
        if (place / MARK).is_file():
            self._folder(place, (place / MARK).read_text())
            return
        # The search for traces reports missing files.
        named = [place] if place.exists() else [Path(name) for name in sorted(glob.glob(argument))]
        for one in named or [place]:
            if not one.is_file() or _is_trace(one):
                self.traces.append(str(one))
                continue
            try:
                self._results(one)
            except Unreadable as wrong:
                said = visible(str(wrong), 300)
                raise Unreadable(f"{one}: {said}: known are {_KNOWN}") from None

    def _folder(self, place: Path, kind: str) -> None:
        if kind == check.KIND:
            self.checks.append(check.last_check(Lake(place)))
        elif kind == campaign.KIND:
            self.findings += campaign.findings_of(place)
        else:
            raise Unreadable(f"{place}: the folder of `purgatorio {visible(kind, 60)}`: known are {_KNOWN}")

    def _results(self, file: Path) -> None:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise Unreadable(f"{size:,} bytes: a file of results has at most {MAX_BYTES:,} bytes")
        found: Printed = decoded(file.read_bytes(), Printed)  # type: ignore[arg-type]  # a union is no type to mypy
        if isinstance(found, Check):
            self.checks.append(Judged(found.result(), {}, []))
        else:
            self.findings += findings_of(found)


def gather(arguments: Iterable[str]) -> Gathered:
    """Read all named results, and judge the traces. Raises `Unreadable`, `NoTraces`, OSError."""
    named = _Named()
    for argument in arguments:
        named.add(argument)
    whole = [judge_in_process(find_traces(named.traces) if named.traces else ()), *named.checks]
    return Gathered(together(whole), worst_first(named.findings))


def _is_trace(file: Path) -> bool:
    """Whether the file looks like a trace. A file that looks like neither a trace nor results is read as results."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES).lstrip()
    if head[:1] != b"{":
        return file.suffix != ".json"
    first = head.split(b"\n", 1)[0][:200]
    return all(word in first for word in _HEADERS)
