"""Timers: the contract in `interface`, the hierarchical wheel of Kafka, a simple oracle, the hashed wheel, a mock, and
the intrusive wheel, which is the one for use.

`compiled` says which build of the intrusive wheel this is: False for the plain Python of the source, True where mypyc
made machine code of the same files (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.lock import COMPILED
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer

__all__ = ["Handle", "IntrusiveTimer", "compiled"]

compiled: Final[bool] = COMPILED
