"""`Mutex` over a lock of the package librt. Only the compiled build uses this module, if librt is installed."""

from librt.threading import Lock as NativeLock

from purgatorio.compiling import mypyc_attr
from purgatorio.lock import Mutex


@mypyc_attr(acyclic=True)
class LibrtMutex(Mutex):
    __slots__ = ("_native",)

    def __init__(self) -> None:
        self._native: NativeLock = NativeLock()

    def acquire(self) -> None:
        self._native.acquire()

    def release(self) -> None:
        self._native.release()
