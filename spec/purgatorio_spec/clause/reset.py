"""The clause T11: a reset moves the deadline of a task, and the task never fires at the former deadline.

A `timer_reset` that did not return 0 has the effect of an add. So for a task with resets, the rules of T1, T2 and T3
apply to adds and resets alike, and violations are reported as T11. T4 judges cancels of such a task.

In some profiles, a task never runs after a cancel that returned 1 (a *barrier*, see T4). Then a reset that returned 1
is a barrier too: even if the task is due at the reset, it starts only at the new deadline, on any thread. A timer that
cannot revoke a run that is being started returns 0 or no result. A second add is no barrier, because it has no result:
even a sound timer, such as Go's `AfterFunc`, may be starting the former run.

A reset without a result moves a pending task. A task that may have ended before the reset may run once more, or not.
"""

from dataclasses import replace
from typing import Final

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.clause.timer import exactly_once, not_early, not_late
from purgatorio_spec.history.operation import NEVER, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION

T11 = Clause("T11")

_MOVED: Final = "a reset moves the deadline: "


@T11.of_operation
def reset_moves_the_deadline(run: Run, history: OperationHistory) -> Finding:
    """Judge a task with resets by T1, T2 and T3, with each reset as an add.

    If the header does not give `late_ns`, lateness is not judged.
    """
    if not history.resets or history.is_periodic:
        return NO_OCCASION
    armed = replace(history, resets=[])
    resets = [reset.call_i for reset in history.resets]
    early = _kept_back(run, history) or not_early(run, armed)
    if isinstance(early, Broken):
        return Broken(
            "fired-at-former-deadline", [*resets, *early.events], _MOVED + early.allowed, early.seen
        )
    late = NO_OCCASION if run.late_ns is None else not_late(run, armed)
    if isinstance(late, Broken):
        return Broken("fired-late-after-reset", [*resets, *late.events], _MOVED + late.allowed, late.seen)
    once = exactly_once(run, armed)
    if isinstance(once, Broken):
        return Broken(
            "never-fired-after-reset" if once.cause == "never-fired" else "fired-twice-after-reset",
            [*resets, *once.events], _MOVED + once.allowed, once.seen,
        )  # fmt: skip
    if once.undecided:
        return once
    return KEPT if early.occasions or late.occasions or once.occasions else NO_OCCASION


def _kept_back(run: Run, history: OperationHistory) -> Broken | None:
    """A violation by the first fire that a reset forbids, if a cancel that returned 1 is a barrier. An add or a reset
    that overlaps it may have come after it."""
    early_ns = run.early_ns or 0
    for reset in (one for one in history.resets if one.out == 1 and run.cancel_is_final(one.out)):
        later = (
            add.call_i for add in history.adds if add.end_i > reset.call_i and add.call_i != reset.call_i
        )
        rearmed_i = min(later, default=NEVER)
        for fire in history.fires:
            if reset.end_i < fire.call_i < rearmed_i and not reset.may_run(fire.call_t, early_ns):
                return Broken(
                    "fired-at-former-deadline",
                    [reset.call_i, reset.end_i, fire.call_i],
                    f"timer_reset returned 1: the task fires at t = {run.at(reset.deadline_t or 0)} or later",
                    f"it fired at t = {run.at(fire.call_t)}",
                )
    return None
