"""The executed orders of the programs of gated runs: the description of an order, and its repetition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purgatorio_conformance.protocol.lines import Point
from purgatorio_conformance.protocol.small_program import SmallProgram
from purgatorio_spec.judge.result import ClauseResult

STEPS_MOST: Final = 5_000
"""So many steps of a program are played."""

_AGAIN_MOST: Final = 5
"""An order is played again so often that hung, or should break a clause again."""

BROKEN: Final = "a clause was broken before"
TOO_MANY: Final = "the time limit, or too many orders"
NO_LINE: Final = "its calls reach no line at which a thread can pause"
NO_LINE_OF_ITS_OWN: Final = "its first call reaches no line that calls of shorter programs do not reach"
NO_NEW_LINE: Final = "each line of its calls was paused before during calls of the same kinds"
"""Why something is not played."""

AGAIN: Final = (
    "the same order of threads hangs again in a new process; made one after another, all calls return"
)
"""Why a hang is a deadlock."""

ON_AND_ON: Final = (
    "by the same order of threads it uses the CPU without end again, in a new process; made one after another, all "
    "calls return"
)
"""Why who works on in such an order is not slow."""

RACED: Final = "the same order of threads fails again in a new process; made one after another, no call fails"
"""Why an error is the subject's own."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What came of one program: how many plays, and why these were not all orders (`cut`), or why there were none
    (`skipped`)."""

    program: SmallProgram
    plays: int = 0
    cut: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class PausePoint:
    """A lane, the place of a call in it, and the steps of that call at which a thread is stopped; or none, and the call
    is watched for its steps: for those of the subject's own threads (`workers`), or of its own. `points`: what steps
    they are, where they are lines of a JVM's. `beside`: the first lane stands at this gate until then, and continues
    first; `ahead`: so it does, at these of its steps, which are at these lines (`led`)."""

    lane: int
    place: int
    steps: tuple[int, ...] = ()
    workers: bool = False
    points: tuple[Point, ...] = ()
    beside: str = ""
    ahead: tuple[int, ...] = ()
    led: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class PlayedOrder:
    """One play: the program, and what was done each time, see `Play.acts`; or where one call was stopped. `errors`:
    whether callbacks end with an error where the program says so."""

    program: str
    acts: tuple[str, ...]
    stop: PausePoint | None = None
    errors: bool = True


def unfinished(orders: Sequence[Orders]) -> str:
    """What of the programs was cut short, or nothing."""
    cut = {one.program.name: one.cut or one.skipped for one in orders if one.cut or one.skipped == BROKEN}
    return f"orders or steps of {', '.join(cut)}: {', '.join(dict.fromkeys(cut.values()))}" if cut else ""


def comes_of_order(
    order: PlayedOrder,
    seen: Sequence[str],
    alone: Callable[[PlayedOrder], Sequence[str] | None],
    tries: int = _AGAIN_MOST,
) -> bool:
    """Whether calls that never returned while nobody was held (by name), or an error that one ended with, break P3.

    `alone` plays one order to a subject made again: what is `seen` of that there, or None where something else happens.
    It must be the same by the same order, and nothing where the calls are made one after the other and no callback is
    told to fail: then each returns by itself, and no slow machine is to blame, but only their order, or what an error
    left behind. Threads that were let go run freely, so an order
    in which nothing is seen is played again, up to so many `tries`.
    """
    one_by_one = replace(
        order, acts=(), stop=order.stop and PausePoint(0, 0, (STEPS_MOST * 1_000,)), errors=False
    )
    again = bool(seen) and any(alone(order) == seen for _ in range(tries))
    return again and alone(one_by_one) == []


def play_of(operation: str) -> int | None:
    """The number of the play that an operation, task or key belongs to, by its name."""
    number = operation.partition("-")[0].removeprefix("p")
    return int(number) if operation.startswith("p") and number.isdigit() else None


def to_play_again(broken: ClauseResult, plays: Sequence[PlayedOrder]) -> Sequence[PlayedOrder]:
    """The plays that broke the clause, each several times: on a busy machine a thread may come too late for its place
    in the order."""
    numbers = [play_of(cause.examples[0].subject) for cause in broken.causes.values()]
    return _AGAIN_MOST * [
        plays[number - 1] for number in numbers if number is not None and number <= len(plays)
    ]


def from_its_start(session: Sequence[str], operation: str) -> tuple[str, ...]:
    """The play of this operation, after the `start` before it: a call may have been watched before it is stopped."""
    first = next((at for at, line in enumerate(session) if f'"p{play_of(operation)}-' in line), 0)
    starts = [at for at, line in enumerate(session[: first + 1]) if '"m":"start"' in line]
    return (
        (*session[starts[-1] : starts[-1] + 2], *session[max(first, starts[-1] + 2) :])
        if starts
        else tuple(session)
    )
