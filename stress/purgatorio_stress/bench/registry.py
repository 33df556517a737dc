"""Every candidate of `purgatorio bench timer`, by the name that `--json` and the tables use."""

from typing import Final

from purgatorio_stress.bench.candidate import Entry
from purgatorio_stress.bench.heap_peers import IntHeap, LazyHeap, ListHeap, TupleHeap
from purgatorio_stress.bench.loop_peers import AsyncioLoop, SchedScheduler, UvLoop
from purgatorio_stress.bench.own_timers import FaithfulTimer
from purgatorio_stress.bench.package_peers import IndexedHeapTimer, SortedDictTimer

__all__ = ["ENTRIES", "HONEST_BASELINE"]

HONEST_BASELINE: Final = "heapq-int"
"""The fastest heap in pure Python that is known; it stands in every table."""

ENTRIES: Final = (
    Entry("faithful", FaithfulTimer, "interpreted", ours=True, locked=True, slow=True),
    Entry("heapq", TupleHeap, "interpreted over C"),
    Entry("heapq-int", IntHeap, "interpreted over C"),
    Entry("heapq-list", ListHeap, "interpreted over C"),
    Entry("heapq-lazy", LazyHeap, "interpreted over C"),
    Entry("asyncio", AsyncioLoop, "interpreted over C"),
    Entry("uvloop", UvLoop, "Cython", virtual=False, module="uvloop"),
    Entry("sched", SchedScheduler, "interpreted over C", largest=1_000, slow=True),
    Entry("sortedcontainers", SortedDictTimer, "interpreted", module="sortedcontainers", slow=True),
    Entry("iheap", IndexedHeapTimer, "Rust", module="iheap"),
)
"""Ours first, the slowest of a kind last."""
