"""What the clauses know of the run that a part of a history belongs to."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from purgatorio_spec.profile import PROFILES, Profile
from purgatorio_spec.trace.record import MAX_INT, PERIODIC_ADDS, Header

_PERIODIC: Final = frozenset(PERIODIC_ADDS)


class KeyCancel(NamedTuple):
    """A `cancel_for_key` that returned: positions of its call and its return, and when that was."""

    call_i: int
    ret_i: int
    ret_t: int


class Advance(NamedTuple):
    """An `advance_clock`: thread, positions of its call and return (NEVER while it is open), and when it returned."""

    th: str
    call_i: int
    ret_i: int
    ret_t: int

    def returned_t(self) -> int:
        """Its `ret_t`, to search by."""
        return self.ret_t


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What all events of a run together say. Times in nanoseconds of the trace's clock.

    `start_t`, `end_t`: its first and last `t`. `rest_t`: the `t` of the last `quiesce`, if any. `threads`: how many
    recorded something. `unsettled`: by key the `cancel_for_key` calls of which is not told what they gave back (they
    are open, or raised, or `cancelled` is not recorded): calls and returns, as positions. `settled`:
    by key all others, in the order of their calls. `unreturned`: by key the position of the first `check_and_complete`
    that has not returned. `backwards`: how many events have a time before that of the event before them on their
    thread; `first_back_i`: the first of them. `advances`: its `advance_clock` calls by their returns, where
    `asks_for_advances`.
    """

    start_t: int = 0
    end_t: int = 0
    rest_t: int | None = None
    threads: int = 1
    unsettled: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    settled: Mapping[str, Sequence[KeyCancel]] = field(default_factory=dict)
    unreturned: Mapping[str, int] = field(default_factory=dict)
    backwards: int = 0
    first_back_i: int | None = None
    advances: Sequence[Advance] = ()

    def unsettled_before(self, i: int) -> bool:
        """Whether any of the `unsettled` calls began before that position."""
        return any(calls[0][0] < i for calls in self.unsettled.values())


@dataclass(frozen=True, slots=True)
class Run:
    """The constants and the outer facts of one run.

    `whole`: there is an end record, nothing was dropped and no line was broken, so that the absence of a record means
    that it did not happen.
    """

    run: str
    profile: Profile
    recorded: frozenset[str]
    tick_ns: int | None
    early_ns: int | None
    late_ns: int | None
    purge_interval: int | None
    whole: bool
    facts: RunFacts
    dropped: bool = False
    """Records are missing in the middle: a return may lack its call."""
    catch_up: str | None = None
    turn: str | None = None
    virtual: bool = False
    """Its clock moves by `advance_clock` alone."""

    def chance_t(self, t: int) -> int:
        """By when what must be done by `t` can be done: in virtual time at the first `advance_clock` from then on, if
        they are known; if there is none, never."""
        advances = self.facts.advances
        if not self.virtual or not advances:
            return t
        place = bisect_left(advances, t, key=Advance.returned_t)
        return advances[place].ret_t if place < len(advances) else MAX_INT

    def records(self, *functions: str) -> bool:
        """Whether this recorder writes all of these functions."""
        return self.recorded.issuperset(functions)


def run_of(header: Header, facts: RunFacts, *, whole: bool, dropped: bool = False) -> Run:
    """The run of a header. Raises `KeyError` for a profile that is not in `PROFILES`."""
    return Run(
        run=header.run,
        profile=PROFILES[header.profile],
        recorded=frozenset(header.recorded),
        tick_ns=header.timer.tick_ns,
        early_ns=header.timer.early_ns,
        late_ns=header.timer.late_ns,
        purge_interval=header.purge_interval,
        whole=whole,
        facts=facts,
        dropped=dropped,
        catch_up=header.timer.catch_up,
        turn=header.timer.turn,
        virtual=header.clock.id == "manual",
    )


def asks_for_advances(header: Header) -> bool:
    """Whether a clause needs to know each `advance_clock` of the run: of a run with periodic tasks, or turns."""
    return "advance_clock" in header.recorded and (
        header.timer.turn is not None or not _PERIODIC.isdisjoint(header.recorded)
    )
