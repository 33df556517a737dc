"""Short sleeps (yields) before random calls of a `Sync`, which makes the locks and atomics of the code under test. A
seed determines the random choices.

Before a round, each thread chooses at random a few calls before which it will yield. It chooses among the first n
calls, where n is the length of its longest round so far. (PCT has the same idea: a few preemptions at random depths.) A
yield is a sleep, in which other threads continue. Its time is a random element of `NAPS_S`. A sleep of zero only
releases the GIL. A sleep may be longer than a round.

The same seed gives the same random choices, but not the same scheduling: the system chooses the thread that runs while
another thread sleeps.
"""

import random
import threading
import time
from typing import Final

NAPS_S: Final = (0.0, 0.000_01, 0.000_05, 0.000_15)
"""The possible durations of a yield in s. Linux adds its timer slack, by default 50 microseconds."""

_FIRST_SPAN: Final = 12


class YieldPlan:
    """The plan of one thread: the calls before which it yields in a round."""

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
        """Choose the plan of the next round at random."""
        self.span = max(self.span, self._passed)
        self._passed = 0
        self._left = 1 + int(self._rng.random() * self._most)
        self._next = 1 + int(self._rng.random() * self.span)

    def pass_by(self) -> None:
        """Count a call of a `Sync`, and yield if the plan has this call."""
        self._passed += 1
        if self._passed == self._next:
            self.yields += 1
            self._left -= 1
            if self._left:
                self._next += 1 + int(self._rng.random() * self.span)
            time.sleep(NAPS_S[int(self._rng.random() * len(NAPS_S))])


class _Local(threading.local):
    plan: YieldPlan | None = None


class Noise:
    """The yields before calls of a `Sync`. Threads without a plan (set-up, judgement) do not yield."""

    __slots__ = ("_local",)

    def __init__(self) -> None:
        self._local = _Local()

    def enter(self, plan: YieldPlan) -> None:
        """Set the plan of the calling thread."""
        self._local.plan = plan

    def point(self) -> None:
        """Called before each call of a `Sync`."""
        plan = self._local.plan
        if plan is not None:
            plan.pass_by()
