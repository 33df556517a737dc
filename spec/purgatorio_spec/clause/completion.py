"""The clauses O1, O2, O3, O6, O7: an operation is completed once, for a valid reason, before its expiration callback,
without overlap, and calls return what they did. `clauses.toml` has the rules and their formulas.

The *claim* is the `force_complete` that returned true. `docs.makers.operation_machine` states the rules as a state
machine of one operation, without the timer. A test compares the clauses and the state machine on every short history.
"""

from bisect import bisect_right
from operator import attrgetter

from purgatorio_spec.clause.declaration import Broken, Clause, FastRule, Finding
from purgatorio_spec.clause.lost import may_have_been_given_back
from purgatorio_spec.durations import exact
from purgatorio_spec.history.block import OperationBlock, Truth
from purgatorio_spec.history.operation import NEVER, Call, GivenBack, OperationHistory
from purgatorio_spec.history.part import CheckCall
from purgatorio_spec.history.run import KeyCancel, Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, WANT_OF_RECORDS

O1 = Clause("O1")


@O1.of_operation
def once(run: Run, history: OperationHistory) -> Finding:
    """Judge every `force_complete` and `on_complete` of the operation.

    A second completion is a violation even if records were dropped. Rule 4 needs the records of `try_complete`. If the
    claim is not inside a `try_complete` or an expiry, rule 4 requires only the claim.
    """
    if not history.forces and not history.completes:
        return NO_OCCASION
    completes, winners = history.completes, history.winners
    if len(completes) > 1:
        of_log = run.profile.answered_in_time
        started = f"it started {len(completes)} times, on {_threads(completes)}"
        return Broken(
            "completed-twice",
            [done.call_i for done in completes],
            "a request is answered, or times out, once" if of_log else "on_complete starts at most once",
            f"it ended {len(completes)} times" if of_log else started,
            stands=True,
        )
    if len(winners) > 1:
        return Broken(
            "two-winners",
            [force.end_i for force in winners],
            "force_complete returns true to at most one caller",
            f"it returned true {len(winners)} times, on {_threads(winners)}",
            stands=True,
        )
    for winner in winners:
        if not any(winner.contains(done) for done in completes):
            return Broken(
                "winner-without-callback",
                [winner.call_i, winner.end_i, *(done.call_i for done in completes)],
                "the force_complete that returns true contains the on_complete",
                f"the call on {winner.th} returned true, and no on_complete ran inside it",
            )
    for done in completes:
        # If forces contain each other, the innermost ran the callback: a check at the start of a force may complete the
        # operation.
        around = [force for force in history.forces if force.contains(done)]
        for force in around:
            if force.out == 0 and not any(force.contains(inner) for inner in around):
                return Broken(
                    "loser-ran-callback",
                    [force.call_i, done.call_i, force.end_i],
                    "the force_complete that runs on_complete returns true",
                    f"the call on {force.th} ran on_complete and returned false",
                )
    return _lost_to_nobody(run, history) or KEPT


def _not_contained(b: OperationBlock) -> Truth:
    inside = b.win_th.equals(b.done_th) & (b.win_call < b.done_call) & (b.done_ret <= b.win_ret)
    return b.win_n.equals(1) & ~inside


O1.fast_rule = FastRule(
    occasion=lambda b: (b.force_n > 0) | (b.done_n > 0),
    broken=lambda b: (
        ~b.win_n.equals(b.done_n)
        | _not_contained(b)
        | ((b.lost_call < b.done_call) & (b.done_ret < b.lost_ret)).surely()
        | (b.reg_out.equals(0) & (b.lost_first < b.claimed)).surely()
    ),
)


def _lost_to_nobody(run: Run, history: OperationHistory) -> Broken | None:
    registration, claim = history.registration, history.claim
    if registration is None or registration.out != 0 or len(history.registrations) > 1 or history.cancelled:
        return None
    if history.may_have_claimed:
        return None
    if not run.records("try_complete") and run.facts.threads > 1:
        return None  # another thread may be in a try_complete
    attempts = [*history.tries, *history.fires]
    if claim is None:
        if not run.whole or any(attempt.ret_i is None or attempt.err is not None for attempt in attempts):
            return None
        begun_i = NEVER
    else:
        # A claim outside of every call may be known only by its callback, which may have come long after the claim.
        begun_i = min((attempt.call_i for attempt in attempts if attempt.contains(claim)), default=-1)
    for force in history.forces:
        if force.out == 0 and registration.end_i < force.call_i and force.end_i < begun_i:
            return Broken(
                "lost-to-nobody",
                [registration.end_i, force.call_i, force.end_i, *([] if claim is None else [begun_i])],
                "a force_complete returns false only if another call has begun to complete the operation",
                f"the call on {force.th} returned false, and "
                + (
                    "the operation was never completed"
                    if claim is None
                    else "the call that completed the operation began afterwards"
                ),
            )
    return None


