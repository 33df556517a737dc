"""The reference: Kafka's delayed operations and timing wheels in Python, without dependencies.

For the purgatory, read `purgatorio.delayed.operation` first, then `purgatorio.delayed.purgatory`. For the timers, read
`purgatorio.timer.interface` first, then `purgatorio.timer.wheel` and `purgatorio.timer.bucket`. The module `arithmetic`
has the formulas of the wheels. The module `sync` has the locks and shared values that all other modules use.

Public are the names in `tests/tidy/public_surface.txt`. Other names may change in any release.
"""

from purgatorio.clock import Clock, ManualClock, MonotonicClock
from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.gauges import GaugeRegistry, PurgatoryGauges, openmetrics
from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.pending_flag import PENDING_FLAG
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.executors import DirectExecutor, LoopExecutor, QueuedExecutor
from purgatorio.faults import CONTAIN, PROPAGATE, ContainFaults, FaultPolicy
from purgatorio.invariant import InvariantBroken
from purgatorio.process import MadeBeforeFork
from purgatorio.reaper import ReaperTimer
from purgatorio.sync import Executor, ExecutorClosed, Sync
from purgatorio.threads import THREADS
from purgatorio.timer.calls import Repeated
from purgatorio.timer.hashed_wheel import HashedWheel
from purgatorio.timer.heap_timer import HeapTimer
from purgatorio.timer.interface import Timer, TimerClosed
from purgatorio.timer.intrusive.timer import Handle, IntrusiveTimer
from purgatorio.timer.mock_timer import MockTimer
from purgatorio.timer.system_timer import SystemTimer
from purgatorio.timer.task import ActionTask, TimerTask
from purgatorio.virtual_time import VirtualTime

__all__ = [
    "CONTAIN",
    "LOCKED",
    "PENDING_FLAG",
    "PROPAGATE",
    "THREADS",
    "ActionQueue",
    "ActionTask",
    "Clock",
    "ContainFaults",
    "DelayedOperation",
    "DirectExecutor",
    "Executor",
    "ExecutorClosed",
    "FaultPolicy",
    "GaugeRegistry",
    "Handle",
    "HashedWheel",
    "HeapTimer",
    "IntrusiveTimer",
    "InvariantBroken",
    "LoopExecutor",
    "MadeBeforeFork",
    "ManualClock",
    "MockTimer",
    "MonotonicClock",
    "Purgatory",
    "PurgatoryGauges",
    "QueuedExecutor",
    "ReaperTimer",
    "Repeated",
    "Sync",
    "SystemTimer",
    "Timer",
    "TimerClosed",
    "TimerTask",
    "VirtualTime",
    "openmetrics",
]
