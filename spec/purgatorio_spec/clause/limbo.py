"""O5: nothing stays in limbo."""

from __future__ import annotations

from typing import Final

from purgatorio_spec.history.operation import OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation

GRACE_NS: Final = 1_000_000_000
"""Where neither a late bound nor a `quiesce` is recorded, a time-out counts as passed only this long before the end of
the run: a run that was stopped at a deadline has not lost the task."""


def due_by_the_end(run: Run, deadline_t: int) -> bool:
    """Whether a task with this deadline must have fired before the run ended."""
    if run.rest_t is not None and deadline_t <= run.rest_t:
        return True
    grace_ns = GRACE_NS if run.late_ns is None else run.late_ns
    return deadline_t + grace_ns < run.end_t


def nothing_in_limbo(run: Run, history: OperationHistory) -> Judgement:
    """O5. An occasion is an operation with a time-out whose registration returned false, and which was completed or
    whose time-out had passed at the end."""
    registration = history.registration
    if registration is None or registration.out != 0 or registration.delay_ns is None or history.cancelled:
        return NO_OCCASION
    if history.claim is not None:
        return KEPT
    deadline_t = history.deadline_t()
    if not run.whole:
        return UNDECIDED
    if deadline_t is None or not due_by_the_end(run, deadline_t):
        return NO_OCCASION
    return Judgement(
        1,
        Violation(
            "O5",
            history.id,
            "never-completed",
            (registration.call_i, registration.end_i),
            "at the end every operation with a time-out is completed, unless cancelled by key or shut down",
            f"its time-out passed at t = {deadline_t}, {run.end_t - deadline_t} ns before the end, "
            "and nothing completed it",
        ),
    )
