"""The claims of `purgatorio model`. A claim has a property, a bound, and a model that must have the property. It also
has negative controls: models that must not have the property."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from purgatorio_spec.known_bugs import bug_name, bug_number
from purgatorio_spec.model import completion as protocol
from purgatorio_spec.model import variant, wheel_refinement
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.completion import Setup, completion
from purgatorio_spec.model.shape import Model, ModelResult, render
from purgatorio_spec.model.variant import Variant
from purgatorio_spec.model.watch_list import watch_list
from purgatorio_spec.model.wheel import Flaw, WheelCase

S = TypeVar("S", bound=Hashable)


Examine = Callable[[], ModelResult]


@dataclass(frozen=True, slots=True)
class Twin:
    """A negative control: a mistake, and the property that it must break. `number`: its number if it is a known bug."""

    name: str
    number: int | None
    property: str
    examine: Examine


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim: its property, its clauses, and its negative controls."""

    id: str
    statement: str
    clauses: tuple[str, ...]
    examine: Examine
    twins: tuple[Twin, ...]
    deep: bool = False


def examining(build: Callable[[], Model[S]], wanted: str | None = None) -> Examine:
    """Returns a function that searches the model. `wanted`: the property that a negative control must break; the result
    has the shortest path that breaks it."""

    def examine() -> ModelResult:
        model = build()
        answer = check(model)
        for finding in answer.findings:
            if finding.trace is not None and wanted in (None, finding.property):
                return replace(answer, story=render(finding.trace, model.columns))
        return answer

    return examine


def _twin(bug: int | str, wanted: str, build: Callable[[], Model[S]]) -> Twin:
    return Twin(bug_name(bug), bug_number(bug), wanted, examining(build, wanted))


Failing = tuple[Variant, int | str, str]
"""A version of the protocol, the bug that it has, and the property that it must break."""


def _holds(
    claim: str,
    clauses: str,
    dialect: Variant,
    scene: Setup,
    statement: str,
    *twins: Failing | Twin,
    deep: bool = False,
) -> Claim:
    """The claim that `dialect` has its properties in `scene`. Its negative controls are versions that fail, in the same
    scene or in one of their own."""

    def failing(twin: Failing | Twin) -> Twin:
        if isinstance(twin, Twin):
            return twin
        flawed, bug, wanted = twin
        return _twin(bug, wanted, lambda: completion(flawed, scene))

    examine = examining(lambda: completion(dialect, scene))
    statement = f"{dialect.name}: {statement}"
    return Claim(claim, statement, tuple(clauses.split()), examine, tuple(map(failing, twins)), deep)


_ALONE, _TWO_KEYS = Setup(1, register=True), Setup(2, register=True, keys=2)
_TIMED = Setup(2, register=True, timed=True, keys=2)
_REGISTERED = "registration against events loses nothing"


def _pending_flag() -> list[Claim]:
    dialect, lost, everything = variant.PENDING_FLAG, protocol.NO_LOST, "O1 O4 P3"
    events = "events complete the operation exactly once"
    gives_up, unchecked = (variant.GIVE_UP, 11, lost), (variant.NO_RECHECK, 1, lost)
    unfair = _twin(
        "no fairness: two threads spin, the third never moves",
        protocol.ENDS,
        lambda: completion(dialect, Setup(3, progress=True, fair=False)),
    )
    two_spin = Setup(2, progress=True, never_ready=True)
    unreset = _twin(13, protocol.CAN_END, lambda: completion(variant.NO_RESET, two_spin))
    return [
        _holds("C1", everything, dialect, Setup(2), events, gives_up),
        _holds("C2", everything, dialect, Setup(3), events, (variant.RETRY_ONCE, 12, lost)),
        _holds("C3", everything, dialect, Setup(4), events, gives_up),
        _holds("C4", everything, dialect, _ALONE, _REGISTERED, unchecked),
        _holds("C5", everything, dialect, _TWO_KEYS, _REGISTERED, (variant.CHECK_BEFORE_EACH_WATCH, 2, lost)),
        _holds(
            "C6", "O1 O3 O4 T4 P3", dialect, _TIMED, "registration, events and expiry",
            (variant.CHECK_THEN_SET, 19, protocol.ONCE),
            (variant.FLAG_AFTER_CALLBACK, 21, protocol.ONCE),
            (variant.EXPIRY_WITHOUT_WIN[dialect], 22, protocol.EXPIRES_AFTER_WIN),
            (variant.NO_LATE_CANCEL[dialect], 40, protocol.NO_RETAINED_TASK),
        ),
        _holds("C7", "P3", dialect, Setup(3, progress=True), "the retry loop ends when all events come", unfair),
        _holds(
            "C8", "P3", dialect, Setup(3, progress=True, never_ready=True),
            "the retry loop can always end, ready or not", unreset,
        ),
        _holds("C9", everything, dialect, Setup(5, symmetric=True), events, gives_up, deep=True),
    ]  # fmt: skip


