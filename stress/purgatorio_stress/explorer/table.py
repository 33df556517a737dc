"""A run as a table, one column a task, file and line of each step; and as a timeline for Perfetto."""

from collections.abc import Sequence
from typing import Final

from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import Replay

_WIDTH: Final = 46
_STEP_US: Final = 10


def table(replay: Replay, broken: Sequence[Broken], token: str, preemptions: int, options: str = "") -> str:
    """The text of a counterexample. `options`: of the command that repeats it, what no token says."""
    lines = [f"{one.clause} broken: {one.subject}: {one.seen}" for one in broken]
    tasks = [task for task in replay.tasks if any(place.task == task for place in replay.places)]
    number = len(str(len(replay.places)))
    lines.append("")
    lines.append(" " * number + "  " + "".join(f"{task:<{_WIDTH}}" for task in tasks).rstrip())
    for at, place in enumerate(replay.places, 1):
        if not place.task:
            lines.append(f"{at:>{number}}  -- {place.function} --")
            continue
        text = f"{replay.words(place)}  {place.where}".rstrip()
        lines.append(f"{at:>{number}}  {' ' * (_WIDTH * tasks.index(place.task))}{text}")
    lines.append("")
    lines.append(f"{len(replay.places)} steps, {preemptions} preemptions. Replay it, in a debugger too:")
    lines.append(f"  purgatorio explore --replay {token}{options}")
    return "\n".join(lines)


def chrome_trace(replay: Replay) -> dict[str, object]:
    """The run in the Trace Event Format, for ui.perfetto.dev and chrome://tracing: a lane a task, 10 us a step."""
    lanes = {task: number for number, task in enumerate(replay.tasks, 1)}
    events: list[dict[str, object]] = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": lane, "args": {"name": task}}
        for task, lane in lanes.items()
    ]
    for at, place in enumerate(replay.places):
        events.append(
            {
                "name": replay.words(place),
                "cat": "step",
                "ph": "X",
                "ts": at * _STEP_US,
                "dur": _STEP_US,
                "pid": 1,
                "tid": lanes.get(place.task, 0),
                "args": {"where": place.where, "function": place.function},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}
