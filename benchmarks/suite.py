"""Which workloads are played, at which sizes and how often: quick (for tests) and standard."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from benchmarks.edges import HerdWorkload, PingPongWorkload, SparseWorkload
from benchmarks.grid import GridWorkload, HoldWorkload
from benchmarks.request import HeartbeatWorkload, RequestRate, RequestWorkload
from benchmarks.workload import Workload

Scale = Literal["quick", "standard"]

IDS: Final[dict[str, str]] = {
    "K1": "request: 10k/s Poisson, time-out 30 s, completed after log-normal 20 / 60 ms (p50 / p75)",
    "K2": "slow: 20k/s, time-out 30 s, completed after log-normal 2 / 5 s",
    "K3": "heartbeat: sessions whose time-out of 30 s is cancelled and set anew every 3 s",
    "U1": "fill: add all, handles kept",
    "U2": "churn: cancel and add random ones; at 1M, and at 100k of the other distributions, not so many that a heap "
    "has to rebuild, which is in its favour",
    "U3": "hold: what fires is replaced, handles released",
    "U4": "cancel all, in random order",
    "X1": "sparse: log-uniform from 1 ms to a year, a driver that sleeps until it is needed",
    "X2": "ping-pong: one timer at a time, fired after 1 ms",
    "X3": "herd: all due in the same millisecond",
    "X4": "worst tick: the longest of the ticks of K1, K2 and U3 in three plays: with the collector's pauses the "
    "median of the plays, without them each tick at its least",
    "X5": "collector: what its runs cost while timers are added whose handles are kept",
}
"""What each workload is, by its id."""

K1: Final = RequestRate(10_000, 20, 60, seconds=0)
K2: Final = RequestRate(20_000, 2_000, 5_000, seconds=0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A workload to be made when its turn comes (its input may be large), and how often it is played."""

    ids: tuple[str, ...]
    make: Callable[[], Workload]
    rounds: int
    long: bool = False


def suite(scale: Scale) -> Iterator[Planned]:
    """The workloads of a scale, in the order of their ids. `standard` takes some minutes, `quick` a few seconds."""
    if scale == "quick":
        yield from _quick()
        return
    yield Planned(("K1",), partial(RequestWorkload, "K1", replace(K1, seconds=20)), 4, long=True)
    yield Planned(("K2",), partial(RequestWorkload, "K2", replace(K2, seconds=36)), 3, long=True)
    for size in (1_000, 100_000):
        yield Planned(("K3",), partial(HeartbeatWorkload, size, max(30_000, size)), 3, long=True)
    for size in (1_000, 10_000, 100_000):
        churns = max(30_000, 2 * size)
        yield Planned(("U1", "U2", "U4"), partial(GridWorkload, "uniform", size, churns), 3, long=True)
    yield Planned(("U1", "U2", "U4"), partial(GridWorkload, "uniform", 1_000_000, 100_000), 1, long=True)
    for distribution in ("exponential", "constant", "mixed"):
        yield Planned(("U1", "U2", "U4"), partial(GridWorkload, distribution, 100_000, 30_000), 2, long=True)
    yield Planned(("U3",), partial(HoldWorkload, "uniform", 100_000, 10_000), 3, long=True)
    yield Planned(("X1",), partial(SparseWorkload, 100, 20), 4)
    yield Planned(("X1",), partial(SparseWorkload, 10_000), 3, long=True)
    yield Planned(("X2",), partial(PingPongWorkload, 10_000), 4, long=True)
    yield Planned(("X3",), partial(HerdWorkload, 100_000), 4, long=True)


def _quick() -> Iterator[Planned]:
    yield Planned(("K1",), partial(RequestWorkload, "K1", replace(K1, seconds=0.2)), 2)
    yield Planned(("K2",), partial(RequestWorkload, "K2", replace(K2, seconds=0.1)), 2)
    yield Planned(("K3",), partial(HeartbeatWorkload, 500, 500), 2)
    for distribution in ("uniform", "exponential", "constant", "mixed"):
        yield Planned(("U1", "U2", "U4"), partial(GridWorkload, distribution, 1_000, 500, least_ops=1_000), 2)
    yield Planned(("U3",), partial(HoldWorkload, "uniform", 500, 1_000), 2)
    yield Planned(("X1",), partial(SparseWorkload, 50), 2)
    yield Planned(("X2",), partial(PingPongWorkload, 300), 2)
    yield Planned(("X3",), partial(HerdWorkload, 500), 2)
