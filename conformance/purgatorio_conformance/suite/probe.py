"""`Probe`: the suite's object for one operation. The methods of the user's operation call the probe:

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

If you can change the code that sets, stops and runs the operation's time-out, call `timer_add`, `timer_cancel` and
`timer_fire` in this code. If not, declare the lack `timer`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from purgatorio_conformance.suite.stage import Stage


@dataclass(eq=False)
class Probe:
    """The suite's object for one operation. `id` is unique in its run. The operation waits under `keys` for
    `delay_ns`. `units`: the number of units that it waits for, if the promise offers `amounts`."""

    _stage: Stage
    id: str
    keys: tuple[str, ...]
    delay_ns: int
    _ready: threading.Event
    units: int = 1

    def try_complete(self, force: Callable[[], bool]) -> bool:
        """The operation's `try_complete`. If the condition holds, calls `force`, the operation's `force_complete`."""
        return self._stage.asked("try_complete", self.id, partial(self._tried, force))

    def _tried(self, force: Callable[[], bool]) -> bool:
        ready = self._ready.is_set()
        self._stage.stop("try_complete", self.id)
        return ready and bool(force())

    def force_complete(self, inherited: Callable[[], bool]) -> bool:
        """The operation's `force_complete`, for every caller. Calls `inherited`, which completes the operation."""
        return self._stage.asked("force_complete", self.id, partial(self._forced, inherited))

    def _forced(self, inherited: Callable[[], bool]) -> bool:
        self._stage.stop("force_complete", self.id)
        return bool(inherited())

    def on_complete(self) -> None:
        """The operation's `on_complete`."""
        self._stage.around("on_complete", self.id)

    def on_expiration(self) -> None:
        """The operation's `on_expiration`."""
        self._stage.around("on_expiration", self.id)

    def timer_add(self, add: Callable[[], None]) -> None:
        """Calls `add`, which sets the operation's time-out."""
        self._stage.around("timer_add", self.id, add)

    def timer_cancel(self, cancel: Callable[[], None]) -> None:
        self._stage.around("timer_cancel", self.id, cancel)

    def timer_fire(self, expire: Callable[[], None]) -> None:
        """Calls `expire`, which runs when the operation has timed out."""
        self._stage.around("timer_fire", self.id, expire)

    def __repr__(self) -> str:
        return f"Probe({self.id!r}, keys={self.keys}, delay_ns={self.delay_ns})"
