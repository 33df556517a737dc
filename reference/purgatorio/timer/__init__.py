"""Timers: the interface, Kafka's hierarchical wheel, a simple oracle, the hashed wheel, a mock, and the intrusive
wheel.

Use the intrusive wheel in production. `compiled` is False if the intrusive wheel runs as plain Python, and True if
mypyc has compiled the same source files (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.lock import COMPILED
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer

__all__ = ["Handle", "IntrusiveTimer", "compiled"]

compiled: Final[bool] = COMPILED
