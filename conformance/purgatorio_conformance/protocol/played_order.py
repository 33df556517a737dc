"""The orders in which gated runs executed their programs. Chooses the executions to repeat. Keeps the facts about a run
that are not in its trace."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from purgatorio_conformance.protocol.lines import LineStep
from purgatorio_conformance.protocol.message import Add, Call, Register
from purgatorio_conformance.protocol.small_program import SmallProgram
from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.show.selection import Tasks
from purgatorio_spec.trace.columns import EVENT_SCHEMA
from purgatorio_spec.trace.reader import TraceReader
from purgatorio_spec.verdict import Violation

TIMES_MOST: Final = 3
"""If a call comes to a line repeatedly, it is paused there at most this often."""
STEPS_MOST: Final = 5_000
"""The most steps of a program that are executed."""

_OF_PLAY: Final = re.compile(r'"p(\d+)-')

AGAIN_MOST: Final = 5
"""How often an order is executed again to repeat a hang or a violation."""

BROKEN: Final = "a clause was broken before"
TOO_MANY: Final = "the time limit, or too many orders"
NO_LINE: Final = "its calls reach no line at which a thread can pause"
NO_LINE_OF_ITS_OWN: Final = "its first call reaches no line that calls of shorter programs do not reach"
NO_NEW_LINE: Final = "each line of its calls was paused before during calls of the same kinds"
"""Reasons why an order or a program is not executed."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The result of one program. `plays`: the number of executions. `cut`: why not all orders were executed. `skipped`:
    why no order was executed."""

    program: SmallProgram
    plays: int = 0
    cut: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class PausedCall:
    """A call, by its caller (`lane`) and its position among the caller's calls, and the steps at which it is paused.
    Without `steps`, the call is watched: its own steps, or those of the subject's own threads (`workers`). `points`:
    the lines of the steps, in a JVM. `other_at`: the pause point at which the other caller is paused before this call.
    It is resumed first. `other_steps`: steps of its call instead; `other_points` has their lines."""

    lane: int
    place: int
    steps: tuple[int, ...] = ()
    workers: bool = False
    points: tuple[LineStep, ...] = ()
    other_at: str = ""
    other_steps: tuple[int, ...] = ()
    other_points: tuple[LineStep, ...] = ()


@dataclass(frozen=True, slots=True)
class PlayedOrder:
    """One execution: the program, and its actions (see `Play.acts`), or where one call was paused (`stop`). `errors`:
    whether the faults of the program are active (callbacks end with an error)."""

    program: str
    acts: tuple[str, ...]
    stop: PausedCall | None = None
    errors: bool = True


def unfinished(orders: Sequence[Orders]) -> str:
    """The programs that were cut short, and the reasons; empty if there are none. Not included: similar programs with
    too many orders, if only a share of the similar programs is run in all orders."""
    similar = [one for one in orders if one.program.enumerated]
    shares = any(one.plays and not one.cut for one in similar)
    left_out = [one for one in similar if shares and one.cut == TOO_MANY]
    cut = {
        one.program.name: one.cut or one.skipped
        for one in orders
        if (one.cut or one.skipped == BROKEN) and one not in left_out
    }
    return f"orders or steps of {', '.join(cut)}: {', '.join(dict.fromkeys(cut.values()))}" if cut else ""


def play_of(operation: str) -> int | None:
    """The number of the execution that an operation, task or key belongs to, from its name; or None."""
    number = operation.partition("-")[0].removeprefix("p")
    return int(number) if operation.startswith("p") and number.isdigit() else None


def to_play_again(broken: ClauseResult, plays: Sequence[PlayedOrder], trace: Path) -> Sequence[PlayedOrder]:
    """The executions that broke the clause, of each cause one of the shortest, each several times: on a busy machine a
    thread may come too late for its place in the order. For a reading of the gauges, the executions of the operations
    that it may count wrong."""

    events = _events_of_plays(trace)

    def length(violation: Violation) -> float:
        return events.get(play_of(violation.subject), math.inf)

    subjects: list[str] = []
    for violation in (min(cause.examples, key=length) for cause in broken.causes.values()):
        tasks = Tasks.counted_by(violation)
        if tasks is None:
            subjects.append(violation.subject)
        elif trace.exists():
            for batch in TraceReader(trace).batches():
                tasks.feed(pa.Table.from_batches([batch], EVENT_SCHEMA))
            subjects += reversed(tasks.shown)
    numbers = dict.fromkeys(map(play_of, subjects))
    found = [plays[number - 1] for number in numbers if number is not None and number <= len(plays)]
    # Each execution starts the subject again, so many suspects are tried once.
    return (found * AGAIN_MOST)[: AGAIN_MOST * len(broken.causes)]


def _events_of_plays(trace: Path) -> Counter[int | None]:
    """The number of events of each execution, with those of its start state; None: of no execution."""
    events = Counter[int | None]()
    for batch in TraceReader(trace).batches() if trace.exists() else ():
        for name in batch.column("id").to_pylist():
            events[play_of(name or "")] += 1
    return events


def from_its_start(session: Sequence[str], operation: str) -> tuple[str, ...]:
    """This operation's execution, after the `start` before it. A call may have been watched between the two."""
    number = play_of(operation)
    if number is None:
        # A reading is of the last execution.
        number = int(max(_OF_PLAY.findall("".join(session)), key=int, default=0))
    first = next((at for at, line in enumerate(session) if f'"p{number}-' in line), 0)
    starts = [at for at, line in enumerate(session[: first + 1]) if '"m":"start"' in line]
    return (
        (*session[starts[-1] : starts[-1] + 2], *session[max(first, starts[-1] + 2) :])
        if starts
        else tuple(session)
    )


