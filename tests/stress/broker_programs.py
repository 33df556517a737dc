"""Random programs for what the broker waits for from outside: futures, a remote tier, and reads of a share group.

A thing is a request. When all is quiet, one whose values have all come was answered once, and none twice.
"""

from collections.abc import Iterator

from purgatorio import QueuedExecutor
from purgatorio_broker.deferred import Deferred
from purgatorio_broker.delayed_future import DelayedFuturePurgatory
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchResult
from purgatorio_broker.partition import NOTHING_READ
from purgatorio_broker.remote_reads import OffsetFound, OffsetLookup, RemoteRead, RemoteReads
from purgatorio_broker.runtime import VirtualRuntime
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import Plain, Player, Vocabulary, verbs_of
from purgatorio_stress.scenario.world import World
from wire.broker_scene import P0, P1, Answers, Scene
from wire.share_scene import PARAMS, Fetched, Share, ShareScene

FOREVER_MS = 1 << 40
_ASKED = ((P0,), (P1,), (P0, P1))


class _Waiting(Player):
    """`values`: what each request waits for."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.executor = QueuedExecutor(faults=world.faults, sync=world.sync)
        self.answers: dict[int, Answers[object]] = {}
        self.values: dict[int, list[Deferred[object]]] = {}
        self.ended = {"shutdown", "stop"} & {act.do for act in drawn.acts()}

    def do_ask(self, thing: int) -> None:
        if thing not in self.answers:
            self.answers[thing] = Answers()
            self.values[thing] = []
            self.ask(thing, self.answers[thing])

    def ask(self, thing: int, answer: Answers[object]) -> None:
        raise NotImplementedError

    def do_run(self) -> None:
        self.executor.run_all()

    def final(self) -> Iterator[Broken]:
        self.do_run()
        for thing, box in self.answers.items():
            left = sum(not value.is_done() for value in self.values[thing])
            if len(box.got) > 1 or (not left and not box) or (left and box and not self.ended):
                seen = f"{len(box.got)} answers, and {left} values have not come"
                yield Broken("B902", f"request-{thing}", seen)
        yield from super().final()


class FuturePlayer(_Waiting):
    """Two futures, and requests for one or both."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.futures: list[Deferred[object]] = [Deferred(world.sync) for _ in range(2)]
        self.waiting = DelayedFuturePurgatory("futures", self.executor, VirtualRuntime(sync=world.sync))

    def ask(self, thing: int, answer: Answers[object]) -> None:
        (mask,) = self.drawn.things[thing]
        self.values[thing] = [one for number, one in enumerate(self.futures) if mask >> number & 1]
        self.waiting.try_complete_else_watch(FOREVER_MS, self.values[thing], lambda: answer(1))

    def do_done(self, future: int) -> None:
        self.futures[future].complete(future)

    def do_fail(self, future: int) -> None:
        self.futures[future].fail(OSError("disk"))

    def do_shutdown(self) -> None:
        self.waiting.shutdown()


class RemotePlayer(_Waiting):
    """Fetches and look-ups that wait for the tier."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.scene = Scene(sync=world.sync).leads(P0, P1)
        self.remote = RemoteReads(
            self.scene.runtime, self.scene.manager, fetch_wait_ms=FOREVER_MS, list_wait_ms=FOREVER_MS
        )

    def ask(self, thing: int, answer: Answers[object]) -> None:
        looks_up, asked = self.drawn.things[thing]
        partitions = _ASKED[asked]
        values = self.values[thing] = [Deferred(self.world.sync) for _ in partitions]
        both = list(zip(partitions, values, strict=True))
        if looks_up:
            self.remote.list_offsets(0, tuple(OffsetLookup(one, future=value) for one, value in both), answer)  # type: ignore[arg-type]  # of either kind
            return
        local = {one: FetchResult(Error.NONE, NOTHING_READ) for one in partitions}
        reads = tuple(RemoteRead(one, value) for one, value in both)  # type: ignore[arg-type]  # of either kind
        self.remote.fetch(FetchParams(0, 1, 100), reads, local, answer)

    def do_done(self, thing: int, part: int) -> None:
        for value in self.values.get(thing, [])[part : part + 1]:
            value.complete(OffsetFound(1, 0, 0) if self.drawn.things[thing][0] else NOTHING_READ)

    def do_fail(self, thing: int, part: int) -> None:
        for value in self.values.get(thing, [])[part : part + 1]:
            value.fail(OSError("the tier is gone"))

    def do_stop(self, partition: int) -> None:
        self.scene.manager.stop_replica(_ASKED[partition][0], deleted=True)
        self.remote.partition_deleted(_ASKED[partition][0])


class SharePlayer(Player):
    """A share group whose reads are on a thread of their own; the first record is there."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        self.made = ShareScene(later=True, sync=world.sync)
        self.made.bring(P0, Share.ENOUGH)
        self.asked: list[tuple[DelayedShareFetch, Answers[Fetched]]] = []
        self.held = [False]

    def do_fetch(self) -> None:
        self.asked.append(self.made.fetch(PARAMS, P0))

    def do_lock(self) -> None:
        self.held[0] = self.made.share(P0).lock_for_fetch() or self.held[0]

    def do_unlock(self) -> None:
        held, self.held[0] = self.held[0], False
        if held:
            self.made.share(P0).unlock()
            self.made.fetches.partition_moved(P0)

    def do_force(self) -> None:
        for operation, _ in self.asked[-1:]:
            operation.force_complete()

    def do_run(self) -> None:
        self.made.executor.run_all()

    def final(self) -> Iterator[Broken]:
        self.do_unlock()
        self.do_run()
        for operation, box in self.asked:
            if operation.is_completed() and len(box.got) != 1:
                yield Broken("B925", "fetch", f"completed, and answered {len(box.got)} times")
        if self.made.locked() != [False, False] or (self.asked and not any(box for _, box in self.asked)):
            seen = f"fetch locks: {self.made.locked()}, {sum(bool(box) for _, box in self.asked)} answered"
            yield Broken("B925", "fetch", f"a record is there, and all is quiet; {seen}")
        yield from super().final()


_DOMAINS = {"future": (0, 1), "part": (0, 1), "partition": (0, 1)}
_ONE = ((0,),)
BROKER_PROGRAMS = (
    Vocabulary(
        "future", verbs_of("ask.thing bt 8, done.future bt 8, fail.future bt, run bt, shutdown t"), _ONE, ((1, 3, 2),),
        FuturePlayer, (), Plain(((3,), (1,)), "ask.0", "done.0,done.1,ask.1,fail.0,run,shutdown"), _DOMAINS,
    ),
    Vocabulary(
        "remote", verbs_of("ask.thing bt 8, done.thing.part bt 8, fail.thing.part bt, stop.partition bt"), _ONE,
        ((0, 1), (0, 1, 2)), RemotePlayer, (),
        Plain(((0, 2), (1, 0)), "", "ask.0,done.0.0,done.0.1,ask.1,done.1.0,stop.0"), _DOMAINS,
    ),
    Vocabulary(
        "share", verbs_of("lock b, fetch bt, unlock bt, force bt, run bt"), _ONE, _ONE, SharePlayer, (),
        Plain(_ONE, "lock,fetch", "unlock,run,fetch,force"),
    ),
)  # fmt: skip
