"""What one drain hands over: one action for the executor, whatever the number of tasks.

Promise: each task and each function runs once, in order; what one raises goes to the fault policy, and loses none
behind it, also where the policy raises it again.

Not promised: that `Executor.shutdown_now` counts tasks; a batch that has not started counts as one.
"""

from purgatorio.faults import FaultPolicy
from purgatorio.sync import Executor
from purgatorio.timer.flat_level import Callback
from purgatorio.timer.flat_task import FlatEntry

__all__ = ["Batch", "Due"]

Due = tuple[int, list[FlatEntry], list[Callback]]
"""What is due at one tick: the tick, its tasks, and the functions that waited under numbers."""


class Batch:
    """`run` is an executor's action. `dues` are in the order of their ticks; they are not changed."""

    __slots__ = ("_dues", "_executor", "_faults")

    def __init__(self, dues: list[Due], executor: Executor, faults: FaultPolicy) -> None:
        self._dues = dues
        self._executor = executor
        self._faults = faults

    def run(self) -> None:
        """Run them all."""
        for number, (_, tasks, calls) in enumerate(self._dues, 1):
            for position, task in enumerate(tasks, 1):
                try:
                    task.run()
                except Exception as error:
                    self._caught(error, task, number, tasks[position:], calls)
            for position, call in enumerate(calls, 1):
                try:
                    call()
                except Exception as error:
                    self._caught(error, call, number, [], calls[position:])

    def _caught(
        self, error: Exception, subject: object, number: int, tasks: list[FlatEntry], calls: list[Callback]
    ) -> None:
        """Where the policy raises, those behind go to the executor once more: this action is over."""
        try:
            self._faults.caught(error, "run", subject)
        except BaseException:
            rest = self._dues[number:]
            if tasks or calls:
                rest.insert(0, (0, tasks, calls))
            if rest:
                self._executor.submit(Batch(rest, self._executor, self._faults).run)
            raise
