"""The outcomes of scenarios as `stress`, `explore` and campaigns leave them, put together by scenario.

Nothing is judged here: verdicts and grades are those of who ran the scenario; of several runs the worst counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from purgatorio_spec.verdict import Verdict, worst
from purgatorio_stress.scenario.grade import Grade

LINES_KEPT: Final = 40
"""Different outcomes of one scenario that are kept."""
NOTES_KEPT: Final = 8
COMMAND_KEPT: Final = 2_000
"""Characters of a command; a longer one is not shown."""

_OURS: Final = re.compile(r"purgatorio (stress|explore)( [0-9A-Za-z_.,:/=+-]+){1,30}")
_WORST_FIRST: Final = (
    Verdict.VIOLATED,
    Verdict.INVALID_TRACE,
    Verdict.UNKNOWN,
    Verdict.PASS,
    Verdict.SKIPPED,
)


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """An outcome: how often it was seen, what it is worth, the clause that it breaks, the command that repeats it.

    The command is there to be pasted: one that is not of ours is none.
    """

    outcome: str
    count: int
    grade: Grade
    clause: str = ""
    again: str = ""

    def __post_init__(self) -> None:
        if len(self.again) > COMMAND_KEPT or not _OURS.fullmatch(self.again):
            object.__setattr__(self, "again", "")


@dataclass(frozen=True, slots=True)
class ScenarioOutcomes:
    """What came of one scenario.

    `how`: `stress` or `explore` and its strategy; `runs`: rounds or schedules; `mutant`: the known bug that was put in;
    `overlapped`: rounds in which two threads were at work at once; `left_out`: outcomes beyond the lines; `notes`: why
    it is UNKNOWN, and what was covered.
    """

    name: str
    how: str
    verdict: Verdict
    runs: int
    lines: tuple[OutcomeLine, ...] = ()
    mutant: int = 0
    overlapped: int = 0
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name, way and bug."""
        return f"{self.name}, {self.how}" + (f", with known bug {self.mutant}" if self.mutant else "")

    @property
    def forbidden(self) -> int:
        """Runs that broke something."""
        return sum(line.count for line in self.lines if line.grade is Grade.FORBIDDEN)

    @property
    def counted(self) -> str:
        """The runs in words."""
        return f"{self.runs:,} {'rounds' if self.how == 'stress' else 'schedules'}"

    @property
    def said(self) -> list[str]:
        """The notes, with what a table of threads says of their overlap."""
        if self.how != "stress" or not self.runs:
            return list(self.notes)
        share = f"threads overlapped in {self.overlapped / self.runs:.0%} of the rounds"
        return [
            share if self.overlapped else "the window was never hit: no two threads were at work at once",
            *self.notes,
        ]


@dataclass(frozen=True, slots=True)
class OutcomeTables:
    """The tables that are shown together, the worst first. `unfinished`: what was not run to its end, in words."""

    scenarios: tuple[ScenarioOutcomes, ...] = ()
    unfinished: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.scenarios or self.unfinished)

    @property
    def verdict(self) -> Verdict:
        """The worst of the scenarios; with something unfinished nothing is PASS."""
        return worst([one.verdict for one in self.scenarios] + [Verdict.UNKNOWN] * bool(self.unfinished))


def merged(tables: Iterable[ScenarioOutcomes]) -> list[ScenarioOutcomes]:
    """One table for each scenario, way and bug: counts are sums, verdicts the worst. The worst come first."""

    def same(table: ScenarioOutcomes) -> tuple[str, str, int]:
        return table.name, table.how, table.mutant

    groups = [_together(list(some)) for _, some in groupby(sorted(tables, key=same), key=same)]
    return sorted(groups, key=lambda one: (_WORST_FIRST.index(one.verdict), one.name, one.how, one.mutant))


def _together(tables: list[ScenarioOutcomes]) -> ScenarioOutcomes:
    lines: dict[tuple[str, str, Grade], OutcomeLine] = {}
    notes: dict[str, int] = {}
    for table in tables:
        for line in table.lines:
            key = (line.clause, line.outcome, line.grade)
            held = lines.get(key)
            lines[key] = line if held is None else replace(held, count=held.count + line.count)
        for note in table.notes:
            notes[note] = notes.get(note, 0) + 1
    ordered = sorted(
        lines.values(), key=lambda line: (line.grade is not Grade.FORBIDDEN, -line.count, line.outcome)
    )
    said = [note if count == 1 else f"{note} ({count:,} times)" for note, count in notes.items()]
    if len(said) > NOTES_KEPT:
        said = [*said[:NOTES_KEPT], f"and {len(said) - NOTES_KEPT:,} more notes"]
    return replace(
        tables[0],
        verdict=worst(table.verdict for table in tables),
        runs=sum(table.runs for table in tables),
        overlapped=sum(table.overlapped for table in tables),
        lines=tuple(ordered[:LINES_KEPT]),
        left_out=sum(table.left_out for table in tables) + max(0, len(ordered) - LINES_KEPT),
        notes=tuple(said),
    )
