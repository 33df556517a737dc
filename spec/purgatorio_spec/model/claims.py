"""The claims of `purgatorio model`: each a model that must hold within its bound, and twins that must fail."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

from purgatorio_spec.known_bugs import bug_name, bug_number
from purgatorio_spec.model import completion as protocol
from purgatorio_spec.model import entry_race, variant, wheel_refinement
from purgatorio_spec.model import watch_list as lists
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.column_table import render
from purgatorio_spec.model.completion import Scene, completion
from purgatorio_spec.model.lock_order import STORIES, LockStory, lock_model
from purgatorio_spec.model.shape import DEADLOCK, Answer, Model
from purgatorio_spec.model.variant import Variant
from purgatorio_spec.model.wheel import Flaw, World

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Examined:
    """An answer, and the shortest path of its first refuted property as a column table."""

    answer: Answer
    story: str


Examine = Callable[[], Examined]


@dataclass(frozen=True, slots=True)
class Twin:
    """A mistake and the property that it must break; `number` is its row in the table of known bugs, if it has one."""

    name: str
    number: int | None
    property: str
    examine: Examine


@dataclass(frozen=True, slots=True)
class Claim:
    """What must hold, which clauses it speaks for, and what must fail beside it."""

    id: str
    statement: str
    clauses: tuple[str, ...]
    examine: Examine
    twins: tuple[Twin, ...]
    deep: bool = False


def examining(build: Callable[[], Model[S]], wanted: str | None = None) -> Examine:
    """Search when called; for a twin, up to the layer of the first violation, telling the wanted one."""

    def examine() -> Examined:
        model = build()
        answer = check(model)
        for finding in answer.findings:
            if finding.trace is not None and wanted in (None, finding.property):
                return Examined(answer, render(finding.trace, model.columns))
        return Examined(answer, "")

    return examine


def _twin(bug: int | str, wanted: str, build: Callable[[], Model[S]]) -> Twin:
    return Twin(bug_name(bug), bug_number(bug), wanted, examining(build, wanted))


def _broken(flawed: Variant, bug: int | str, wanted: str, scene: Scene) -> Twin:
    return _twin(bug, wanted, lambda: completion(flawed, scene))


def _holds(
    claim: str,
    statement: str,
    clauses: str,
    dialect: Variant,
    scene: Scene,
    *twins: Twin,
    deep: bool = False,
) -> Claim:
    examine = examining(lambda: completion(dialect, scene))
    return Claim(claim, f"{dialect.name}: {statement}", tuple(clauses.split()), examine, twins, deep)


def _pending_flag() -> list[Claim]:
    dialect, no_lost = variant.PENDING_FLAG, protocol.NO_LOST
    events, everything = "events complete the operation exactly once", "O1 O4 P3"
    registered = "registration against events loses nothing"
    pair, trio = Scene(2), Scene(3)
    alone, two_keys = Scene(1, register=True), Scene(2, register=True, keys=2)
    timed = Scene(2, register=True, timed=True, keys=2)
    return [
        _holds("C1", events, everything, dialect, pair, _broken(variant.GIVE_UP, 11, no_lost, pair)),
        _holds("C2", events, everything, dialect, trio, _broken(variant.RETRY_ONCE, 12, no_lost, trio)),
        _holds("C3", events, everything, dialect, Scene(4), _broken(variant.GIVE_UP, 11, no_lost, Scene(4))),
        _holds("C4", registered, everything, dialect, alone, _broken(variant.NO_RECHECK, 1, no_lost, alone)),
        _holds(
            "C5",
            registered,
            everything,
            dialect,
            two_keys,
            _broken(variant.CHECK_BEFORE_EACH_WATCH, 2, no_lost, two_keys),
        ),
        _holds(
            "C6",
            "registration, events and expiry",
            "O1 O3 O4 T4 P3",
            dialect,
            timed,
            _broken(variant.CHECK_THEN_SET, 19, protocol.ONCE, timed),
            _broken(variant.FLAG_AFTER_CALLBACK, 21, protocol.ONCE, timed),
            _broken(variant.EXPIRY_WITHOUT_WIN[dialect], 22, protocol.EXPIRES_AFTER_WIN, timed),
            _broken(variant.NO_LATE_CANCEL[dialect], 40, protocol.NO_RETAINED_TASK, timed),
        ),
        _holds(
            "C7",
            "the retry loop ends when all events come",
            "P3",
            dialect,
            Scene(3, progress=True),
            _twin(
                "no fairness: two threads spin, the third never moves",
                protocol.ENDS,
                lambda: completion(dialect, Scene(3, progress=True, fair=False)),
            ),
        ),
        _holds(
            "C8",
            "the retry loop can always end, ready or not",
            "P3",
            dialect,
            Scene(3, progress=True, never_ready=True),
            _broken(variant.NO_RESET, 13, protocol.CAN_END, Scene(2, progress=True, never_ready=True)),
        ),
        _holds(
            "C9",
            events,
            everything,
            dialect,
            Scene(5, symmetric=True),
            _broken(variant.GIVE_UP, 11, no_lost, Scene(5, symmetric=True)),
            deep=True,
        ),
    ]


def _locked() -> list[Claim]:
    dialect, no_lost = variant.LOCKED, protocol.NO_LOST
    events = "events complete the operation exactly once, before they return"
    registered = "registration against events loses nothing"
    clauses = "O1 O4 O6 P3"
    alone, two_keys = Scene(1, register=True), Scene(2, register=True, keys=2)
    timed, foreign = Scene(2, register=True, timed=True, keys=2), Scene(2, holder=True)
    never = variant.TRUE_WITHOUT_FORCE
    return [
        *(
            _holds(f"L{n - 1}", events, clauses, dialect, Scene(n), _broken(never, 27, no_lost, Scene(n)))
            for n in (2, 3, 4)
        ),
        _holds(
            "L4", registered, clauses, dialect, alone, _broken(variant.NO_RECHECK_LOCKED, 1, no_lost, alone)
        ),
        _holds(
            "L5",
            registered,
            clauses,
            dialect,
            two_keys,
            _broken(variant.NO_RECHECK_LOCKED, 1, no_lost, two_keys),
        ),
        _holds(
            "L6",
            "registration, events and expiry",
            "O1 O3 O4 O6 T4 P3",
            dialect,
            timed,
            _broken(variant.UNLOCKED_FORCE, 24, protocol.NO_OVERLAP, timed),
            _broken(variant.EXPIRY_WITHOUT_WIN[dialect], 22, protocol.EXPIRES_AFTER_WIN, timed),
            _broken(variant.NO_LATE_CANCEL[dialect], 40, protocol.NO_RETAINED_TASK, timed),
        ),
        _holds(
            "L7",
            "a foreign holder of the operation's lock loses nothing",
            clauses,
            dialect,
            foreign,
            _twin(
                14,
                no_lost,
                lambda: completion(variant.PENDING_FLAG, foreign),
            ),
        ),
        _holds(
            "L8",
            "every call returns",
            "P3",
            dialect,
            Scene(3, progress=True),
            _broken(
                variant.LOCK_NEVER_RELEASED,
                "lock-again-instead-of-unlock",
                protocol.ENDS,
                Scene(3, progress=True),
            ),
        ),
        _holds(
            "L9",
            events,
            clauses,
            dialect,
            Scene(5, symmetric=True),
            _broken(never, 27, no_lost, Scene(5, symmetric=True)),
            deep=True,
        ),
    ]


def _watch_list_claim(claim: str, checkers: int) -> Claim:
    return Claim(
        claim,
        "a key that is removed while it is watched loses nothing",
        ("O4", "P1"),
        examining(lambda: lists.watch_list(lists.ListFlaw.NONE, checkers)),
        (
            _list_twin(lists.ListFlaw.APPEND_UNLOCKED, checkers),
            _list_twin(lists.ListFlaw.NO_EMPTINESS_TEST, checkers),
        ),
    )


def _list_twin(flaw: lists.ListFlaw, checkers: int) -> Twin:
    return _twin(flaw.value, protocol.NO_LOST, lambda: lists.watch_list(flaw, checkers))


def _lock_claim(index: int, story: LockStory) -> Claim:
    return Claim(
        f"D{index}",
        f"the order that repaired {bug_name(story.bug)} does not deadlock",
        ("P3",),
        examining(lambda: lock_model(f"{bug_name(story.bug)}, repaired", story.repaired, frozenset())),
        (
            _twin(
                story.bug,
                DEADLOCK,
                lambda: lock_model(bug_name(story.bug), story.broken, story.not_reentrant),
            ),
        ),
    )


def _race_claim(
    claim: str, statement: str, good: entry_race.Race, *bad: tuple[entry_race.Race, int]
) -> Claim:
    return Claim(
        claim,
        statement,
        ("T3", "T4", "T5"),
        examining(lambda: entry_race.race_model(good)),
        tuple(_race_twin(race, number) for race, number in bad),
    )


def _race_twin(race: entry_race.Race, number: int) -> Twin:
    return _twin(number, entry_race.STAYS_SOUND, lambda: entry_race.race_model(race))


def _races() -> list[Claim]:
    return [
        _race_claim(
            "R1",
            "an entry that is moved and cancelled at once",
            entry_race.cancel_against_move(),
            (entry_race.cancel_against_move(trusts_list=True), 49),
            (entry_race.cancel_against_move(checks_cancel=False), 51),
        ),
        _race_claim(
            "R2",
            "two threads need the overflow wheel at once",
            entry_race.two_far_adds(),
            (entry_race.two_far_adds(locked=False), 53),
        ),
        _race_claim(
            "R3",
            "a bucket that is flushed and added to at once",
            entry_race.add_during_flush(),
            (entry_race.add_during_flush(excluded=False), 55),
        ),
    ]


_SMALL = World(tick=1, size=2, start=1, delays=(0, 1, 2, 3, 4), tasks=3, ticks=6)


def wheel_world(tick: int, size: int, tasks: int, delays: int) -> World:
    """A world with the first `delays` of the delays that stand at the edges of the levels and reach the third."""
    second, third = size * tick, size * size * tick
    edges = (tick, second - 1, third + tick - 1, third - 1, 0, second, third)
    ticks = size * size + 1
    return World(tick, size, tick, tuple(sorted(set(edges[:delays]))), tasks, ticks, cancels=False)


def _wheel_claim(claim: str, world: World, twins: tuple[Flaw, ...], deep: bool = False) -> Claim:
    return Claim(
        claim,
        "the wheel refines the set of deadlines, with its invariants",
        ("T1", "T2", "T3", "T4", "T6", "T7"),
        examining(lambda: wheel_refinement.refinement(world)),
        tuple(_wheel_twin(world, flaw) for flaw in twins),
        deep,
    )


def _wheel_twin(world: World, flaw: Flaw) -> Twin:
    flawed = replace(world, flaw=flaw, tasks=min(world.tasks, 3))
    wanted = wheel_refinement.REFINES
    if flaw is Flaw.NO_OVERFLOW_ADVANCE:
        wanted = wheel_refinement.FLOORS  # it is late only beyond the third level
    return _twin(flaw.value, wanted, lambda: wheel_refinement.refinement(flawed))


def _wheels() -> list[Claim]:
    any_size = (Flaw.CURRENT_TICK_OFF_BY_ONE, Flaw.FIRE_ON_FLUSH)
    claims = [_wheel_claim("W0", _SMALL, tuple(flaw for flaw in Flaw if flaw is not Flaw.NONE))]
    for number, (size, tick) in enumerate(((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)), 1):
        delays = 7 if size == 2 else 4
        world = wheel_world(tick, size, 4, delays)
        claims.append(_wheel_claim(f"W{number}", world, any_size))
        if size == 3:
            more = wheel_world(tick, size, 4, 7 if tick == 1 else 5)
            claims.append(_wheel_claim(f"W{number}d", more, any_size, deep=True))
    return claims


def all_claims() -> tuple[Claim, ...]:
    """Every claim, small ones first; those marked deep run only on request."""
    stories = (_lock_claim(index, story) for index, story in enumerate(STORIES, 1))
    watched = (_watch_list_claim(f"K{checkers}", checkers) for checkers in (1, 2))
    return (*_pending_flag(), *_locked(), *watched, *stories, *_races(), *_wheels())