O2 = Clause("O2")


@O2.of_operation
def caused(run: Run, history: OperationHistory) -> Finding:
    """Judge the causes of the completion, and the calls of `cancel_for_key`.

    The keys of a `cancelled` event are the lists that the operation has left. Rule 3 is about each of these keys. (A
    registration that still runs may add the operation to a list again.) If an operation was registered twice under one
    key, one `cancel_for_key` may return the operation twice. Rule 6 judges, for each key, the first `cancel_for_key`
    that began after the registration had returned false. Its conditions:

    - When the `cancel_for_key` returned, the time-out had not passed.
    - During the `cancel_for_key`, no call of the operation was open.
    - Before the `cancel_for_key`, the only calls of the operation were its registration, calls of `timer_add`, and
      `try_complete` calls that returned false.
    - The operation was not completed, or a `try_complete` or an expiry that began after the `cancel_for_key` completed
      it.
    - No other `cancel_for_key` of the key returned the operation, if it began before this one returned.
    """
    if (broken := _not_given_back(run, history)) is not None:
        return broken
    truths = [attempt for attempt in history.tries if attempt.out == 1]
    if not history.completes and not truths and not history.given_back:
        return NO_OCCASION
    for done in history.completes:
        if not any(force.contains(done) for force in history.forces):
            return Broken(
                "callback-without-force",
                [done.call_i],
                "on_complete runs only inside a force_complete of its operation",
                f"it ran on {done.th}, and not inside a force_complete",
            )
    return (
        _given_back_wrongly(history)
        or _under_a_lost_key(history, truths)
        or _got_no_unit(run, history)
        or (_could_have_been_ready(run, history, truths) if truths and run.records("ready") else KEPT)
    )


def _never_or_early(b: OperationBlock) -> Truth:
    return ~b.ready.given() | (b.true_t < b.ready_t).surely()


O2.fast_rule = FastRule(
    occasion=lambda b: (b.done_n > 0) | (b.true_n > 0),
    broken=lambda b: (
        ((b.true_n > 0) & b.always(b.run.records("ready")) & _never_or_early(b))
        | (b.always(b.run.profile.hands_over) & ~b.ready.given())
    ),
)


def _got_no_unit(run: Run, history: OperationHistory) -> Finding | None:
    """Rule 7. The driver records `ready` for as many operations as there were units."""
    claim = history.claim
    if not run.profile.hands_over or history.ready is not None or history.expirations or claim is None:
        return None
    if not run.whole:
        return WANT_OF_RECORDS
    return Broken(
        "got-no-unit",
        [claim.call_i, claim.end_i],
        f"as many operations get a unit of {' or '.join(history.keys)} as there are units",
        "it was completed before its time-out, and other operations had got all units",
    )


def _could_have_been_ready(run: Run, history: OperationHistory, truths: list[Call]) -> Finding:
    first = min(truths, key=lambda attempt: attempt.end_i)
    ready = history.ready
    if ready is None:
        if not run.whole:
            return WANT_OF_RECORDS
        if run.profile.answered_in_time:
            return Broken(
                "answered-without-its-event",
                [first.call_i],
                f"answered only after an event of {' or '.join(history.keys)}",
                "answered, and no such event came after the request. If an event stands some milliseconds before the "
                "request, set promises.skew_ms in the mapping",
            )
        return Broken(
            "true-and-never-ready",
            [first.call_i, first.end_i],
            "try_complete returns true only if the operation may have been ready",
            f"it returned true on {first.th}, and the operation was never ready",
        )
    if ready.t_call is not None and first.ret_t is not None and first.ret_t < ready.t_call:
        return Broken(
            "true-before-ready",
            [first.call_i, first.end_i, ready.i],
            f"try_complete returns true only if the operation may have been ready (from t = {run.at(ready.t_call)} on)",
            f"it returned true at t = {run.at(first.ret_t)}, {exact(ready.t_call - first.ret_t)} before that",
            stands=True,
        )
    return KEPT


def _is_registered(history: OperationHistory, i: int) -> bool:
    """Whether all registrations of the operation had returned before position `i`. An open registration may watch a key
    again. A registration that is not recorded may be open."""
    return bool(history.registrations) and all(one.end_i < i for one in history.registrations)


