"""The watchdog: finds a run of threads that makes no progress.

The watchdog counts *beats*. A beat is one wait of the coordinating thread, during which the run made no progress. A
machine that sleeps has no beats, so its sleep causes no verdict. The verdict (clause P3) names the line of each thread,
says whether the thread moved between the last two beats, and names the held locks. If the locks store their holders,
the verdict names the holders too.
"""

import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Final

from purgatorio_stress.printed import StuckThread

_FRAMES: Final = 8
"""The number of innermost frames in the report of a thread."""

Place = tuple[str, int, int]
"""The position of a thread: the name of the code, the line, and the offset of the instruction."""


class Watchdog:
    """Counts beats without progress. `patience`: the number of beats of a stuck run. Raises ValueError below 2."""

    __slots__ = ("_last", "_patience", "_places", "_progress", "beats")

    def __init__(self, progress: Callable[[], int], patience: int = 10) -> None:
        if patience < 2:
            raise ValueError(f"two beats at least, to see whether a thread moves, not {patience}")
        self._progress = progress
        self._patience = patience
        self._last = progress()
        self.beats = 0
        """The number of beats since the last progress."""
        self._places: dict[int, Place] = {}

    def beat(self) -> bool:
        """Record the end of one wait. True if the number of beats without progress has reached `patience`."""
        now = self._progress()
        if now != self._last:
            self._last, self.beats = now, 0
            return False
        self.beats += 1
        if self.beats == self._patience - 1:
            self._places = {ident: _place(frame) for ident, frame in sys._current_frames().items()}
        return self.beats >= self._patience

    def threads(self, threads: Iterable[threading.Thread]) -> tuple[StuckThread, ...]:
        """The live threads with their stacks, and whether each has moved since the previous beat."""
        return stuck_threads(threads, self._places)


def stuck_threads(threads: Iterable[threading.Thread], before: dict[int, Place]) -> tuple[StuckThread, ...]:
    """The live threads with their stacks, and whether each has moved. `before`: their earlier positions."""
    frames = sys._current_frames()
    found = []
    for thread in threads:
        frame = frames.get(thread.ident or 0)
        if thread.is_alive() and frame is not None:
            moved = before.get(thread.ident or 0, _place(frame)) != _place(frame)
            found.append(StuckThread(thread.name, moved, tuple(_stack(frame))))
    return tuple(found)


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_name, frame.f_lineno, frame.f_lasti


def _stack(frame: FrameType) -> list[str]:
    """The innermost frames, the innermost last, as texts with file and line."""
    summary = traceback.extract_stack(frame)[-_FRAMES:]
    return [f"{_short(one.filename)}:{one.lineno} {one.name}: {one.line}" for one in summary]


def _short(path: str) -> str:
    """The last two parts of a path, so that a report has no path of this machine."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])
