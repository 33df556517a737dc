"""What one drain hands over: one action for the executor, whatever the number of tasks.

Promise: each task runs once, in order; what one raises goes to the fault policy, and loses none behind it, also
where the policy raises it again.

Not promised: that `Executor.shutdown_now` counts tasks; a batch that has not started counts as one.
"""

from purgatorio.faults import FaultPolicy
from purgatorio.sync import Executor
from purgatorio.timer.flat_task import FlatEntry

__all__ = ["Batch"]


class Batch:
    """`run` is an executor's action."""

    __slots__ = ("_executor", "_faults", "_tasks")

    def __init__(self, tasks: list[FlatEntry], executor: Executor, faults: FaultPolicy) -> None:
        self._tasks = tasks
        self._executor = executor
        self._faults = faults

    def run(self) -> None:
        """Run them all."""
        for position, task in enumerate(self._tasks, 1):
            try:
                task.run()
            except Exception as error:
                self._caught(error, task, position)

    def _caught(self, error: Exception, task: FlatEntry, position: int) -> None:
        """Where the policy raises, those behind go to the executor once more: this action is over."""
        try:
            self._faults.caught(error, "run", task)
        except BaseException:
            rest = self._tasks[position:]
            if rest:
                self._executor.submit(Batch(rest, self._executor, self._faults).run)
            raise
