"""Small traces, each with one broken promise, for the tests of counterexamples. Most are in `shown/broken.txt`."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from spec.stories import Told, stories
from spec.trace_builder import MS, Trace


@cache
def _told() -> dict[str, Told]:
    return {one.name: one for one in stories("shown")}


def _shown(name: str) -> Callable[[], Trace]:
    def made() -> Trace:
        trace = _told()[name].made(0)
        trace.header = replace(trace.header, run=name.replace("_", "-"))
        return trace

    made.__name__ = name
    return made


completed_twice = _shown("two_winners")
lost_when_locked = _shown("no_recheck")
lost_with_a_flag = _shown("give_up")
fired_after_completion = _shown("no_cancel")
garbage_kept = _shown("garbage")
miscounted = _shown("miscounted")


def fired_early(operation: str = "op-13", run: str = "early-fire") -> Trace:
    """T1: the task fires 3 ms before its deadline."""
    made = Trace(run=run, late_ns=None)
    made.register(operation, ["k35", "k28", "k60"], delay_ns=17 * MS, th="worker-4")
    made.attempt(operation, 0, th="worker-6")
    made.wait(14 * MS)
    made.expire(operation)
    return made


def size_wrong(tasks: int = 3) -> Trace:
    """T5: of the tasks one was cancelled, fired or moved by a second add, and the size counts all."""
    made = Trace(run="size-wrong", late_ns=None)
    for number in range(tasks):
        made.add(f"task-{number}", delay_ns=(5 + number) * MS, th="worker-0")
        made.both("check_and_complete", out=0, keys=["k"], th="worker-1")
    made.cancel("task-1", 1, th="worker-1")
    made.cancel("task-2", 0, th="worker-1")
    made.wait(6 * MS)
    made.fire("task-0")
    made.gauge(0, tasks)
    return made
