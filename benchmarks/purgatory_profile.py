"""Where an operation's time goes in the purgatory: the functions with the most time of their own, by cProfile.

The profiler's own cost is in every call, so functions that are called often look dearer than they are; the order is
what to read. Compiled functions are seen as a whole, from their caller.
"""

import cProfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.purgatory_request import PENDING, PurgatoryWorkload, purgatory_entries


@dataclass(frozen=True, slots=True)
class Spent:
    """A function: calls an operation, and its share of all time, its callees' not included."""

    function: str
    calls: float
    share: float


def profile_purgatory(subject: str, name: str, steps: int, most: int = 10) -> list[Spent]:
    """The `most` dearest functions of a workload (P1 to P4). KeyError for a subject that is not here."""
    play = {entry.name: entry.outside for entry in purgatory_entries()}[subject]
    if play is None:
        raise KeyError(subject)
    workload = PurgatoryWorkload(name, steps)
    profiler = cProfile.Profile()
    profiler.runcall(play, workload)
    return _dearest(profiler, steps + PENDING, most)


def _dearest(profiler: cProfile.Profile, operations: int, most: int) -> list[Spent]:
    found: list[Spent] = []
    entries = profiler.getstats()
    total = sum(entry.inlinetime for entry in entries)
    for entry in sorted(entries, key=lambda entry: -entry.inlinetime)[:most]:
        code = entry.code
        if isinstance(code, str):
            function = code.strip("<>").removeprefix("built-in method ")
        else:
            function = f"{Path(code.co_filename).stem}.{code.co_qualname}"
        found.append(Spent(function, entry.callcount / operations, entry.inlinetime / total))
    return found
