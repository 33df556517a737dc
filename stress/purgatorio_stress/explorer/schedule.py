"""Schedules: lists of task numbers, one number for each scheduling point. `TIME` means that time passes."""

from collections.abc import Sequence


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
