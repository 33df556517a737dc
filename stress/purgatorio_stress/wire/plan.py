"""The standard plan: every scene with its clauses, and the run that plays them against a broker.

Scenes are played several at a time, each on connections, topics and groups of its own. A scene with a late row, or
whose rows could not be judged, or that broke off, is played again: a slow machine is not taken for a slow broker. What
the run made is deleted at the end, whatever the end is.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_spec.wire.bound import MS, Bounds, Held
from purgatorio_spec.wire.history import Scene, items, scene_of, text
from purgatorio_spec.wire.judge import FAR_GAPS, LOST_GAPS, Wire, judge_scene, repeats, unmet
from purgatorio_spec.wire.record import DRAWN, MAX_EVENTS, WireHeader
from purgatorio_spec.wire.row import Row
from purgatorio_stress.wire import scene_fetch, scene_group, scene_other, scene_share, scene_transactions
from purgatorio_stress.wire.connection import Connection, Got, NoAnswer, connect
from purgatorio_stress.wire.control import Control
from purgatorio_stress.wire.drawn import (
    LEAST_SCENE,
    Program,
    drawn,
    drawn_group,
    drawn_offsets,
    drawn_transactions,
    made_small,
    play_program,
)
from purgatorio_stress.wire.play import (
    Broker,
    Made,
    Play,
    SceneLost,
    SceneSkipped,
    codes,
)
from purgatorio_stress.wire.recorder import CONTROL, Recorder

WARM_UPS: Final = {
    "groups": scene_group.warm_up,
    "transactions": scene_transactions.warm_up,
    "shares": scene_share.warm_up,
}
"""Of these areas, beside that of fetches."""
LANES: Final = 4
GROUP_LANES: Final = 8
GROUP_AREAS: Final = ("groups", "shares")
"""Scenes of groups, share groups too, wait for seconds, and longer where a broker never answers: they must not keep
others out."""
REPETITIONS: Final = 3
MOST_REPETITIONS: Final = 8
CLEAN_UP_SECONDS: Final = 10.0
NOT_EMPTY_SECONDS: Final = 0.5
GONE: Final = frozenset({0, 3, 69})
"""Deleted, or not there: no error, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND."""
WARM_UP_SECONDS: Final = 10.0
LEAST_WARM_UP_SECONDS: Final = 0.6
"""The first scenes need to know how late the machine is."""
MOST_PACE: Final = 3.0
PACE_SLACK_MS: Final = 250
"""With a slack up to this the plan's own waits are wide enough."""
DRAWERS: Final = 20
"""Drawn programs at a time, of three to six connections each."""
GROUP_DRAWERS: Final = 12
"""Members wait for one another most of the time."""
TRANSACTION_DRAWERS: Final = 4
OFFSET_DRAWERS: Final = 2
PROGRAM_SECONDS: Final = 20.0
SMALL_TRIES: Final = 60
SMALL_AT_A_TIME: Final = 8
MOST_SMALL: Final = 6
"""The first drawn failures, one a clause, are made small."""


def _fails(row: Row) -> bool:
    """Whether a row of a drawn scene is one to look after: broken, or late as what was forgotten is."""
    return row.held is Held.BROKEN or (row.held is Held.LATE and row.gaps >= LOST_GAPS)


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """A scene: what it is called, its area, what it asks (`Scene.asked`), and its bound in seconds."""

    name: str
    area: str
    asks: tuple[str, ...]
    """Clauses, each alone or with the way in which it may break, of which a row is due."""
    play: Callable[[Play], Awaitable[None]]
    seconds: float = 40.0
    alone: bool = False
    """Played when the others are over: it stops brokers, or their requests would make good what it must see."""

    @property
    def clauses(self) -> tuple[str, ...]:
        """Those of what it asks."""
        return tuple(dict.fromkeys(ask.partition(" ")[0] for ask in self.asks))

    @property
    def promise(self) -> str:
        """What it plays, in its own words."""
        return (self.play.__doc__ or "").strip()


