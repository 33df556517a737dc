"""Limits for code under test that loops for ever without a step, or that ends the process of the explorer.

The limit of a loop is CPU time of this process, so a busy machine has no effect. The limit works only in the main
thread, because signals arrive there. In other threads there is no limit.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Final

_ENDING: Final = (
    "_exit abort execv execve fork forkpty kill killpg posix_spawn posix_spawnp system startfile"
).split()
"""Functions of `os` that end this process, or make another that the scheduler does not see."""


class NoEnd(BaseException):
    """Raised in whatever runs when its time is up. No `Exception`: the code under test must not contain it."""


def ends_the_run(error: BaseException) -> bool:
    """Whether `error` ends the run and not one callback: code under test must not continue after it."""
    from greenlet import GreenletExit

    return isinstance(error, GreenletExit | KeyboardInterrupt | NoEnd)


class EndsProcess(BaseException):
    """In place of the end of this process. An exit status of 0 is no verdict."""


def _not_told(name: str) -> None:
    """For code whose tasks are judged by what ended them."""


@contextmanager
def process_kept(met: Callable[[str], None] = _not_told) -> Iterator[None]:
    """In the body code of this thread that would end the process gets EndsProcess; `met` is told what it called.

    RuntimeError in place of a SystemExit that leaves the body.
    """
    here = threading.get_ident()

    def refuse(real: Callable[..., object], name: str, /, *args: object, **named: object) -> object:
        if threading.get_ident() != here:
            return real(*args, **named)
        met(f"os.{name}")
        raise EndsProcess(f"os.{name} is about the process that explores")

    kept = [
        (module, name, getattr(module, name))
        for module in (os, sys.modules[os.name])
        for name in _ENDING
        if hasattr(module, name)
    ]
    for module, name, real in kept:
        setattr(module, name, partial(refuse, real, name))
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(
            f"the code that is explored ends its process: SystemExit({error.code!r})"
        ) from error
    finally:
        for module, name, real in kept:
            setattr(module, name, real)


@contextmanager
def bounded_cpu(seconds: float) -> Iterator[None]:
    """NoEnd out of the body after so much CPU time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise NoEnd(f"no end after {seconds:g} s of work")

    before = signal.signal(signal.SIGVTALRM, end)
    # Again and again: the first may be lost where exceptions are ignored, in a finalizer, say.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
