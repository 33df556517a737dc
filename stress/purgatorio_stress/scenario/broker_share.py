"""A share group's fetches under the explorer: the fetch locks, whoever completes the operation, and however."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from purgatorio.broker.delayed_share_fetch import ShareResult
from purgatorio.broker.fetch_request import FetchParams
from purgatorio.broker.key import TopicPartition
from purgatorio.broker.partition import Isolation, Partition
from purgatorio.broker.share_fetches import ShareFetches
from purgatorio.broker.share_log import ReplicaShareLog, ShareRead
from purgatorio.broker.share_partition import ShareLimits
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.scenario.broker_world import P0, TimelessRuntime, answered_once, leading
from purgatorio_stress.scenario.contract import Final_, Scenario, one_thread
from purgatorio_stress.scenario.world import FOREVER_MS, World

__all__ = ["BROKER_SHARE"]

Shared = Mapping[TopicPartition, ShareResult]
WANTED: Final = FetchParams(FOREVER_MS, 10, 100)


def _group(
    world: World, before_read: Callable[[], object] = lambda: None
) -> tuple[ShareFetches, Callable[[], None]]:
    """A group that shares t-0, and the append of a record to it."""
    runtime = TimelessRuntime(world)
    manager = leading(runtime, min_isr=1)
    manager.become_leader(P0, 1, (0,), (0,))
    manager.run_actions()
    log = _Log(manager.partition_or_raise, before_read, world)
    fetches = ShareFetches(runtime, manager.actions, "g", (P0,), log, ShareLimits())

    def append() -> None:
        manager.append_records(0, 1, {P0: (10,)}, lambda results: None)
        manager.run_actions()

    return fetches, append


class _Log(ReplicaShareLog):
    """Calls `before` before each read."""

    __slots__ = ("_before",)

    def __init__(
        self, replica: Callable[[TopicPartition], Partition], before: Callable[[], object], world: World
    ) -> None:
        super().__init__(replica, world.sync)
        self._before = before

    def read_now(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: Isolation
    ) -> ShareRead:
        self._before()
        return super().read_now(partition, offset, max_bytes, isolation)


def _event_against_force(world: World) -> Final_:
    """A fetch waits; a record comes, and at once somebody completes the fetch. One of them answers, and whoever has
    taken the fetch lock gives it back."""
    fetches, append = _group(world)
    answers: list[Shared] = []
    operation = fetches.fetch("m", WANTED, (P0,), answers.append)

    def event() -> None:
        append()
        fetches.partition_moved(P0)

    world.task("event", event)
    world.task("force", operation.force_complete)

    def final() -> Iterator[Broken]:
        fetches.check()
        yield from answered_once("B925", "fetch", answers)
        world.mark("answered with the record", bool(answers and answers[0]))
        world.mark("answered with nothing", bool(answers and not answers[0]))
        if fetches.share(P0).is_locked():
            yield Broken("B925", "t-0", "a fetch lock that nobody will give back")

    return final


def _read_fails(world: World) -> Final_:
    """A read raises, with the fetch locks in hand."""
    failing = [True]

    def fail() -> None:
        if failing[0]:
            failing[0] = False
            raise OSError("disk")

    fetches, append = _group(world, fail)
    answers: list[Shared] = []

    def body() -> None:
        append()
        fetches.fetch("m", WANTED, (P0,), answers.append)

    world.task("caller", body)

    def final() -> Iterator[Broken]:
        world.mark("the read failed", not failing[0])
        if fetches.share(P0).is_locked():
            yield Broken("B925", "t-0", "a fetch lock that nobody will give back")
        yield from answered_once("B925", "fetch", answers)

    return final


BROKER_SHARE: Final = (
    Scenario(
        "share-event-against-force",
        "a record comes for a share fetch while somebody completes it",
        2,
        ("B925",),
        _event_against_force,
        marks=("answered with the record", "answered with nothing"),
        strategy="bounded",
    ),
    one_thread(
        "share-read-fails", "a read raises in a share fetch", ("B925",), _read_fails, "the read failed"
    ),
)
"""Of share groups."""