def _locked() -> list[Claim]:
    dialect, lost, clauses = variant.LOCKED, protocol.NO_LOST, "O1 O4 O6 P3"
    events = "events complete the operation exactly once, before they return"
    never, unchecked = (variant.TRUE_WITHOUT_FORCE, 27, lost), (variant.NO_RECHECK_LOCKED, 1, lost)
    foreign = Setup(2, holder=True)
    return [
        *(_holds(f"L{n - 1}", clauses, dialect, Setup(n), events, never) for n in (2, 3, 4)),
        _holds("L4", clauses, dialect, _ALONE, _REGISTERED, unchecked),
        _holds("L5", clauses, dialect, _TWO_KEYS, _REGISTERED, unchecked),
        _holds(
            "L6", "O1 O3 O4 O6 T4 P3", dialect, _TIMED, "registration, events and expiry",
            (variant.UNLOCKED_FORCE, 24, protocol.NO_OVERLAP),
            (variant.EXPIRY_WITHOUT_WIN[dialect], 22, protocol.EXPIRES_AFTER_WIN),
            (variant.NO_LATE_CANCEL[dialect], 40, protocol.NO_RETAINED_TASK),
        ),
        _holds(
            "L7", clauses, dialect, foreign, "a foreign holder of the operation's lock loses nothing",
            (variant.PENDING_FLAG, 14, lost),
        ),
        _holds(
            "L8", "P3", dialect, Setup(3, progress=True), "every call returns",
            (variant.LOCK_NEVER_RELEASED, "lock-again-instead-of-unlock", protocol.ENDS),
        ),
        _holds("L9", clauses, dialect, Setup(5, symmetric=True), events, never, deep=True),
    ]  # fmt: skip


def _watch_lists() -> Iterator[Claim]:
    for checkers in (1, 2):
        yield Claim(
            f"K{checkers}",
            "a key that is removed while it is watched loses nothing",
            ("O4", "P1"),
            examining(partial(watch_list, checkers)),
            (
                _twin(3, protocol.NO_LOST, partial(watch_list, checkers, append_locked=False)),
                _twin(4, protocol.NO_LOST, partial(watch_list, checkers, tests_emptiness=False)),
            ),
        )


_SMALL = WheelCase(tick=1, size=2, start=1, delays=(0, 1, 2, 3, 4), tasks=3, ticks=6)


def wheel_world(tick: int, size: int, tasks: int, delays: int) -> WheelCase:
    """A wheel and tasks for the search. The tasks have different delays: the first `delays` values of a list of the
    boundaries of levels 1 to 3."""
    second, third = size * tick, size * size * tick
    edges = (tick, second - 1, third + tick - 1, third - 1, 0, second, third)
    ticks = size * size + 1
    return WheelCase(tick, size, tick, tuple(sorted(set(edges[:delays]))), tasks, ticks, cancels=False)


def _wheel_claim(claim: str, world: WheelCase, twins: tuple[Flaw, ...], deep: bool = False) -> Claim:
    return Claim(
        claim,
        "the wheel refines the set of deadlines, with its invariants",
        ("T1", "T2", "T3", "T4", "T6", "T7"),
        examining(lambda: wheel_refinement.refinement(world)),
        tuple(_wheel_twin(world, flaw) for flaw in twins),
        deep,
    )


def _wheel_twin(world: WheelCase, flaw: Flaw) -> Twin:
    flawed = replace(world, flaw=flaw, tasks=min(world.tasks, 3))
    wanted = wheel_refinement.REFINES
    if flaw is Flaw.NO_OVERFLOW_ADVANCE:
        wanted = wheel_refinement.FLOORS  # a task is late only beyond the third level
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
    """All claims, the small ones first. The deep claims are checked only on request."""
    return (*_pending_flag(), *_locked(), *_watch_lists(), *_wheels())
