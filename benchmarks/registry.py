"""Every candidate of `python -m benchmarks timer`, by the name that `--json` and the tables use."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from benchmarks.builds import Build, compiled_build, interpreted_build, why_not_compiled
from benchmarks.candidate import Candidate, Entry
from benchmarks.heap_peers import IntHeap, LazyHeap, ListHeap, TupleHeap
from benchmarks.jvm_peers import jvm_entries
from benchmarks.loop_peers import AsyncioLoop, SchedScheduler, UvLoop
from benchmarks.own_timers import FaithfulTimer, LockOnly, NoTimer, ReapedWheel, TasksOnWheel, WheelForUse
from benchmarks.package_peers import IndexedHeapTimer, SortedDictTimer

HONEST_BASELINE: Final = "heapq-int"
"""The fastest heap in pure Python that is known; it stands in every table."""


def _faithful() -> Candidate:
    return FaithfulTimer(interpreted_build())


def _compiled() -> Build:
    build = compiled_build()
    if build is None:
        raise ImportError(why_not_compiled())
    return build


def _wheel(build: Callable[[], Build]) -> Callable[[], Candidate]:
    return lambda: WheelForUse(build())


ENTRIES: Final = (
    Entry("compiled", _wheel(_compiled), "mypyc", ours=True, locked=True, why_not=why_not_compiled),
    Entry("interpreted", _wheel(interpreted_build), "interpreted", ours=True, locked=True),
    Entry("faithful", _faithful, "interpreted", ours=True, locked=True, slow=True),
    Entry("heapq", TupleHeap, "py, C heapq"),
    Entry("heapq-int", IntHeap, "py, C heapq"),
    Entry("heapq-list", ListHeap, "py, C heapq"),
    Entry("heapq-lazy", LazyHeap, "py, C heapq"),
    Entry("asyncio", AsyncioLoop, "py, C heapq"),
    Entry("uvloop", UvLoop, "Cython", virtual=False, module="uvloop"),
    Entry("sched", SchedScheduler, "py, C heapq", largest=1_000, slow=True),
    Entry("sortedcontainers", SortedDictTimer, "interpreted", module="sortedcontainers", slow=True),
    Entry("iheap", IndexedHeapTimer, "Rust", module="iheap"),
    *jvm_entries(),
)
"""Ours first, the slowest of a kind last."""

WHEEL_SIZES: Final = (16, 64, 256, 512, 1024, 4096)


def wheel_sizes() -> list[Entry]:
    """The wheel for use at several sizes, in the best build that is here: `wheel-256` and so on."""
    build = compiled_build() or interpreted_build()

    def sized(size: int) -> Callable[[], Candidate]:
        return lambda: WheelForUse(build, size)

    return [
        Entry(f"wheel-{size}", sized(size), build.name, ours=True, locked=True, module=None)
        for size in WHEEL_SIZES
    ]


def steps_of_cost() -> list[Entry]:
    """The bare loop, the loop with a lock, and the whole wheel: in both builds, with both ways for functions to wait,
    with tasks, and through a `ReaperTimer`. Heaps and the event loop stand beside it. The first two are no timers, and
    nothing of theirs is compared. (Parts of the compiled wheel cannot be called one by one from here: the calls would
    cost more than the parts.)"""
    found = [
        Entry("loop", NoTimer, "interpreted", fires=False),
        Entry("loop and lock", LockOnly, "interpreted", fires=False),
    ]
    for entry in ENTRIES:
        if entry.name == "interpreted":
            linked = _other_way(interpreted_build, integer_handles=False)
            found += [entry, replace(entry, name="interpreted, handles", make=linked)]
            found.append(
                replace(entry, name="interpreted, tasks", make=lambda: TasksOnWheel(interpreted_build()))
            )
            found.append(
                replace(entry, name="interpreted, reaper", make=lambda: ReapedWheel(interpreted_build()))
            )
        if entry.name == "compiled":
            numbered = _other_way(_compiled, integer_handles=True)
            found += [entry, replace(entry, name="compiled, numbers", make=numbered)]
            found.append(replace(entry, name="compiled, tasks", make=lambda: TasksOnWheel(_compiled())))
            found.append(replace(entry, name="compiled, reaper", make=lambda: ReapedWheel(_compiled())))
    return found + [entry for entry in ENTRIES if entry.name in ("heapq", "heapq-int", "asyncio")]


def _other_way(build: Callable[[], Build], *, integer_handles: bool) -> Callable[[], Candidate]:
    return lambda: WheelForUse(build(), integer_handles=integer_handles)
