"""What was found in a log while it was read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from purgatorio_pipeline.log.mapping import LogMapping
from purgatorio_spec.trace.convert import CannotConvert
from purgatorio_spec.trace.log import LogFacts

_UNKNOWN_WORDS: Final = 1_000
"""The column may hold free text, so at most this number of different texts is counted."""
_LEFT_OUT_SHOWN: Final = 5


@dataclass(slots=True)
class Reading:
    """The counts of rows, the bad rows, and the words that the mapping does or does not know."""

    keep_going: bool
    sources: int = 1
    files: list[tuple[int, str]] = field(default_factory=list)
    """For each file, the number of rows before it, and its name."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """By column, a text for each file without this column."""
    rows: int = 0
    backwards: int = 0
    backwards_row: int = 0
    left_out: int = 0
    why_left_out: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By kind, the first bad row as a text, and the number of bad rows."""
    cut: list[str] = field(default_factory=list)
    """Why the first or the last line is no row."""
    known: set[str] = field(default_factory=set)
    """The words of the mapping that a row has."""
    unknown: dict[str, int] = field(default_factory=dict)
    unknown_ends: dict[str, int] = field(default_factory=dict)
    """By word that the mapping does not know, the number of requests that only this word may have ended."""
    beyond_events: int = 0
    """Requests from a time without events of keys: before the first event, or after the last one."""
    given: dict[str, int] = field(default_factory=dict)
    """By column, the number of rows with a text."""
    other_rows: int = 0
    """Rows without an id and a time."""
    offsets: set[timedelta | None] = field(default_factory=set)
    """The offsets from UTC that the times are written with; None for numbers."""
    absent: list[tuple[str, str]] = field(default_factory=list)
    """Columns of an end that no request had, with that end."""

    def row(self, number: int | None = None) -> str:
        """The name of a row, by default of the last one: its number, and its file if there are several."""
        return LogFacts(files=self.several).row(self.rows if number is None else number)

    @property
    def several(self) -> Sequence[tuple[int, str]]:
        """`files`, if there are several."""
        return self.files if len(self.files) > 1 else ()

    def count_unknown(self, word: str) -> None:
        """Counts a row whose word the mapping does not know."""
        if word in self.unknown or len(self.unknown) < _UNKNOWN_WORDS:
            self.unknown[word] = self.unknown.get(word, 0) + 1

    def leave_out(self, why: str) -> None:
        """Leaves out a row or a request that cannot be converted. Raises CannotConvert unless the user wants to
        leave out bad rows."""
        if not self.keep_going:
            raise CannotConvert(f"{why} (--keep-going leaves such rows out)")
        self.left_out += 1
        kind = re.sub(r"'[^']*'|\d[\d,.]*", "", why)
        if kind in self.why_left_out or len(self.why_left_out) < _LEFT_OUT_SHOWN:
            first, count = self.why_left_out.get(kind, (why, 0))
            self.why_left_out[kind] = first, count + 1

    def notes(self, mapping: LogMapping) -> Iterator[str]:
        """What the user should know about the rows, in words."""
        for name, end in self.absent:
            yield (
                f"the column {name!r} is empty in all {self.rows:,} rows, so no request {end}; if this is wrong, name "
                "another column"
            )
        for word in (word for word in mapping.words if word not in self.known):
            near = get_close_matches(word, self.unknown, 1)
            yield f"no row has the word {word!r}, which [words] gives for {mapping.words[word]}" + "".join(
                f": did you mean {one!r}?" for one in near
            )
        if self.unknown:
            most = sorted(self.unknown.items(), key=lambda one: -one[1])[:5]
            said = ", ".join(f"{word!r} ({count:,})" for word, count in most)
            yield f"rows whose words the mapping does not know were left out: {said}; see [words]"
        if self.other_rows:
            yield (
                f"{self.other_rows:,} rows have neither an id nor a time: left out. If they are events of keys, name "
                "the column of their times in event"
            )
        for why in self.cut:
            yield f"{why}: left out, as if the log were a line shorter"
        if self.backwards:
            yield (
                f"{self.backwards:,} rows are earlier than a row before them (first {self.row(self.backwards_row)}): "
                "the rows were sorted by time"
            )

    def left_out_notes(self) -> Iterator[str]:
        """The number of bad rows, and the first of each kind."""
        if self.left_out:
            shown = sum(count for _, count in self.why_left_out.values())
            yield f"{self.left_out:,} bad row{'s' * (self.left_out > 1)} left out, with all of their requests"
            yield from (f"{count:,}: {first}" for first, count in self.why_left_out.values())
            if self.left_out > shown:
                yield f"{self.left_out - shown:,} of other kinds"
