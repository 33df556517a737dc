"""Stops code under test that loops forever without a scheduling point, that takes memory without an end, that waits
forever in the operating system, or that ends the process of the explorer.

The limit of a loop is CPU time of this process, so a busy machine has no effect. A wait is a time in which the thread
takes no CPU time at all. Signals arrive only in the main thread, so there is no limit in other threads.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from purgatorio_stress.mutant.patch import Patch, patched

_ENDING: Final = (
    "_exit abort execv execve fork forkpty kill killpg posix_spawn posix_spawnp system startfile"
).split()
"""Functions of `os` that end this process, or start another process that the scheduler does not control."""


_SIZE: Final = Path("/proc/self/statm")
"""Its first number is the memory of this process, in pages."""

NO_END_S: Final = 30.0
"""The additional CPU time of a search, which reads its clock only between runs, and the CPU time of a replay."""


_MEMORY: Final = 4 << 30
"""The additional memory of a search, in bytes. Beyond, the code under test gets a MemoryError (on Linux)."""


WAIT_S: Final = 5
"""A wait of this length in the operating system ends the search."""


class NoEnd(BaseException):
    """Raised in the code under test at the limit of CPU time, or in a wait; the text says which. It is no `Exception`,
    so `except Exception` does not catch it."""


def ends_the_run(error: BaseException) -> bool:
    """Whether `error` ends the whole run, not only one callback. Code under test must not continue after it."""
    from greenlet import GreenletExit

    return isinstance(error, GreenletExit | KeyboardInterrupt | NoEnd)


class EndsProcess(BaseException):
    """Raised instead of an end of this process, because an exit status of 0 would be read as a verdict."""


def _not_told(name: str) -> None:
    """The default of `process_kept`: the exception that ended a task is judged, so no report is needed."""


@contextmanager
def process_kept(met: Callable[[str], None] = _not_told) -> Iterator[None]:
    """Raise EndsProcess if code of this thread, in the `with` block, calls a function that ends the process. First call
    `met` with the name of the function. Change SystemExit of the block into RuntimeError."""
    here = threading.get_ident()

    def refuse(real: Callable[..., object], name: str, /, *args: object, **named: object) -> object:
        if threading.get_ident() != here:
            return real(*args, **named)
        met(f"os.{name}")
        raise EndsProcess(f"os.{name} is about the process that explores")

    patches = [
        Patch(module, name, partial(refuse, getattr(module, name), name))
        for module in (os, sys.modules[os.name])
        for name in _ENDING
        if hasattr(module, name)
    ]
    try:
        with patched(patches):
            yield
    except SystemExit as error:
        raise RuntimeError(
            f"the code that is explored ends its process: SystemExit({error.code!r})"
        ) from error


@contextmanager
def bounded_cpu(seconds: float) -> Iterator[None]:
    """Raise NoEnd in the `with` block after `seconds` of CPU time of this process, and MemoryError if it takes much
    memory. No limit outside of the main thread. The limit does not count the time inside a nested `bounded_cpu`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise NoEnd(f"no end after {seconds:g} s of work: the code loops without a scheduling point")

    before = signal.signal(signal.SIGVTALRM, end)
    # Repeated every 0.5 s, because code that ignores exceptions (a finalizer) may ignore the first NoEnd.
    outer = signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.5)
    try:
        with _bounded_memory():
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        signal.setitimer(signal.ITIMER_VIRTUAL, *outer)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    if not _SIZE.exists():
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = int(_SIZE.read_text("ascii").split()[0]) * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most if soft < 0 else min(soft, most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def bounded_wait(described: Callable[[FrameType | None], str]) -> Iterator[None]:
    """Raise NoEnd in the `with` block if this thread waits in the operating system for WAIT_S, for example for a lock
    that the scheduler does not control. `described`: the text of the error, for the frame that waits."""
    me = threading.get_ident()
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        time, "pthread_getcpuclockid"
    ):
        yield
        return
    clock, ended = time.pthread_getcpuclockid(me), threading.Event()
    waits = False

    def end(number: int, frame: FrameType | None) -> None:
        if waits:
            raise NoEnd(described(frame))
        if callable(before):
            before(number, frame)

    def watch() -> None:
        nonlocal waits
        looks, last = 0, -1
        while not ended.wait(1):
            now = time.clock_gettime_ns(clock)
            looks, last = (looks + 1 if now == last else 0), now
            waits = looks >= WAIT_S
            if waits:
                signal.pthread_kill(me, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, end)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        signal.signal(signal.SIGALRM, before)
