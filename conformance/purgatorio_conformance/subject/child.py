"""A child process that exchanges lines with this process, with limits for its output and its silence.

The caller reads the output, including standard error. A flood of output costs no memory, because the child blocks when
its pipe is full. The child counts as ended when its process has ended, even if another process still has the pipes. At
the end of the `with` block, the child is killed with all processes that it started. Processes that left its process
group are found by a variable in their environment.
"""

import mmap
import os
import re
import secrets
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

from purgatorio_conformance.subject.at_work import AtWork, ProcessThreads, stat, used_s
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed
from purgatorio_spec.show.visible import visible

LINE_BYTES: Final = 64 * 1024
OUTPUT_BYTES: Final = 1 << 30
STDERR_KEPT_BYTES: Final = 64 * 1024
"""How much of a child's standard error is kept: its end."""

JVM_OPTIONS: Final = "JAVA_TOOL_OPTIONS"
"""The variable with options for a JVM, in addition to its command. The JVM reports it on standard error."""

_NO_FIGURES: Final = "-XX:-UsePerfData"
"""Without this option, a JVM writes a file of performance data. If another JVM starts and checks this file at that
moment, it prints a warning on standard output, among the messages."""

_OPTION_TOLD: Final = re.compile(rb"^Picked up JAVA_TOOL_OPTIONS: .*-XX:-UsePerfData\r?\n?", re.MULTILINE)
_STDERR_SHOWN_BYTES: Final = 4096
"""How much of the kept standard error is shown."""
_READ_BYTES: Final = 64 * 1024
_PIPE_READS: Final = 17
_SEARCHES: Final = 5
_STACKS_S: Final = 0.5
"""If a program is silent for this time, it has printed all its stacks."""
_STACKS_MOST_S: Final = 5.0
_STANDS_AT: Final = re.compile(
    r'^"([^"\n]*)".*\n(?: +java\.lang\.Thread\.State.*\n)?(?!\tat java\.io\.FileInputStream\.read)'
    r"(?:\t(?:at (?:javax?|jdk|sun|purgatorio\.kit)\.|- ).*\n)*"
    r"\tat (?!(?:javax?|jdk|sun|purgatorio\.kit)\.)(?:[^\s(]*\.)?([^\s(.]+\(.*)",
    re.MULTILINE,
)
"""A thread in a JVM's stacks, and the first line of its stack that is neither the JDK's nor the kit's. A thread that
waits for our input does not match."""

_GO_PROGRAM: Final = b"\xff Go buildinf:"
"""In the file of each program that Go has compiled."""
_GOROUTINE: Final = re.compile(r"^(goroutine \d+)(?!.*\[(?:syscall|IO wait)).*\n((?:.+\n)+)", re.MULTILINE)
_GO_FRAME: Final = re.compile(r"^(\S+)\(.*\n\t(.*:\d+)", re.MULTILINE)
"""A frame of a stack: the function, and the line."""
_GO_KIT: Final = "example.com/purgatorio/kits/go."
_GO_SOURCES: Final = re.compile(r"^runtime\..*\n\t(.*/|)runtime/[^/\n]+:\d", re.MULTILINE)
"""Where the files of Go's own library are."""

_LANE: Final = re.compile(r'^"lane-\d+".*\n((?:(?: +java\.lang\.Thread|\t).*\n)*)', re.MULTILINE)
"""A lane in a JVM's stacks, and its stack."""
_OWN_FRAME: Final = re.compile(r"^\tat (?!(?:javax?|jdk|sun)\.)(.*)", re.MULTILINE)
"""A stack frame that is not the JDK's."""
_LISTENS: Final = "\tat java.io.FileInputStream.read"
_BLOCKED: Final = re.compile(r"^\t- (?:waiting to lock|parking to wait for .*Lock\$)", re.MULTILINE)
"""A thread that waits for a lock, which the thread of a call that has returned may still have."""

_LOOK_S: Final = 0.1
"""How often to test whether the child has ended, if the system does not signal it."""

_THREADS, _PROCESSOR = 17, 36
"""The fields of Linux's `stat` file with the number of threads and the processor, counted from the state letter."""