def first_in_trace(session: Sequence[str], events: pa.Table) -> int:
    """The first event of a session in its trace. The trace may have earlier runs: the first call with a name is not in
    these."""
    for line in session:
        said = orjson.loads(line[2:])
        if "id" in said and (line[0] == ">" or said["m"] in ("enter", "leave")):
            mine = events.filter(pc.equal(events.column("id"), pa.scalar(said["id"])))
            if len(mine):
                return int(mine.column("i")[0].as_py())
    return 0


@dataclass
class Account:
    """The record of the last run. `plays`, `orders`: its gated executions, and the orders of each program. `left_out`:
    the omitted parts of the boundary plan. `reached`: the part of the scope that was run. `errors`: the errors
    of calls. `erred`, `erring`: the type of the first error, and the order that had it (only in virtual time).
    `refused`: the first call with an error. `doubted`: signs of a mistake of the adapter. `lost`: why a JVM's threads
    could not be paused at lines, or empty. `only`: the single order for the next run.

    For a failed run. `broke_off`: whether a gated run broke off. `under_way`, `in_turn`: the unfinished gated order, or
    order of the scope. `suspects`: the orders since the subject was last idle, the last first. `oldest`: the oldest
    open call, with its number. `unanswered`: the names of all open calls. `late`: the overdue tasks. `waiting`: the
    adds and registrations that still wait, with their times."""

    plays: list[PlayedOrder] = field(default_factory=list)
    orders: list[Orders] = field(default_factory=list)
    left_out: str = ""
    reached: str = ""
    errors: str = ""
    erred: Sequence[str] = ()
    erring: PlayedOrder | None = None
    refused: Call | None = None
    waiting: Sequence[tuple[int, Add | Register]] = ()
    broke_off: bool = False
    under_way: PlayedOrder | None = None
    in_turn: PlayedOrder | None = None
    suspects: Sequence[PlayedOrder] = ()
    oldest: tuple[int, Call] | None = None
    unanswered: list[str] = field(default_factory=list)
    late: Sequence[str] = ()
    doubted: Sequence[str] = ()
    lost: str = ""
    only: PlayedOrder | None = None
