"""Escapes text from traces for Markdown, so that the text cannot become markup, a link or a mention.

In a paragraph, the text is in `<code>`, and every special character is a numeric entity. In a code block, the fence is
longer than any fence in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from purgatorio_spec.durations import duration
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.visible import TEXT_LIMIT, visible

_SPECIAL: Final = re.compile(r"[^0-9A-Za-z \-,()=/.\u0080-\U0010ffff]|(?<=[Ww]{3})\.")


def text(said: str, limit: int = TEXT_LIMIT) -> str:
    """Text of a trace as Markdown that only shows it. One line, as `visible` makes it."""
    return f"<code>{plain(said, limit)}</code>"


def plain(said: str, limit: int = TEXT_LIMIT) -> str:
    """As `text`, but without `<code>`, for sentences of Purgatorio that quote a trace."""
    return _SPECIAL.sub(lambda one: f"&#{ord(one[0])};", visible(said, limit))


def fenced(listing: str) -> str:
    """Lines as a listing. The fence is longer than any row of backticks in the lines."""
    longest = max((len(found) for found in re.findall(r"`+", listing)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{listing.rstrip()}\n{fence}\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already Markdown. Columns of numbers are right-aligned."""
    numbers = [all(cell.replace(",", "").isdigit() for cell in column) for column in zip(*rows, strict=True)]
    lines = [head, ["---:" if right else "---" for right in numbers], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def lateness_cells(lateness: Lateness) -> list[str]:
    figures = map(duration, lateness.figures_ns.values())
    return [f"{lateness.count:,}", f"{lateness.early:,}", *figures]


def left_out(total: int, limit: int, noun: str) -> str:
    return f"\n{total - limit:,} more {noun} are left out.\n" if total > limit else ""
