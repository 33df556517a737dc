"""Facts about a program's run that are not in its trace, such as the number of executions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from purgatorio_conformance.protocol.message import Add, Call, Register
from purgatorio_conformance.protocol.played_order import Orders, PlayedOrder


@dataclass
class Account:
    """The record of the last run: the orders of its gated executions, by number and by program; the parts of the
    boundary plan that were `left_out`; which part of the scope was `reached`; the `errors` of calls, the type of the
    first of them, and in a gated run in virtual time its order (`erred`, `erring`); the first call with an error
    (`refused`). For a failed run: whether a gated run `broke_off`, the order `under_way`, or the order of the scope
    that had not ended (`in_turn`), the orders since the subject was last idle, the last first (`suspects`), the
    `oldest` open call and its number, the names of all open calls, the overdue tasks (`late`), and the `waiting` calls,
    with their times. `doubted`: signs of a mistake of the adapter. `lost`: why a JVM's threads could not be paused at
    lines, or empty. `only`: the single order for the next run."""

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
