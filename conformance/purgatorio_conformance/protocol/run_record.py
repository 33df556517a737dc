"""Facts about a program's run that are not in its trace, such as the number of executions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from purgatorio_conformance.protocol.message import Add, Call, Register
from purgatorio_conformance.protocol.played_order import Orders, PlayedOrder


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
