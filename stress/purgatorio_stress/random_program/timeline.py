"""The calls and firings of a timer in a random program, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from purgatorio_spec.oracle.timer_history import TimerCall
from purgatorio_stress.scenario.world import World


class TimerTimeline:
    """Records calls and firings for `purgatorio_spec.oracle.timer_history`. `open`: by position of its begin, each
    call that has not ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ended: list[TimerCall] = []
        self.open: dict[int, TimerCall] = {}
        self.length = 0
        """The number of begins and ends so far."""

    def now_ms(self) -> int:
        """The present time, without a scheduling point."""
        return self._world.start_ms + self._world.run.now_ms

    def _next(self) -> int:
        self.length += 1
        return self.length

    def begin(self, do: str, task: str = "", timer: int = 0) -> int:
        """Record the begin of a call. Returns its position, for `end`."""
        at, now_ms = self._next(), self.now_ms()
        self.open[at] = TimerCall(do, at, at, now_ms, now_ms, task, timer)
        return at

    def end(self, at: int, **said: Any) -> None:
        """Record the end of a call. `said`: the other fields of `TimerCall`."""
        self.ended.append(replace(self.open.pop(at), end=self._next(), end_ms=self.now_ms(), **said))

    def fired(self, task: str) -> None:
        at, now_ms = self._next(), self.now_ms()
        self.ended.append(TimerCall("fired", at, at, now_ms, now_ms, task))

    def begun(self) -> list[TimerCall]:
        """All calls. A call that has not ended ends at its begin."""
        return [*self.ended, *self.open.values()]

    def calls(self, *, lags: bool) -> tuple[TimerCall, ...]:
        """The calls that have ended. `lags`: a drain concurrent with an `add` may leave due tasks. (The first of two
        adds to a bucket offers the bucket. Before the offer, a drain does not find the task of the second add.)"""
        adds = [call for call in self.ended if lags and call.do == "add"]
        return tuple(
            replace(call, refused=True)
            if call.do == "drain" and any(overlap(add, call) for add in adds)
            else call
            for call in self.ended
        )


def overlap(one: TimerCall, other: TimerCall) -> bool:
    return one.begin < other.end and other.begin < one.end
