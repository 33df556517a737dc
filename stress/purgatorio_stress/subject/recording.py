"""From collected events to the trace file of one run."""

from collections.abc import Iterable
from pathlib import Path

from purgatorio_spec.trace.record import Event, Header
from purgatorio_spec.trace.writer import TraceWriter

__all__ = ["write_run"]


def write_run(path: Path, header: Header, events: Iterable[Event], dropped: int | None) -> Path:
    """Write the events in the order of `i`; with `dropped` None the run broke off, and gets no end record.

    A broken run in Parquet leaves no file (a Parquet file without its end cannot be read): record in JSON lines.
    """
    writer = TraceWriter(path, header)
    try:
        writer.write_all(sorted(events, key=lambda event: event.i))
        writer.dropped = dropped or 0
    except BaseException:
        writer.abandon()
        raise
    if dropped is None:
        writer.abandon()
    else:
        writer.close()
    return path
