"""Drawn programs over a share group: fetches that wait for records, for the fetch lock, or for a read elsewhere.

A thing is a member's fetch. When nothing happens any more, reads end and fetches are completed: each has been answered
once, and no fetch lock is left (B925). No record is with two members at once (B951).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from purgatorio import QueuedExecutor
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.partition import ReadRecords
from purgatorio_broker.share_fetches import ShareFetches
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import BEFORE, THREAD, Plain, Planned, Player, Verb, Vocabulary
from purgatorio_stress.scenario.broker_share import RECORD, ShareGroup
from purgatorio_stress.scenario.broker_world import P0, answered_once
from purgatorio_stress.scenario.world import FOREVER_MS, World

_HOW: Final = tuple(Acknowledgement)
_REMOTE_WAIT_MS: Final = 20
_GIVES_BACK: Final = frozenset({"acknowledge", "leave", "pass"})


class SharePlayer(Player):
    """Settings: whether reads have a thread of their own, and whether the first record lies in a tier."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        threaded, tiered = drawn.settings
        self.executor = QueuedExecutor(sync=world.sync) if threaded else None
        self.tier_reads: list[Deferred[ReadRecords]] = []
        self.failing = [0]
        self.group = ShareGroup(
            world,
            before_read=self._read,
            executor=self.executor,
            tier=self._read_tier if tiered else None,
            remote_wait_ms=_REMOTE_WAIT_MS,
            faults=world.faults,
        )
        self.fetches = self.group.fetches
        self.operations: dict[int, list[DelayedShareFetch]] = {}
        acts = {act.do for act in drawn.acts()}
        self.once = not acts & _GIVES_BACK
        self.shut = "shutdown" in acts

    def act_ended(self) -> None:
        """A request's handler runs what was queued, at its end."""
        self.group.manager.run_actions()

    def _read(self) -> None:
        if self.failing[0] > 0:
            self.failing[0] -= 1
            raise Planned("disk")

    def _read_tier(self, partition: TopicPartition, offset: int, max_bytes: int) -> Deferred[ReadRecords]:
        self.tier_reads.append(Deferred(self.world.sync))
        return self.tier_reads[-1]

    # The verbs.

    def do_append(self) -> None:
        """A record comes, which everybody may read."""
        self.group.append()

    def do_moved(self) -> None:
        self.fetches.partition_moved(P0)

    def do_fetch(self, thing: int) -> None:
        wait_ms, wanted = self.drawn.things[thing]
        params = FetchParams(FOREVER_MS if wait_ms < 0 else wait_ms, 10 * wanted, 100)
        operation = self.group.fetch(params, f"m{thing}")
        self.operations.setdefault(thing, []).append(operation)

    def do_force(self, thing: int) -> None:
        for operation in self.operations.get(thing, [])[-1:]:
            operation.force_complete()

    def do_acknowledge(self, thing: int, how: int) -> None:
        """`acknowledge` of what it may have acquired."""
        share = self.fetches.share(P0)
        mine = [
            at
            for at in range(share.start(), share.start() + 4)
            if (one := share.delivered(at)) is not None and one.member == f"m{thing}"
        ]
        self.fetches.acknowledge(f"m{thing}", P0, mine, _HOW[how])

    def do_leave(self, thing: int) -> None:
        self.fetches.close_session(f"m{thing}")

    def do_read(self) -> None:
        if self.executor is not None:
            self.executor.run_all()

    def do_tier(self) -> None:
        """A read of the tier ends."""
        for read in self.tier_reads[:]:
            read.complete(RECORD)

    def do_fail(self) -> None:
        self.failing[0] += 1

    def do_pass(self, by_ms: int) -> None:
        """Time passes for those whose answer comes late, and for what is acquired."""
        self.group.timer.advance_clock(by_ms)

    def do_gauges(self) -> None:
        self.counts(self.fetches.waiting())

    def do_shutdown(self) -> None:
        self.fetches.shutdown()

    # The end.

    def final(self) -> Iterator[Broken]:
        self.failing[0] = 0
        for _ in range(2):
            self.do_read()
            self.do_tier()
        for thing in self.operations:
            for operation in self.operations[thing]:
                operation.force_complete()
            self.do_read()
        self.group.manager.run_actions()
        if not self.shut:
            self.group.timer.advance_clock(_REMOTE_WAIT_MS + 1)
        self.fetches.check()
        if self.fetches.share(P0).is_locked():
            yield Broken("B925", "t-0", "a fetch lock that no thread will release")
        yield from answered_once(
            "B925", "fetches", self.group.answers, sum(map(len, self.operations.values()))
        )
        given = Counter(
            record.offset
            for answer in self.group.answers
            for one in answer.values()
            for record in one.records
        )
        if self.once and any(count > 1 for count in given.values()):
            yield Broken("B951", "t-0", f"given out so often, by offset: {dict(given)}")
        yield from super().final()


_REQUEST: Final = BEFORE + THREAD

SHARE: Final = Vocabulary(
    "share",
    (
        Verb("append", (), _REQUEST, weight=6),
        Verb("moved", (), _REQUEST, weight=4),
        Verb("fetch", ("thing",), _REQUEST, weight=6),
        Verb("force", ("thing",), _REQUEST, weight=4),
        Verb("acknowledge", ("thing", "how"), _REQUEST),
        Verb("leave", ("thing",), _REQUEST, weight=1),
        Verb("read", (), _REQUEST, weight=3),
        Verb("tier", (), _REQUEST),
        Verb("fail", (), _REQUEST, weight=1),
        Verb("pass", ("pass",), _REQUEST, weight=1),
        Verb("gauges", (), _REQUEST, weight=1),
        Verb("shutdown", (), THREAD, weight=1),
    ),
    ((0, 1), (0, 0, 1)),
    ((-1, -1, 0, 10), (1, 1, 2)),
    SharePlayer,
    (ShareFetches,),
    {"how": tuple(range(len(_HOW))), "pass": (11, 21, ShareLimits().lock_ms + 1)},
    dialects=("pending-flag", "locked"),
    most_things=2,
    plain=Plain(
        ((-1, 1),),
        "fetch.0",
        "append,moved,force.0,read,leave.0",
        shapes=((1,), (2, 1), (1, 1), (2,), (3,), (2, 2)),
    ),
    weight=3,
)
"""Of one group and one partition."""
