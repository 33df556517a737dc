"""Ends a process, whatever it is doing: within a bound after Ctrl-C, and together with the process that started it.

Python raises KeyboardInterrupt between two bytecodes of the main thread, which may be inside a library for minutes,
or waiting for workers. So a second thread also receives the signal, and ends the process if it has not ended by
itself.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

STOPPED: Final = 130
"""Exit status after Ctrl-C, where a command has nothing to show of what it did: as shells say it (128 + SIGINT)."""
PARENT: Final = "PURGATORIO_PARENT"
"""Environment variable: the process that a program of ours must not outlive."""
DRIVER: Final = "PURGATORIO_DRIVER"
"""Environment variable: the process that Spark's Python workers on this machine must not outlive."""
SOON_S: Final = 1.5
"""Seconds from Ctrl-C until the process is ended."""
ORDERLY_S: Final = 10.0
"""The same for a command that has something to put in order, or to show: programs that it drives, topics, a lake."""
_PR_SET_PDEATHSIG: Final = 1

_grace_s = SOON_S


def end_within(seconds: float) -> None:
    """From now on the process ends so long after Ctrl-C at the latest."""
    global _grace_s
    _grace_s = seconds


def bound_interrupts() -> None:
    """End this process, and all processes that it started, after Ctrl-C: at the latest at the end of the grace
    period, or at a second Ctrl-C. Only for the main thread of our own programs."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_end, args=(heard,), name="interrupts", daemon=True).start()


def _end(heard: int) -> None:
    while signal.SIGINT not in os.read(heard, 64):
        pass
    until_s = time.monotonic() + _grace_s
    while (left_s := until_s - time.monotonic()) > 0:
        if select.select([heard], [], [], left_s)[0] and signal.SIGINT in os.read(heard, 64):
            break
    with suppress(OSError):
        # A progress bar has hidden the cursor.
        os.write(2, b"\x1b[?25h\nstopped\n" if os.isatty(2) else b"stopped\n")
    for pid in _started_by(os.getpid()):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    os._exit(STOPPED)


def _started_by(pid: int) -> list[int]:
    """The processes that this one has started, and those that they have; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The second field is a name in brackets, and may hold anything.
            parent = int(place.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.parent.name))
    found = list(children.get(pid, ()))
    for one in found:
        found += children.get(one, ())
    return found


def end_with_parent() -> None:
    """End when the process that started this one ends, if it requested that. Linux only."""
    parent = os.environ.pop(PARENT, "")  # not for what is started from here
    if not parent.isdigit() or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(STOPPED)


def begin_worker() -> None:
    """In a worker of a pool: Ctrl-C is the pool's, and the worker ends with the process that has it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner = multiprocessing.parent_process()
    if owner is not None:

        def watch() -> None:
            owner.join()
            os._exit(STOPPED)

        threading.Thread(target=watch, name="owner", daemon=True).start()


def end_group_with(pid: int) -> None:
    """End the group of this process as soon as the process `pid` has ended. Linux only."""
    try:
        driver = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return

    def watch() -> None:
        select.select([driver], [], [])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="driver", daemon=True).start()
