"""O4: no lost completion (KAFKA-6653 and its family)."""

from __future__ import annotations

from purgatorio_spec.history.operation import NEVER, Call, Check, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation


def no_lost_completion(run: Run, history: OperationHistory) -> Judgement:
    """O4. An occasion is a registered operation that was ready before its registration started, or for one of whose
    keys a check started after it was ready and returned.

    A key under which the operation was cancelled is left out: it is no longer watched there. So is an operation whose
    `try_complete` raised: that it was ready does not say that it could be completed. Every way to break it
    rests on a completion or an evaluation that is not there, so with dropped records it can only be undecided.
    """
    judgement = _judged(run, history)
    return UNDECIDED if run.dropped and judgement.violation is not None else judgement


def _judged(run: Run, history: OperationHistory) -> Judgement:
    if any(attempt.err is not None for attempt in history.tries):
        return NO_OCCASION
    registration, ready = history.registration, history.ready
    if ready is None or registration is None or registration.ret_i is None or registration.err is not None:
        return NO_OCCASION
    if ready.i < registration.call_i and _claim_i(history) > registration.ret_i:
        return _broken(
            history,
            "ready-before-registration",
            (ready.i, registration.call_i, registration.ret_i),
            "an operation that is ready before its registration starts is completed when the registration returns",
            f"the registration returned {registration.out} and completion had not been claimed",
        )
    check = _first_to_return(history)
    if check is None:
        return KEPT if ready.i < registration.call_i else NO_OCCASION
    if run.profile.claimed_on_return:
        return _claimed_on_return(history, registration, ready.i, check)
    return _never_left_to_the_timeout(run, history, ready.i, check)


def _claim_i(history: OperationHistory) -> int:
    claim = history.claim
    return NEVER if claim is None else claim.call_i


def _first_to_return(history: OperationHistory) -> Check | None:
    if any(not point.keys for point in history.cancelled):
        return None
    cancelled = {key for point in history.cancelled for key in point.keys}
    watched = set(history.keys) - cancelled
    return min(
        (check for check in history.checks if check.key in watched),
        key=lambda check: check.ret_i,
        default=None,
    )


def _claimed_on_return(
    history: OperationHistory, registration: Call, ready_i: int, check: Check
) -> Judgement:
    """`locked`: when both the check and the registration have returned, completion has been claimed."""
    both_i = max(check.ret_i, registration.end_i)
    if _claim_i(history) < both_i:
        return KEPT
    return _broken(
        history,
        "unclaimed-on-return",
        (ready_i, check.call_i, both_i),
        f"when check_and_complete({check.key}), which started after it was ready, and its registration have "
        "returned, completion has been claimed",
        _how_it_ended(history),
    )


def _never_left_to_the_timeout(run: Run, history: OperationHistory, ready_i: int, check: Check) -> Judgement:
    """`pending-flag`: some evaluation of `try_complete` sees the condition; it is never left to the time-out."""
    allowed = (
        f"after check_and_complete({check.key}), which started after it was ready, some try_complete completes it: "
        "it is never left to the time-out"
    )
    claim = history.claim
    if claim is None:
        if not run.whole or any(call.ret_i is None for call in history.calls()):
            return UNDECIDED
        return _broken(
            history, "never-claimed", (ready_i, check.call_i, check.ret_i), allowed, _how_it_ended(history)
        )
    # Expired before the check returned: the expiry came first, and nothing was left to it.
    came_first = claim.call_i < check.ret_i
    if came_first or history.fire_of(claim) is None or _an_evaluation_was_due(history, check, claim.call_i):
        return KEPT
    return _broken(
        history,
        "left-to-the-time-out",
        (ready_i, check.call_i, check.ret_i, claim.call_i),
        allowed,
        "only its expiry completed it, with no try_complete running or started since the check",
    )


def _an_evaluation_was_due(history: OperationHistory, check: Check, moment_i: int) -> bool:
    """Whether at that moment a `try_complete` was running or had started since the check, or was about to start on a
    thread that was in its retry loop: the expiry then merely came first.

    A thread was in its loop if it had just evaluated and has recorded nothing since, or if it holds the lock but had
    not yet come to evaluate: it recorded nothing from before the check's return up to its call, which comes later (a
    thread that lost its turn there stood still for 137 ms on a busy machine).
    """
    return any(
        attempt.holds(moment_i)
        or check.call_i < attempt.call_i < moment_i
        or attempt.end_i < moment_i < history.next_of_thread.get(attempt.end_i, 0)
        or history.previous_of_thread.get(attempt.call_i, NEVER) < check.ret_i < moment_i < attempt.call_i
        for attempt in history.tries
    )


def _how_it_ended(history: OperationHistory) -> str:
    claim = history.claim
    if claim is None:
        return "it was never claimed"
    cause = "its expiry" if history.fire_of(claim) else f"a later force_complete on {claim.th}"
    return f"it was claimed only by {cause}, at i = {claim.call_i}"


def _broken(
    history: OperationHistory, cause: str, events: tuple[int, ...], allowed: str, seen: str
) -> Judgement:
    return Judgement(1, Violation("O4", history.id, cause, tuple(sorted(events)), allowed, seen))
