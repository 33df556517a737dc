"""The engine `process` of a check: judges trace files one after the other, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from purgatorio_pipeline.incremental.cached import CachedResult, assemble, cached_of, cached_wire
from purgatorio_pipeline.judging import Judged
from purgatorio_spec.check import fold_reader
from purgatorio_spec.trace.lines import is_parquet, may_name
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Verdict
from purgatorio_wire.trace.file import is_wire_trace, read_trace


@dataclass(slots=True)
class Tracker:
    """The progress of a check in this process, for a progress display."""

    total_bytes: int = 0
    _before: int = field(default=0, init=False)
    _reader: TraceReader | None = field(default=None, init=False)

    def next(self, reader: TraceReader, before: int) -> TraceReader:
        """Start a file. `before`: the bytes of all earlier files, which may no longer exist."""
        self._before, self._reader = before, reader
        return reader

    def past(self, bytes_read: int) -> None:
        """Record that `bytes_read` bytes are read, and that the last file is being judged."""
        self._before, self._reader = bytes_read, None

    def so_far(self) -> tuple[float, float]:
        return self._before + (0 if self._reader is None else self._reader.read_bytes), self.total_bytes


def judge_in_process(
    paths: Sequence[Path], operation: str | None = None, *, full: bool = False, reading: Tracker | None = None
) -> Judged:
    """Judge traces. `operation`: judge only this one, in runs that have it."""
    reading = Tracker() if reading is None else reading
    *before, reading.total_bytes = accumulate((path.stat().st_size for path in paths), initial=0)
    judged: list[CachedResult] = []
    for path, read_bytes in zip(paths, before, strict=True):
        if is_wire_trace(path):
            if operation is None:
                # The clauses of the wire are a third of the imports of `check`, and few traces are of the wire.
                from purgatorio_wire.judge import judge_trace

                trace = read_trace(path)
                reading.past(read_bytes + path.stat().st_size)
                judged.append(cached_wire(trace, judge_trace(trace), most=None))
            continue
        if operation is not None and not is_parquet(path) and not may_name(path, operation):
            continue
        reader = reading.next(TraceReader(path), read_bytes)
        folded = fold_reader(reader, full=full, only=operation)
        if operation is None or folded.has(operation) or folded.result.verdict is Verdict.INVALID_TRACE:
            judged.append(cached_of(folded, reader.broken, most=None))
    return assemble(judged, most=None)
