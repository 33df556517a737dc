"""A table of figures, for the terminal (at most 80 columns) and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.table import Table as RichTable

WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a head, and rows of texts; the first column is a name, `build` another, the rest are figures."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def rich_table(table: Table) -> RichTable:
    made = RichTable(
        title=table.title,
        caption=table.note or None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        pad_edge=False,
    )
    for place, name in enumerate(table.head):
        made.add_column(name, justify="left" if place == 0 or name == "build" else "right", overflow="fold")
    for row in table.rows:
        made.add_row(*row)
    return made


def markdown(table: Table) -> str:
    """For a page: the title in bold, the table, the note."""
    ruler = ["---" if place == 0 or name == "build" else "---:" for place, name in enumerate(table.head)]
    lines = [f"**{table.title}**" + (f" ({table.note})" if table.note else ""), ""]
    lines += [f"| {' | '.join(cells)} |" for cells in (table.head, tuple(ruler), *table.rows)]
    return "\n".join(lines)


def short(number: float) -> str:
    if number >= 1_000_000 and number % 1_000_000 == 0:
        return f"{number / 1e6:.0f}M"
    return f"{number / 1e3:.0f}k" if number >= 1_000 and number % 1_000 == 0 else f"{number:,.0f}"


def span(low: float, high: float) -> str:
    return f"{low:,.0f}-{high:,.0f}" if high < 10_000 else f"{low / 1e3:,.1f}k-{high / 1e3:,.1f}k"


def look(value: float) -> str:
    """Three digits, or all of a large number."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
