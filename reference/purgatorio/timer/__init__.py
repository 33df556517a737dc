"""Timers: the contract in `interface`, the hierarchical wheel, its dumb twin, the hashed wheel, a mock, and the flat
wheel, which is the one for use.

`compiled` says which build of the flat wheel this is: False for the plain Python of the source, True where mypyc made
machine code of the same files (see CONTRIBUTING.md).
"""

from typing import Final

from purgatorio.threads_mutex import COMPILED
from purgatorio.timer.flat_task import FlatCallback, FlatEntry, FlatHandle, FlatTask
from purgatorio.timer.flat_timer import FlatTimer, Handle

__all__ = ["FlatCallback", "FlatEntry", "FlatHandle", "FlatTask", "FlatTimer", "Handle", "compiled"]

compiled: Final[bool] = COMPILED