_AT_WORK_S: Final = 1.0
"""After this time in seconds, a silence is measured in CPU time as well."""

_MARK: Final = "PURGATORIO_SUBJECT"
"""Set in the environment of a child and of all its descendants; each child has its own value."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """The limits of a child. `work_s`: after this CPU time, a shorter silence ends the wait."""

    silence_s: float = 20.0
    work_s: float | None = None
    total_s: float = 120.0
    lines: int = 2_000_000


class Quiet(Enum):
    """The result without a line: no line came in time, or no line will ever come."""

    SILENT = auto()
    ENDED = auto()


class Aside(Protocol):
    """Another source of events of a child, merged into its lines in order."""

    def fileno(self) -> int: ...

    def read_lines(self) -> list[bytes] | None:
        """The new lines, without waiting; None if no more will come."""


class Killable(Protocol):
    def kill(self) -> None:
        """End the run of this subject, as if its program had died."""


ALIVE: Final[WeakSet[Killable]] = WeakSet()
"""The subjects that are driven now."""


def kill_all() -> None:
    for subject in list(ALIVE):
        subject.kill()


class LineChild(AbstractContextManager["LineChild"]):
    """One child: `say` a line to it, `hear` a line from it. Raises SubjectFailed for all misbehavior."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        limits: ChildLimits | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._limits = limits or ChildLimits()
        self._lines_said: deque[bytes] = deque()
        self._rest = b""
        self._errors = b""
        self._at_work = AtWork(self.driven_s, self._looks)
        self._mark = secrets.token_hex(16)
        self.renew()
        environ = os.environ if environ is None else environ
        options = f"{environ.get(JVM_OPTIONS, '')} {_NO_FIGURES}".strip()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environ, JVM_OPTIONS: options, _MARK: self._mark},
                bufsize=0,
                # Its own group, so that all its processes can be ended. Ctrl-C is ours to pass on.
                start_new_session=True,
            )
        except OSError as error:
            raise SubjectFailed(
                name, "unavailable", f"{command[0]} does not start: {error.strerror}"
            ) from None
        assert self._process.stdin is not None, "created with pipes"
        assert self._process.stdout is not None, "created with pipes"
        assert self._process.stderr is not None, "created with pipes"
        self._in = self._process.stdin
        self._out, self._err = self._process.stdout.fileno(), self._process.stderr.fileno()
        # Readable once the child has ended, even if another process holds its pipes.
        self._ended = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1
        self._poll = select.poll()
        for place in (self._out, self._err, self._ended):
            if place >= 0:
                self._poll.register(place, select.POLLIN)
        self._open = {self._out, self._err}
        self._aside: Aside | None = None
        for place in self._open:
            os.set_blocking(place, False)
        ALIVE.add(self)

    def kill(self) -> None:
        """Kill the child and its process group. After a `wait`, the system may give their number to other processes."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def say(self, line: bytes) -> None:
        """Write one short line at once, for a session in which the child answers before the next line.

        The caller must keep unanswered lines below the capacity of a pipe (64 KiB). A child that no longer reads fails
        by its silence (`silent`).
        """
        assert len(line) < select.PIPE_BUF, "a longer line could block the caller"
        with suppress(OSError, ValueError):
            os.write(self._in.fileno(), line + b"\n")

    def renew(self) -> None:
        """Count time, lines and bytes from zero again. A child may make several runs, and the limits apply to each."""
        self._end_s = time.monotonic() + self._limits.total_s
        self._lines = self._bytes = 0

    def hear_also(self, aside: Aside) -> None:
        """From now on, merge the lines of `aside` with the child's."""
        self._aside = aside
        self._poll.register(aside.fileno(), select.POLLIN)

    def put(self, line: bytes) -> None:
        """Insert this line before the child's next lines."""
        self._lines_said.append(line)

    def _hear_aside(self) -> None:
        if self._aside is None:
            return
        place = self._aside.fileno()
        said = self._aside.read_lines()
        if said is None:
            self._poll.unregister(place)
            self._aside = None
            return
        # Lines that the child wrote before these are already in the pipe.
        while said and self._out_open and self._read(self._out):
            pass
        self._lines_said.extend(said)

    def hear(self, within_s: float) -> bytes | Quiet:
        """The next line, if one comes in time. Raises SubjectFailed if a limit is exceeded."""
        if not self._lines_said:
            if self._aside is not None:
                self._hear_aside()
            now_s = time.monotonic()
            until_s = min(now_s + within_s, self._end_s)
            while not self._lines_said:
                if not self._out_open:
                    return Quiet.ENDED
                self._wait(until_s - now_s)
                now_s = time.monotonic()
                # Tested after other events too: a JVM reports each line of a watched thread, without end if the thread
                # runs in an endless loop.
                if not self._lines_said and now_s >= until_s:
                    if until_s == self._end_s:
                        raise self._not_done()
                    return Quiet.SILENT
            if now_s >= self._end_s:
                raise self._not_done()
        line = self._lines_said.popleft()
        self._at_work.look_anew()
        self._lines += 1
        self._bytes += len(line) + 1
        if len(line) > LINE_BYTES:
            raise self.failed("flood", f"a line of more than {LINE_BYTES} bytes")
        if self._lines > self._limits.lines:
            raise self.failed("flood", f"more than {self._limits.lines} lines")
        if self._bytes > OUTPUT_BYTES:
            raise self.failed("flood", f"more than {OUTPUT_BYTES} bytes")
        return line

    def _wait(self, within_s: float) -> None:
        """Listen, and measure CPU time, which takes milliseconds; so short waits do not measure it."""
        work_s = self._limits.work_s
        looks = within_s > _AT_WORK_S and (self._at_work.since is None or work_s is not None)
        if self._listen(_AT_WORK_S if looks else within_s) or not looks:
            return
        passed_s, used_s = self._at_work.notice()
        if work_s is not None and used_s >= work_s:
            raise self.silent(round(passed_s + _AT_WORK_S))

    def _not_done(self) -> SubjectFailed:
        why = (
            f"not done after {self._limits.total_s:g} s; run it again on an idle machine, or with "
            "fewer operations"
        )
        failure = self.failed("hang", why)
        failure.slow = True
        return failure

    @property
    def _out_open(self) -> bool:
        return self._out in self._open

    def _listen(self, within_s: float) -> bool:
        """Read the available output, or wait for output up to this time. Returns whether anything happened."""
        wait_s = within_s if self._ended >= 0 else min(within_s, _LOOK_S)
        happened = self._poll.poll(max(0.0, wait_s) * 1000)
        for place, _ in happened:
            if place == self._ended:
                # Its last lines are in the pipe. Output of other processes after its end is not the subject's.
                self._poll.unregister(self._ended)
                self._read_to_its_end()
            elif place in self._open:
                self._read(place)
            elif self._aside is not None:
                self._hear_aside()
        if self._ended < 0 and not happened and self._process.poll() is not None:
            self._read_to_its_end()
        return bool(happened)

    def _read_to_its_end(self) -> None:
        # A pipe holds 64 KiB, or 1 MiB if it was enlarged.
        for _ in range(_PIPE_READS):
            if self._out not in self._open or not self._read(self._out):
                break
        self._read_errors()
        self._close_output(self._out)

    def _read_errors(self) -> None:
        for _ in range(_PIPE_READS):
            if self._err not in self._open or not self._read(self._err):
                break

    def _read(self, place: int) -> bool:
        """Read up to 64 KiB. Returns whether there was anything."""
        try:
            said = os.read(place, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        if place == self._err:
            self._errors = (self._errors + said)[-STDERR_KEPT_BYTES:]
            if not said:
                self._shut(place)
            return bool(said)
        if not said:
            self._close_output(place)
            return False
        *lines, self._rest = (self._rest + said).split(b"\n")
        self._lines_said.extend([line.rstrip(b"\r") for line in lines])
        if len(self._rest) > LINE_BYTES + 1:
            # One byte more than allowed proves the violation, so no more of a line is stored.
            self._lines_said.append(self._rest)
            self._rest = b""
        return True

    def _close_output(self, place: int) -> None:
        if place in self._open and self._rest:
            self._lines_said.append(self._rest)
            self._rest = b""
        self._shut(place)

    def _shut(self, place: int) -> None:
        if place in self._open:
            self._open.discard(place)
            self._poll.unregister(place)

    def look_anew(self) -> None:
        """Forget the past: a new silence is measured from its own start."""
        self._at_work.look_anew()

    def works(self, most_s: float) -> bool:
        return self._at_work.works(most_s)

    def silent(self, seconds: float, why: str = "") -> SubjectFailed:
        """The failure of a child that was silent for this time: it closed its input, or it hangs."""
        if self._deaf():
            return self.failed("closed-input", f"closed its standard input, but did not exit{why}")
        busy_s = self._at_work.notice()[1]
        still = self._at_work.still()
        stacks = self._stacks()
        found, places = _places(stacks)
        worked = f"; it used the CPU for {busy_s:.0f} s of this time" if busy_s else ""
        does = "; none of its threads runs" if still else worked
        seen = f"silent for {seconds:g} s{why}{does}{places}"
        idle = lanes_wait(stacks.decode(errors="replace"))
        lost = (
            "; its reader and all its lanes wait for a call: the adapter probably lost a call or its answer"
        )
        seen += lost * idle
        failure = self.failed("deadlock", f"P3 is broken: {seen}") if found else self.failed("hang", seen)
        failure.stuck, failure.idle, failure.busy_s = still, idle, busy_s
        failure.slow = not still and not self._at_work.spent
        # The stacks are added after the failure's text is built, which ends with the child's own last words.
        self._errors = (self._errors + stacks)[-STDERR_KEPT_BYTES:]
        return failure

    def _looks(self) -> Callable[[float], bool]:
        threads = self.threads()
        return lambda within_s: not self._listen(within_s) and threads.wait()

    def threads(self) -> ProcessThreads:
        return ProcessThreads(_marked(self._mark))

    def driven_s(self) -> float:
        """The CPU time that it and its descendants have used so far; 0 if the system does not report it."""
        return used_s(Path(f"/proc/{process}/stat") for process in _marked(self._mark))

    def _stacks(self) -> bytes:
        """The stacks of all threads of a JVM, which prints them on its standard output after a signal, or of a Go
        program, which prints them on standard error, and ends. Other programs get no signal, because it would end
        them."""
        process, before = Path(f"/proc/{self._process.pid}"), self._errors
        with suppress(OSError, ValueError):
            jvm = b"/libjvm.so" in (process / "maps").read_bytes()
            if not jvm:
                if not _is_go(process / "exe"):
                    return b""
                self._errors = b""
            self._process.send_signal(signal.SIGQUIT)
            # Bounded, because a thread in an endless loop causes endless events.
            until_s = time.monotonic() + _STACKS_MOST_S
            while self._listen(_STACKS_S) and self._open and time.monotonic() < until_s:
                pass
            if not jvm:
                stacks, self._errors = self._errors, before
                return stacks
        said = b"\n".join(self._lines_said)[-STDERR_KEPT_BYTES:]
        self._lines_said.clear()
        return said

    def _deaf(self) -> bool:
        """Whether no process can read the child's standard input any more."""
        if self._in.closed:
            return False
        poll = select.poll()
        poll.register(self._in.fileno(), select.POLLERR)
        return any(happened & select.POLLERR for _, happened in poll.poll(0))

    @contextmanager
    def on_one_processor(self) -> Iterator[None]:
        """Let this thread and a single-threaded child share a processor. One of them always waits for the other, and
        the wake-up of a thread on another processor takes longer than the work. A child with several threads is not
        restricted."""
        said = stat(Path(f"/proc/{self._process.pid}/stat"))
        if not said or said[_THREADS] != "1":
            yield
            return
        before = os.sched_getaffinity(0)
        with suppress(OSError):
            for one in (0, self._process.pid):
                os.sched_setaffinity(one, {int(said[_PROCESSOR])})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def end_input(self) -> None:
        with suppress(OSError):
            self._in.close()

    def check_exit(self, why: str = "") -> None:
        """Wait for the end of a child that has closed its output. Raises SubjectFailed unless its status is 0."""
        try:
            status = self._process.wait(timeout=self._limits.silence_s)
        except subprocess.TimeoutExpired:
            raise self.failed("closed-output", f"closed its output, but did not exit{why}") from None
        if status != 0:
            how = (
                f"by signal {-status} ({signal.strsignal(-status)})"
                if status < 0
                else f"with exit status {status}"
            )
            failure = self.failed("died", f"ended {how}{why}")
            failure.signal = max(0, -status)
            raise failure

    def failed(self, kind: FailureKind, why: str) -> SubjectFailed:
        """The failure, with the end of the child's standard error in its text."""
        self._read_errors()
        # Escaped, so that the child's text cannot control a terminal.
        lines = self.errors()[-_STDERR_SHOWN_BYTES:].decode(errors="replace").strip().splitlines()
        shown = " | ".join(visible(line, _STDERR_SHOWN_BYTES) for line in lines)[-_STDERR_SHOWN_BYTES:]
        return SubjectFailed(self._name, kind, f"{why}; its standard error ends: {shown}" if shown else why)

    def errors(self) -> bytes:
        """The end of the child's standard error, at most `STDERR_KEPT_BYTES`; without a JVM's message about an
        option of ours."""
        return _OPTION_TOLD.sub(b"", self._errors)

    def close(self) -> None:
        self.__exit__()

    def __exit__(self, *error: object) -> None:
        self.kill()
        ALIVE.discard(self)
        self._process.wait()
        for _ in range(_SEARCHES):
            # A process that was found may have started another one meanwhile.
            found = list(_marked(self._mark))
            for process in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
            if not found:
                break
        self._read_errors()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        if self._ended >= 0:
            os.close(self._ended)


def _places(stacks: bytes) -> tuple[bool, str]:
    """Whether a JVM's stacks report a deadlock, and at most four places of its threads (those of the deadlock if there
    is one), or of a Go program's goroutines."""
    said, found, told = stacks.decode(errors="replace").partition("Java-level deadlock")
    standing: dict[str, list[str]] = {}
    own = _STANDS_AT.findall(told.partition("Java stack information")[2] if found else said)
    for thread, at in own or _goroutines(said):
        standing.setdefault(visible(at), []).append(visible(thread))
    places = ", ".join(f"{' and '.join(threads)} at {at}" for at, threads in islice(standing.items(), 4))
    return bool(found), f"{'; its JVM finds a deadlock:' if found else ';'} {places}" * bool(found or places)


def _is_go(program: Path) -> bool:
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(_GO_PROGRAM) >= 0


def _goroutines(stacks: str) -> Iterator[tuple[str, str]]:
    """Each goroutine of which the first frame outside of Go's library is not the kit's, and this frame."""
    root = "".join(_GO_SOURCES.findall(stacks)[:1])
    for name, stack in _GOROUTINE.findall(stacks):
        for function, line in _GO_FRAME.findall(stack):
            # Without the path of the library (-trimpath), a module has a dot in its first name.
            if line.startswith(root) if root else "." not in line.partition("/")[0]:
                continue
            if not function.startswith(_GO_KIT):
                yield name, f"{function.rpartition('/')[2]}({line.rpartition('/')[2]})"
            break


def lanes_wait(stacks: str) -> bool:
    """Whether all callers of a JVM (two or more) are at the same place, its reader waits for input, and no thread waits
    for a lock. A caller with a call is at a different place than a caller without a call."""
    lanes = [tuple(_OWN_FRAME.findall(stack)) for stack in _LANE.findall(stacks)]
    return len(lanes) > 1 and len(set(lanes)) == 1 and _LISTENS in stacks and not _BLOCKED.search(stacks)


def _marked(mark: str) -> Iterator[int]:
    """The processes with this variable in their environment, if the system shows it. They include processes that a
    child left running in another session."""
    told = f"{_MARK}={mark}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if told in (process / "environ").read_bytes().split(b"\0"):
                yield int(process.name)
