"""Searches in separate processes, which may hang or die of the bug that they look for."""

import logging
import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import FrameType
from typing import Final, ParamSpec, TypeVar

from purgatorio_stress.explorer.endless import NoEnd

P = ParamSpec("P")
T = TypeVar("T")

_STILL_S: Final = 30.0
_NO_CPU_S: Final = 0.01
"""A process that uses so little CPU time for so long waits without end. (On a busy machine, a process that makes
progress uses more.)"""
_MEMORY: Final = 4 << 30


def apart(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
    """The result of the function, in a new process with a limit of memory. None if the process died of the limit.
    Raises NoEnd inside if nothing makes progress. Called by threads, several at once."""
    # (Not forked from here: there are threads.)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([call.__module__])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_called, args=(there, call, args, named))
    process.start()
    there.close()
    try:
        result: T = here.recv()
    except EOFError:
        return None
    finally:
        process.join()
    return result


def _called(
    there: Connection, call: Callable[..., object], args: tuple[object, ...], named: dict[str, object]
) -> None:
    # (There is none on Windows.)
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logging.getLogger("purgatorio").disabled = True
    used_s = time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal used_s
        before, used_s = used_s, time.process_time()
        if used_s - before < _NO_CPU_S:
            raise NoEnd(f"nothing went on for {_STILL_S:g} s")

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _STILL_S, _STILL_S)
    there.send(call(*args, **named))