_FETCH, _GROUP, _OTHER, _SHARE = scene_fetch, scene_group, scene_other, scene_share
_TRANSACTIONS = scene_transactions
SCENES: Final[Mapping[str, SceneSpec]] = {
    one.name: one
    for one in (
        # The long ones first: the plan takes as long as its longest lane.
        SceneSpec("share-lock", "shares", ("S7 not-woken",), _SHARE.share_lock, 120),
        SceneSpec(
            "timed-out", "transactions", ("R2 not-woken", "R6 ends", "R3 not-listed"), _TRANSACTIONS.timed_out, 90,
        ),
        SceneSpec("long-heartbeats", "groups", ("G10 put-out", "G5"), _GROUP.long_heartbeats, 60),
        SceneSpec("session", "groups", ("G7 not-put-out", "G7 stays-though-silent", "G3"), _GROUP.session, 90),
        SceneSpec("session-after-wait", "groups", ("G7 not-put-out",), _GROUP.session_after_wait, 60),
        SceneSpec("session-refused", "groups", ("G7 not-put-out", "G9"), _GROUP.session_refused, 60),
        SceneSpec("old-members", "groups", ("G6 late", "G6 not-out", "G8 not-told"), _GROUP.old_members, 60),
        SceneSpec("silent-leader", "groups", ("G7 waits-for-the-silent",), _GROUP.silent_leader, 60),
        SceneSpec("rebalance-timeout", "groups", ("G6 late", "G6 not-out"), _GROUP.rebalance_timeout),
        SceneSpec(
            "nobody-rejoins", "groups", ("G6 nobody-rejoined", "G11 put-out", "G4 waits-though-complete"),
            _GROUP.nobody_rejoins,
        ),
        SceneSpec("resubscribed", "groups", ("G3", "G2"), _GROUP.resubscribed),
        SceneSpec("slow-rejoin", "groups", ("G10 put-out", "G3 told-otherwise", "G0"), _GROUP.slow_rejoin, 60),
        SceneSpec("silent-rebalance", "groups", ("G7 waits-for-the-silent",), _GROUP.silent_rebalance, 60),
        SceneSpec(
            "leaderless-sync", "groups", ("G5 waits-in-rebalance", "G5 waits-for-no-leader", "G5 unsynced-stays"),
            _GROUP.leaderless_sync,
        ),
        SceneSpec("rebalance", "groups", ("G2 votes", "G3", "G4 waits-though-complete", "G5"), _GROUP.rebalance),
        SceneSpec(
            "longest-rebalance", "groups", ("G4 waits-though-complete", "G5 waits-though-synced"),
            _GROUP.longest_rebalance,
        ),
        SceneSpec(
            "first-generation", "groups", ("G0", "G1 beyond-the-time-out", "G1 put-off-again", "G2", "G3"),
            _GROUP.first_generation,
        ),
        SceneSpec(
            "sync-waits", "groups", ("G5 waits-though-synced", "G3 joins-again-unsynced", "G9"), _GROUP.sync_waits,
        ),
        SceneSpec("long-sync", "groups", ("G5 waits-though-synced",), _GROUP.long_sync, 60),
        SceneSpec("never-synced", "groups", ("G5 waits-for-a-sync", "G5 unsynced-stays", "G10"), _GROUP.never_synced),
        SceneSpec(
            "never-synced-again", "groups", ("G5 waits-for-a-sync", "G5 unsynced-stays"), _GROUP.never_synced_again,
        ),
        SceneSpec(
            "static-waits", "groups", (
                "G11 waits-though-replaced", "G11 unsynced", "G8 leave-by-name", "G3 joins-again",
                "G4 waits-though-complete",
            ),
            _GROUP.static_waits,
        ),
        SceneSpec(
            "left-waiting", "groups", ("G8 left-waiting", "G9", "G12 committed", "G3 told-otherwise"),
            _GROUP.left_waiting,
        ),
        SceneSpec("static-protocols", "groups", ("G11 other-protocol",), _GROUP.static_protocols),
        SceneSpec("static-silent", "groups", ("G7 not-put-out", "G11 let-in"), _GROUP.static_silent),
        SceneSpec(
            "static-members", "groups",
            ("G11 leads-on", "G11 put-out", "G4 static-not-awaited", "G2", "G8 not-told", "G8 leave-by-name"),
            _GROUP.static_members,
        ),
        SceneSpec(
            "refusals", "groups", ("G0", "G9 refusal-waits", "G9 left-twice", "G12 committed", "G12 of-nobody"),
            _GROUP.refusals,
        ),
        SceneSpec("expected-member", "groups", ("G4", "G8", "G7 waits-for-the-silent"), _GROUP.expected_member),
        SceneSpec(
            "described", "groups", ("G13 PreparingRebalance", "G13 Stable", "G13 Empty", "G13 deleted"),
            _GROUP.described,
        ),
        SceneSpec("forgotten-offsets", "groups", ("G12 committed", "G12 forgotten"), _GROUP.forgotten_offsets),
        SceneSpec("cut-members", "groups", ("G10", "G5", "X1"), _GROUP.cut_members),
        SceneSpec("order-of-joins", "groups", ("X2",), _GROUP.order_of_joins),
        SceneSpec("leave", "groups", ("G8 not-told", "G4 waits-though-complete"), _GROUP.leave),
        SceneSpec("leave-unsynced", "groups", ("G5 waits-in-rebalance",), _GROUP.leave_unsynced),
        SceneSpec("idle-fetch", "fetch", ("F1", "F2 late"), _FETCH.idle_fetch),
        SceneSpec("woken-fetch", "fetch", ("F3 not-woken",), _FETCH.woken_fetch),
        SceneSpec("several-partitions", "fetch", ("F3 not-woken",), _FETCH.several_partitions),
        SceneSpec("purged", "fetch", ("F3 not-woken",), _FETCH.purged),
        SceneSpec("rolled", "fetch", ("F3 not-woken",), _FETCH.rolled),
        SceneSpec("woken-many", "fetch", ("F3 not-woken",), _FETCH.woken_many, alone=True),
        SceneSpec("accumulating", "fetch", ("F1", "F3 not-woken"), _FETCH.accumulating),
        SceneSpec(
            "ready-fetch", "fetch", ("F4 waits-though-ready", "P1", "F7 too-much", "F7 out-of-order"),
            _FETCH.ready_fetch,
        ),
        SceneSpec("short-fetch", "fetch", ("F5", "F2 late"), _FETCH.short_fetch),
        SceneSpec(
            "wrong-fetch", "fetch", ("F6 out-of-range-waits", "F6 unknown-topic-waits", "X4 not-there"),
            _FETCH.wrong_fetch, 60,
        ),
        SceneSpec(
            "fetch-sessions", "fetch",
            ("F3 not-woken", "F6 session-taken", "F1", "F5", "F7 starved", "F7 too-much", "X4"),
            _FETCH.fetch_sessions,
        ),
        SceneSpec("sum-fetch", "fetch", ("F7 not-woken", "F1"), _FETCH.sum_fetch),
        SceneSpec("deleted-topic", "fetch", ("F8 waits-for-deleted",), _FETCH.deleted_topic),
        SceneSpec("acks", "produce", ("P1 offsets-do-not-grow", "P2 error-untold", "P3", "X4 not-there"), _FETCH.acks),
        SceneSpec("idempotent", "produce", ("P7 sent-again", "P7 out-of-order"), _FETCH.idempotent),
        SceneSpec("corrupt-batch", "produce", ("P1 corrupt-taken", "F3 not-woken"), _FETCH.corrupt_batch),
        SceneSpec(
            "read-committed", "transactions",
            (
                "R1 early", "R1 undecided-shown", "R2 not-woken", "R2 never-ended", "R3 not-listed", "R3 listed",
                "R4 last-stable-offset", "R4 listed", "R6 ends", "F3 not-woken",
            ),
            _TRANSACTIONS.read_committed, 60,
        ),
        SceneSpec(
            "overlapping", "transactions",
            (
                "R1 early", "R1 undecided-shown", "R2 not-woken", "R3 not-listed", "R3 listed", "R4 listed",
                "P7 sent-again",
            ),
            _TRANSACTIONS.overlapping, 60,
        ),
        SceneSpec(
            "deleted-within", "transactions",
            ("R1 undecided-shown", "R2 not-woken", "R3 listed", "R4 last-stable-offset"),
            _TRANSACTIONS.deleted_within, 60,
        ),
        SceneSpec(
            "deleted-under", "transactions", ("R2 never-ended", "R2 not-woken"), _TRANSACTIONS.deleted_under, 60,
        ),
        SceneSpec(
            "fenced-producer", "transactions",
            ("R2 not-woken", "R5 epoch", "R5 not-fenced", "R5 appends-on", "R3 not-listed", "R6 of-none"),
            _TRANSACTIONS.fenced_producer, 60,
        ),
        SceneSpec(
            "transactional-offsets", "transactions", ("R7 committed", "R7 unstable", "R6 begins"),
            _TRANSACTIONS.transactional_offsets, 60,
        ),
        SceneSpec(
            "members-offsets", "transactions", ("R7 committed", "R7 refused", "G9"), _TRANSACTIONS.members_offsets, 60,
        ),
        SceneSpec(
            "share-idle", "shares", ("S1 early", "S1 late", "S2 waits-though-told", "S3 held"), _SHARE.share_idle, 90,
        ),
        SceneSpec(
            "share-woken", "shares", ("S2 not-woken", "S2 waits-though-ready", "S3 count", "S3 with-records"),
            _SHARE.share_woken, 90,
        ),
        SceneSpec(
            "share-acknowledge", "shares",
            ("S3 count", "S3 held", "S4 again", "S5 not-given", "S5 waits-though-ready", "S6 refused", "S6 taken"),
            _SHARE.share_acknowledge, 90,
        ),
        SceneSpec(
            "share-sessions", "shares",
            ("S8 not-given", "S9 unknown", "S9 epoch", "S9 refused", "S9 refusal-waits"),
            _SHARE.share_sessions, 90,
        ),
        SceneSpec(
            "topics", "topics", ("A1 made-twice", "A1 never-seen", "A2 never-seen", "A2 left-to-its-time-out", "X4"),
            _OTHER.topics,
        ),
        SceneSpec("recreated", "topics", ("F3 not-woken", "P1 offsets-do-not-grow"), _OTHER.recreated),
        SceneSpec("wrong-topics", "topics", ("A1 taken-though-wrong", "A1 made-though-validated"), _OTHER.wrong_topics),
        SceneSpec(
            "partitions", "topics", ("A3 grows", "A3 never-seen", "E1", "F3 not-woken", "L1"), _OTHER.partitions,
        ),
        SceneSpec(
            "delete-records", "topics", (
                "D1 low-watermark", "D1 beyond-the-end", "D1 below-zero", "D1 deleted-while-it-waits", "F1", "X4", "L1",
            ),
            _OTHER.delete_records,
        ),
        SceneSpec("order", "connections", ("X2", "X2 handled-ahead", "X1"), _OTHER.order),
        SceneSpec("versions", "connections", ("X3",), _OTHER.offered_versions),
        SceneSpec("cut", "connections", ("C1 does-not-go-on", "F3 not-woken"), _OTHER.cut),
        SceneSpec("slow-reader", "connections", ("C1 held-up",), _OTHER.slow_reader),
        SceneSpec(
            "replica-stopped", "replicas", ("P5", "P6", "F9", "D1", "F3", "F8", "P1"), _OTHER.replica_stopped, 120,
            alone=True,
        ),
        SceneSpec(
            "min-insync", "replicas", ("P4", "P4 in-sync-again", "P6 given-up", "F3 not-woken"), _OTHER.min_insync,
            180, alone=True,
        ),
    )
}  # fmt: skip
"""The standard plan, by name."""
PATIENT: Final = SceneSpec("patient", DRAWN, ("F3 not-woken",), _FETCH.patient)
"""Played beside the drawn programs."""


