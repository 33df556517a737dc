"""The clauses O4 and O5: a ready operation does not wait (KAFKA-6653), and no operation waits forever.

The clauses O5, T2 and T3 share two functions of this module. One computes the due time of a task. The other tests
whether the run continued long enough to call the task late.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from purgatorio_spec.clause.declaration import Broken, Clause, FastRule, Finding
from purgatorio_spec.durations import exact
from purgatorio_spec.history.block import OperationBlock, Truth, greatest, limited
from purgatorio_spec.history.operation import NEVER, Call, KeyCheck, OperationHistory, latest_due_t
from purgatorio_spec.history.run import Run
from purgatorio_spec.history.summary import SETTLED_TICKS
from purgatorio_spec.profile import REAPER_PERIOD_NS
from purgatorio_spec.trace.record import MAX_INT
from purgatorio_spec.verdict import KEPT, NO_BOUND, NO_OCCASION, NO_TIME_OUTS, STILL_OPEN, WANT_OF_RECORDS

AT_THE_END_NS: Final = 10_000_000
"""A task that was due this shortly before the end of a run is not judged: the run may have stopped just before it."""


class Due(Enum):
    """Whether a task must have run by the end of a run."""

    NOT_YET = auto()
    OVERDUE = auto()
    UNBOUNDED = auto()
    """Due, but no bound says by when it must have run."""


def at_the_end(run: Run, due_t: int, added_i: int) -> Due:
    """Whether a task that was added by the call `added_i`, and due at `due_t`, must have run by the end of the run. It
    must if the declared late bound has passed, or if a `quiesce` came a reaper's period or more after `due_t`. (The
    shorter of this period and the late bound counts. Without a late bound, two ticks count.) In virtual time, it must
    have had a chance to run. At a `quiesce`, an `advance_clock` without a return is a chance too: a stop may have left
    it without an answer."""
    facts, late_ns = run.facts, run.late_ns
    slack_ns = SETTLED_TICKS * (run.tick_ns or 0) if late_ns is None else min(late_ns, REAPER_PERIOD_NS)
    rests = facts.rest_t is not None and due_t + slack_ns <= facts.rest_t
    if run.chance_t(due_t, added_i) == MAX_INT and not (rests and run.advances_after(added_i)):
        return Due.NOT_YET
    if rests:
        return Due.OVERDUE
    if late_ns is not None:
        return Due.OVERDUE if due_t + late_ns < facts.end_t else Due.NOT_YET
    return Due.UNBOUNDED if due_t + AT_THE_END_NS < facts.end_t else Due.NOT_YET


_PASSED_ON_NS: Final = 1_000_000_000
"""In real time, a thread to which a `try_complete` has passed the completion begins it within this time."""

BESIDE_A_UNIT: Final = "waits-beside-a-unit"
"""The cause of an operation of the profile `hand-over`."""

O4 = Clause("O4")


@O4.of_operation
def no_lost_completion(run: Run, history: OperationHistory) -> Finding:
    """Judge whether a ready operation is completed in time.

    Rule 3 allows an expiry in three cases:

    - The expiry began before the check returned.
    - The completion began before the registration returned. (A table may arm the time-out before its first evaluation.)
    - At the claim, a `try_complete` was running, or a thread may have been about to begin one, or a `try_complete` that
      began after the check had just returned. Then another thread may have been about to complete the operation. In
      real time, "just" means less than a second ago. In virtual time, the clock has not moved since. (It may have moved
      if the header does not give `late_ns`: threads may be paused then.)

    There are two signs that a thread may have been about to begin a `try_complete`:

    - After the return of the check, the next event of the thread is the call of a `try_complete`, and follows the
      claim.
    - The last event of the thread before the claim was the end of a `try_complete`. (The thread may call it again.)

    With the profile `request-log`, the trace has a check for each event of a key. This check is no real call: it
    returns at the time of the event plus the time that is allowed for an answer. A request that its client gave up is
    judged up to then. A lost row excuses no request of which an end is known: a second end breaks O1.

    A check that raised an exception is not judged: in Kafka, the exception of one operation ends the check. (O8 forbids
    this for the reference.)

    With the profile `hand-over`, the driver records `ready`, and a check that lasts until the subject is at rest.
    """
    registration, ready = history.registration, history.ready
    if ready is None or registration is None or registration.ret_i is None or registration.err is not None:
        return NO_OCCASION
    raised_i = max((attempt.end_i for attempt in history.tries if attempt.err is not None), default=-1)
    ready_at_registration = ready.i < registration.call_i and raised_i < 0
    if ready_at_registration and not _claimed_before(history, registration.ret_i):
        return _unless_open(
            run,
            history,
            registration.ret_i,
            Broken(
                "ready-before-registration",
                (ready.i, registration.call_i, registration.ret_i),
                "an operation that is ready before its registration starts is completed when the registration returns",
                f"the registration returned {registration.out}, and no call had begun the completion",
            ),
        )
    check = _first_to_return(run, history, raised_i)
    if check is None:
        return KEPT if ready_at_registration else NO_OCCASION
    judged = _claimed_on_return if run.profile.claimed_on_return else _never_left_to_the_timeout
    finding = judged(run, history, ready.i, check)
    excused = isinstance(finding, Broken) and may_have_been_given_back(run, history, [check.key], check.ret_i)
    return STILL_OPEN if excused else finding


def _is_registered_and_ready(b: OperationBlock) -> Truth:
    return b.reg_n.equals(1) & b.ready.given()


def _left_waiting(b: OperationBlock) -> Truth:
    before = b.ready < b.reg_call
    if b.run.profile.claimed_on_return:
        left = b.check_ret.given() & (b.claimed > greatest(b.check_ret, b.reg_ret))
    else:
        # If the operation was ready in an earlier batch, the checks before its registration are unknown here.
        expired = b.by_expiry.surely() if b.run.records("timer_fire") else (b.exp_n > 0)
        left = (b.check_ret.given() | before) & (b.win_n.equals(0) | expired)
    return _is_registered_and_ready(b) & ((before & (b.claimed > b.reg_ret)) | left)


O4.fast_rule = FastRule(
    lambda b: _is_registered_and_ready(b) & (b.check_ret.given() | (b.ready < b.reg_call)), _left_waiting
)


def may_have_been_given_back(
    run: Run, history: OperationHistory, keys: Iterable[str], before_i: int = NEVER
) -> bool:
    """Whether a `cancel_for_key` with an unrecorded result may have returned the operation before `before_i`. Only
    calls for one of these keys count."""
    registration = history.registration
    calls = (call for key in keys for call in run.facts.unsettled.get(key, ()))
    return registration is not None and any(
        call_i < before_i and registration.call_i < end_i for call_i, end_i in calls
    )


def end_of_request(history: OperationHistory) -> tuple[int, int, str] | None:
    """The end of a request of a log: its position, its time, and its kind in words."""
    if (claim := history.claim) is not None:
        return claim.call_i, claim.call_t, "timed out" if history.fire_of(claim) else "answered"
    given_up = next(iter(history.cancelled), None)
    return None if given_up is None else (given_up.i, given_up.t, "given up by its client")


def _registered_i(history: OperationHistory) -> int:
    return NEVER if history.registration is None else history.registration.end_i


def _claimed_before(history: OperationHistory, i: int) -> bool:
    return history.claim is not None and history.claim.call_i < i


def _unless_open(run: Run, history: OperationHistory, i: int, broken: Broken) -> Finding:
    """The violation, unless a claim may exist: an open `force_complete` that began before position `i`, or one whose
    record is missing."""
    if history.claim is None and not run.whole and not broken.stands:
        return WANT_OF_RECORDS
    return STILL_OPEN if any(force.call_i < i for force in history.may_have_claimed) else broken


def _first_to_return(run: Run, history: OperationHistory, after_i: int) -> KeyCheck | None:
    given_up_i = min((point.i for point in history.cancelled if not point.keys), default=NEVER)
    if given_up_i < NEVER and not run.profile.answered_in_time:
        return None
    cancelled = {key for point in history.cancelled for key in point.keys}
    watched = set(history.keys) - cancelled
    return min(
        (
            check
            for check in history.checks
            if check.key in watched and check.call_i > after_i and check.ret_i < given_up_i
        ),
        key=lambda check: check.ret_i,
        default=None,
    )


def _claimed_on_return(run: Run, history: OperationHistory, ready_i: int, check: KeyCheck) -> Finding:
    """`locked`: when both the check and the registration have returned, the completion has begun. `request-log`: the
    check returns at the end of the time that is allowed for an answer."""
    both_i = max(check.ret_i, _registered_i(history))
    if _claimed_before(history, both_i):
        return KEPT
    if run.profile.answered_in_time:
        end = end_of_request(history)
        if end is None and not run.records("timer_fire"):
            return NO_TIME_OUTS
        end_i, end_t, seen = end or (both_i, None, "never answered")
        after = (
            "" if end_t is None or history.ready is None else f", {exact(end_t - history.ready.t)} after it"
        )
        broken = Broken(
            "not-answered-by-its-event",
            (ready_i, check.call_i, end_i),
            f"answered within {exact(run.log.answer_ns)} of the event of {check.key}",
            seen + after,
            stands=end is not None,
        )
        return _unless_open(run, history, both_i, broken)
    if run.profile.hands_over:
        broken = Broken(
            BESIDE_A_UNIT,
            (ready_i, check.call_i, both_i),
            f"at rest, no operation waits for {check.key} while a unit of {check.key} is free",
            f"the operation waited, there were as many free units as waiting operations, and {_how_it_ended(history)}",
        )
        return _unless_open(run, history, both_i, broken)
    broken = Broken(
        "unclaimed-on-return",
        (ready_i, check.call_i, both_i),
        f"the completion begins before check_and_complete({check.key}) returns (or before the registration returns, "
        "if that is later), because this check began after the operation was ready",
        _how_it_ended(history),
    )
    return _unless_open(run, history, both_i, broken)


def _never_left_to_the_timeout(run: Run, history: OperationHistory, ready_i: int, check: KeyCheck) -> Finding:
    """`pending-flag`: some `try_complete` completes the ready operation, which does not wait for its time-out."""
    allowed = (
        f"check_and_complete({check.key}) started after the operation was ready, so a try_complete completes the "
        "operation: the operation does not wait for its time-out"
    )
    claim, ready = history.claim, history.ready
    if claim is None or ready is None:
        if not run.whole:
            return WANT_OF_RECORDS
        if any(call.ret_i is None for call in history.calls()) or _may_evaluate_yet(run, history, check):
            return STILL_OPEN
        return Broken("never-claimed", (ready_i, check.call_i, check.ret_i), allowed, _how_it_ended(history))
    left = _expired_after(run, history, claim, check) and not _claimed_before(history, _registered_i(history))
    if not left or _an_evaluation_was_due(run, history, check, claim):
        return KEPT
    if _may_evaluate_yet(run, history, check):
        return STILL_OPEN
    return Broken(
        "left-to-the-time-out",
        (ready_i, check.call_i, check.ret_i, claim.call_i),
        allowed,
        f"only the expiry completed the operation, {exact(claim.call_t - ready.t)} after it was ready, and no "
        "try_complete was at work",
    )


def _expired_after(run: Run, history: OperationHistory, claim: Call, check: KeyCheck) -> bool:
    """Whether an expiry that began after the return of the check completed the operation. An expiry that began before
    may complete the operation: then nothing waits for the time-out any more. If fires are not recorded, an
    `on_expiration` on the completing thread shows an expiry, which began at the claim or earlier."""
    began = history.fire_of(claim)
    if began is None and not run.records("timer_fire"):
        expired = any(point.th == claim.th and point.call_i > claim.end_i for point in history.expirations)
        began = claim if expired else None
    return began is not None and check.ret_i <= began.call_i


def _an_evaluation_was_due(run: Run, history: OperationHistory, check: KeyCheck, claim: Call) -> bool:
    """Whether at the claim a `try_complete` was running, had returned just before, or was about to start in the retry
    loop of its thread. If so, the expiry only came first."""
    moment_i = claim.call_i
    return any(
        attempt.holds(moment_i)
        or (check.call_i < attempt.call_i < moment_i and _has_just_returned(run, attempt, claim.call_t))
        or _was_to_look_again(history, attempt, moment_i)
        or _held_the_lock(history, attempt, check, moment_i)
        for attempt in history.tries
    )


def _has_just_returned(run: Run, attempt: Call, moment_t: int) -> bool:
    since_ns = moment_t - (moment_t if attempt.ret_t is None else attempt.ret_t)
    if run.virtual:
        return run.late_ns is None or since_ns <= 0
    return since_ns < _PASSED_ON_NS


def _was_to_look_again(history: OperationHistory, attempt: Call, moment_i: int) -> bool:
    """Whether the last event of the attempt's thread was the end of this `try_complete`, so the thread may evaluate
    again."""
    return attempt.end_i < moment_i < history.next_of_thread.get(attempt.end_i, 0)


def _held_the_lock(history: OperationHistory, attempt: Call, check: KeyCheck, moment_i: int) -> bool:
    """Whether the attempt's thread may have held the lock during the check, before its evaluation: it recorded no event
    from before the check's return to the attempt's call. (On a busy machine, a thread was once preempted here for 137
    ms.)"""
    before_i = history.previous_of_thread.get(attempt.call_i, NEVER)
    return before_i < check.ret_i < moment_i < attempt.call_i


def _may_evaluate_yet(run: Run, history: OperationHistory, check: KeyCheck) -> bool:
    """Whether a check of one of the keys, which began before this check returned, is still open. Its thread may have
    held the lock, and may evaluate after the end of the run."""
    return any(run.facts.unreturned.get(key, NEVER) < check.ret_i for key in history.keys)


def _how_it_ended(history: OperationHistory) -> str:
    claim = history.claim
    if claim is None:
        keys = ", ".join(key for point in history.cancelled for key in point.keys)
        return (
            f"no call completed the operation, and only cancel_for_key({keys}) returned it"
            if keys
            else "no call completed the operation"
        )
    cause = "the expiry" if history.fire_of(claim) else f"a later force_complete on {claim.th}"
    return f"only {cause} completed the operation"


O5 = Clause("O5")


@O5.of_operation
def nothing_in_limbo(run: Run, history: OperationHistory) -> Finding:
    """Judge an operation with a time-out whose registration returned false.

    In rule 1, the time-out counts from the return of the last add of its timer task. Without an add, the time-out
    counts from the return of the registration. Rule 2 counts from the first add. Otherwise an implementation could move
    the deadline forever by a new add after each check.
    """
    registration = history.registration
    if registration is None or registration.out != 0 or registration.delay_ns is None or history.cancelled:
        return NO_OCCASION
    if history.claim is not None:
        return _expired_late(run, history, registration, history.claim) or KEPT
    if not run.whole:
        return WANT_OF_RECORDS
    due_t = _due_t(history, registration)
    due = Due.NOT_YET if due_t is None else at_the_end(run, due_t, registration.call_i)
    if due is Due.NOT_YET or due_t is None:
        return NO_OCCASION
    expires = any(fire.ret_i is None for fire in history.fires)
    if expires or history.may_have_claimed or may_have_been_given_back(run, history, registration.keys):
        return STILL_OPEN
    if due is Due.UNBOUNDED:
        return NO_BOUND
    return Broken(
        "never-completed",
        (registration.call_i, registration.end_i),
        "at the end every operation with a time-out is completed, unless cancel_for_key or a shutdown removed it",
        f"its time-out passed at t = {run.at(due_t)}, {exact(run.facts.end_t - due_t)} before the end, "
        "and no call completed it",
    )


def _may_time_out(b: OperationBlock) -> Truth:
    return b.reg_out.equals(0) & b.reg_delay.given() & b.cut_n.equals(0)


def _claimed_late(b: OperationBlock) -> Truth:
    last_t = b.chance_t(greatest(b.reg_ret_t, b.reg_ret_t + b.reg_delay) + limited(b.run.late_ns or 0))
    return b.always(b.run.virtual and b.run.late_ns is not None) & b.win_n.equals(1) & (b.win_t > last_t)


O5.fast_rule = FastRule(
    occasion=lambda b: _may_time_out(b) & b.win_n.equals(1),
    broken=lambda b: (
        _claimed_late(b)
        | (_may_time_out(b) & b.win_n.equals(0) & b.due(b.deadline_t.or_else(b.reg_t + b.reg_delay)))
    ),
)


def _expired_late(run: Run, history: OperationHistory, registration: Call, claim: Call) -> Broken | None:
    late_ns, due_t = run.late_ns, _due_by_registration(registration)
    if not run.virtual or late_ns is None or due_t is None or len(history.registrations) > 1:
        return None
    fires = [fire for fire in history.fires if fire.call_i < claim.call_i]
    expires = history.fire_of(claim) is not None or any(
        point.th == claim.th and point.call_i > claim.call_i for point in history.expirations
    )
    # A subject may add the time-out after the registration, and a timer may round the first deadline up.
    first_t = history.adds[0].latest_due_t if history.adds else due_t
    if not expires or first_t is None:
        return None
    due_t = max(due_t, first_t)
    began = fires[0] if fires else claim
    last_t = run.chance_t(due_t + late_ns, registration.call_i)
    if began.call_t <= last_t:
        return None
    return Broken(
        "expired-late",
        (registration.call_i, registration.end_i, began.call_i),
        f"expires by t = {run.at(last_t)} (its time-out passed at t = {run.at(due_t)}, {run.late_bound})",
        f"it expired at t = {run.at(began.call_t)}, {exact(began.call_t - last_t)} beyond the bound",
    )


def _due_t(history: OperationHistory, registration: Call) -> int | None:
    return latest_due_t(history.adds) if history.adds else _due_by_registration(registration)


def _due_by_registration(registration: Call) -> int | None:
    return None if registration.ret_t is None else registration.ret_t + max(registration.delay_ns or 0, 0)
