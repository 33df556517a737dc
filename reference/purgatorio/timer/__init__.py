"""Timers: five implementations of one interface. The module `interface` has the promises.

`IntrusiveTimer` is for production use. `SystemTimer` is Kafka's hierarchical wheel. `HashedWheel` has the design of
netty's timer. `HeapTimer` is the simplest timer: tests compare the other timers with it. `MockTimer` is for tests of
code that uses timers. `compiled` is True in the build that mypyc has compiled (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.lock import COMPILED
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer

__all__ = ["Handle", "IntrusiveTimer", "compiled"]

compiled: Final[bool] = COMPILED
