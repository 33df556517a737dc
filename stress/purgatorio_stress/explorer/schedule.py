"""Schedules: lists of task numbers, one number for each scheduling point. `TIME` means that time passes."""

from collections.abc import Sequence

from purgatorio_stress.explorer.run import Execution


class Choices:
    """A chooser that keeps its choices. `pick` chooses among the enabled tasks."""

    def __init__(self) -> None:
        self.chosen: list[int] = []
        self._enabled: list[int] = []

    def forget(self) -> None:
        self.chosen, self._enabled = [], []

    def preemptions(self) -> int:
        """See `Search.preemptions`."""
        return preemptions_of(self.chosen, self._enabled)

    def choose(self, run: Execution, /) -> int:
        able = [task.index for task in run.tasks if run.is_enabled(task)]
        index = self.pick(run, able)
        self.chosen.append(index)
        self._enabled.append(sum(1 << one for one in able))
        return index

    def pick(self, run: Execution, able: list[int]) -> int:
        raise NotImplementedError


def preemptions_of(schedule: Sequence[int], enabled: Sequence[int]) -> int:
    """The number of preemptions. `enabled` has a bit mask of the runnable tasks for each scheduling point."""
    count = 0
    for at in range(1, len(schedule)):
        last = schedule[at - 1]
        if last >= 0 and schedule[at] != last and at < len(enabled) and enabled[at] >> last & 1:
            count += 1
    return count


def switches_of(schedule: Sequence[int]) -> int:
    """The number of switches to another task."""
    return sum(1 for at in range(1, len(schedule)) if schedule[at] != schedule[at - 1])
