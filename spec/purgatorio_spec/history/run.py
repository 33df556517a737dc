"""Facts about a whole run. A clause needs these facts in addition to the part that it judges, such as one operation."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from purgatorio_spec.durations import clock_time, exact
from purgatorio_spec.profile import PROFILES, Profile
from purgatorio_spec.trace.log import LogFacts, log_facts
from purgatorio_spec.trace.record import MAX_INT, Header

TIMES: Final = 4096
BACKWARDS: Final = "time runs backwards on a thread"
UNCALLED: Final = "a return without its call"
CROSSED: Final = "a return before that of a call made inside it"
REPEATED: Final = "a call that is recorded twice"
BROKEN_RECORDS: Final[Mapping[str, str]] = {
    BACKWARDS: "record `t` by a monotonic clock, and each thread's events in their order",
    UNCALLED: "record the call, on the thread, with the function and the id of its return, or count it as dropped",
    CROSSED: "record every return; calls that are not nested need different thread names (`th`)",
    REPEATED: "record each call once, and every return: an equal call is inside a call without a return",
}
"""The kinds of contradictions between records, with the remedy. If records were dropped, all kinds except the first are
expected."""


class KeyCancel(NamedTuple):
    """A `cancel_for_key` that returned: the positions of its call and its return, and the time of the return."""

    call_i: int
    ret_i: int
    ret_t: int


class AdvanceCall(NamedTuple):
    """An `advance_clock`: thread, positions of its call and return (NEVER if open), and time of its return."""

    th: str
    call_i: int
    ret_i: int
    ret_t: int


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts from all events of a run. Times are in nanoseconds of the trace's clock.

    `start_t`, `end_t`: the first and the last `t` (if there is a `halted`, at `halted_i`, its `t`). `rest_t`: the `t`
    of the last `quiesce`, if any. `threads`: the number of threads with events. `unsettled`: by key, the
    `cancel_for_key` calls with unknown results (they are open, or raised, or `cancelled` is not recorded), as positions
    of calls and returns. `settled`: by key, all other `cancel_for_key` calls, in the order of their calls.
    `unreturned`: by key, the position of the first `check_and_complete` without a return. `broken`: by kind
    (`BROKEN_RECORDS`), the number of contradicting records, and the `i` of the first. `called`: the functions with a
    call or a point. `times`: the `t` of every n-th event, for a power of two n, at most `TIMES`. `advances`: the
    `advance_clock` calls by return, if `asks_for_advances`. `registering`: the most registrations concurrent with one
    purge, if `counts_registering` (see `most_registering`).
    """

    start_t: int = 0
    end_t: int = 0
    rest_t: int | None = None
    threads: int = 1
    unsettled: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    settled: Mapping[str, Sequence[KeyCancel]] = field(default_factory=dict)
    unreturned: Mapping[str, int] = field(default_factory=dict)
    broken: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    called: frozenset[str] = frozenset()
    halted_i: int | None = None
    times: Sequence[int] = ()
    advances: Sequence[AdvanceCall] = ()
    registering: int | None = None

    def unsettled_before(self, i: int) -> bool:
        """Whether any of the `unsettled` calls began before position `i`."""
        return any(calls[0][0] < i for calls in self.unsettled.values())


@dataclass(frozen=True, slots=True)
class Run:
    """The constants and the outer facts of one run.

    `whole`: the trace has an end record, no dropped records and no broken lines. So every call has a record.
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
    """Whether records in the middle are missing, so that a return may have no call."""
    log: LogFacts = field(default_factory=LogFacts)
    catch_up: str | None = None
    turn: str | None = None
    virtual: bool = False
    """Whether only `advance_clock` moves its clock."""
    paused: bool = False
    """Whether the driver of the subject left out the declared `late_ns`, because it paused threads."""
    late_slack_ns: int = 0
    """The part of `late_ns` that the driver of the subject added to the bound that the subject declared."""

    @property
    def late_bound(self) -> str:
        """The late bound in words, with its two parts."""
        late_ns, slack_ns = self.late_ns or 0, self.late_slack_ns
        if not 0 < slack_ns <= late_ns:
            return f"late bound {exact(late_ns)}"
        return f"declared late bound {exact(late_ns - slack_ns)} + {exact(slack_ns)}, for a busy machine"

    @property
    def moves_in_jumps(self) -> bool:
        """Whether the trace has the calls that move its clock."""
        return self.virtual and "advance_clock" in self.facts.called

    def chance_t(self, t: int, added_i: int) -> int:
        """The time by which a task that must run by `t` can run. In virtual time this is the first `advance_clock` that
        ends at `t` or later and begins after `added_i`, the call that added the task; if there is none, never. If the
        task was added during an advance, this advance may run it, or leave it to the next advance."""
        if not self.moves_in_jumps:
            return t
        advances = self.facts.advances
        place = max(
            bisect_left(advances, t, key=lambda one: one.ret_t),
            bisect_left(advances, added_i, key=lambda one: one.ret_i),
        )
        # Skip only advances that were open when the task was added.
        while place < len(advances) and advances[place].call_i < added_i:
            place += 1
        return advances[place].ret_t if place < len(advances) else MAX_INT

    def advances_after(self, i: int) -> bool:
        """Whether an `advance_clock` without a return began after position `i`."""
        open_ones = takewhile(lambda one: one.ret_t == MAX_INT, reversed(self.facts.advances))
        return any(one.call_i > i for one in open_ones)

    def cancel_is_final(self, out: int | None) -> bool:
        """Whether the task must not run after a cancel with this result. With one thread, a cancel that returned 1 is
        final in every profile: no other thread can have been starting the task. A cancel without a result cannot report
        that it came too late. So it is final only with one thread and a profile with barriers."""
        alone = self.whole and self.facts.threads == 1
        barrier = self.profile.cancel_is_barrier
        return barrier or alone if out == 1 else barrier and alone

    @property
    def tells_time_outs(self) -> bool:
        """Whether the trace has time-outs of operations. (An adapter may declare the functions, and report none.)"""
        return self.records("timer_fire") and not {"timer_add", "timer_fire"}.isdisjoint(self.facts.called)

    def at(self, t: int) -> str:
        """A time of the trace, with its unit, for the text of a violation."""
        return clock_time(t, self.log.time_zone if self.profile.answered_in_time else None)

    def records(self, *functions: str) -> bool:
        return self.recorded.issuperset(functions)


def run_of(header: Header, facts: RunFacts, *, whole: bool, dropped: bool = False) -> Run:
    """The run of a header. Raises `KeyError` for a profile that is not in `PROFILES`."""
    slack_ns = header.params.get("late_slack_ns")
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
        log=log_facts(header),
        catch_up=header.timer.catch_up,
        turn=header.timer.turn,
        virtual=header.clock.id == "manual",
        paused=header.params.get("paused") is True,
        late_slack_ns=slack_ns if isinstance(slack_ns, int) else 0,
    )


def asks_for_advances(header: Header) -> bool:
    """Whether the clauses need each `advance_clock` of the run: the late bound does not contain its length."""
    return "advance_clock" in header.recorded


def counts_registering(header: Header) -> bool:
    """Whether the registrations that overlap one purge are counted: only in virtual time, in which any number of
    registrations have one time."""
    return header.clock.id == "manual" and {"advance_clock", "try_complete_else_watch"} <= {*header.recorded}
