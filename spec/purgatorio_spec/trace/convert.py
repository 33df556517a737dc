"""Converts a trace between JSON lines (plain, gzip, zstd) and Parquet, and validates the trace.

One block of lines (or one row group of Parquet) is in memory at a time. Until the output is complete, it is a hidden
file `.partial-...` in the same folder. After an error, this file is removed. After a kill, the file stays, and the next
run replaces it.

A round trip gives equal records, but not always equal bytes (order of fields, white space). Integers beyond 64 bits in
`x_` fields may become floats.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.trace.record import End
from purgatorio_spec.trace.writer import TraceWriter

FORMS: Final[tuple[str, ...]] = (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""The suffixes that an output can have."""


class CannotConvert(Exception):
    """The output cannot be written as requested. The text has the reason and the remedy. No file was changed."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a conversion. `written`: the output exists. `end`: the written end record, or None.

    `broken` has broken lines up to the reader's limit. `broken_count` counts all.
    """

    run: str
    events: int
    end: End | None
    broken: tuple[BrokenLine, ...]
    broken_count: int
    cut: str | None
    written: bool

    @property
    def valid(self) -> bool:
        """Whether there was a header, every line was a record, and the file was not cut."""
        return self.written and self.broken_count == 0 and self.cut is None


def convert(
    source: Path,
    target: Path,
    *,
    force: bool = False,
    keep_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Conversion:
    """Write the trace `source` to `target` in the form that its suffix names.

    If a line is broken or the end is cut off, nothing is written. With `keep_going`, the readable records are written.
    Then the end record counts the broken lines as dropped, so the copy does not look like a complete trace. `progress`
    is called after each block with the events read so far. Raises `CannotConvert`, and `OSError` from the file system.
    """
    partial = partial_of(target, force=force)
    reader = TraceReader(source)
    writer: TraceWriter | None = None
    written = False
    try:
        for batch in reader.batches():
            if writer is None and reader.header is not None:
                writer = TraceWriter(partial, reader.header)
            if writer is not None and _goes_on(reader, keep_going):
                writer.write_batch(batch)
            if progress is not None:
                progress(reader.events)
        if writer is None and reader.header is not None:
            writer = TraceWriter(partial, reader.header)
        end = _end_of(reader)
        if writer is not None and _goes_on(reader, keep_going):
            writer.finish(end)
            os.replace(partial, target)
            written = True
    finally:
        if writer is not None and not written:
            writer.close(whole=False)
        partial.unlink(missing_ok=True)
    return Conversion(
        run="" if reader.header is None else reader.header.run,
        events=reader.events,
        end=end,
        broken=tuple(reader.broken),
        broken_count=reader.broken_count,
        cut=reader.cut,
        written=written,
    )


def partial_of(target: Path, *, force: bool) -> Path:
    """The path of an output until it is complete. Raises `CannotConvert` if the target must not be written."""
    if not target.name.endswith(FORMS):
        raise CannotConvert(f"{target.name}: unknown suffix; use one of {', '.join(FORMS)}")
    if not target.parent.is_dir():
        raise CannotConvert(f"{target.parent} is not a folder; create it, or choose another")
    if target.exists() and not force:
        raise CannotConvert(f"{target} exists; choose another name, or overwrite it with --force")
    return target.with_name(f".partial-{target.name}")


def _goes_on(reader: TraceReader, keep_going: bool) -> bool:
    return keep_going or (reader.broken_count == 0 and reader.cut is None)


def _end_of(reader: TraceReader) -> End | None:
    if reader.end is None or reader.broken_count == 0:
        return reader.end
    return replace(reader.end, events=reader.events, dropped=reader.end.dropped + reader.broken_count)
