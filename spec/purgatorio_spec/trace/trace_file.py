"""Writes recorded events to the trace file of one run, at the end of the run or while they arrive."""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from purgatorio_spec.trace.record import Event, Header
from purgatorio_spec.trace.recorder import Recorder
from purgatorio_spec.trace.writer import TraceWriter


def run_of_file(path: Path) -> str:
    """The name of the run in a trace file: the file name up to the first dot."""
    return path.name.split(".", 1)[0]


def write_run(path: Path, header: Header, events: Iterable[Event], dropped: int | None) -> Path:
    """Write the events in the order of `i`. If `dropped` is None, the run did not finish: the trace has no end record,
    and there is no Parquet file, because a Parquet file without its end is unreadable. Use JSON lines."""
    writer, whole = TraceWriter(path, header), False
    try:
        writer.write_all(sorted(events, key=lambda event: event.i))
        writer.dropped, whole = dropped or 0, dropped is not None
    finally:
        writer.close(whole=whole)
    return path


class StreamedRecording(AbstractContextManager["StreamedRecording"]):
    """Write a recorder's events to a file during the recording. So even a killed process leaves a readable trace.

    A separate thread writes the events every `every_s` seconds. (With None, only `flush` writes.) The end of the block
    writes the rest and the end record. If an exception (also Ctrl-C) leaves the block, the rest is written without an
    end record. A full disk ends the streaming: recording continues into the buffers, and the end of the block raises
    OSError.

    Use JSON lines: a killed Parquet writer leaves no readable file.
    """

    def __init__(self, recorder: Recorder, path: Path, header: Header, every_s: float | None = 0.5) -> None:
        self.path = path
        self._recorder = recorder
        self._writer = TraceWriter(path, header)
        self._every_s = every_s
        self._write_lock = threading.Lock()
        self._leaving = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._stream, name="trace-writer", daemon=True)

    def __enter__(self) -> "StreamedRecording":
        if self._every_s is not None:
            self._thread.start()
        return self

    def flush(self) -> None:
        with self._write_lock:
            self._writer.write_all(self._recorder.drain())
            self._writer.flush()

    def _stream(self) -> None:
        while not self._leaving.wait(self._every_s):
            try:
                self.flush()
            except Exception as problem:
                self._problem = problem
                return

    def __exit__(self, kind: object, *_: object) -> None:
        self._leaving.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            if self._problem is not None:
                raise self._problem
            with self._write_lock:
                self._writer.write_all(self._recorder.drain(last=True))
        except BaseException:
            with suppress(Exception):
                self._writer.close(whole=False)
            raise
        self._writer.dropped = self._recorder.dropped
        self._writer.close(whole=kind is None)
