"""A bound for code that turns for ever without a step of the seam: nothing else would end it, for nobody is asked.

The bound is CPU time of this process, so a busy machine does not matter. It works in the main thread only, where
signals arrive; elsewhere there is none.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class NoEnd(BaseException):
    """Raised in whatever runs when its time is up. No `Exception`: the code under test must not contain it."""


def ends_the_run(error: BaseException) -> bool:
    """Whether `error` ends the run and not one callback: code under test must not continue after it."""
    from greenlet import GreenletExit

    return isinstance(error, GreenletExit | KeyboardInterrupt | NoEnd)


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
