"""The one verdict of all that is shown on a page."""

from __future__ import annotations

from purgatorio_pipeline.results.kills import KillMatrix
from purgatorio_pipeline.results.outcomes import OutcomeTables
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict, worst


def has_check(result: CheckResult, outcomes: OutcomeTables, kills: KillMatrix | None) -> bool:
    """Whether runs are to be shown: there are some, or nothing else is there that could be."""
    return bool(result.runs) or not (outcomes or kills)


def verdict_of(result: CheckResult, outcomes: OutcomeTables, kills: KillMatrix | None) -> Verdict:
    """The worst of the runs, the scenarios and the matrix, as far as each is there."""
    return worst(
        ([result.verdict] if has_check(result, outcomes, kills) else [])
        + ([outcomes.verdict] if outcomes else [])
        + ([kills.verdict] if kills is not None else [])
    )
