"""Known bugs on the page: what each layer found of those that it was asked about, and the bugs that survive. The whole
matrix is what `purgatorio mutants` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from purgatorio_pipeline.report.markup import Markup, tag
from purgatorio_pipeline.results.kills import LAYER_HEAD, KillMatrix, in_words, layer_rows
from purgatorio_spec.show.visible import TEXT_LIMIT, visible

ROWS_SHOWN: Final = 200


def kill_section(matrix: KillMatrix | None) -> Markup | None:
    """The section; none where there is no matrix."""
    if matrix is None:
        return None
    head = tag("tr", *(tag("th", name, scope="col") for name in LAYER_HEAD))
    rows = [
        tag("tr", tag("th", visible(layer), scope="row"), *(tag("td", one, class_="number") for one in said))
        for layer, *said in layer_rows(matrix)
    ]
    missing = [f"{number} {name}: {why}" for number, name, why in matrix.not_applicable]
    return tag(
        "section",
        tag("h2", "Known bugs by layer"),
        tag("p", in_words(matrix), class_="quiet"),
        tag("table", tag("thead", head), tag("tbody", *rows), class_="kills") if rows else None,
        _listed("survive", [f"{row.number} {row.name} ({row.source})" for row in matrix.survivors]),
        _listed("not applicable", missing),
        _listed("equivalent: no promise can tell these changes from the reference", matrix.equivalent),
    )


def _listed(title: str, texts: Sequence[str]) -> Markup | None:
    """A fold with the first of them; open where bugs survive."""
    if not texts:
        return None
    left = len(texts) - ROWS_SHOWN
    return tag(
        "details",
        tag("summary", f"{len(texts):,} {title}"),
        tag("ul", *(tag("li", visible(one, TEXT_LIMIT)) for one in texts[:ROWS_SHOWN]), class_="problems"),
        tag("p", f"{left:,} more are left out.", class_="quiet") if left > 0 else None,
        open="" if title == "survive" else None,
    )
