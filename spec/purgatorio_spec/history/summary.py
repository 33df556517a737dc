"""Computes the least and the greatest correct value of each gauge reading, from summaries of the operations.

A `Summary` has the times at which an operation certainly counted, and the times at which it may have counted. The
function `bounds` uses binary searches to count the summaries of a batch at each reading. Bounds of batches can be
added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from purgatorio_spec.history.operation import NEVER, Call, OperationHistory, latest_due_t
from purgatorio_spec.history.run import Run, RunFacts
from purgatorio_spec.profile import REAPER_PERIOD_NS
from purgatorio_spec.trace.coded import Flags, Ints

SETTLED_TICKS: Final = 2
"""A task whose deadline is nearer than this many ticks may already have been handed over to run."""
_MACHINE_LATE_NS: Final = 1_000_000_000
"""Without a declared late bound, a task may stay in the timer this long after its deadline, on a busy machine."""


class Summary(NamedTuple):
    """One operation or task. All fields except `entries`, `watches` and the times are positions `i`; NEVER if the
    event never came.

    `entries`: the number of keys of its registration, duplicates included. `watches`: 1 if all these keys certainly had
    the operation from the return of the registration to the claim. `raced_i`: the first cancel of the task during which
    another event was recorded, or that began during an add. `deadline_t`: the deadline of the last add. `due_t`: the
    latest due time of the task by any add.

    `stopped_i`, `left_i`: the end of the claim, or the position at which a `cancel_for_key` of the first or the last of
    its keys returned it. From `out_t` to `done_t`, the operation may have been watched and not in the timer: it was
    overdue, had no time-out, or had been returned for some of its keys. `claimed_t`: the return of its claim. From
    `begun_t` to `armed_t`, its registration was open, so it may have been watched and not yet in the timer.
    `cancelled_t`: the return of its last cancel. `in_call`: 1 if the registration was one call that contained its adds.
    """

    registered_call_i: int
    registered_ret_i: int
    claim_call_i: int
    stopped_i: int
    left_i: int
    entries: int
    watches: int
    added_call_i: int
    added_ret_i: int
    disarmed_first_i: int
    disarmed_surely_i: int
    raced_i: int
    deadline_t: int
    due_t: int
    out_t: int
    done_t: int
    claimed_t: int
    begun_t: int
    armed_t: int
    cancelled_t: int
    in_call: int


def summary_of(run: Run, history: OperationHistory) -> Summary:
    registration, claim = history.registration, history.claim
    registered_ret_i = NEVER if registration is None else registration.end_i
    # A force that has not returned may have completed the operation, and a purge may have removed it since.
    claims = (*([claim] if claim else []), *history.may_have_claimed)
    claim_call_i = min((one.call_i for one in claims), default=NEVER)
    watches = (
        registration is not None
        and registration.out == 0
        and not history.cancelled
        and claim_call_i > registered_ret_i
    )
    adds = [add for add in history.adds if add.err is None]
    last = adds[-1] if adds else None
    anew = history.resets if history.is_periodic else ()
    periodic = [add for add in (*history.rates, *history.delays, *anew) if add.err is None]
    claim_end_i = NEVER if claim is None else claim.end_i
    # Without a result, a reset may have found no task.
    unsure = any(reset.out is None for reset in history.resets)
    first_back_i, last_back_i = _given_back(history)
    deadline_t = NEVER if last is None or last.deadline_t is None else last.deadline_t
    disarming = [*history.cancels, *history.fires, *([claim] if claim else [])]
    ends = [call.ret_t for call in (claim, *history.fires) if call is not None and call.ret_t is not None]
    return Summary(
        registered_call_i=NEVER if registration is None else registration.call_i,
        registered_ret_i=registered_ret_i,
        claim_call_i=claim_call_i,
        stopped_i=min(claim_end_i, first_back_i),
        left_i=min(claim_end_i, last_back_i),
        entries=0 if registration is None else len(registration.keys),
        watches=int(watches),
        added_call_i=min((add.call_i for add in (*adds, *periodic)), default=NEVER),
        added_ret_i=NEVER if last is None or periodic or unsure else last.end_i,
        disarmed_first_i=min((call.call_i for call in disarming), default=NEVER),
        disarmed_surely_i=_surely(run, history, adds, periodic) if adds or periodic else NEVER,
        raced_i=min((cancel.call_i for cancel in history.cancels if _raced(history, cancel)), default=NEVER),
        deadline_t=deadline_t,
        due_t=NEVER if periodic else _due_t(history),
        out_t=_out(history, deadline_t),
        done_t=max(ends, default=NEVER),
        claimed_t=NEVER if claim is None or claim.ret_t is None else claim.ret_t,
        begun_t=NEVER if registration is None else registration.call_t,
        armed_t=_armed_t(history),
        cancelled_t=max(
            (c.ret_t for c in history.cancels if c.out != 0 and c.ret_t is not None), default=NEVER
        ),
        in_call=int(_in_call(history)),
    )


def _raced(history: OperationHistory, cancel: Call) -> bool:
    """Whether another event came during the cancel, or the cancel began during an add. Then the task may be put into a
    bucket after the cancel, where no later cancel finds it."""
    return cancel.end_i > cancel.call_i + 1 or any(add.holds(cancel.call_i) for add in history.adds)


def _armed_t(history: OperationHistory) -> int:
    if not history.registrations:
        return NEVER
    return max(
        NEVER if call.ret_t is None else call.ret_t for call in (*history.registrations, *history.adds)
    )


def _in_call(history: OperationHistory) -> bool:
    registration = history.registration
    return (
        registration is not None
        and len(history.registrations) == 1
        and registration.call_i != registration.ret_i
        and all(registration.contains(add) for add in history.adds)
    )


def _due_t(history: OperationHistory) -> int:
    due_t = latest_due_t(history.adds)
    return NEVER if due_t is None else min(due_t, NEVER)


def _given_back(history: OperationHistory) -> tuple[int, int]:
    """The positions at which a `cancel_for_key` of the first and of the last of its keys returned the operation. Calls
    during a registration or an add do not count, because the operation may have been watched, or its task added, after
    them."""
    begun_i = max((call.end_i for call in (*history.registrations, *history.adds)), default=NEVER)
    keys = (key for registration in history.registrations for key in registration.keys)
    by_key = dict.fromkeys(keys, NEVER)
    for back in history.given_back:
        if back.call_i > begun_i:
            by_key |= {key: min(by_key[key], back.point.i) for key in back.point.keys if key in by_key}
    return min(by_key.values(), default=NEVER), max(by_key.values(), default=NEVER)


def _out(history: OperationHistory, deadline_t: int) -> int:
    registration = history.registration
    if registration is None:
        return deadline_t
    # It left the timer at once, or was never in the timer.
    if history.cancelled or registration.err is not None:
        return registration.call_t
    due_t = registration.call_t + (registration.delay_ns or 0) if deadline_t == NEVER else deadline_t
    return max(FAR_PAST, min(due_t, NEVER))


def _surely(run: Run, history: OperationHistory, adds: list[Call], periodic: list[Call]) -> int:
    """The position after which the task is certainly not in the timer: the end of a cancel after all adds, or of the
    last needed fire. As many fires are needed as there are adds that can be their causes. (A fire of an earlier add may
    come after the last add.) A periodic task may be in the timer until its cancel. If one of its runs raised an
    exception, the task may have ended."""
    added_i = max(add.end_i for add in (*adds, *periodic))
    cancels = [c.end_i for c in history.cancels if c.call_i > added_i and c.out != 0 and c.err is None]
    if periodic:
        return min([*cancels, _given_up(run, history, periodic)])
    fires = (fire for fire in history.fires if fire.call_i > adds[0].call_i)
    in_force, answers = history.in_force(run.early_ns or 0), 0
    for count, fire in enumerate(fires, 1):
        answers += sum(one.reaches(fire.call_i) for one in in_force)
        in_force = [one for one in in_force if not one.reaches(fire.call_i)]
        if fire.call_i > adds[-1].call_i and count >= answers:
            cancels.append(fire.end_i)
    return min(cancels, default=NEVER)


def _given_up(run: Run, history: OperationHistory, periodic: list[Call]) -> int:
    """For a periodic task whose last run raised an exception, in virtual time: the end of the first `advance_clock` in
    which the task was due and did not run, so it has ended. NEVER if this is not certain. (With `catch_up` = skip, or
    without a rule, any run may be missed.)"""
    last = history.fires[-1] if history.fires else None
    if (
        last is None
        or last.err is None
        or last.ret_t is None
        or run.late_ns is None
        or (run.catch_up in ("skip", None) and bool(history.rates))
        or any(reset.call_i > last.call_i for reset in history.resets)
    ):
        return NEVER
    period_ns = max(add.delay_ns or 0 for add in periodic)
    spread_ns = max((add.ret_t or add.call_t) - add.call_t for add in periodic)
    due_t = last.ret_t + period_ns + spread_ns + run.late_ns
    chances = (one.ret_i for one in run.facts.advances if one.call_i > last.end_i and one.ret_t >= due_t)
    return next(chances, NEVER) if run.virtual and run.whole else NEVER


FAR_PAST: Final = -(1 << 62)
"""Times before this stand for it, so that no difference overflows."""

SPANS: Final = 1024
"""Equal parts of a run's time. They are cut further at its sampled times (in a run of up to 4,096 events, at each), and
at about this number of readings. Operations that were out of the timer in one part count as out at the same time."""


@dataclass(slots=True)
class Moments:
    """The readings of one run in the order of their ends, as columns: the interval (positions) and the time of the end.
    No column decreases. `rest_t`: the time of the last `quiesce` before each reading. `spans`: the starts of the spans
    of time."""

    from_i: Ints
    ret_i: Ints
    t: Ints
    rest_t: Ints
    spans: Ints

    @classmethod
    def of(cls, from_i: Ints, ret_i: Ints, t: Ints, quiesce: Flags, facts: RunFacts) -> Moments:
        """The columns of readings that are sorted by `ret_i`. `quiesce`: whether each is a `quiesce`. If readings of
        several threads overlap, intervals are widened, which loosens bounds."""
        widened = np.minimum.accumulate(from_i[::-1])[::-1]
        forward = np.maximum.accumulate(t)
        # In floats: a trace may claim any 64-bit times, and their difference need not fit.
        ends = np.clip((facts.start_t, facts.end_t), -(2.0**62), 2.0**62)
        equal = np.linspace(ends[0], ends[1], SPANS).astype(np.int64)
        read = forward[:: len(t) // SPANS + 1]
        events = np.array(facts.times, np.int64)
        spans = np.unique(np.concatenate((equal, events, read, np.minimum(read, NEVER - 1) + 1)))
        rest_t = np.maximum.accumulate(np.where(quiesce, forward, np.iinfo(np.int64).min))
        return cls(widened, ret_i, forward, rest_t, spans)

    def span(self, t: Ints) -> npt.NDArray[np.intp]:
        """The span of time of each of these times."""
        at: npt.NDArray[np.intp] = np.maximum(np.searchsorted(self.spans, t, side="right") - 1, 0)
        return at


@dataclass(slots=True)
class ReadingBounds:
    """The numbers of operations for the fields of `Reading`, with one element for each reading. `by_entries`: for each
    number of keys, the number of operations. `widest`: the most keys of an operation registered by then. Arrays with
    one element for each span of time: `out_of_timer` counts operations that may have been watched and not in the timer,
    and `unseen` counts their entries. `registering` and `entering` count the same for operations in their only
    registration. `carried`: operations that were not done at the end of the span. `claimed`: certainly watched
    operations whose claim returned in the span.

    `ended_least` counts the certainly watched operations that were completed before a reading.
    """

    by_entries: Counter[int]
    out_of_timer: Ints
    unseen: Ints
    registering: Ints
    entering: Ints
    carried: Ints
    claimed: Ints
    live: Ints
    waiting: Ints
    plain_tasks: Ints
    raced: Ints
    watched_least: Ints
    watched_most: Ints
    tasks_least: Ints
    tasks_most: Ints
    ended_least: Ints
    widest: Ints

    @classmethod
    def zero(cls, moments: Moments) -> ReadingBounds:
        columns = (np.zeros(len(moments.t), np.int64) for _ in (*COUNTED, "widest"))
        by_span = (np.zeros(len(moments.spans), np.int64) for _ in _BY_SPAN)
        return cls(Counter(), *by_span, *columns)

    def add(self, other: ReadingBounds) -> None:
        """Add the partial sums of other operations of the run."""
        for name in (*COUNTED, *_BY_SPAN):
            getattr(self, name)[:] += getattr(other, name)
        self.by_entries += other.by_entries
        np.maximum(self.widest, other.widest, out=self.widest)

    def of(self, moments: Moments, at: int, run: Run) -> dict[str, int]:
        """The fields of `Reading` that the operations give the reading `at`."""
        counted = {name: int(getattr(self, name)[at]) for name in COUNTED if name not in _OF_PURGE}
        # The purge compares its estimate with the number of all tasks in the timer, also those of others.
        interval = (run.purge_interval or 0) + counted["plain_tasks"]
        widest = self.widest[at : at + 1]

        def entries(operations: int) -> int:
            return int(self.most_entries(operations, widest)[0])

        operations, unseen = self._unseen(moments, at, run, interval, entries)
        seen, every = entries(interval), entries(interval + operations)
        # An operation that the purge may not have seen may be one of the widest that the interval counts.
        return counted | {"unseen": min(unseen, every - seen), "garbage_most": min(seen + unseen, every)}

    def most_entries(self, operations: int, widest: Ints) -> Ints:
        """The largest number of entries that this many operations can have, if no operation has more than `widest`."""
        total = np.zeros_like(widest)
        for entries, count in sorted(self.by_entries.items(), reverse=True):
            total += np.minimum(entries, widest) * min(count, operations)
            operations -= min(count, operations)
        return total

    def _unseen(
        self, moments: Moments, at: int, run: Run, interval: int, most_entries: Callable[[int], int]
    ) -> tuple[int, int]:
        """The most operations, and entries of operations, that the last purge before the reading may have left out of
        its estimate.

        A purge is due when more operations than `interval` were completed since the last purge. Operations that the
        last purge missed do not count. So a span of time contains the last purge only if at most this many operations,
        and those that were out of the timer from that span on, were completed since:

            unseen = the most, over the spans that may be the last, of the operations out of the timer, and of entries
            span may be the last:  completed since <= interval + carried(span) + 2 * beside + 1

        Of the operations in a registration, it counts at most `RunFacts.registering`. In virtual time, a span may
        contain any number of registrations, one after another, but a purge overlaps at most this many.

        `beside` is the number of other threads. Each of them may change the timer's size while it is read. Each thread,
        also that of the purge, may complete an operation during the purge.
        """
        beside = run.facts.threads - 1
        until = int(moments.span(moments.t[at : at + 1])[0]) + 1
        since = self.ended_least[at] - np.cumsum(self.claimed[:until])
        may_be_last = since <= interval + self.carried[:until] + 2 * beside + 1
        most = run.facts.registering
        registering, entering = self.registering[:until], self.entering[:until]
        if most is not None:
            registering = np.minimum(registering, most)
            entering = np.minimum(entering, most_entries(most))
        last = (self.out_of_timer[:until] + registering, self.unseen[:until] + entering)
        operations, entries = (int(column[may_be_last].max(initial=0)) for column in last)
        return operations, entries


COUNTED: Final = (
    "live", "waiting", "plain_tasks", "raced", "watched_least", "watched_most", "tasks_least",
    "tasks_most", "ended_least",
)  # fmt: skip
"""The columns of `ReadingBounds` with an element a reading."""

_BY_SPAN: Final = ("out_of_timer", "unseen", "registering", "entering", "carried", "claimed")
_OF_PURGE: Final = ("ended_least",)


def bounds(moments: Moments, summaries: Ints, run: Run) -> ReadingBounds:
    """The bounds from these operations. `summaries` is a matrix whose columns are the fields of `Summary`."""
    column = {name: summaries[:, at] for at, name in enumerate(Summary._fields)}
    readings = len(moments.from_i)
    ones = np.ones(len(summaries), np.int64)

    def surely(start_i: Ints, stop_i: Ints, weight: Ints, until_t: Ints | None = None) -> Ints:
        """Counts if the whole interval of the reading is after `start_i` and before `stop_i`."""
        low = np.searchsorted(moments.from_i, start_i, side="right")
        high = np.searchsorted(moments.ret_i, stop_i, side="left")
        if until_t is not None:
            high = np.minimum(high, np.searchsorted(moments.t, until_t, side="left"))
        return _spread(low, high, weight, readings)

    def maybe(
        start_i: Ints, stop_i: Ints, weight: Ints, until_t: Ints | None = None, told_t: Ints | None = None
    ) -> Ints:
        """Counts wherever the reading is not wholly before `start_i`, or wholly after `stop_i` and `told_t`, up to
        where all came to rest at `until_t`."""
        low = np.searchsorted(moments.ret_i, start_i, side="right")
        high = np.searchsorted(moments.from_i, stop_i, side="left")
        if told_t is not None:
            high = np.maximum(high, np.searchsorted(moments.t, told_t, side="left"))
        if until_t is not None:
            high = np.minimum(high, np.searchsorted(moments.rest_t, until_t, side="right"))
        return _spread(low, high, weight, readings)

    never = np.full(len(summaries), NEVER, np.int64)
    settled_t = np.maximum(column["deadline_t"], FAR_PAST) - SETTLED_TICKS * (run.tick_ns or 0)
    over_ns = REAPER_PERIOD_NS + (_MACHINE_LATE_NS if run.late_ns is None else run.late_ns)
    over_t = np.minimum(column["due_t"], NEVER - over_ns) + over_ns
    # A task without an end is pending, however late it is: T3 judges this.
    over_t[column["disarmed_first_i"] == NEVER] = NEVER
    plain = (column["registered_call_i"] == NEVER).astype(np.int64)
    # A thread of the timer's pool may decrement the count after it has reported the end of the run.
    told = (plain == 1) & (column["done_t"] != NEVER) & (not run.virtual)
    told_t = np.where(told, np.minimum(column["done_t"], NEVER - over_ns) + REAPER_PERIOD_NS, FAR_PAST)
    if run.profile.counts_cancelled:
        tick_ns, cancelled_t = run.tick_ns or 0, column["cancelled_t"]
        counted_t = np.where(
            cancelled_t == NEVER, FAR_PAST, np.minimum(cancelled_t, NEVER - tick_ns) + tick_ns
        )
        told_t = np.maximum(told_t, counted_t)
    ended = column["claimed_t"] != NEVER
    claimed = np.zeros(len(moments.spans), np.int64)
    np.add.at(claimed, moments.span(column["claimed_t"][ended]), column["watches"][ended])
    widest = np.zeros(readings + 1, np.int64)
    begun = np.searchsorted(moments.ret_i, column["registered_call_i"], side="right")
    np.maximum.at(widest, begun, column["entries"])
    return ReadingBounds(
        live=maybe(column["registered_call_i"], column["stopped_i"], ones),
        waiting=maybe(column["registered_call_i"], column["left_i"], column["entries"]),
        plain_tasks=maybe(column["added_call_i"], column["disarmed_surely_i"], plain, over_t, told_t),
        raced=maybe(column["raced_i"], never, (column["raced_i"] != NEVER).astype(np.int64), over_t),
        watched_least=surely(
            column["registered_ret_i"], column["claim_call_i"], column["entries"] * column["watches"]
        ),
        watched_most=maybe(column["registered_call_i"], never, column["entries"]),
        tasks_least=surely(column["added_ret_i"], column["disarmed_first_i"], ones, settled_t),
        tasks_most=maybe(column["added_call_i"], column["disarmed_surely_i"], ones, over_t, told_t),
        ended_least=surely(column["stopped_i"], never, column["watches"]),
        **_out_of_timer(column, moments, run),
        claimed=claimed,
        by_entries=Counter(column["entries"].tolist()),
        widest=np.maximum.accumulate(widest[:-1]),
    )


def _out_of_timer(column: dict[str, Ints], moments: Moments, run: Run) -> dict[str, Ints]:
    """The columns `_BY_SPAN` of `ReadingBounds` but the last."""
    done = column["done_t"] != NEVER
    of = {
        name: column[name][done] for name in ("out_t", "done_t", "begun_t", "armed_t", "entries", "in_call")
    }
    low = moments.span(np.maximum(of["out_t"], FAR_PAST) - (run.early_ns or 0))
    high = moments.span(of["done_t"])
    begun, armed = moments.span(of["begun_t"]), moments.span(of["armed_t"])
    registered = of["begun_t"] != NEVER
    apart = registered & (armed < low)
    # If it was due before its add, it was not in the timer from its registration on.
    joined = registered & ~apart
    start = np.where(joined, np.minimum(begun, low), low)
    end = np.where(joined, np.maximum(armed, high), high) + 1
    spans = len(moments.spans)

    in_call = apart & (of["in_call"] == 1)

    def counted(weight: Ints) -> Ints:
        beside = _spread(begun, armed + 1, weight * (apart & ~in_call), spans)
        return beside + _spread(start, end, weight, spans)

    ones, entries = np.ones(len(low), np.int64), of["entries"]
    return {
        "out_of_timer": counted(ones),
        "unseen": counted(entries),
        "registering": _spread(begun, armed + 1, ones * in_call, spans),
        "entering": _spread(begun, armed + 1, entries * in_call, spans),
        "carried": _spread(low, high, ones, spans),
    }


def _spread(low: npt.NDArray[np.intp], high: npt.NDArray[np.intp], weight: Ints, readings: int) -> Ints:
    """For each reading the sum of the weights of the ranges [low, high) that hold it."""
    some = high > low
    change = np.zeros(readings + 1, np.int64)
    np.add.at(change, low[some], weight[some])
    np.subtract.at(change, high[some], weight[some])
    total: Ints = np.cumsum(change)[:-1]
    return total
