"""Seeded yields at calls of the seam.

Each thread of a round draws, before the round, at which of its calls it will yield: at most so many, anywhere in what
its longest round so far had (the idea of PCT, a few preemptions at random depths). It then yields by sleeping for a
moment drawn from `NAPS_S`, so that the others continue without it: none at all, which hands over the interpreter's lock
to the caller that has waited for it, up to longer than a round takes.

The seed repeats the draws, not the machine: which thread runs on while another sleeps is the system's choice.
"""

import random
import threading
import time
from typing import Final

NAPS_S: Final = (0.0, 0.000_01, 0.000_05, 0.000_15)
"""Seconds of a yield; Linux adds its timer slack, 50 microseconds unless told otherwise."""

_FIRST_SPAN: Final = 12


class Lane:
    """One thread's plan: where it yields in this round."""

    __slots__ = ("_left", "_most", "_next", "_passed", "_rng", "span", "yields")

    def __init__(self, seed: str, most: int) -> None:
        self._rng = random.Random(seed)
        self._most = most
        self._left = 0
        self._next = 0
        self._passed = 0
        self.span = _FIRST_SPAN
        self.yields = 0

    def begin(self) -> None:
        """Draw the plan of the next round."""
        self.span = max(self.span, self._passed)
        self._passed = 0
        self._left = 1 + int(self._rng.random() * self._most)
        self._next = 1 + int(self._rng.random() * self.span)

    def pass_by(self) -> None:
        """One call of the seam; yields where the plan says so."""
        self._passed += 1
        if self._passed == self._next:
            self.yields += 1
            self._left -= 1
            if self._left:
                self._next += 1 + int(self._rng.random() * self.span)
            time.sleep(NAPS_S[int(self._rng.random() * len(NAPS_S))])


class _Local(threading.local):
    lane: Lane | None = None


class Noise:
    """Where the seam's calls come by. Threads without a lane (set-up, judgement) pass unhindered."""

    __slots__ = ("_local",)

    def __init__(self) -> None:
        self._local = _Local()

    def enter(self, lane: Lane) -> None:
        """The calling thread yields by this plan from now on."""
        self._local.lane = lane

    def point(self) -> None:
        """A call of the seam is about to be made."""
        lane = self._local.lane
        if lane is not None:
            lane.pass_by()
