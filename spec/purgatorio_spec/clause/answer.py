"""The clause O7: the return values of calls are correct.

The *claim* is the `force_complete` that returned 1. *out* is the return value of a call.

registration.out = 1  iff  the claim lies in the registration, and in no expiry and no check inside it
try.out = 1           iff  the claim lies in the try
check.out             =    |tries with out = 1 directly under the check|
"""

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.history.operation import Call, OperationHistory
from purgatorio_spec.history.part import CheckCall
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION

O7 = Clause("O7")


@O7.of_operation
def registration_and_try(run: Run, history: OperationHistory) -> Finding:
    """Judge the results of the registration and of each `try_complete`.

    If the trace does not record fires, a completion inside a registration and outside every `try_complete` may be an
    expiry. Then both return values are correct.
    """
    answered = [call for call in (*history.registrations, *history.tries) if call.out is not None]
    if not answered:
        return NO_OCCASION
    fires = run.records("timer_fire")
    for call in answered:
        inside = [winner for winner in history.winners if call.contains(winner)]
        if any(_is_of_another(history, call, winner, fires) for winner in inside):
            continue
        if bool(inside) != (call.out == 1):
            return Broken(
                f"{call.f}-answered-{'true' if call.out == 1 else 'false'}",
                (call.call_i, call.end_i),
                f"{call.f} returns true iff this call completed the operation",
                f"on {call.th} it returned {call.out}, and it did {'' if inside else 'not '}complete it",
            )
    return KEPT


def _is_of_another(history: OperationHistory, call: Call, winner: Call, fires: bool) -> bool:
    """Whether a call inside this call completed the operation: a `try_complete` inside a `try_complete`, or an expiry
    or a check inside the registration. If the trace does not record fires, whether this is possible."""
    makers = [attempt.call_i for attempt in history.tries if attempt.contains(winner)]
    if call.f != "try_complete_else_watch":
        return any(maker > call.call_i for maker in makers)
    if not fires and not makers:
        return True
    fire = history.fire_of(winner)
    return (fire is not None and call.contains(fire)) or not history.nested_checks.isdisjoint(makers)


@O7.of_check
def check_counts(_run: Run, check: CheckCall) -> Finding:
    """Judge the result of a `check_and_complete`."""
    if check.out == len(check.completed):
        return KEPT
    names = ", ".join(check.completed[:3]) + (", ..." if len(check.completed) > 3 else "")
    return Broken(
        "check-miscounted",
        (check.call_i, check.ret_i),
        "check_and_complete returns exactly the number of operations that it completed",
        f"on {check.th} it returned {check.out} and completed {len(check.completed)} ({names or 'none'})",
    )
