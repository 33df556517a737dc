"""The outcomes of scenarios as `stress`, `explore` and campaigns leave them, put together by scenario.

Nothing is judged here: verdicts and grades are those of who ran the scenario; of several runs the worst counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from purgatorio_pipeline.results.shape import BadResults, Shape, shape_of, shapes, text, texts, verdict, whole
from purgatorio_spec.verdict import Verdict, worst
from purgatorio_stress.scenario.grade import Grade

LINES_KEPT: Final = 40
"""Different outcomes of one scenario that are kept."""
NOTES_KEPT: Final = 8

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
    """An outcome: how often it was seen, what it is worth, the clause that it breaks, the command that repeats it."""

    outcome: str
    count: int
    grade: Grade
    clause: str = ""
    again: str = ""


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


def of_stress(found: object) -> list[ScenarioOutcomes]:
    """What `purgatorio stress --json` printed. Raises `BadResults`."""
    whole_run = shape_of(found, "the result of stress")
    problem, mutant = text(whole_run, "problem", ""), whole(whole_run, "mutant", 0)
    stuck = shape_of(whole_run.get("stuck") or {}, "'stuck'")
    tables: list[ScenarioOutcomes] = []
    for one in shapes(whole_run, "scenarios"):
        table = ScenarioOutcomes(
            text(one, "name"), "stress", verdict(one), whole(one, "rounds"), tuple(_lines(one)), mutant,
            whole(one, "overlapped", 0),
        )  # fmt: skip
        notes = list(_stress_notes(one))
        if stuck and text(stuck, "scenario", "") == table.name:
            notes += _stuck_notes(stuck)
        if problem:
            # A run that broke off shows nothing, whatever it had seen of this scenario.
            notes.append(f"the run ended early: {problem}")
            table = replace(table, verdict=worst((table.verdict, Verdict.UNKNOWN)))
        tables.append(replace(table, notes=tuple(notes)))
    return tables


def of_explore(found: object) -> list[ScenarioOutcomes]:
    """What `purgatorio explore --json` printed, of one scenario or of several. Raises `BadResults`."""
    shape = shape_of(found, "the result of explore")
    if "scenarios" in shape:
        return [_explored(one) for one in shapes(shape, "scenarios")]
    return [_explored(shape)]


def merged(tables: Iterable[ScenarioOutcomes]) -> list[ScenarioOutcomes]:
    """One table for each scenario, way and bug: counts are sums, verdicts the worst. The worst come first."""

    def same(table: ScenarioOutcomes) -> tuple[str, str, int]:
        return table.name, table.how, table.mutant

    groups = [_together(list(some)) for _, some in groupby(sorted(tables, key=same), key=same)]
    return sorted(groups, key=lambda one: (_WORST_FIRST.index(one.verdict), one.name, one.how, one.mutant))


def table_from(row: object) -> ScenarioOutcomes:
    """The table that `asdict` wrote down, in a row of a campaign. Raises `BadResults`."""
    shape = shape_of(row, "a table of outcomes")
    return ScenarioOutcomes(
        text(shape, "name"), text(shape, "how"), verdict(shape), whole(shape, "runs"),
        tuple(_line(one) for one in shapes(shape, "lines")), whole(shape, "mutant", 0),
        whole(shape, "overlapped", 0), whole(shape, "left_out", 0), tuple(texts(shape, "notes")),
    )  # fmt: skip


def _explored(shape: Shape) -> ScenarioOutcomes:
    notes = [text(shape, "bound", "")]
    if limit := text(shape, "limit", ""):
        notes.append(f"limit reached: {limit}")
    if unreached := texts(shape, "unreached"):
        notes.append(f"never reached: {', '.join(unreached)}")
    lines = list(_lines(shape))
    if "outcomes" not in shape:
        # As it was printed before outcomes were counted.
        lines = [
            OutcomeLine(
                text(one, "seen"), 1, Grade.FORBIDDEN, text(one, "clause"),
                _command({"again": f"purgatorio explore --replay {text(one, 'token')}"}),
            )
            for one in shapes(shape, "violations")
        ]  # fmt: skip
    return ScenarioOutcomes(
        text(shape, "scenario"), f"explore {text(shape, 'strategy', '')}".strip(), verdict(shape),
        whole(shape, "schedules"), tuple(lines), whole(shape, "mutant", 0), notes=tuple(filter(None, notes)),
    )  # fmt: skip


def _lines(shape: Shape) -> Iterator[OutcomeLine]:
    return (_line(one) for one in shapes(shape, "outcomes"))


def _line(shape: Shape) -> OutcomeLine:
    said = text(shape, "grade")
    try:
        grade = Grade(said)
    except ValueError:
        raise BadResults(f"{said[:60]!r} is no grade of an outcome: {', '.join(Grade)}") from None
    return OutcomeLine(
        text(shape, "outcome"), whole(shape, "count"), grade, text(shape, "clause", ""), _command(shape)
    )


def _command(shape: Shape) -> str:
    """A command is there to be pasted: one that is not of ours, or that was cut, is none."""
    said = text(shape, "again", "")
    return said if _OURS.fullmatch(said) else ""


def _stress_notes(shape: Shape) -> Iterator[str]:
    if given_up := whole(shape, "given_up", 0):
        yield f"{given_up:,} rounds were given up"


def _stuck_notes(stuck: Shape) -> Iterator[str]:
    for thread in shapes(stuck, "threads"):
        stack = texts(thread, "stack")
        how = "goes round" if thread.get("moved") else "stands still"
        yield f"stuck: {text(thread, 'name')} {how}{f' at {stack[-1]}' if stack else ''}"


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
