"""Lays out a counterexample as columns of text, one for each thread, within a given width."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_spec.show.visible import visible

LANE_GAP: Final = 2
LANE_LEAST: Final = 14
"""A narrower column is unreadable: then each line begins with the thread's name instead."""
LANE_MOST: Final = 26
"""A longer word is broken, if need be."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The columns of the threads. A column has the width that it needs, or its share of the room. `widths` is empty if
    there are too many threads. Then one column has the names of the threads."""

    threads: tuple[str, ...]
    room: int
    widths: tuple[int, ...]

    @classmethod
    def of(cls, texts: Mapping[str, Sequence[str]], room: int) -> Lanes:
        """The columns for threads with these texts, within `room` characters."""
        names = [len(visible(name)) for name in texts]
        widths = [
            max(LANE_LEAST, name, *map(len, inside))
            for name, inside in zip(names, texts.values(), strict=True)
        ]
        least = [max(LANE_LEAST, *map(_longest_piece, inside)) for inside in texts.values()]
        gaps = LANE_GAP * (len(texts) - 1)
        if sum(least) + gaps > room and len(texts) > 1:
            return cls(tuple(texts), room, ())
        while sum(widths) + gaps > room:
            spare = [width - at_least for width, at_least in zip(widths, least, strict=True)]
            widths[spare.index(max(spare))] -= 1
        return cls(tuple(texts), room, tuple(widths))

    @property
    def _name_width(self) -> int:
        return min(max(len(visible(name)) for name in self.threads), 20)

    def heads(self) -> str:
        if not self.widths:
            return "thread"
        gap = " " * LANE_GAP
        return gap.join(
            f"{visible(name, width):<{width}}" for name, width in zip(self.threads, self.widths, strict=True)
        )

    def cells(self, thread: str, text: str, inset: int = 0) -> Iterator[str]:
        """The text in its thread's column, on as many lines as needed."""
        before = " " * self._offset(thread)
        first = before if self.widths else f"{visible(thread, self._name_width):<{len(before)}}"
        for part in _folded(text, self._width(thread), inset):
            yield first + part
            first = before

    def indent(self, thread: str, inset: int, room: int) -> str:
        """The text before the text of a thread's column, if `room` characters follow."""
        return " " * min(self._offset(thread) + inset, self.room - room)

    def _width(self, thread: str) -> int:
        return self.widths[self.threads.index(thread)] if self.widths else self.room - self._offset(thread)

    def _offset(self, thread: str) -> int:
        if not self.widths:
            return self._name_width + LANE_GAP
        return sum(width + LANE_GAP for width in self.widths[: self.threads.index(thread)])


_PIECE: Final = re.compile(r"(?:\} |= )?[^\s([]+(?:[(\[]| \{)?\s*|\S\s*")
"""The pieces that a line break does not split: `} f`, `= 0`, `f(`, `k) {`, or any other word."""


def _longest_piece(text: str) -> int:
    """The width that a column for this text needs, up to a limit."""
    inset = len(text) - len(text.lstrip())
    return inset + min(max((len(piece.rstrip()) for piece in _PIECE.findall(text)), default=0), LANE_MOST)


def _folded(text: str, width: int, inset: int) -> Iterator[str]:
    """`text` on as few lines as possible, broken between words. Later lines are indented by two."""
    held, before = "", " " * inset
    for piece in _PIECE.findall(text):
        rest: str = piece
        if held and len(before) + len(held) + len(rest.rstrip()) > width:
            yield before + held.rstrip()
            held, before = "", " " * (inset + 2)
        while len(before) + len(rest.rstrip()) > width:
            most = width - len(before)
            # At a dot or after an underscore, if there is one.
            cut = max(rest.rfind(".", 1, most + 1), rest.rfind("_", 1, most) + 1)
            cut = cut if cut > 0 else most
            yield before + rest[:cut]
            rest, before = rest[cut:], " " * (inset + 2)
        held += rest
    yield before + held.rstrip()
