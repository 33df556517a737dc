"""The scenes of the standard plan: each with its area, the clauses that it asks, and how long it may take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.history.violation_kind import Way
from purgatorio_wire.scene import fetch as scene_fetch
from purgatorio_wire.scene import group as scene_group
from purgatorio_wire.scene import share_group as scene_share
from purgatorio_wire.scene import static_member as scene_static
from purgatorio_wire.scene import topic as scene_other
from purgatorio_wire.scene import transaction as scene_transactions
from purgatorio_wire.scene.play import Play
from purgatorio_wire.trace.record import DRAWN


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
    """Played when the others have ended: it stops brokers, its crowd of requests would delay their answers, or their
    requests would make good what it must see."""
    takes: float = 10.0
    """Seconds that it takes on a quiet machine, about."""

    def __post_init__(self) -> None:
        """ValueError where it asks what no judge knows: that would stay UNKNOWN for ever."""
        for ask in self.asks:
            clause, _, way = ask.partition(" ")
            if clause not in WIRE_CLAUSES:
                raise ValueError(f"scene {self.name} asks for {clause}, which is no clause of the wire")
            Way(way)

    @property
    def clauses(self) -> tuple[str, ...]:
        """Those of what it asks."""
        return tuple(dict.fromkeys(ask.partition(" ")[0] for ask in self.asks))

    @property
    def promise(self) -> str:
        """What it plays, in its own words."""
        return " ".join((self.play.__doc__ or "").split())


WARM_UPS: Final = {
    "groups": scene_group.warm_up,
    "transactions": scene_transactions.warm_up,
    "shares": scene_share.warm_up,
}
"""Of these areas, in addition of fetches."""
_FETCH, _GROUP, _OTHER, _SHARE = scene_fetch, scene_group, scene_other, scene_share
_STATIC, _TRANSACTIONS = scene_static, scene_transactions
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
        SceneSpec("long-sync", "groups", ("G5 waits-though-synced", "G7 waits-for-the-silent"), _GROUP.long_sync, 60),
        SceneSpec("never-synced", "groups", ("G5 waits-for-a-sync", "G5 unsynced-stays", "G10"), _GROUP.never_synced),
        SceneSpec(
            "never-synced-again", "groups", ("G5 waits-for-a-sync", "G5 unsynced-stays"), _GROUP.never_synced_again,
        ),
        SceneSpec(
            "static-waits", "groups", (
                "G11 waits-though-replaced", "G11 unsynced", "G8 leave-by-name", "G3 joins-again",
                "G4 waits-though-complete",
            ),
            _STATIC.static_waits,
        ),
        SceneSpec(
            "left-waiting", "groups", ("G8 left-waiting", "G9", "G12 committed", "G3 told-otherwise"),
            _GROUP.left_waiting,
        ),
        SceneSpec("static-protocols", "groups", ("G11 other-protocol",), _STATIC.static_protocols),
        SceneSpec("static-silent", "groups", ("G7 not-put-out", "G11 let-in"), _STATIC.static_silent),
        SceneSpec(
            "static-members", "groups",
            ("G11 leads-on", "G11 put-out", "G4 static-not-awaited", "G2", "G8 not-told", "G8 leave-by-name"),
            _STATIC.static_members,
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
        SceneSpec("purged", "fetch", ("F3 not-woken",), _FETCH.purged, alone=True),
        SceneSpec("rolled", "fetch", ("F3 not-woken",), _FETCH.rolled),
        SceneSpec("woken-many", "fetch", ("F3 not-woken",), _FETCH.woken_many, alone=True),
        SceneSpec("accumulating", "fetch", ("F1", "F3 not-woken"), _FETCH.accumulating),
        SceneSpec(
            "ready-fetch", "fetch", ("F4 waits-though-ready", "M1", "F7 too-much", "F7 out-of-order"),
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
        SceneSpec("acks", "produce", ("M1 offsets-do-not-grow", "M2 error-untold", "M3", "X4 not-there"), _FETCH.acks),
        SceneSpec("idempotent", "produce", ("M7 sent-again", "M7 out-of-order"), _FETCH.idempotent),
        SceneSpec("corrupt-batch", "produce", ("M1 corrupt-taken", "F3 not-woken"), _FETCH.corrupt_batch),
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
                "M7 sent-again",
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
        SceneSpec("recreated", "topics", ("F3 not-woken", "M1 offsets-do-not-grow"), _OTHER.recreated),
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
        SceneSpec("throttled", "connections", ("Q1 not-throttled", "Q1 late"), _OTHER.throttled),
        SceneSpec("slow-reader", "connections", ("C1 held-up",), _OTHER.slow_reader),
        SceneSpec(
            "replica-stopped", "replicas", ("M5", "M6", "F9", "D1", "F3", "F8", "M1"), _OTHER.replica_stopped, 120,
            alone=True, takes=40,
        ),
        SceneSpec(
            "min-insync", "replicas", ("M4", "M4 in-sync-again", "M6 given-up", "F3 not-woken"), _OTHER.min_insync,
            180, alone=True, takes=70,
        ),
    )
}  # fmt: skip
"""The standard plan, by name."""
PATIENT: Final = SceneSpec("patient", DRAWN, ("F3 not-woken",), _FETCH.patient)
"""Played next to the random programs."""


def chosen(only: Collection[str]) -> list[SceneSpec]:
    """The scenes that these areas, names of scenes or ids of clauses mean; all where none is given.
    KeyError names one that means nothing."""
    if not only:
        return [*SCENES.values()]
    found: dict[str, SceneSpec] = {}
    for word in only:
        meant = [one for one in SCENES.values() if word in (one.name, one.area, *one.clauses)]
        if not meant:
            raise KeyError(word)
        found |= {one.name: one for one in meant}
    return [one for one in SCENES.values() if one.name in found]
