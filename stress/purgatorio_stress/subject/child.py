"""A child process that speaks lines, and cannot harm its parent: what it says is bounded, and so is its silence.

Reading, writing and the child's standard error each have a thread of their own, so neither a full pipe nor a silent
child can block the caller. However the `with` block is left, the child and all that it started are gone after it.
"""

import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Final

from purgatorio_stress.subject.contract import FailureKind, SubjectFailed

__all__ = ["ChildLimits", "LineChild"]

_STDERR_KEPT_BYTES: Final = 4096
_QUEUED_LINES: Final = 10_000


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may do before it is given up."""

    silence_s: float = 20.0
    total_s: float = 120.0
    line_bytes: int = 64 * 1024
    lines: int = 2_000_000


class LineChild(AbstractContextManager["LineChild"]):
    """One child: `send` lines to it, iterate over `lines` from it. Raises SubjectFailed for every misbehaviour."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        limits: ChildLimits | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._limits = limits or ChildLimits()
        self._said: queue.Queue[bytes | None] = queue.Queue(_QUEUED_LINES)
        self._errors: deque[bytes] = deque()
        self._closing = threading.Event()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if environ is None else dict(environ),
                # A group of its own, so that the whole family can be ended; Ctrl-C is ours to pass on.
                start_new_session=True,
            )
        except OSError as error:
            raise SubjectFailed(
                name, "unavailable", f"{command[0]} does not start: {error.strerror}"
            ) from None
        self._threads = [
            self._start(self._read_lines, self._process.stdout),
            self._start(self._read_errors, self._process.stderr),
        ]

    def _start(self, work: object, stream: IO[bytes] | None) -> threading.Thread:
        assert callable(work)
        assert stream is not None, "the pipes were asked for"
        thread = threading.Thread(target=work, args=(stream,), name=f"{self._name}-pipe", daemon=True)
        thread.start()
        return thread

    def send(self, lines: Sequence[bytes]) -> None:
        """Write the lines, in the background; a child that does not read them fails by its silence."""
        self._threads.append(self._start(lambda stream: self._write(stream, lines), self._process.stdin))

    def _write(self, stream: IO[bytes], lines: Sequence[bytes]) -> None:
        # A child that has gone is noticed, and told better, by the reader.
        with suppress(OSError, ValueError):
            stream.write(b"".join(line + b"\n" for line in lines))
            stream.flush()

    def lines(self) -> Iterator[bytes]:
        """What the child says, line by line, until it closes its output; then `died` if its exit status is not 0."""
        end_s = time.monotonic() + self._limits.total_s
        count = 0
        while True:
            left_s = end_s - time.monotonic()
            try:
                line = self._said.get(timeout=max(0.0, min(self._limits.silence_s, left_s)))
            except queue.Empty:
                over = f"not done after {self._limits.total_s:g} s"
                silent = f"silent for {self._limits.silence_s:g} s"
                raise self.failed("hang", over if left_s <= self._limits.silence_s else silent) from None
            if left_s <= 0:
                raise self.failed("hang", f"not done after {self._limits.total_s:g} s")
            if line is None:
                self._check_exit()
                return
            count += 1
            if len(line) > self._limits.line_bytes:
                raise self.failed("flood", f"a line of more than {self._limits.line_bytes} bytes")
            if count > self._limits.lines:
                raise self.failed("flood", f"more than {self._limits.lines} lines")
            yield line

    def _check_exit(self) -> None:
        try:
            status = self._process.wait(timeout=self._limits.silence_s)
        except subprocess.TimeoutExpired:
            raise self.failed("hang", "closed its output and does not end") from None
        if status != 0:
            how = f"by signal {-status}" if status < 0 else f"with exit status {status}"
            raise self.failed("died", f"ended {how}")

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """The failure, with the end of the child's standard error in its text."""
        if kind == "died":
            self._threads[1].join(timeout=1.0)
        errors = b"".join(list(self._errors))[-_STDERR_KEPT_BYTES:].decode(errors="replace").strip()
        return SubjectFailed(self._name, kind, f"{why}; its standard error ends: {errors}" if errors else why)

    def _read_lines(self, stream: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            # One byte more than allowed is enough to know, and all that is ever held of one line.
            while line := stream.readline(self._limits.line_bytes + 2):
                self._put(line.rstrip(b"\r\n"))
                if self._closing.is_set():
                    return
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        # A full queue holds the child back by its pipe: a flood costs no memory.
        while not self._closing.is_set():
            with suppress(queue.Full):
                self._said.put(line, timeout=0.2)
                return

    def _read_errors(self, stream: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), _STDERR_KEPT_BYTES):
                self._errors.append(chunk)
                while len(self._errors) > 64:
                    self._errors.popleft()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with suppress(ProcessLookupError, PermissionError):
            # The group may live on when the child itself has ended.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join(timeout=5.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
