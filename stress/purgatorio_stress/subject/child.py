"""A child process that speaks lines, and cannot harm its parent: what it says is bounded, and so is its silence.

Reading, writing and the child's standard error each have a thread of their own, so neither a full pipe nor a silent
child can block the caller. However the `with` block is left, the child and all that it started are gone after it.
"""

import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import IO, Final

from purgatorio_spec.show.visible import visible
from purgatorio_stress.subject.contract import FailureKind, SubjectFailed

__all__ = ["ChildLimits", "LineChild", "Quiet"]

STDERR_KEPT_BYTES: Final = 64 * 1024
"""Of a child's standard error so much is kept: its end."""

_STDERR_SHOWN_BYTES: Final = 4096
"""And so much of that is shown."""
_QUEUED_LINES: Final = 10_000


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may do before it is given up. `start_s`: its first silence, while it starts."""

    silence_s: float = 20.0
    total_s: float = 120.0
    line_bytes: int = 64 * 1024
    lines: int = 2_000_000
    start_s: float = 20.0
    output_bytes: int = 1 << 30


class Quiet(Enum):
    """What is heard instead of a line: nothing in time, or nothing ever again."""

    SILENT = auto()
    ENDED = auto()


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
        self._errors = b""
        self.renew()
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

    def say(self, line: bytes) -> None:
        """Write one short line at once; for a talk in which the child answers before it is told more.

        What a pipe holds (64 KiB) is the caller's bound on what is said and not yet answered. A child that no longer
        listens is noticed by its silence, see `silent`.
        """
        assert len(line) < select.PIPE_BUF, "a longer line could block the caller"
        stream = self._process.stdin
        assert stream is not None, "the pipes were asked for"
        with suppress(OSError, ValueError):
            stream.write(line + b"\n")
            stream.flush()

    def renew(self) -> None:
        """Count time, lines and bytes anew: for a child that does one bounded piece of work after the other."""
        self._end_s = time.monotonic() + self._limits.total_s
        self._lines = self._bytes = 0

    def hear(self, within_s: float) -> bytes | Quiet:
        """The next line, if there is one in time. Raises SubjectFailed where a limit is exceeded."""
        left_s = self._end_s - time.monotonic()
        try:
            line = self._said.get(timeout=max(0.0, min(within_s, left_s)))
        except queue.Empty:
            if left_s <= within_s:
                raise self.failed("hang", f"not done after {self._limits.total_s:g} s") from None
            return Quiet.SILENT
        if left_s <= 0:
            raise self.failed("hang", f"not done after {self._limits.total_s:g} s")
        if line is None:
            # Whoever asks again is told again.
            self._said.put(None)
            return Quiet.ENDED
        self._lines += 1
        self._bytes += len(line) + 1
        if len(line) > self._limits.line_bytes:
            raise self.failed("flood", f"a line of more than {self._limits.line_bytes} bytes")
        if self._lines > self._limits.lines:
            raise self.failed("flood", f"more than {self._limits.lines} lines")
        if self._bytes > self._limits.output_bytes:
            raise self.failed("flood", f"more than {self._limits.output_bytes} bytes")
        return line

    def silent(self, seconds: float, why: str = "") -> SubjectFailed:
        """The failure of a child that was silent for so long: it does not listen, or it hangs."""
        if self._deaf():
            return self.failed("closed-input", f"closed its standard input and lives on{why}")
        return self.failed("hang", f"silent for {seconds:g} s{why}")

    def _deaf(self) -> bool:
        """Whether nobody holds the other end of its standard input any more."""
        stream = self._process.stdin
        if stream is None or stream.closed:
            return False
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLERR)
        return any(happened & select.POLLERR for _, happened in poll.poll(0))

    def lines(self) -> Iterator[bytes]:
        """What the child says, line by line, until it closes its output; then `died` if its exit status is not 0."""
        while True:
            said = self.hear(self._limits.silence_s)
            if said is Quiet.SILENT:
                raise self.silent(self._limits.silence_s)
            if said is Quiet.ENDED:
                self.check_exit()
                return
            yield said

    def end_input(self) -> None:
        """Close its standard input, as a sign that nothing more comes."""
        stream = self._process.stdin
        assert stream is not None, "the pipes were asked for"
        with suppress(OSError):
            stream.close()

    def check_exit(self, why: str = "") -> None:
        """Wait for the end of a child that has closed its output. Raises SubjectFailed unless it ends with status 0."""
        try:
            status = self._process.wait(timeout=self._limits.silence_s)
        except subprocess.TimeoutExpired:
            raise self.failed("closed-output", f"closed its output and does not end{why}") from None
        if status != 0:
            how = f"by signal {-status}" if status < 0 else f"with exit status {status}"
            raise self.failed("died", f"ended {how}{why}")

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """The failure, with the end of the child's standard error in its text."""
        if kind == "died":
            self._threads[1].join(timeout=1.0)
        # A child does not choose what a terminal does with its words.
        lines = self._errors[-_STDERR_SHOWN_BYTES:].decode(errors="replace").strip().splitlines()
        errors = " | ".join(visible(line, _STDERR_SHOWN_BYTES) for line in lines)[-_STDERR_SHOWN_BYTES:]
        return SubjectFailed(self._name, kind, f"{why}; its standard error ends: {errors}" if errors else why)

    def errors(self) -> bytes:
        """The end of what the child said on its standard error, at most `STDERR_KEPT_BYTES`."""
        return self._errors

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
            while chunk := os.read(stream.fileno(), STDERR_KEPT_BYTES):
                self._errors = (self._errors + chunk)[-STDERR_KEPT_BYTES:]

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