UNTRIED: Final = "shares"
"""An area whose clauses have not been held against a broker that nobody here wrote: it is played if it is asked for."""
UNTRIED_CLAUSES: Final = frozenset(
    clause for one in SCENES.values() if one.area == UNTRIED for clause in one.clauses
)
"""Those, of which no other scene asks."""


def chosen(only: Collection[str]) -> list[SceneSpec]:
    """The scenes that these areas, names of scenes or ids of clauses mean; all that are tried where none is given.
    KeyError names one that means nothing."""
    if not only:
        return [one for one in SCENES.values() if one.area != UNTRIED]
    found: dict[str, SceneSpec] = {}
    for word in only:
        meant = [one for one in SCENES.values() if word in (one.name, one.area, *one.clauses)]
        if not meant:
            raise KeyError(word)
        found |= {one.name: one for one in meant}
    return [one for one in SCENES.values() if one.name in found]


@dataclass(slots=True)
class Run:
    """One run of a plan. `told` hears what goes on, a line at a time, `played` of each scene that is over, and `found`
    of each clause that is broken, when that scene is."""

    broker: Broker
    recorder: Recorder
    header: WireHeader
    seed: int
    told: Callable[[str], None] = lambda line: None
    played: Callable[[], None] = lambda: None
    found: Callable[[str], None] = lambda line: None
    drawn_seconds: float = 0.0
    program: Program | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    """Why the broker cannot be asked of a clause in some scene."""
    _played: dict[str, int] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    """The scenes that came to their end once, or cannot be played."""
    _broke: dict[SceneSpec, str] = field(default_factory=dict)
    """Why others did not, the first time."""
    _open: set[str] = field(default_factory=set)
    """The scenes that left open what they ask."""
    _decided: set[tuple[str, str]] = field(default_factory=set)
    """What any scene decided, a clause and a cause."""
    _convicted: set[str] = field(default_factory=set)
    """The clauses that are broken, by what is known so far."""

    @property
    def lost(self) -> dict[str, str]:
        """The clauses of scenes that never came to their end, and why."""
        return {
            clause: f"scene {spec.name} did not come to its end: {why}"
            for spec, why in self._broke.items() if spec.name not in self._over for clause in spec.clauses
        }  # fmt: skip

    async def play(self, scenes: list[SceneSpec], seconds: float) -> None:
        """Play the scenes, at most so long. Cleans up in every case."""
        areas = {one.area for one in scenes}
        if UNTRIED not in areas:
            self.skipped |= dict.fromkeys(
                UNTRIED_CLAUSES, f"played with --only {UNTRIED}: not yet held against a broker of others"
            )
        control = Control(self.broker.address, self.recorder)
        controlling = asyncio.create_task(control.run())
        try:
            async with asyncio.timeout(seconds):
                others = [warm_up for area, warm_up in WARM_UPS.items() if area in areas]
                warm_ups = [scene_fetch.warm_up, *others]
                await asyncio.gather(*(self._warm_up(one, at) for at, one in enumerate(warm_ups)))
                groups, rest = asyncio.Semaphore(GROUP_LANES), asyncio.Semaphore(LANES)

                async def play_all(some: Sequence[SceneSpec]) -> None:
                    await asyncio.gather(
                        *(
                            self._until_judged(x, groups if x.area in GROUP_AREAS else rest, control)
                            for x in some if not x.alone
                        )
                    )  # fmt: skip
                    for one in some:
                        if one.alone:
                            await self._until_judged(one, rest, control)

                await play_all(scenes)
                if not self._convicted:  # on a busy machine a scene can lose its occasions
                    await play_all([one for one in scenes if one.name in self._open])
                if self.program is not None:
                    await self.play_least(self.program)
                if self.drawn_seconds > 0:
                    await self._draw(self.drawn_seconds)
        except TimeoutError:
            self._broke = dict.fromkeys(scenes, f"the run's {seconds:g} s were over") | self._broke
        finally:
            controlling.cancel()
            await asyncio.gather(controlling, return_exceptions=True)
            await clean_up(self.broker, self.recorder, self.told)

    async def _warm_up(self, scene: Callable[[Play], Awaitable[None]], at: int) -> None:
        """Play it beside the record, in bounded time; what it cannot do is found out by the scenes."""
        play = Play(self.broker, Recorder(clock=self.recorder.now), f"warm-up#{at}", random.Random(0))
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(WARM_UP_SECONDS):
                await scene(play)
        except (NoAnswer, SceneSkipped, SceneLost, TimeoutError) as why:
            self.told(f"warming up ended early: {str(why) or f'more than {WARM_UP_SECONDS:g} s'}")
        finally:
            play.close_all()
        await asyncio.sleep(max(0.0, started + LEAST_WARM_UP_SECONDS - asyncio.get_running_loop().time()))

    def _set_pace(self, control: Control) -> None:
        slack_ms = self.broker.declared.late_ms + 2 * control.recent_ns() / MS
        self.broker.pace = min(max(1.0, slack_ms / PACE_SLACK_MS), MOST_PACE)

    async def _until_judged(self, spec: SceneSpec, gate: asyncio.Semaphore, control: Control) -> None:
        async with gate:
            late: dict[tuple[str, str], list[Row]] = defaultdict(list)
            decided: Counter[tuple[str, str]] = Counter()
            repetition, left = self._played.get(spec.name, 0), REPETITIONS
            while left:
                repetition, left = repetition + 1, left - 1
                self._played[spec.name] = repetition
                name = f"{spec.name}#{repetition}"
                self._set_pace(control)
                await self._once(spec, name)
                await control.caught_up()
                again = self._again(name, late, decided)
                if self._learnt(name):
                    left = min(left + 1, MOST_REPETITIONS - repetition)
                elif not again:
                    break
            self.played()

    def _learnt(self, name: str) -> bool:
        """Whether the scene ended at versions that are offered and end the connection; they are not used again."""
        scene = self._scene(self.recorder, name)
        broken = {
            (one.api, one.version)
            for one in scene.exchanges
            if one.owed and one.answer is None and one.closed is not None and one.closed.by == "peer"
            and (one.api, one.version) not in self.recorder.answered and "versions" not in name
        }  # fmt: skip
        self.broker.broken |= broken
        return bool(broken)

    async def _once(self, spec: SceneSpec, name: str) -> None:
        play = Play(self.broker, self.recorder, name, random.Random(f"{self.seed} {name}"))
        self.told(f"playing {name}")
        try:
            async with asyncio.timeout(spec.seconds * play.pace):
                await spec.play(play)
            self._over.add(spec.name)
        except SceneSkipped as why:
            play.cannot(str(why), *spec.clauses)
            self._over.add(spec.name)
        except (NoAnswer, SceneLost, TimeoutError) as why:
            said = str(why) or f"it took more than {spec.seconds * play.pace:g} s"
            self.told(f"{name} broke off: {said}")
            self._broke.setdefault(spec, said)
        finally:
            play.close_all()
        self.skipped = play.unasked | self.skipped
        for ask in spec.asks:
            if ask.partition(" ")[0] not in play.unasked:
                play.stimulus("asks", text=ask)

    def _again(
        self, name: str, late: dict[tuple[str, str], list[Row]], decided: Counter[tuple[str, str]]
    ) -> bool:
        """Whether a late row is alone so far, or no row decided what it asks: then the scene is asked again. So it is
        for what looks forgotten, and for what it leaves undecided of other clauses that no scene has decided."""
        scene = self._scene(self.recorder, name)
        doubts: Counter[tuple[str, str]] = Counter()
        for row in self._rows(self.recorder, name):
            if row.held is Held.BROKEN:
                self._convict(row)
            if row.held is Held.LATE:
                late[row.clause, row.cause].append(row)
            if row.held is Held.UNDECIDED:
                doubts[row.clause, row.cause] += row.gaps >= LOST_GAPS
            else:
                decided[row.clause, row.cause] += 1
        left = bool(unmet(scene.asked, decided))
        self._open.discard(scene.base)
        if left or scene.base not in self._over:
            self._open.add(scene.base)
        for held in late.values():
            far = [row for row in held if row.gaps >= FAR_GAPS]
            if repeats(far, 0):  # these are not outnumbered, whatever other scenes decide
                self._convict(far[-1])
        alone = any(not repeats(held, decided[key]) for key, held in late.items())
        self._decided.update(decided)
        clauses = {clause for clause, _ in scene.asked}
        doubtful = (
            doubt or key not in (decided if key[0] in clauses else self._decided)
            for key, doubt in doubts.items()
        )  # fmt: skip
        return left or alone or any(doubtful)

    def _convict(self, row: Row) -> None:
        """Say it at once: where much is broken the whole plan takes minutes."""
        if row.clause not in self._convicted:
            self._convicted.add(row.clause)
            self.found(f"{row.clause} VIOLATED so far: {row.subject}: {row.seen}, allowed {row.allowed}")

    def _rows(self, recorder: Recorder, name: str) -> list[Row]:
        """What one scene of a record gave; the bounds are the run's."""
        bounds = Bounds.of(self.broker.declared, self.recorder.by_scene[CONTROL])
        wire = Wire(bounds, self.broker.offered, frozenset(self.recorder.answered))
        return judge_scene(wire, self._scene(recorder, name))

    @staticmethod
    def _scene(recorder: Recorder, name: str) -> Scene:
        return scene_of(name, recorder.by_scene[name], recorder.now())

    async def _draw(self, seconds: float) -> None:
        """Play drawn programs, several at a time; the first that breaks each clause is made small and played again."""
        loop = asyncio.get_running_loop()
        ends, numbers = loop.time() + seconds, itertools.count()
        played: dict[str, Program] = {}

        async def worker(draw: Callable[[random.Random], Program]) -> None:
            while loop.time() < ends and self.recorder.events < MAX_EVENTS // 2:
                name = f"{DRAWN}#{next(numbers)}"
                played[name] = draw(random.Random(f"{self.seed} {name}"))
                if not await self._program(self.recorder, name, played[name]):
                    return

        self.told(f"playing drawn programs for {seconds:g} s")
        kinds = (
            (drawn, DRAWERS), (drawn_group, GROUP_DRAWERS), (drawn_transactions, TRANSACTION_DRAWERS),
            (drawn_offsets, OFFSET_DRAWERS),
        )  # fmt: skip
        workers = [worker(draw) for draw, count in kinds for _ in range(count)]
        await asyncio.gather(self._once(PATIENT, f"{PATIENT.name}#1"), *workers)
        seen: set[str] = set()
        for name, program in played.items():
            for row in self._rows(self.recorder, name):
                if _fails(row) and row.clause not in seen and len(seen) < MOST_SMALL:
                    seen.add(row.clause)
                    await self._make_small(program, row)

    async def _program(self, recorder: Recorder, name: str, program: Program) -> bool:
        """Play one; whether it could be."""
        play = Play(self.broker, recorder, name, random.Random(name))
        try:
            async with asyncio.timeout(PROGRAM_SECONDS):
                await play_program(play, program)
        except (NoAnswer, SceneSkipped, SceneLost, TimeoutError) as why:
            self.told(f"{name} broke off: {why}")
            return False
        finally:
            play.close_all()
        return True

    async def _make_small(self, program: Program, row: Row) -> None:
        """Leave out what the failing does not need, beside the record; then play what is left three times into it."""
        least_name, tries = f"{LEAST_SCENE}-{row.clause}", itertools.count()

        async def fails(smaller: Program) -> bool:
            # Its topics have names from its own: another clause's may still be there.
            silent, name = Recorder(clock=self.recorder.now), f"{least_name}-{next(tries)}#1"
            await self._program(silent, name, smaller)
            return any(
                _fails(one) and (one.clause, one.cause) == (row.clause, row.cause)
                for one in self._rows(silent, name)
            )

        least = await made_small(program, fails, SMALL_TRIES, SMALL_AT_A_TIME)
        self.told(f"{row.clause} {row.cause} by {least.steps} of {program.steps} drawn steps: {least}")
        await self.play_least(least, least_name)

    async def play_least(self, program: Program, name: str = LEAST_SCENE) -> None:
        """Play a program three times."""
        for repetition in range(1, REPETITIONS + 1):
            await self._program(self.recorder, f"{name}#{repetition}", program)


