"""Timers: five implementations of one interface. The module `interface` has the promises. Use `IntrusiveTimer` in
production.

`SystemTimer` is Kafka's hierarchical wheel. `HashedWheel` has the design of netty's timer. `HeapTimer` is the simplest
timer, with which tests compare the others. `MockTimer` is for tests of code that uses timers. `compiled` is True if
mypyc has compiled the source files of `IntrusiveTimer`, and False if they run as plain Python (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.lock import COMPILED
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer

__all__ = ["Handle", "IntrusiveTimer", "compiled"]

compiled: Final[bool] = COMPILED
