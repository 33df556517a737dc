"""Ends this process within a time limit after Ctrl-C. Also ends it when its parent process ends.

Python raises KeyboardInterrupt between two bytecodes of the main thread. But this thread may be inside a library for
minutes, or wait for workers. So a second thread also receives the signal, and ends the process if it has not ended in
time. At the end of the process, its child processes are killed in every case.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

STOPPED: Final = 130
"""The exit status after Ctrl-C of a command without a result (128 + SIGINT, as in shells)."""
PARENT: Final = "PURGATORIO_PARENT"
"""Environment variable: the id of the process that a program of Purgatorio must not outlive."""
DRIVER: Final = "PURGATORIO_DRIVER"
"""Environment variable: the id of the process that Spark's Python workers on this machine must not outlive."""
SOON_S: Final = 1.5
"""The maximum time in s from Ctrl-C to the end of the process."""
ORDERLY_S: Final = 10.0
"""As SOON_S, for a command that must clean up or show a result: driven programs, topics, a lake."""
_PR_SET_PDEATHSIG: Final = 1
_KILLED_S: Final = 1.0
"""The time in s in which the system ends killed processes."""
_GUARD: Final = "import os, signal, sys; sys.stdin.read(1); os.killpg(0, signal.SIGKILL)"
_guards: Final[list[subprocess.Popen[bytes]]] = []

_grace_s = SOON_S
_told = False
_bounded = False


def end_within(seconds: float) -> None:
    """Set the maximum time from Ctrl-C to the end of the process."""
    global _grace_s
    _grace_s = seconds


def tell_stopped() -> None:
    """Report once on standard error that Ctrl-C has ended the command."""
    global _told
    if not _told:
        _told = True
        with suppress(OSError):
            # Show the cursor, because a progress bar may have hidden it.
            os.write(2, b"\x1b[?25h\nstopped\n" if os.isatty(2) else b"stopped\n")


def bound_interrupts() -> None:
    """End this process after Ctrl-C: at the latest at the end of the grace period, or at a second Ctrl-C. All
    processes that it started end with it, also without Ctrl-C. Only for the main thread of Purgatorio's programs."""
    global _bounded
    _bounded = True
    # Registered first, so called last, after all clean-up.
    atexit.register(_end_work)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_end, args=(heard,), name="interrupts", daemon=True).start()


@contextmanager
def loading() -> Iterator[None]:
    """While modules are loaded, Ctrl-C ends Purgatorio's programs at once, because an exception during the start of an
    extension module may crash the process."""
    if not _bounded:
        yield
        return
    before = signal.signal(signal.SIGINT, _end_now)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_with(status: object) -> None:
    """End a program of Purgatorio after Ctrl-C without the clean-up of the interpreter, which takes up to a second. The
    outputs are flushed."""
    if _bounded and status == STOPPED:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        _kill_started()
        os._exit(STOPPED)


def _end_now(*_: object) -> None:
    try:
        tell_stopped()
        _kill_started()
    finally:
        os._exit(STOPPED)


def _end(heard: int) -> None:
    while signal.SIGINT not in os.read(heard, 64):
        pass
    until_s = time.monotonic() + _grace_s
    while (left_s := until_s - time.monotonic()) > 0:
        if select.select([heard], [], [], left_s)[0] and signal.SIGINT in os.read(heard, 64):
            break
    _end_now()


def _end_work() -> None:
    # At its end the interpreter restores the default handler. Ctrl-C would then end it without the exit status.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _kill_started()


def _kill_started() -> None:
    """Kill the descendants of this process. They are stopped first, because a stopped process starts no process."""
    found: dict[int, int] = {}
    while new := [pid for pid in _started_by_us() if pid not in found]:
        for pid in new:
            found[pid] = -1
            with suppress(OSError, AttributeError):
                found[pid] = os.pidfd_open(pid)
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
    for pid in found:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    until_s = time.monotonic() + _KILLED_S
    for place in found.values():
        if place >= 0:
            select.select([place], [], [], max(0.0, until_s - time.monotonic()))
            os.close(place)


def _started_by_us() -> list[int]:
    """The ids of the descendants of this process. Empty without /proc."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):
        return []  # faster than reading all processes
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The second field is a name in brackets with arbitrary characters.
            parent = int(place.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.parent.name))
    found = list(children.get(os.getpid(), ()))
    for one in found:
        found += children.get(one, ())
    return found


def end_with_parent() -> None:
    """End this process when its parent ends, if the parent requested this. Linux only."""
    parent = os.environ.pop(PARENT, "")  # child processes must not inherit it
    if not parent.isdigit() or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(STOPPED)


def begin_worker() -> None:
    """Prepare a worker of a pool: it ignores Ctrl-C, which the pool handles, and ends with the pool's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner = multiprocessing.parent_process()
    if owner is not None:

        def watch() -> None:
            owner.join()
            os._exit(STOPPED)

        threading.Thread(target=watch, name="owner", daemon=True).start()


def guarded_group() -> int:
    """A process group for a program. All its processes are killed when this process has ended in any way."""
    guard = [sys.executable, "-I", "-S", "-c", _GUARD]
    # The guard inherits none of our outputs, because a reader of an output waits until all its writers have ended.
    nowhere = subprocess.DEVNULL
    started = subprocess.Popen(guard, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, process_group=0)
    _guards.append(started)
    return started.pid


def end_group_with(pid: int) -> None:
    """End the group of this process when the process `pid` ends, or now if it has ended. Linux only."""
    try:
        driver = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(STOPPED)
    except (AttributeError, OSError):
        return

    def watch() -> None:
        select.select([driver], [], [])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="driver", daemon=True).start()
