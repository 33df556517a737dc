"""O7: the answers tell the truth."""

from __future__ import annotations

from purgatorio_spec.history.check import CheckCall
from purgatorio_spec.history.operation import Call, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation


def registration_and_try(run: Run, history: OperationHistory) -> Judgement:
    """O7 over an operation: its registration and its tries answer true iff that very call completed it.

    An occasion is an operation with an answer of either. A completion by a `check_and_complete` that a callback made
    from within the registration is that check's, not the registration's.
    """
    answered = [call for call in (*history.registrations, *history.tries) if call.out is not None]
    if not answered:
        return NO_OCCASION
    if run.dropped:
        return UNDECIDED
    for call in answered:
        completed = _completed_by(history, call)
        if completed is not None and completed != (call.out == 1):
            return _broken(history, call, completed)
    return KEPT


def _completed_by(history: OperationHistory, call: Call) -> bool | None:
    """Whether the winning `force_complete` is this call's doing; None if a nested check, or an evaluation from within
    this one, may have done it."""
    inside = [winner for winner in history.winners if call.contains(winner)]
    for winner in inside:
        makers = [attempt.call_i for attempt in history.tries if attempt.contains(winner)]
        if call.f != "try_complete_else_watch" and any(maker > call.call_i for maker in makers):
            return None
        if call.f == "try_complete_else_watch" and history.nested_checks.intersection(makers):
            return None
    return bool(inside)


def _broken(history: OperationHistory, call: Call, completed: bool) -> Judgement:
    return Judgement(
        1,
        Violation(
            "O7",
            history.id,
            f"{call.f}-answered-{'true' if call.out == 1 else 'false'}",
            (call.call_i, call.end_i),
            f"{call.f} returns true iff this call completed the operation",
            f"on {call.th} it returned {call.out}, and it did {'' if completed else 'not '}complete it",
        ),
    )


def check_counts(run: Run, check: CheckCall) -> Judgement:
    """O7 over one `check_and_complete`: it returns the number of operations that it completed."""
    if run.dropped:
        return UNDECIDED
    if check.out == len(check.completed):
        return KEPT
    names = ", ".join(check.completed[:3]) + (", ..." if len(check.completed) > 3 else "")
    return Judgement(
        1,
        Violation(
            "O7",
            f"check_and_complete({check.key})@{check.call_i}",
            "check-miscounted",
            (check.call_i, check.ret_i),
            "check_and_complete counts exactly what it completed",
            f"on {check.th} it returned {check.out} and completed {len(check.completed)} ({names or 'none'})",
        ),
    )
