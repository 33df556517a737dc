"""From operations to the truth beside a reading: one row an operation, then bounds by counting.

`Summary` says when an operation certainly counted and when it may have counted; `bounds` adds a batch of summaries to
the readings of their run with binary searches, so partial sums of many batches can simply be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from purgatorio_spec.history.operation import NEVER, Call, OperationHistory

Ints = npt.NDArray[np.int64]

SETTLED_TICKS: Final = 2
"""A task whose deadline is nearer than this many ticks may already have been handed over to run."""


class Summary(NamedTuple):
    """One operation or task. All but `entries`, `watches` and `deadline_t` are positions `i`; NEVER if it never came.

    `entries`: the keys it was registered under, duplicates included. `watches`: 1 if all of them were certainly watched
    from the return of the registration to the claim.
    """

    registered_call_i: int
    registered_ret_i: int
    claim_call_i: int
    claim_end_i: int
    entries: int
    watches: int
    added_call_i: int
    added_ret_i: int
    disarmed_first_i: int
    disarmed_surely_i: int
    deadline_t: int


def summary_of(history: OperationHistory) -> Summary:
    """The summary of a history."""
    registration, claim = history.registration, history.claim
    registered_ret_i = NEVER if registration is None else registration.end_i
    claim_call_i = NEVER if claim is None else claim.call_i
    watches = (
        registration is not None
        and registration.out == 0
        and not history.cancelled
        and claim_call_i > registered_ret_i
    )
    adds = [add for add in history.adds if add.err is None]
    last = adds[-1] if adds else None
    return Summary(
        registered_call_i=NEVER if registration is None else registration.call_i,
        registered_ret_i=registered_ret_i,
        claim_call_i=claim_call_i,
        claim_end_i=NEVER if claim is None else claim.end_i,
        entries=0 if registration is None else len(registration.keys),
        watches=int(watches),
        added_call_i=adds[0].call_i if adds else NEVER,
        added_ret_i=NEVER if last is None else last.end_i,
        disarmed_first_i=_first([*history.cancels, *history.fires, *([claim] if claim else [])]),
        disarmed_surely_i=NEVER if last is None else _surely(history, last),
        deadline_t=NEVER if last is None or last.deadline_t is None else last.deadline_t,
    )


def _first(calls: list[Call]) -> int:
    return min((call.call_i for call in calls), default=NEVER)


def _surely(history: OperationHistory, add: Call) -> int:
    """From where on the task of the last add is surely out of the timer: a cancel made after the add, or its fire."""
    cancels = [c.end_i for c in history.cancels if c.call_i > add.end_i and c.out != 0 and c.err is None]
    fires = [fire.call_i for fire in history.fires if fire.call_i > add.call_i]
    return min([*cancels, *fires], default=NEVER)


@dataclass(slots=True)
class Moments:
    """The readings of one run in order, as columns: positions and times. `ret_i` and `t` never go back."""

    call_i: Ints
    ret_i: Ints
    t: Ints

    @classmethod
    def of(cls, call_i: Ints, ret_i: Ints, t: Ints) -> Moments:
        """Readings sorted by `call_i`. Where threads read at once, an interval is widened, which loosens bounds."""
        return cls(call_i, np.maximum.accumulate(ret_i), np.maximum.accumulate(t))


@dataclass(slots=True)
class Bounds:
    """What `Reading` needs of the operations, one column a bound and one element a reading."""

    live: Ints
    watched_least: Ints
    watched_most: Ints
    tasks_least: Ints
    tasks_most: Ints
    most_keys: int = 0

    @classmethod
    def zero(cls, readings: int) -> Bounds:
        """No operations yet."""
        live, least, most, tasks_least, tasks_most = np.zeros((5, readings), np.int64)
        return cls(live, least, most, tasks_least, tasks_most)

    def add(self, other: Bounds) -> None:
        """Add the partial sums of other operations of the run."""
        self.live += other.live
        self.watched_least += other.watched_least
        self.watched_most += other.watched_most
        self.tasks_least += other.tasks_least
        self.tasks_most += other.tasks_most
        self.most_keys = max(self.most_keys, other.most_keys)


def bounds(moments: Moments, summaries: Ints, tick_ns: int) -> Bounds:
    """The bounds that these operations give, `summaries` being a matrix with the fields of `Summary` as columns."""
    column = {name: summaries[:, at] for at, name in enumerate(Summary._fields)}
    readings = len(moments.call_i)
    ones = np.ones(len(summaries), np.int64)

    def surely(start_i: Ints, stop_i: Ints, weight: Ints, until_t: Ints | None = None) -> Ints:
        """Counts from after `start_i` to before `stop_i`, throughout the reading."""
        low = np.searchsorted(moments.call_i, start_i, side="right")
        high = np.searchsorted(moments.ret_i, stop_i, side="left")
        if until_t is not None:
            high = np.minimum(high, np.searchsorted(moments.t, until_t, side="left"))
        return _spread(low, high, weight, readings)

    def maybe(start_i: Ints, stop_i: Ints, weight: Ints) -> Ints:
        """Counts wherever the reading is not wholly before `start_i` or wholly after `stop_i`."""
        low = np.searchsorted(moments.ret_i, start_i, side="right")
        high = np.searchsorted(moments.call_i, stop_i, side="left")
        return _spread(low, high, weight, readings)

    never = np.full(len(summaries), NEVER, np.int64)
    settled_t = column["deadline_t"] - SETTLED_TICKS * tick_ns
    return Bounds(
        live=maybe(column["registered_call_i"], column["claim_end_i"], ones),
        watched_least=surely(
            column["registered_ret_i"], column["claim_call_i"], column["entries"] * column["watches"]
        ),
        watched_most=maybe(column["registered_call_i"], never, column["entries"]),
        tasks_least=surely(column["added_ret_i"], column["disarmed_first_i"], ones, settled_t),
        tasks_most=maybe(column["added_call_i"], column["disarmed_surely_i"], ones),
        most_keys=int(column["entries"].max(initial=0)),
    )


def _spread(low: npt.NDArray[np.intp], high: npt.NDArray[np.intp], weight: Ints, readings: int) -> Ints:
    """For each reading the sum of the weights of the ranges [low, high) that hold it."""
    some = high > low
    change = np.zeros(readings + 1, np.int64)
    np.add.at(change, low[some], weight[some])
    np.subtract.at(change, high[some], weight[some])
    total: Ints = np.cumsum(change)[:-1]
    return total