def _given_back_wrongly(history: OperationHistory) -> Broken | None:
    keys = dict.fromkeys(key for registration in history.registrations for key in registration.keys)
    first: dict[str, GivenBack] = {}
    for back in sorted(history.given_back, key=lambda back: back.call_i):
        if keys and back.key not in keys:
            return Broken(
                "given-back-by-another-key",
                [history.registrations[0].call_i, back.call_i, back.point.i],
                f"only a cancel_for_key of one of its keys returns the operation: {', '.join(keys)}",
                f"cancel_for_key({back.key}) returned it",
            )
        before = first.setdefault(back.key, back)
        if before.call_i != back.call_i and _is_registered(history, before.call_i):
            return Broken(
                "given-back-twice",
                [before.call_i, before.point.i, back.call_i, back.point.i],
                f"cancel_for_key({back.key}) returns the operation once",
                "a second call returned it again",
            )
    return None


def _not_given_back(run: Run, history: OperationHistory) -> Broken | None:
    registration = history.registration
    if not run.whole or not run.records("try_complete") or registration is None or registration.out != 0:
        # `cancelled` may be recorded after the return of the call, so in the part that was cut off.
        return None
    for key in dict.fromkeys(registration.keys):
        calls = run.facts.settled.get(key, ())
        first = bisect_right(calls, registration.end_i, key=attrgetter("call_i"))
        for cancel in calls[first : first + 1]:
            if _waited(run, history, cancel) and not _may_be_given_back(run, history, key, cancel.ret_i):
                return Broken(
                    "not-given-back",
                    [registration.end_i, cancel.call_i, cancel.ret_i],
                    f"cancel_for_key({key}) returns every operation that waits under that key",
                    "the operation waited during the whole call, and was not returned",
                )
    return None


def _waited(run: Run, history: OperationHistory, cancel: KeyCancel) -> bool:
    """Whether the operation was watched, and no call changed it, up to the return of the `cancel_for_key`."""
    due_t = _earliest_due_t(history)
    if due_t is not None and due_t - (run.early_ns or 0) <= cancel.ret_t:
        return False
    for call in history.calls():
        quiet = call.f in ("try_complete_else_watch", "timer_add") or (
            call.f == "try_complete" and call.out == 0
        )
        if call.call_i < cancel.ret_i and not (quiet and call.end_i < cancel.call_i):
            return False
    claim = history.claim
    # If the claim is known only by its callback, it may have come long before the callback.
    return claim is None or any(
        call.call_i > cancel.ret_i and call.contains(claim) for call in (*history.tries, *history.fires)
    )


def _may_be_given_back(run: Run, history: OperationHistory, key: str, before_i: int) -> bool:
    """Whether a call that began before this position may have returned the operation under the key, or a shutdown
    removed it."""
    calls = {back.point.i: back.call_i for back in history.given_back if back.key == key}
    return may_have_been_given_back(run, history, [key], before_i) or any(
        not point.keys or (key in point.keys and calls.get(point.i, -1) < before_i)
        for point in history.cancelled
    )


def _earliest_due_t(history: OperationHistory) -> int | None:
    """The earliest time at which the operation's time-out may have passed. None without a time-out."""
    known = [add.deadline_t for add in history.adds if add.deadline_t is not None]
    delays = [one.call_t + max(one.delay_ns, 0) for one in history.registrations if one.delay_ns is not None]
    return min([*known, *delays], default=None)


def _under_a_lost_key(history: OperationHistory, truths: list[Call]) -> Broken | None:
    for back in history.given_back:
        if not _is_registered(history, back.call_i):
            continue
        keys = ", ".join(back.point.keys)
        for attempt in truths:
            check = history.under.get(attempt.call_i)
            if check is not None and check.key in back.point.keys and check.call_i > back.point.i:
                return Broken(
                    "completed-under-a-lost-key",
                    [back.call_i, back.point.i, check.call_i, attempt.end_i],
                    f"cancel_for_key({back.key}) returned the operation: no later check of {keys} completes it",
                    f"check_and_complete({check.key}) on {attempt.th} completed it",
                )
    return None


O3 = Clause("O3")


