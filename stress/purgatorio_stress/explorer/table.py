"""A run as a table: one column for each task, with file and line of each scheduling point."""

from collections.abc import Sequence
from typing import Final

from purgatorio_spec.show.visible import counted
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import Replay

_WIDTH: Final = 46


def table(replay: Replay, broken: Sequence[Broken], token: str, preemptions: int, options: str = "") -> str:
    """The text of a counterexample. `options`: options of the replay command that the token does not contain."""
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
    most = counted(preemptions, "preemption")
    lines.append(f"{len(replay.places)} steps, {most}. Replay it, in a debugger too:")
    lines.append(f"  purgatorio explore --replay {token}{options}")
    return "\n".join(lines)
