"""The fastest lock for threads that this build has, as a `Mutex`.

Compiled, and with `librt` installed, it is librt's: taking it and giving it back costs about 8 ns from machine code,
the interpreter's about 100. `librt` is no dependency; without it, and interpreted, it is the interpreter's.
"""

import threading
from collections.abc import Callable
from typing import Final, cast

from purgatorio.mutex import Mutex

__all__ = ["COMPILED", "thread_mutex"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module, and with it the whole hot path, is machine code."""


def _native_lock() -> Callable[[], Mutex] | None:
    """What makes one of librt's locks; None where it is not installed, or nothing would be gained by it."""
    if not COMPILED:
        return None
    try:
        from purgatorio.librt_mutex import LibrtMutex
    except ImportError:
        return None
    return LibrtMutex


_NATIVE_LOCK: Final = _native_lock()


def thread_mutex() -> Mutex:
    """A new one."""
    if _NATIVE_LOCK is not None:
        return _NATIVE_LOCK()
    lock = threading.Lock()
    # Interpreted, the lock itself: it has all of the methods, and nobody asks for its class.
    return Mutex(lock) if COMPILED else cast(Mutex, lock)
