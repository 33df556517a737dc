"""A run as a table: one column for each thread, with file and line of each scheduling point."""

import shutil
import textwrap
from collections.abc import Sequence

from purgatorio_spec.show.lanes import Lanes
from purgatorio_spec.show.visible import WIDTH, counted
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.explorer.replay import Replay


def width() -> int:
    """The number of columns of the terminal, or the value of the variable COLUMNS. At least 80, and 80 without both."""
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def table(replay: Replay, broken: Sequence[Broken], token: str, options: str = "") -> str:
    """The text of a counterexample. `options`: options of the replay command that the token does not contain."""
    lines = [line for one in broken for line in wrapped(f"{one.clause} broken: {one.subject}: {one.seen}")]
    texts: dict[str, list[str]] = {
        task: [] for task in replay.tasks if any(place.task == task for place in replay.places)
    }
    said = [f"{replay.words(place)}  {place.where}".rstrip() for place in replay.places]
    for place, text in zip(replay.places, said, strict=True):
        if place.task:
            texts[place.task].append(text)
    number = len(str(len(replay.places)))
    lanes = Lanes.of(texts, width() - number - 2)
    lines += ["", f"{'':>{number}}  {lanes.heads()}".rstrip()]
    for at, (place, text) in enumerate(zip(replay.places, said, strict=True), 1):
        left = f"{at:>{number}}  "
        for part in lanes.cells(place.task, text) if place.task else [f"-- {place.function} --"]:
            lines.append((left + part).rstrip())
            left = " " * len(left)
    most = counted(replay.preemptions, "preemption")
    lines += ["", f"{len(replay.places)} steps, {most}. Replay it, in a debugger too:"]
    lines.append(f"  purgatorio explore --replay {token}{options}")
    return "\n".join(lines)


def wrapped(text: str) -> list[str]:
    """A sentence in lines of this width. All lines after the first are indented."""
    return textwrap.wrap(text, width(), subsequent_indent="    ", break_on_hyphens=False)
