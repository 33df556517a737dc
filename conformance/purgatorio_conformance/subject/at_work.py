"""Decides whether a silent subject may only be slow. The decision uses the states of the subject's threads, which Linux
reports."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_USER, _SYSTEM = 11, 12
"""The fields of Linux's `stat` file with the CPU time of a thread or process, counted from the state letter."""

_STATE_WITHIN: Final = 64
"""The state letter is in the first bytes of the `stat` file, after the number and the name of the thread."""

_COMPILERS: Final = (b"C1 Compiler", b"C2 Compiler")

_LOOKS: Final = 20
_LOOK_EVERY_S: Final = 0.025
"""How often the states of its threads are sampled, to see whether any runs."""

_WORKS_SHARE: Final = 0.02
"""A program that uses a larger share of a processor is working. A waiting program that only polls uses less."""


@dataclass(slots=True)
class AtWork:
    """Whether a subject works. `used_s`: its CPU time so far. `looks(seconds)`: returns a function that tests whether
    no message has come in these seconds, and all its threads wait."""

    used_s: Callable[[], float]
    looks: Callable[[], Callable[[float], bool]]
    since: tuple[float, float] | None = None
    """When its silence was noticed, and its CPU time by then."""
    spent: bool = False
    """Whether, at the last test, it had used too much CPU time for other programs to be the reason of its silence."""
    _looked: tuple[float, float] | None = None
    _seen: bool = False

    def look_anew(self) -> None:
        """Begin again, because the subject has sent a message. The next silence is measured from its own start."""
        self.since = self._looked = None
        self._seen = self.spent = False

    def notice(self) -> tuple[float, float]:
        """The seconds since the first call during this silence, and the CPU time that the subject has used since
        then."""
        now_s, used_s = time.monotonic(), self.used_s()
        since_s, before_s = self.since = self.since or (now_s, used_s)
        return now_s - since_s, used_s - before_s

    def works(self, most_s: float) -> bool:
        """Whether the subject may still answer: since the last test (or the start of its silence) it used the
        processor, or a thread runs or is runnable. False, and `spent`, after `most_s` seconds of CPU time."""
        passed_s, used_s = self.notice()
        looked_s, before_s = self._looked or (0.0, 0.0)
        self._looked = passed_s, used_s
        self._seen = used_s - before_s > _WORKS_SHARE * (passed_s - looked_s)
        self.spent = used_s >= most_s
        self._seen = self._seen or self.spent or not self._at_rest()
        return self._seen and not self.spent

    def still(self) -> bool:
        """Whether the subject did not work at the last test, and does not work now."""
        return not self._seen and self._at_rest()

    def _at_rest(self) -> bool:
        """Whether no thread is running or runnable at nearly every sample. A thread that works on a busy machine is
        runnable; a thread that only polls is rarely seen."""
        rests = self.looks()
        return sum(not rests(_LOOK_EVERY_S) for _ in range(_LOOKS)) <= _LOOKS // 4


class ProcessThreads:
    """The threads of processes on Linux, without those that compile the code of a JVM, and without `others`."""

    def __init__(self, processes: Iterable[int], others: Iterable[int | None] = ()) -> None:
        left_out = [str(thread) for thread in others]
        self._files = {f"/proc/{process}/task": dict.fromkeys(left_out, -1) for process in processes}
        """By thread, its open `stat` file, which is read many times. Negative for a thread that is left out."""
        weakref.finalize(self, _close, self._files.values())

    def wait(self) -> bool:
        """Whether each thread waits: it is not running or runnable. False if the system does not report states."""
        # A thread that was read before another woke it is read again after this other thread.
        return self._scanned(reverse=False) and self._scanned(reverse=True)

    def used_s(self) -> float:
        """The CPU time of these threads so far, in seconds; 0 if the system does not report it."""
        tasks = [
            (files.get(task.name, 0), task)
            for of, files in self._files.items()
            for task in Path(of).glob("*")
        ]
        return used_s(task / "stat" for file, task in tasks if file >= 0)

    def _scanned(self, *, reverse: bool) -> bool:
        seen = False
        for tasks, files in self._files.items():
            with suppress(OSError):
                threads = os.listdir(tasks)
                if len(files) > len(threads):
                    # A subject may start threads without end, and this process has a limit of open files.
                    _close([{ended: files.pop(ended) for ended in files.keys() - {*threads}}])
                for thread in sorted(threads, key=int, reverse=reverse):
                    state = self._state(tasks, thread, files)
                    if state in (b"R", b"D"):
                        return False
                    seen = seen or bool(state)
        return seen

    def _state(self, tasks: str, thread: str, files: dict[str, int]) -> bytes:
        """The state letter of a thread; empty if it has ended, or is left out."""
        try:
            if thread not in files:
                compiles = Path(tasks, thread, "comm").read_bytes().startswith(_COMPILERS)
                files[thread] = -1 if compiles else os.open(f"{tasks}/{thread}/stat", os.O_RDONLY)
            file = files[thread]
            return b"" if file < 0 else os.pread(file, _STATE_WITHIN, 0).rpartition(b") ")[2][:1]
        except OSError:
            _close([{thread: files.pop(thread, -1)}])
            return b""


def stat(place: Path) -> Sequence[str]:
    """The fields of a `stat` file of Linux, from the state letter on; empty if the thread or process has ended."""
    with suppress(OSError):
        return place.read_text(errors="replace").rpartition(")")[2].split()
    return ()


def _close(files: Iterable[Mapping[str, int]]) -> None:
    for file in (file for of in files for file in of.values()):
        if file >= 0:
            os.close(file)


def used_s(places: Iterable[Path]) -> float:
    """The CPU time of these processes so far, in seconds; 0 if the system does not report it."""
    ticks = sum(int(said[place]) for said in map(stat, places) if said for place in (_USER, _SYSTEM))
    return ticks / os.sysconf("SC_CLK_TCK")
