"""Makes one run after another, until the search has tried all choices or reaches a limit."""

import time
from typing import Protocol

from purgatorio_stress.explorer.program import Program, Repetition
from purgatorio_stress.explorer.result import BrokenExecution, Exploration, Limits
from purgatorio_stress.explorer.run import Execution


class Search(Protocol):
    """A `Chooser` that also selects the beginning of the next run. The first run has no known schedule."""

    chosen: list[int]
    """The whole schedule of the last run."""

    def choose(self, run: Execution, /) -> int: ...

    def after(self, run: Execution, /) -> None: ...

    def preemptions(self) -> int:
        """The number of preemptions of the last run."""

    def next_schedule(self) -> list[int] | None:
        """The known schedule of the next run. None if no choice is untried."""


def explore_by(search: Search, program: Program, limits: Limits, result: Exploration) -> Exploration:
    """Run the search and fill `result`. `result.complete`: the search tried all choices. Otherwise `result.limit`
    names the limit."""
    start, start_cpu = time.perf_counter(), time.process_time()
    began = limits.clock() if limits.began is None else limits.began
    schedule: list[int] | None = []
    with Repetition(program, search, orders=result.orders) as repetition:
        while schedule is not None and not result.reached(limits, began):
            run, broken = repetition.carry_out(schedule)
            search.after(run)
            result.count(run)
            if broken:
                result.found.append(
                    BrokenExecution(tuple(broken), tuple(search.chosen), search.preemptions())
                )
            schedule = search.next_schedule()
    result.complete = schedule is None
    result.seconds = time.perf_counter() - start
    result.cpu_seconds = time.process_time() - start_cpu
    return result