async def clean_up(broker: Broker, recorder: Recorder, told: Callable[[str], None]) -> None:
    """Delete what the run made, in bounded time. What cannot be deleted is named."""
    made: Made = broker.made
    left = sorted(made.topics)
    try:
        async with asyncio.timeout(CLEAN_UP_SECONDS):
            conn = await connect(broker.address, "cleaner", "", recorder)
            version = broker.version("delete_topics")
            if version is not None and left:
                values = {"topic_names": left, "timeout_ms": 5000}
                at = broker.controller or broker.address
                deletes = await connect(at, "cleaner-of-topics", "", recorder)
                got = await deletes.send("delete_topics", version, values).within(CLEAN_UP_SECONDS)
                left = _refused(got, "responses", "name", left)
                deletes.close()
            await _delete_groups(broker, conn)
            conn.close()
    except (NoAnswer, TimeoutError):
        pass
    made.topics.intersection_update(left)
    left += sorted(made.groups)
    if left:
        told(
            f"not deleted, the broker did not do it: {', '.join(left[:10])}"
            + (" ..." if len(left) > 10 else "")
        )


async def _delete_groups(broker: Broker, conn: Connection) -> None:
    """Members leave first, for only an empty group is deleted."""
    leaves, deletes = broker.version("leave_group"), broker.version("delete_groups")
    made = broker.made.groups
    beats = broker.version("share_group_heartbeat")
    for group, sharers in broker.made.sharers.items():
        for one in sharers if beats is not None else ():
            left = {"group_id": group, "member_id": one, "member_epoch": -1}
            await conn.send("share_group_heartbeat", beats or 0, left).within(5)
    if leaves is not None:
        for group, members in [*made.items()]:  # what a scene left behind may still hear of others
            for part in [sorted(members)] if leaves >= 3 else [[one] for one in members]:
                named = {
                    "member_id": part[0] if part else "",
                    "members": [{"member_id": one} for one in part],
                }
                if part:
                    await conn.send("leave_group", leaves, {"group_id": group, **named}).within(5)
    if deletes is None:
        made.clear()  # an empty group goes by itself
        return
    names = sorted(made)
    while names:
        got = await conn.send("delete_groups", deletes, {"groups_names": names}).within(5)
        names = _refused(got, "results", "group_id", names)
        for gone in set(made) - set(names):
            del made[gone]
        # A join that was under way when the run was stopped has made a member of which nobody knows the id: its
        # session ends by itself.
        await asyncio.sleep(NOT_EMPTY_SECONDS if names else 0)


def _refused(got: Got, answers: str, name: str, names: list[str]) -> list[str]:
    """The topics or groups that are still there, as far as the answer says."""
    gone = {text(said, name) for said in items(got.body, answers) if codes(said) in GONE}
    return [one for one in names if one not in gone]
