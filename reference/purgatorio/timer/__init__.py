"""Timers. The module `interface` has the promises of every timer. Use `IntrusiveTimer` in production.

`SystemTimer` is Kafka's hierarchical wheel. `HashedWheel` is the design of netty's timer. `HeapTimer` is the simplest
timer, and tests compare the other timers with it. `MockTimer` is for tests of code that uses timers. `compiled` is True
if mypyc has compiled the source files of `IntrusiveTimer`, and False if they run as plain Python (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.lock import COMPILED
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer

__all__ = ["Handle", "IntrusiveTimer", "compiled"]

compiled: Final[bool] = COMPILED
