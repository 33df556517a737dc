"""Answers the question whether a silent subject may only be slow, from the states of its threads that Linux reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_USER, _SYSTEM = 11, 12
"""Where Linux says how much time a thread or process has used, counted from the letter for what it does."""

_LOOKS: Final = 20
_LOOK_EVERY_S: Final = 0.025
"""So often its threads are looked at, to see whether any runs."""

_WORKS_SHARE: Final = 0.02
"""A program that uses a larger share of a processor is working. One that waits, and polls now and then, uses less."""


@dataclass(slots=True)
class AtWork:
    """Whether a subject works: `used_s` is its CPU time so far. `looks` makes a function that says whether, after
    this many seconds, all its present threads wait, and no message has come."""

    used_s: Callable[[], float]
    looks: Callable[[], Callable[[float], bool]]
    since: tuple[float, float] | None = None
    """When its silence was noticed, and what it had used by then."""
    spent: bool = False
    """Whether it used so much of the processor's time, when it was asked last, that no other keeps it from its end."""
    _looked: tuple[float, float] | None = None
    _seen: bool = False

    def look_anew(self) -> None:
        """Whatever it did until now says nothing of what it does from here on."""
        self.since = self._looked = None
        self._seen = self.spent = False

    def notice(self) -> tuple[float, float]:
        """When it was, and what it has used since its silence was noticed: from here on, if it was not."""
        now_s, used_s = time.monotonic(), self.used_s()
        since_s, before_s = self.since = self.since or (now_s, used_s)
        return now_s - since_s, used_s - before_s

    def works(self, most_s: float) -> bool:
        """Whether it may come to an end: it has used the processor since it was asked last, or fell silent, or some
        thread runs or could run. Not once it is `spent`, which it is by `most_s`."""
        passed_s, used_s = self.notice()
        looked_s, before_s = self._looked or (0.0, 0.0)
        self._looked = passed_s, used_s
        self._seen = used_s - before_s > _WORKS_SHARE * (passed_s - looked_s)
        self.spent = used_s >= most_s
        self._seen = self._seen or self.spent or not self._at_rest()
        return self._seen and not self.spent

    def still(self) -> bool:
        """Whether it did not work when it was asked last, and does not now."""
        return not self._seen and self._at_rest()

    def _at_rest(self) -> bool:
        """At nearly every sample no thread is running or runnable. A thread that works on a busy machine is
        runnable; one that only polls is rarely seen."""
        rests = self.looks()
        return sum(not rests(_LOOK_EVERY_S) for _ in range(_LOOKS)) <= _LOOKS // 4


def stat(place: Path) -> Sequence[str]:
    """What Linux says of a thread or process, from the letter for what it does on; nothing of one that has ended."""
    with suppress(OSError):
        return place.read_text(errors="replace").rpartition(")")[2].split()
    return ()


def all_wait(places: Iterable[Path]) -> bool:
    """Whether none of these threads runs or could run. No where the system does not tell."""
    stats = [stat(place) for place in places]
    return bool(stats) and not any(said and said[0] in "RD" for said in stats)


def used_s(places: Iterable[Path]) -> float:
    """The processor's time that they have used so far; 0 where the system does not tell."""
    ticks = sum(int(said[place]) for said in map(stat, places) if said for place in (_USER, _SYSTEM))
    return ticks / os.sysconf("SC_CLK_TCK")
