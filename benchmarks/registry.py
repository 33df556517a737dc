"""Every candidate of `python -m benchmarks timer`, by the name that `--json` and the tables use."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
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


def _compiled() -> Build:
    build = compiled_build()
    if build is None:
        raise ImportError(why_not_compiled())
    return build


def _over(make: Callable[[Build], Candidate], build: Callable[[], Build]) -> Callable[[], Candidate]:
    return lambda: make(build())


_BUILDS: Final = {
    "compiled": (_compiled, "numbers", True),
    "interpreted": (interpreted_build, "handles", False),
}
"""Both builds of the wheel; how a function can wait that is not the build's own way, and `integer_handles` for it."""


ENTRIES: Final = (
    Entry(
        "compiled", _over(WheelForUse, _compiled), "mypyc", ours=True, locked=True, why_not=why_not_compiled
    ),
    Entry("interpreted", _over(WheelForUse, interpreted_build), "interpreted", ours=True, locked=True),
    Entry(
        "faithful", _over(FaithfulTimer, interpreted_build), "interpreted", ours=True, locked=True, slow=True
    ),
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

    return [
        Entry(f"wheel-{size}", partial(WheelForUse, build, size), build.name, ours=True, locked=True)
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
    for entry in ENTRIES[:2]:
        build, other, integer_handles = _BUILDS[entry.name]
        found.append(entry)
        for what, make in (
            (other, partial(WheelForUse, integer_handles=integer_handles)),
            ("tasks", TasksOnWheel),
            ("reaper", ReapedWheel),
        ):
            found.append(replace(entry, name=f"{entry.name}, {what}", make=_over(make, build)))
    return found + [entry for entry in ENTRIES if entry.name in ("heapq", "heapq-int", "asyncio")]
