"""Every candidate of `purgatorio bench timer`, by the name that `--json` and the tables use."""

from collections.abc import Callable
from typing import Final

from purgatorio_stress.bench.builds import COMPILED, Build, compiled_build, interpreted_build
from purgatorio_stress.bench.candidate import Candidate, Entry
from purgatorio_stress.bench.heap_peers import IntHeap, LazyHeap, ListHeap, TupleHeap
from purgatorio_stress.bench.jvm_peers import jvm_entries
from purgatorio_stress.bench.loop_peers import AsyncioLoop, SchedScheduler, UvLoop
from purgatorio_stress.bench.own_timers import FaithfulTimer, FlatWheel
from purgatorio_stress.bench.package_peers import IndexedHeapTimer, SortedDictTimer

__all__ = ["COMPILED", "ENTRIES", "HONEST_BASELINE"]

HONEST_BASELINE: Final = "heapq-int"
"""The fastest heap in pure Python that is known; it stands in every table."""


def _wheel(build: Build) -> Callable[[], Candidate]:
    return lambda: FlatWheel(build)


def _own() -> tuple[Entry, ...]:
    """The wheel for use in the builds that are there, and the faithful one."""
    compiled = compiled_build()
    found = [] if compiled is None else [Entry("compiled", _wheel(compiled), "mypyc", ours=True, locked=True)]
    interpreted = Entry("interpreted", _wheel(interpreted_build()), "interpreted", ours=True, locked=True)
    faithful = Entry("faithful", FaithfulTimer, "interpreted", ours=True, locked=True, slow=True)
    return (*found, interpreted, faithful)


ENTRIES: Final = (
    *_own(),
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