@O3.of_operation
def expiration_after_completion(run: Run, history: OperationHistory) -> Finding:
    """Judge the calls of `on_expiration`.

    If the trace records no add and no fire, rule 2 requires the completion and the `on_expiration` on one thread.
    """
    expirations = history.expirations
    if not expirations:
        return _ran_its_callback(history)
    if len(expirations) > 1:
        return Broken(
            "expired-twice",
            [expired.call_i for expired in expirations],
            "on_expiration runs at most once",
            f"it ran {len(expirations)} times, on {_threads(expirations)}",
            stands=True,
        )
    (expired,) = expirations
    before = [done for done in history.completes if done.end_i < expired.call_i]
    if any(_same_expiry(run, history, done, expired) for done in before):
        return KEPT
    return Broken(
        "expiration-without-its-completion",
        [expired.call_i, *(done.call_i for done in history.completes)],
        "on_expiration runs only after the on_complete that this expiry itself caused",
        "on_complete had run for another cause" if before else "no on_complete had ended before it",
    )


def _expired_by_itself(b: OperationBlock) -> Truth:
    completed = b.done_n.equals(1) & (b.done_ret < b.exp_call) & b.done_th.equals(b.exp_th)
    if not b.run.tells_time_outs:
        return completed
    fired = b.fire_n.equals(1) & b.fire_th.equals(b.exp_th) & (b.fire_call < b.done_call)
    return completed & fired & (b.exp_ret <= b.fire_ret)


O3.fast_rule = FastRule(
    occasion=lambda b: b.exp_n > 0,
    broken=lambda b: (
        (b.exp_n.equals(0) & b.by_expiry.surely()) | ((b.exp_n > 0) & ~_expired_by_itself(b).surely())
    ),
)


def _ran_its_callback(history: OperationHistory) -> Finding:
    for winner in history.winners:
        fire = history.fire_of(winner)
        if fire is not None and fire.ret_i is not None and fire.err is None:
            return Broken(
                "expired-without-its-callback",
                [fire.call_i, winner.end_i, fire.ret_i],
                "an expiry whose force_complete returned true runs on_expiration",
                f"the expiry on {fire.th} ended without an on_expiration",
            )
    return NO_OCCASION


def _same_expiry(run: Run, history: OperationHistory, done: Call, expired: Call) -> bool:
    if not run.tells_time_outs:
        return done.th == expired.th
    return any(fire.contains(done) and fire.contains(expired) for fire in history.fires)


O6 = Clause("O6")


@O6.of_operation
def no_overlap(run: Run, history: OperationHistory) -> Finding:
    """Judge the intervals of `try_complete` and `on_complete`.

    The start and the end of both functions are recorded while the lock of the operation is held. So if two recorded
    intervals overlap, the functions did overlap. If records were dropped, the return of a call may be missing. An
    overlap with such a call is UNKNOWN. With the profile `pending-flag`, the first `try_complete` of a registration
    takes no lock, because no other thread knows the operation yet. After a second registration, this is no longer true.
    A `try_complete` after the completion is allowed: Kafka 2.7.2 makes such calls.
    """
    beside = run.profile.completes_beside
    if beside and len(history.registrations) > 1:
        return NO_OCCASION
    calls = history.tries if beside else [*history.tries, *history.completes]
    if not history.tries or len(calls) < 2:
        return NO_OCCASION
    last: dict[tuple[str, str], Call] = {}
    for call in sorted(calls, key=attrgetter("call_i")):
        for other in last.values():
            if other.th != call.th and call.call_i < other.end_i and "try_complete" in (other.f, call.f):
                return Broken(
                    "overlap",
                    [other.call_i, call.call_i],
                    "no two try_complete calls overlap; in profile locked, no try_complete and on_complete overlap. "
                    "(An operation without a lock may have the profile lock-free)",
                    f"{call.f} ran on {call.th} while {other.f} ran on {other.th}",
                    stands=call.ret_i is not None and other.ret_i is not None,
                )
        before = last.setdefault((call.th, call.f), call)
        if before.end_i < call.end_i:
            last[call.th, call.f] = call
    return KEPT


O6.fast_rule = FastRule(
    occasion=lambda b: (b.try_n > 1) | ((b.try_n > 0) & (b.done_n > 0) & b.under_lock),
    broken=lambda b: (
        b.flag("tried_within")
        | (
            (b.done_n > 0)
            & b.under_lock
            & (
                (b.false_ret > b.done_call).surely()
                | (b.true_n > 1)
                | (b.true_n.equals(1) & ~b.true_th.equals(b.done_th))
            )
        )
    ),
)


def _threads(calls: list[Call]) -> str:
    return ", ".join(sorted({call.th for call in calls}))


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


O7.fast_rule = FastRule(lambda b: b.reg_out.given() | (b.try_answers > 0), _wrong_answer)
