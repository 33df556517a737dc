"""`Finding`: the result of a command such as `explore`, as one row of a report. `report` does not judge it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.verdict import Verdict, worst

COMMAND_KEPT: Final = 2_000
"""The maximum number of characters of a command. A longer command is not shown."""

_OURS: Final = re.compile(r"purgatorio (stress|explore)( [0-9A-Za-z_.,:/=+-]+){1,30}")


@dataclass(frozen=True, slots=True)
class Finding:
    """The subject of a check (`what`), the result in words, and the command that repeats the check.

    A user pastes the command into a shell. So a command that is no command of this project is dropped.
    """

    what: str
    verdict: Verdict
    said: str
    again: str = ""

    def __post_init__(self) -> None:
        if len(self.again) > COMMAND_KEPT or not _OURS.fullmatch(self.again):
            object.__setattr__(self, "again", "")


def has_check(result: CheckResult, findings: Sequence[Finding]) -> bool:
    """Whether a report shows runs: if there are runs, or if there are no findings either."""
    return bool(result.runs) or not findings


def verdict_of(result: CheckResult, findings: Sequence[Finding]) -> Verdict:
    """The worst verdict of the runs (if the report shows them) and the findings."""
    checked = [result.verdict] if has_check(result, findings) else []
    return worst([*checked, *(one.verdict for one in findings)])
