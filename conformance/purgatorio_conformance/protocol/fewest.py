"""Delta debugging (Zeller and Hildebrandt, 2002): minimizes a list that still shows a violation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")


def fewest(
    items: tuple[Item, ...],
    shows: Callable[[tuple[Item, ...]], bool],
    enough: Callable[[tuple[Item, ...]], bool],
) -> tuple[Item, ...]:
    """Remove pieces of the list (halves, quarters, ..., single items) as long as the rest shows the violation. Stops
    when `enough` accepts the result, or when no single item can be removed."""
    piece = max(1, len(items) // 2)
    while not enough(items):
        kept, place, left_out = items, 0, False
        while place < len(kept) and not enough(kept):
            fewer = kept[:place] + kept[place + piece :]
            if shows(fewer):
                kept, left_out = fewer, True
            else:
                place += piece
        items = kept
        if piece == 1 and not left_out:
            break
        piece = max(1, piece // 2) if not left_out or piece > 1 else 1
    return items
