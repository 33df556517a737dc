"""Wire traces beside the others: `check` hands them here, and shows what comes back as any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from purgatorio_pipeline.judging import Judged
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.wire import counterexamples
from purgatorio_spec.trace.block import BrokenLine
from purgatorio_spec.wire.file import is_wire_trace
from purgatorio_spec.wire.judge import judge_file

__all__ = ["apart", "judge_wire", "together"]


def apart(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The traces of purgatories, and those of the wire."""
    wire = [path for path in paths if is_wire_trace(path)]
    return [path for path in paths if path not in wire], wire


def judge_wire(paths: Sequence[Path]) -> Judged:
    """Judge wire traces in this process, one after the other."""
    judged = Judged(CheckResult(()), {}, ())
    for path in paths:
        trace, run = judge_file(path)
        broken: tuple[BrokenLine, ...] = tuple(trace.broken)
        one = Judged(CheckResult((run,), trace.broken_count, broken), counterexamples(trace, run), ())
        judged = together(judged, one)
    return judged


def together(first: Judged, second: Judged) -> Judged:
    """Two checks as one."""
    a, b = first.result, second.result
    result = CheckResult((*a.runs, *b.runs), a.quarantined + b.quarantined, (*a.broken, *b.broken))
    return replace(first, result=result, examples={**first.examples, **second.examples})
