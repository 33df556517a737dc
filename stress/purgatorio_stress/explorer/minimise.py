"""Minimizes a counterexample: fewest preemptions, then fewest scheduling points, then fewest switches.

The bounded search finds the smallest number of preemptions, and some counterexamples with this number. The result is
the shortest of these; a shorter one may exist.
"""

from contextlib import suppress
from typing import Final

from purgatorio_stress.explorer.bounded import explore_bounded
from purgatorio_stress.explorer.endless import NO_END_S, NoEnd, bounded_cpu
from purgatorio_stress.explorer.program import Program
from purgatorio_stress.explorer.replay import BadToken, Replay, replay
from purgatorio_stress.explorer.result import BrokenExecution, Limits
from purgatorio_stress.explorer.schedule import switches_of

_CANDIDATES: Final = 25
_SCHEDULES: Final = 4_000
_SECONDS: Final = 10.0


def minimise(program: Program, found: BrokenExecution) -> BrokenExecution:
    """The easiest known counterexample for the clause of `found`. `found` itself, if the search finds no better one."""
    limits = Limits(_SCHEDULES, _SECONDS, preemptions=min(found.preemptions, 3), violations=_CANDIDATES)
    try:
        with bounded_cpu(_SECONDS + NO_END_S):
            others = [
                other for other in explore_bounded(program, limits).found if other.clause == found.clause
            ]
    except NoEnd:  # in another schedule, the code loops
        return found
    return min([*others, found], key=_badness)


def minimised(program: Program, found: BrokenExecution) -> tuple[BrokenExecution, Replay | None]:
    """The minimized counterexample, and its run. None if the run cannot be repeated: the depth of a RecursionError
    depends on the caller."""
    small = minimise(program, found)
    with suppress(BadToken, NoEnd):
        return small, replay(program, small.schedule)
    return small, None


def _badness(found: BrokenExecution) -> tuple[int, int, int]:
    return found.preemptions, len(found.schedule), switches_of(found.schedule)
