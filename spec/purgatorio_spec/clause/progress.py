"""The clause T12: a task that another task adds without a delay runs in the same `advance_clock` call (turn) or in the
next call, as the header declares.

With `next`, a task that adds itself again runs once in each turn, so every turn ends. With `same`, a chain of tasks
runs in one turn, and the turn ends when the chain ends. The clause P3 (a call does not hang) judges a turn that never
ends. In real time, the clause does not judge adds of other threads during the advance. In virtual time, every add
during an advance was made inside a task.
"""

from bisect import bisect_right

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.history.operation import NEVER, Call, OperationHistory
from purgatorio_spec.history.run import AdvanceCall, Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, WANT_OF_RECORDS

T12 = Clause("T12")


@T12.of_operation
def runs_in_the_declared_turn(run: Run, history: OperationHistory) -> Finding:
    """Judge a task that was added once, without a delay, inside an `advance_clock`.

    A task that did not fire is an occasion only if `turn` is `same` and the `advance_clock` returned. P3 judges an
    `advance_clock` that never returns.
    """
    if len(history.adds) != 1 or history.cancels or history.resets or history.forces or history.cancelled:
        return NO_OCCASION
    (add,) = history.adds
    if add.delay_ns is None or add.delay_ns > 0 or add.ret_i is None or add.err is not None:
        return NO_OCCASION
    turn = _turn_of(run, add)
    if turn is None:
        return NO_OCCASION
    fire = next((fire for fire in history.fires if fire.call_i > add.call_i), None)
    inside = fire is not None and fire.call_i < turn.ret_i
    if run.turn == "next":
        if fire is None or not inside:
            return KEPT if fire is not None else NO_OCCASION
        return Broken(
            "ran-in-the-same-turn",
            [turn.call_i, add.call_i, fire.call_i],
            "turn next: a task that is added from inside a task does not run in the same advance_clock",
            f"it ran inside the advance_clock that began at i = {turn.call_i}",
            stands=True,
        )
    if inside or turn.ret_i == NEVER:
        return KEPT if inside else NO_OCCASION
    if fire is None and not run.whole:
        return WANT_OF_RECORDS
    return Broken(
        "left-for-a-later-turn",
        [turn.call_i, add.call_i, turn.ret_i],
        "turn same: a task that is added without a delay from inside a task runs before the advance_clock returns",
        f"advance_clock returned at i = {turn.ret_i}, and the task had not run",
    )


def _turn_of(run: Run, add: Call) -> AdvanceCall | None:
    """The turn in which the task was added. In virtual time calls do not overlap, so the position is enough."""
    turns = run.facts.advances
    later = range(bisect_right(turns, add.call_i, key=lambda one: one.ret_i), len(turns))
    own = (turns[at] for at in later if run.virtual or turns[at].th == add.th)
    return next((turn for turn in own if turn.call_i < add.call_i), None)
