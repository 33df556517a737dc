"""What came of a run of a program, next to its trace."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from purgatorio_conformance.protocol.message import Add, Call, Register
from purgatorio_conformance.protocol.played_order import Orders, PlayedOrder


@dataclass
class Account:
    """What came of the last run: the orders that were played with gates, by the number of the play and by program;
    what was `left_out` of the reaching parts; how far the scope was `reached`; what `errors` calls ended with,
    or nothing, the type of the first of them, and with gates in virtual time the order in which it came
    (`erred`, `erring`); the first call that did (`refused`). Of a run that failed: that it `broke_off`, if that
    was with gates, the order `under_way`, the `oldest` call without an answer and its number, the names of all
    of them, what was `late` by then, and what was `waiting`, each since when. `doubted`: what looks like a
    mistake of the adapter's. `lost`: why a JVM's threads could not be stopped at lines, or nothing. `only`: the
    one order that the next run plays."""

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
    oldest: tuple[int, Call] | None = None
    unanswered: list[str] = field(default_factory=list)
    late: Sequence[str] = ()
    doubted: Sequence[str] = ()
    lost: str = ""
    only: PlayedOrder | None = None
