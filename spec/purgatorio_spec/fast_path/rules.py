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
from functools import partial
from typing import Final

import numpy as np

from purgatorio_spec.clause.declaration import FastRule
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.fast_path.operations import Operations
from purgatorio_spec.history.block import LIMIT, Condition, Numbers, OperationBlock, Truth, greatest
from purgatorio_spec.history.operation import NEVER, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import Summary
from purgatorio_spec.judge.result import judged_clauses
from purgatorio_spec.trace.coded import Flags, Ints


def blocks(run: Run, operations: Operations) -> Callable[[slice | Ints], OperationBlock]:
    """Makes the block of some operations of a run, after its last batch."""
    ended_t = np.array([min(one.ret_t, LIMIT) for one in run.facts.advances], np.int64)

    def of(some: slice | Ints) -> OperationBlock:
        size = len(operations.column("last")[some])
        numbers, flags = partial(operations.numbers, of=some), partial(operations.flags, of=some)
        return OperationBlock(run, size, numbers, flags, ended_t)

    return of


RULES: Final[Mapping[str, FastRule]] = {
    name: one.fast_rule for name, one in CLAUSES.items() if one.fast_rule is not None
}
"""By clause. A clause has its rule beside its function."""

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
    "cancelled by key or shut down": lambda b: b.cut_n > 0,
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
    inside = (b.reg_no > 0) & (b.reg_call < b.win_call) & once
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
        "deadline_t": np.where((b.add_n > 0).yes, row(b.deadline_t), NEVER),
        "due_t": np.where(b.timed.yes, row(b.latest_due_t), NEVER),
        "out_t": row(b.deadline_t.or_else(b.reg_t + b.reg_delay.or_else(0))),
        "done_t": row(greatest(b.fire_ret_t, b.win_t)),
        "claimed_t": row(b.win_t),
        "begun_t": row(b.reg_t),
        "armed_t": np.where(b.reg_n.equals(1).yes, row(greatest(b.reg_ret_t, b.add_ret_t)), NEVER),
        "cancelled_t": row(b.stopped_t),
        "in_call": (b.reg_n.equals(1) & (b.add_n.equals(0) | added_within)).yes.astype(np.int64),
    }
    return np.stack([column[name] for name in Summary._fields], axis=1)
