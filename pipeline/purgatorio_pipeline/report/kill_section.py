"""The kill matrix on the page: a row for each known bug, a column for each layer that was asked about it."""

from __future__ import annotations

from typing import Final

from purgatorio_pipeline.report.markup import Markup, joined, tag
from purgatorio_pipeline.results.kills import KillMatrix, KillRow, in_words
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_stress.kill_matrix.kill import Kill

ROWS_SHOWN: Final = 200
"""Bugs in the table; those that survive come first."""

_CELL: Final = 16
_LEGEND: Final = (
    ("pass", "✓ found, by what"),
    ("skipped", "– looked, and found nothing"),
    ("empty", "· not asked, or not of a kind that it looks for"),
)


def kill_section(matrix: KillMatrix | None) -> Markup | None:
    """The section; none where there is no matrix."""
    if matrix is None:
        return None
    layers = matrix.layers
    # Sorting keeps the order of numbers among equals.
    ordered = sorted(matrix.rows, key=lambda row: row.killed)
    shown = ordered[:ROWS_SHOWN]
    left = len(ordered) - len(shown)
    body = [_killed(matrix, layers), _seconds(matrix, layers), *(_row(row, layers) for row in shown)]
    head = tag("tr", *(tag("th", visible(name), scope="col") for name in ("known bug", *layers)))
    return tag(
        "section",
        tag("h2", "Known bugs by layer"),
        tag("p", in_words(matrix), class_="quiet"),
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", *body), class_="verdicts kills"),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label="known bugs by layer",
        )
        if matrix.rows
        else None,
        tag("p", f"{left:,} more bugs are left out.", class_="quiet") if left > 0 else None,
        tag("ul", *(tag("li", said, class_=f"key {kind}") for kind, said in _LEGEND), class_="legend"),
        _not_counted(matrix),
    )


def effort(kill: Kill) -> str:
    """What a layer did for its answer, in words."""
    said = [f"{kill.effort:,} {kill.unit}"] if kill.unit else []
    said += [f"{kill.preemptions:,} preemptions"] if kill.preemptions is not None else []
    said += [f"{kill.hits:,} of them reported it"] if kill.hits is not None else []
    return ", ".join([*said, f"{kill.seconds:.2f} s"])


def _killed(matrix: KillMatrix, layers: list[str]) -> Markup:
    counts = ((sum(kill.killed for kill in matrix.of(layer)), len(matrix.of(layer))) for layer in layers)
    return _sums("found, of those asked", [f"{killed:,} of {asked:,}" for killed, asked in counts])


def _seconds(matrix: KillMatrix, layers: list[str]) -> Markup:
    return _sums("seconds", [f"{matrix.seconds(layer):,.1f}" for layer in layers])


def _sums(name: str, said: list[str]) -> Markup:
    return tag("tr", tag("th", name, scope="row"), *(tag("td", one) for one in said), class_="sums")


def _row(row: KillRow, layers: list[str]) -> Markup:
    about = " · ".join(visible(one, 80) for one in (row.source, row.scenario) if one)
    return tag(
        "tr",
        tag(
            "th",
            tag("span", f"{row.number} {visible(row.name, 80)}", class_="run"),
            tag("span", about, class_="about"),
            None if row.killed else tag("span", "survives", class_="clause"),
            scope="row",
        ),
        *(_cell(row.layers.get(layer)) for layer in layers),
    )


def _cell(kill: Kill | None) -> Markup:
    if kill is None or kill.reason:
        return tag(
            "td", "·", class_="empty", title="not asked" if kill is None else visible(kill.reason, TEXT_LIMIT)
        )
    if not kill.killed:
        return tag("td", "–", class_="skipped", title=f"nothing found: {effort(kill)}")
    return tag(
        "td",
        f"✓ {visible(kill.by, _CELL)}",
        class_="pass",
        title=f"{visible(kill.by, TEXT_LIMIT)}: {effort(kill)}",
    )


def _not_counted(matrix: KillMatrix) -> Markup | None:
    """The bugs that are in no row, and why."""
    reasons = [
        joined(tag("dt", f"{number} {visible(name, 80)}"), tag("dd", visible(why, TEXT_LIMIT)))
        for number, name, why in matrix.not_applicable[:ROWS_SHOWN]
    ]
    same = [tag("li", visible(one, TEXT_LIMIT)) for one in matrix.equivalent[:ROWS_SHOWN]]
    if not reasons and not same:
        return None
    title = f"{len(matrix.not_applicable):,} not applicable, {len(matrix.equivalent):,} equivalent"
    return tag(
        "details",
        tag("summary", title),
        tag("dl", *reasons, class_="said") if reasons else None,
        tag("p", "No promise can tell these changes from the reference:", class_="quiet") if same else None,
        tag("ul", *same, class_="problems") if same else None,
    )
