"""`Probe`: one operation as the suite sees it. The user's operation calls it from its own methods.

    class MyOperation(mylib.DelayedOperation):
        def __init__(self, probe):
            super().__init__(timeout=probe.delay_ns / 1e9)
            self.probe = probe
        def try_complete(self):
            return self.probe.try_complete(self.force_complete)
        def force_complete(self):
            return self.probe.force_complete(super().force_complete)
        def on_complete(self):
            self.probe.on_complete()
        def on_expiration(self):
            self.probe.on_expiration()

Where it can be reached, what sets, stops and runs the operation's timer goes through `timer_add`, `timer_cancel` and
`timer_fire`; where not, say that `timer` is lacking.
"""

from __future__ import annotations

from collections.abc import Callable

from purgatorio_spec.trace.record import MAX_INT, MIN_INT
from purgatorio_stress.recorder import Recorder

__all__ = ["Probe", "in_range", "in_words"]


def in_range(time_ns: int) -> int:
    """The trace format holds 64 bits; a time beyond is later than any run lasts."""
    return max(MIN_INT, min(MAX_INT, time_ns))


def in_words(time_ns: int) -> str:
    """In milliseconds, where it is a number of them."""
    whole, rest = divmod(time_ns, 1_000_000)
    return f"{time_ns} ns" if rest else f"{whole} ms"


class Probe:
    """`id` is unique in its run; the operation is to wait under `keys`, for `delay_ns`."""

    def __init__(
        self,
        recorder: Recorder,
        id: str,  # noqa: A002 - the trace format's name of the field
        keys: tuple[str, ...],
        delay_ns: int,
    ) -> None:
        self.id = id
        self.keys = keys
        self.delay_ns = delay_ns
        self.on_completing: Callable[[], None] | None = None
        """What the suite does inside `on_complete`."""
        self.raises = False
        self.in_the_window: Callable[[], None] | None = None
        """What the suite does once, just after the first try has found the condition not to hold."""
        self._recorder = recorder
        self._ready = False

    def become_ready(self) -> None:
        """For the suite: its condition holds from here on."""
        before_t = self._recorder.clock_ns()
        self._ready = True
        self._recorder.at("ready", self.id, t_call=before_t)

    def try_complete(self, force: Callable[[], bool]) -> bool:
        """The operation's `try_complete`: calls `force`, its `force_complete`, where the condition holds."""
        return bool(self._recorder.around("try_complete", self.id, lambda: self._tried(force), out=int))

    def _tried(self, force: Callable[[], bool]) -> bool:
        if self.raises:
            raise ValueError(f"{self.id} raises, as the suite meant it to")
        if self._ready:
            return force()
        window, self.in_the_window = self.in_the_window, None
        if window is not None:
            self.become_ready()
            window()
        return False

    def force_complete(self, inherited: Callable[[], bool]) -> bool:
        """The operation's `force_complete`, around the one that really completes it; every caller goes this way."""
        return bool(self._recorder.around("force_complete", self.id, inherited, out=int))

    def on_complete(self) -> None:
        """The operation's `on_complete`."""
        c = self._recorder.call("on_complete", self.id)
        try:
            if self.on_completing is not None:
                self.on_completing()
        finally:
            self._recorder.ret("on_complete", c, self.id)

    def on_expiration(self) -> None:
        """The operation's `on_expiration`."""
        self._recorder.at("on_expiration", self.id)

    def timer_add(self, add: Callable[[], None]) -> None:
        """Around what sets the operation's timer."""
        deadline_t = in_range(self._recorder.clock_ns() + self.delay_ns)
        c = self._recorder.call("timer_add", self.id, delay_ns=in_range(self.delay_ns))
        add()
        self._recorder.ret("timer_add", c, self.id, deadline_t=deadline_t)

    def timer_cancel(self, cancel: Callable[[], None]) -> None:
        """Around what stops it."""
        c = self._recorder.call("timer_cancel", self.id)
        cancel()
        self._recorder.ret("timer_cancel", c, self.id)

    def timer_fire(self, expire: Callable[[], None]) -> None:
        """Around what runs when it has timed out."""
        c = self._recorder.call("timer_fire", self.id)
        try:
            expire()
        finally:
            self._recorder.ret("timer_fire", c, self.id)

    def __repr__(self) -> str:
        return f"Probe({self.id!r}, keys={self.keys}, delay_ns={self.delay_ns})"
