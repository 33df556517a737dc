"""The rules of the fast path. A rule reads one summary for each operation, and selects the *candidates* of one clause:
the operations that may break the clause.

An operation is *irregular* if a call was made twice, did not return, or raised an exception. (`IRREGULAR` has all
reasons.) Every clause judges the irregular operations. If a clause has no rule, all operations are candidates. The
verdict on a candidate comes from the clause, so a rule may select too many candidates, but never too few. A rule also
counts the occasions of the clause (cases that could break it) among the operations that it does not select.
`tests/pipeline/test_fold_soundness.py` tests the rules, and that each rule is needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, TypeAlias

import numpy as np

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.fast_path.operations import LIMIT, Numbers, Operations, Truth, greatest
from purgatorio_spec.history.operation import NEVER, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary
from purgatorio_spec.judge.result import judged_clauses
from purgatorio_spec.trace.coded import Flags, Ints

_TIMES: Final = frozenset(
    {"reg_t", "reg_delay", "reg_ret_t", "win_t", "fire_t", "add_ret_t", "add_delay", "deadline_t", "stopped_t",
     "ready_t", "true_t", "deadline_least_t"}
)  # fmt: skip


def _limited(value: int) -> int:
    return max(-LIMIT, min(LIMIT, value))


class OperationBlock:
    """Operations of a run by column. `block.win_call` is the column `win_call` as `Numbers`, with times within
    `LIMIT`."""

    def __init__(self, run: Run, operations: Operations, ended_t: Ints, of: slice | Ints) -> None:
        self.run = run
        self._ended_t = ended_t
        self._operations, self._of = operations, of
        self.size = len(operations.column("last")[of])

    def __getattr__(self, name: str) -> Numbers:
        numbers = self._operations.numbers(name, self._of)
        if name in _TIMES:
            numbers = Numbers(np.clip(numbers.v, -LIMIT, LIMIT), numbers.ok)
        setattr(self, name, numbers)
        return numbers

    def chance_t(self, t: Numbers) -> Numbers:
        """As `Run.chance_t` for calls before the first `advance_clock`. For later calls, `Run.chance_t` is the same or
        later."""
        if not self.run.moves_in_jumps:
            return t
        return Numbers(np.append(self._ended_t, LIMIT)[np.searchsorted(self._ended_t, t.v)], t.ok)

    def flag(self, name: str) -> Truth:
        return Truth.of(self._operations.flags(name, self._of))

    def always(self, holds: bool) -> Truth:
        return Truth.of(np.full(self.size, holds))

    @cached_property
    def by_expiry(self) -> Truth:
        inside = self.win_th.equals(self.fire_th) & (self.fire_call < self.win_call)
        return self.fire_n.equals(1) & inside & (self.win_ret <= self.fire_ret)

    @cached_property
    def claimed(self) -> Numbers:
        """The row of the call of the win. Above all rows if there is none."""
        return self.win_call.or_else(NEVER)

    @cached_property
    def in_time_t(self) -> Numbers:
        """The time before which a fire is early."""
        return self.deadline_t - _limited(self.run.early_ns or 0)

    @cached_property
    def under_lock(self) -> Truth:
        """Whether O6 forbids other calls during `on_complete` of the operation."""
        return self.always(not self.run.profile.completes_beside)

    def due(self, deadline_t: Numbers) -> Truth:
        """Whether a task with this deadline was due before the end of the run. True for all tasks if the run is not
        whole, because only the clause may report that the result is unknown."""
        if not self.run.whole:
            return self.always(True)
        return deadline_t <= _limited(self.run.facts.end_t)


def blocks(run: Run, operations: Operations) -> Callable[[slice | Ints], OperationBlock]:
    """Makes the block of some operations of a run, after its last batch."""
    ended_t = np.array([min(one.ret_t, LIMIT) for one in run.facts.advances], np.int64)
    return partial(OperationBlock, run, operations, ended_t)


Condition: TypeAlias = Callable[[OperationBlock], Truth]


@dataclass(frozen=True, slots=True)
class FastRule:
    """The conditions under which a regular operation is an occasion of a clause, and may have broken the clause."""

    occasion: Condition
    broken: Condition


def _some(count: Numbers) -> Truth:
    return count > 0


def _not_contained(b: OperationBlock) -> Truth:
    inside = b.win_th.equals(b.done_th) & (b.win_call < b.done_call) & (b.done_ret <= b.win_ret)
    return b.win_n.equals(1) & ~inside


def _never_or_early(b: OperationBlock) -> Truth:
    return ~b.ready.given() | (b.true_t < b.ready_t).surely()


def _expired_by_itself(b: OperationBlock) -> Truth:
    completed = b.done_n.equals(1) & (b.done_ret < b.exp_call) & b.done_th.equals(b.exp_th)
    if not b.run.tells_time_outs:
        return completed
    fired = b.fire_n.equals(1) & b.fire_th.equals(b.exp_th) & (b.fire_call < b.done_call)
    return completed & fired & (b.exp_ret <= b.fire_ret)


def _is_registered_and_ready(b: OperationBlock) -> Truth:
    return b.reg_n.equals(1) & b.ready.given()


def _lost(b: OperationBlock) -> Truth:
    before = b.ready < b.reg_call
    if b.run.profile.claimed_on_return:
        left = b.check_ret.given() & (b.claimed > greatest(b.check_ret, b.reg_ret))
    else:
        # If the operation was ready in an earlier batch, the checks before its registration are unknown here.
        expired = b.by_expiry.surely() if b.run.records("timer_fire") else _some(b.exp_n)
        left = (b.check_ret.given() | before) & (b.win_n.equals(0) | expired)
    return _is_registered_and_ready(b) & ((before & (b.claimed > b.reg_ret)) | left)


def _may_time_out(b: OperationBlock) -> Truth:
    return b.reg_out.equals(0) & b.reg_delay.given() & b.cut_n.equals(0)


def _expired_late(b: OperationBlock) -> Truth:
    last_t = b.chance_t(greatest(b.reg_ret_t, b.reg_ret_t + b.reg_delay) + _limited(b.run.late_ns or 0))
    return b.always(b.run.virtual and b.run.late_ns is not None) & b.win_n.equals(1) & (b.win_t > last_t)


def _wrong_answer(b: OperationBlock) -> Truth:
    inside = b.win_th.equals(b.reg_th) & (b.reg_call < b.win_call) & (b.win_ret <= b.reg_ret)
    registration = b.reg_out.given() & (b.reg_out.equals(1) ^ inside.surely())
    own = (
        b.win_n.equals(1)
        & b.win_th.equals(b.true_th)
        & (b.true_call < b.win_call)
        & (b.win_ret <= b.true_ret)
    )
    tries = (b.true_n > 1) | (b.true_n.equals(1) & ~own.surely())
    return registration | tries | (b.false_ret > b.win_ret).surely()


def _latest_due_t(b: OperationBlock) -> Numbers:
    return greatest(b.deadline_t, b.add_ret_t, b.add_ret_t + b.add_delay.or_else(0))


def _timed(b: OperationBlock) -> Truth:
    return b.deadline_t.given() & b.add_ret_t.given()


def _late(b: OperationBlock) -> Truth:
    return b.fire_n.equals(1) & (b.fire_t > b.chance_t(_latest_due_t(b) + _limited(b.run.late_ns or 0)))


def _undisturbed(b: OperationBlock) -> Truth:
    cancelled = (b.stopped_call < b.fire_call) & ~(b.cancel_ret < b.add_call).surely()
    stopped = cancelled.surely() | (b.win_call < b.fire_call).surely()
    return b.fire_n.equals(1) & b.add_n.equals(1) & (b.add_call < b.fire_call) & ~stopped & _timed(b)


def _answered(b: OperationBlock) -> Truth:
    ended = b.fire_n.equals(0) & b.win_n.equals(1) & b.add_n.equals(1) & _timed(b)
    return b.always(b.run.profile.answered_in_time) & ended


def _answered_late(b: OperationBlock) -> Truth:
    return _answered(b) & (b.win_t > _latest_due_t(b) + _limited(b.run.late_ns or 0))


def _not_fired(b: OperationBlock) -> Truth:
    stopped = _some(b.stopped_n) & ~(b.cancel_ret < b.add_call).surely()
    armed = b.fire_n.equals(0) & ~stopped & b.cut_n.equals(0) & b.win_n.equals(0)
    return armed & b.deadline_t.given() & b.due(b.deadline_t)


def _stopped_in_time(b: OperationBlock) -> Truth:
    won = (b.win_t < b.in_time_t) & ((b.add_ret < b.win_call) | (b.reg_ret_t < b.in_time_t))
    holds = b.always(b.run.cancel_is_final(None)) | (b.stopped_t < b.in_time_t)
    cancelled = b.stopped_n.equals(1) & (b.cancel_call > b.add_ret) & holds
    waited = b.always(b.run.facts.halted_i is not None) & _some(b.add_n)
    return b.fire_n.equals(0) & ((b.deadline_t.given() & (won.surely() | cancelled)) | waited)


def _fired_all_the_same(b: OperationBlock) -> Truth:
    won_by_it = b.win_n.equals(0) | b.by_expiry
    inside = b.cancel_th.equals(b.fire_th) & (b.fire_call < b.cancel_call) & (b.cancel_ret <= b.fire_ret)
    excused = won_by_it & (b.stopped_n.equals(0) | inside)
    fired = _some(b.fire_n) & (_some(b.stopped_n) | _some(b.win_n)) & ~excused.surely()
    # No column has the result of a cancel. It matters for a late cancel if only a success is final.
    final = (
        b.always(b.run.cancel_is_final(1) and not b.run.cancel_is_final(None))
        & ~(b.stopped_t < b.in_time_t).surely()
    )
    refused = _some(b.cancel_n) & b.stopped_n.equals(0) & _some(b.fire_n) & (b.fire_call > b.cancel_ret)
    halted = b.always(b.run.facts.halted_i is not None) & (b.fire_t >= _limited(b.run.facts.end_t)).surely()
    return fired | (final & _some(b.stopped_n)) | refused | halted


RULES: Final[Mapping[str, FastRule]] = {
    "O1": FastRule(
        lambda b: _some(b.force_n) | _some(b.done_n),
        lambda b: (
            ~b.win_n.equals(b.done_n)
            | _not_contained(b)
            | ((b.lost_call < b.done_call) & (b.done_ret < b.lost_ret)).surely()
            | (b.reg_out.equals(0) & (b.lost_first < b.claimed)).surely()
        ),
    ),
    "O2": FastRule(
        lambda b: _some(b.done_n) | _some(b.true_n),
        lambda b: (
            (_some(b.true_n) & b.always(b.run.records("ready")) & _never_or_early(b))
            | (b.always(b.run.profile.hands_over) & ~b.ready.given())
        ),
    ),
    "O3": FastRule(
        lambda b: _some(b.exp_n),
        lambda b: (
            (b.exp_n.equals(0) & b.by_expiry.surely()) | (_some(b.exp_n) & ~_expired_by_itself(b).surely())
        ),
    ),
    "O4": FastRule(
        lambda b: _is_registered_and_ready(b) & (b.check_ret.given() | (b.ready < b.reg_call)), _lost
    ),
    "O5": FastRule(
        lambda b: _may_time_out(b) & b.win_n.equals(1),
        lambda b: (
            _expired_late(b)
            | (_may_time_out(b) & b.win_n.equals(0) & b.due(b.deadline_t.or_else(b.reg_t + b.reg_delay)))
        ),
    ),
    "O6": FastRule(
        lambda b: (b.try_n > 1) | (_some(b.try_n) & _some(b.done_n) & b.under_lock),
        lambda b: (
            b.flag("tried_within")
            | (
                _some(b.done_n)
                & b.under_lock
                & (
                    (b.false_ret > b.done_call).surely()
                    | (b.true_n > 1)
                    | (b.true_n.equals(1) & ~b.true_th.equals(b.done_th))
                )
            )
        ),
    ),
    "O7": FastRule(lambda b: b.reg_out.given() | _some(b.try_answers), _wrong_answer),
    "T1": FastRule(
        lambda b: b.fire_n.equals(1) & b.add_n.equals(1) & b.deadline_t.given() & (b.add_call < b.fire_call),
        lambda b: b.fire_n.equals(1) & b.deadline_t.given() & (b.fire_t < b.in_time_t),
    ),
    "T2": FastRule(lambda b: _undisturbed(b) | _answered(b), lambda b: _late(b) | _answered_late(b)),
    "T3": FastRule(
        lambda b: b.add_n.equals(1) & b.fire_n.equals(1),
        lambda b: (
            (b.add_n.equals(0) & _some(b.fire_n))
            | (b.add_n.equals(1) & ((b.fire_call < b.add_call).surely() | _not_fired(b)))
        ),
    ),
    "T4": FastRule(_stopped_in_time, _fired_all_the_same),
}
"""By clause."""

IRREGULAR: Final[Mapping[str, Condition]] = {
    "a call without its return, or a return without its call": lambda b: b.flag("unpaired"),
    "an exception": lambda b: b.flag("errors"),
    "a time beyond the limit": lambda b: b.flag("wild"),
    "a call recorded as a point": lambda b: b.flag("points"),
    "registered twice": lambda b: b.reg_n > 1,
    "won twice": lambda b: b.win_n > 1,
    "completed without a winner": lambda b: b.done_n > b.win_n,
    "expired twice": lambda b: b.exp_n > 1,
    "fired twice": lambda b: b.fire_n > 1,
    "added twice": lambda b: b.add_n > 1,
    "two deadlines": lambda b: (b.deadline_least_t < b.deadline_t).surely(),
    "timer cancelled twice": lambda b: b.cancel_n > 1,
    "cancelled by key or shut down": lambda b: _some(b.cut_n),
    "periodic, or reset": lambda b: b.flag("repeats"),
    "added without a delay, where turns are declared": lambda b: (
        b.always(b.run.turn is not None) & (b.add_delay <= 0)
    ),
}
"""The conditions under which an operation is irregular."""


@dataclass(slots=True)
class Candidates:
    """For each operation of a block: whether it is a candidate, and by clause whether a regular operation is an
    occasion.

    The judgement of a candidate may depend on other events of its threads: if `retried` (O4's retry loop), or
    (`inside`) if a check may have been made inside a registration that returned false and contains a completion (O7).
    """

    chosen: Flags
    retried: Flags
    inside: Flags
    occasions: dict[str, Flags] = field(default_factory=dict)


def candidates(
    block: OperationBlock,
    rules: Mapping[str, FastRule] = RULES,
    irregular: Mapping[str, Condition] = IRREGULAR,
    *,
    missed: Flags | None = None,
) -> Candidates:
    """The candidates of a block. Tests pass `rules` or `irregular` with one rule or reason less. `missed`: the
    operations that a key may have failed to return, which O2 judges when the run has ended."""
    b, run = block, block.run
    broken = b.always(run.dropped) | (b.always(False) if missed is None else Truth.of(missed))
    for condition in irregular.values():
        broken |= condition(b)
    occasions: dict[str, Flags] = {}
    for name, rule in rules.items():
        if CLAUSES[name].skipped(run) is None:
            occasions[name] = rule.occasion(b).yes
            broken |= rule.broken(b)
    every = b.always(lacks_a_rule(run))
    broken |= every
    once = (b.win_first < b.reg_ret.or_else(b.win_first + 1)) | (b.reg_n > 1)
    inside = _some(b.reg_no) & (b.reg_call < b.win_call) & once
    retried = every | (b.always(not run.profile.claimed_on_return) & b.ready.given())
    # An operation is a candidate unless it is certainly correct.
    return Candidates(~broken.no, retried.yes, (inside | b.always(run.dropped)).yes, occasions)


def lacks_a_rule(run: Run) -> bool:
    """Whether a clause without a rule judges operations. Such a clause may read the whole context of the operations."""
    unruled = (one for one in judged_clauses(run) if one.id not in RULES and not one.irregular_only)
    return any(OperationHistory in one.judges for one in unruled)


def summaries(b: OperationBlock) -> Ints:
    """The matrix of `Summary` of regular operations, rows of the run for positions."""

    def row(numbers: Numbers) -> Ints:
        return numbers.or_else(NEVER).v

    watches = (b.reg_out.equals(0) & b.cut_n.equals(0) & (b.claimed > b.reg_ret)).yes
    added_within = b.add_n.equals(1) & (b.reg_call < b.add_call) & (b.add_ret < b.reg_ret)
    cancelled = (b.stopped_n.equals(1) & (b.cancel_call > b.add_ret)).yes
    fired = (b.fire_call > b.add_call).yes
    during_add = ((b.cancel_call > b.add_call) & (b.cancel_call < b.add_ret.or_else(NEVER))).yes
    column = {
        "registered_call_i": row(b.reg_call),
        "registered_ret_i": row(b.reg_ret),
        "claim_call_i": row(b.win_call),
        "stopped_i": row(b.win_ret),
        "left_i": row(b.win_ret),
        "entries": b.reg_keys.v,
        "watches": watches.astype(np.int64),
        "added_call_i": row(b.add_call),
        "added_ret_i": row(b.add_ret),
        "disarmed_first_i": np.minimum(np.minimum(row(b.cancel_call), row(b.fire_call)), row(b.win_call)),
        "disarmed_surely_i": np.minimum(
            np.where(cancelled, row(b.cancel_ret), NEVER), np.where(fired, row(b.fire_ret), NEVER)
        ),
        "raced_i": np.where(b.flag("raced").yes | during_add, row(b.cancel_call), NEVER),
        "deadline_t": np.where(_some(b.add_n).yes, row(b.deadline_t), NEVER),
        "due_t": np.where(_timed(b).yes, row(_latest_due_t(b)), NEVER),
        "out_t": row(b.deadline_t.or_else(b.reg_t + b.reg_delay.or_else(0))),
        "done_t": row(greatest(b.fire_ret_t, b.win_t)),
        "claimed_t": row(b.win_t),
        "begun_t": row(b.reg_t),
        "armed_t": np.where(b.reg_n.equals(1).yes, row(greatest(b.reg_ret_t, b.add_ret_t)), NEVER),
        "cancelled_t": row(b.stopped_t),
        "in_call": (b.reg_n.equals(1) & (b.add_n.equals(0) | added_within)).yes.astype(np.int64),
    }
    return np.stack([column[name] for name in Summary._fields], axis=1)
