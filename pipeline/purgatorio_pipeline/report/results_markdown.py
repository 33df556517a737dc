"""Outcomes and the kill matrix in Markdown, short: for the summary of a CI job. Escaping is `markdown`'s."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from purgatorio_pipeline.report.markdown_text import fenced, left_out, plain, table, text
from purgatorio_pipeline.report.outcome_section import share, sums
from purgatorio_pipeline.results.kills import LAYER_HEAD, KillMatrix, in_words, layer_rows
from purgatorio_pipeline.results.outcomes import OutcomeTables, ScenarioOutcomes
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.scenario.grade import Grade

SCENARIOS_SHOWN: Final = 30
BROKEN_SHOWN: Final = 10
LINES_SHOWN: Final = 5
SURVIVORS_SHOWN: Final = 40


def outcome_lines(tables: OutcomeTables) -> Iterator[str]:
    """The scenarios as a table, the worst first, and what is forbidden of them with the command that repeats it."""
    if not tables:
        return
    yield f"### Outcomes\n\n{sums(tables.scenarios)}\n"
    for said in tables.unfinished[:BROKEN_SHOWN]:
        yield f"Not finished: {plain(said, TEXT_LIMIT)}\n"
    rows = [
        [text(one.title, 160), str(one.verdict), one.counted, _outcomes(one), f"{one.forbidden:,}"]
        for one in tables.scenarios[:SCENARIOS_SHOWN]
    ]
    if rows:
        head = ["scenario", "verdict", "runs", "outcomes", "forbidden"]
        yield table(head, rows) + left_out(len(tables.scenarios), SCENARIOS_SHOWN, "scenarios")
    broken = [one for one in tables.scenarios if one.verdict is Verdict.VIOLATED]
    for one in broken[:BROKEN_SHOWN]:
        yield f"#### {plain(one.title, 160)}\n\n{fenced(_forbidden(one))}"
    if len(broken) > BROKEN_SHOWN:
        yield left_out(len(broken), BROKEN_SHOWN, "violated scenarios").strip() + "\n"


def _outcomes(one: ScenarioOutcomes) -> str:
    """How many different ones, by grade."""
    counts = {grade: sum(line.grade is grade for line in one.lines) for grade in Grade}
    return ", ".join(f"{count:,} {grade}" for grade, count in counts.items() if count)


def _forbidden(one: ScenarioOutcomes) -> str:
    lines: list[str] = []
    forbidden = [line for line in one.lines if line.grade is Grade.FORBIDDEN]
    for line in forbidden[:LINES_SHOWN]:
        said = f"{line.clause}: {line.outcome}" if line.clause else line.outcome
        lines.append(f"{line.count:,} ({share(line.count, one.runs)})  {visible(said, TEXT_LIMIT)}")
        lines += [f"  again: {line.again}"] if line.again else []
    if len(forbidden) > LINES_SHOWN:
        lines.append(f"{len(forbidden) - LINES_SHOWN:,} more forbidden outcomes are left out.")
    return "\n".join(lines) or "VIOLATED without a forbidden outcome in the table."


def kill_lines(matrix: KillMatrix | None) -> Iterator[str]:
    """What each layer found, and the bugs that survive."""
    if matrix is None:
        return
    yield f"### Known bugs by layer\n\n{in_words(matrix)}\n"
    rows = [[text(layer), *said] for layer, *said in layer_rows(matrix)]
    if rows:
        yield table(list(LAYER_HEAD), rows)
    named = [f"- survives: {row.number} {text(row.name)}\n" for row in matrix.survivors[:SURVIVORS_SHOWN]]
    if named:
        yield "".join(named) + left_out(len(matrix.survivors), SURVIVORS_SHOWN, "survivors")
