"""T1 to T4: a task fires not early, not late, once, and not after its cancel."""

from __future__ import annotations

from purgatorio_spec.clause.limbo import due_by_the_end
from purgatorio_spec.history.operation import NEVER, Call, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation


def _broken(
    run: Run, clause: str, history: OperationHistory, cause: str, events: list[int], allowed: str, seen: str
) -> Judgement:
    """A violation, unless records were dropped: an add that is missing would excuse any of these."""
    if run.dropped:
        return UNDECIDED
    return Judgement(1, Violation(clause, history.id, cause, tuple(sorted(events)), allowed, seen))


def _in_force(history: OperationHistory, fire: Call) -> list[Call]:
    """The adds that this fire may answer: started before it, and not surely replaced by a later add."""
    before = [add for add in history.adds if add.call_i < fire.call_i and add.err is None]
    settled = [add for add in before if add.end_i < fire.call_i]
    latest = max((add.call_i for add in settled), default=-1)
    return [add for add in before if add.end_i >= latest or add.end_i == NEVER]


def not_early(run: Run, history: OperationHistory) -> Judgement:
    """T1. An occasion is a task that fired and whose deadline is recorded. Needs `early_ns`."""
    early_ns = run.early_ns or 0
    occasions = 0
    for fire in history.fires:
        adds = _in_force(history, fire)
        deadlines = [add.deadline_t for add in adds if add.deadline_t is not None]
        if not deadlines or len(deadlines) < len(adds):
            continue
        occasions = 1
        earliest_t = min(deadlines) - early_ns
        if fire.call_t < earliest_t:
            return _broken(
                run,
                "T1",
                history,
                "early",
                [*(add.call_i for add in adds), fire.call_i],
                f"fires at t >= {earliest_t} (deadline {min(deadlines)}, early bound {early_ns} ns)",
                f"fired at t = {fire.call_t}, {earliest_t - fire.call_t} ns early",
            )
    return KEPT if occasions else NO_OCCASION


def not_late(run: Run, history: OperationHistory) -> Judgement:
    """T2 in real time. An occasion is a task added once that fired while nothing had cancelled or completed it.

    The deadline may have been computed anywhere between the add's call and its return, so lateness counts from the
    return. A task that never fired is T3's. Needs `late_ns`.
    """
    late_ns = run.late_ns or 0
    if len(history.adds) != 1 or not history.fires:
        return NO_OCCASION
    add, fire = history.adds[0], history.fires[0]
    if any(cancel.call_i < fire.call_i for cancel in history.cancels):
        # A cancel that begins later is the one inside the expiry's own `force_complete`, or too late to matter.
        return NO_OCCASION
    claim = history.claim
    if add.deadline_t is None or add.ret_t is None or (claim is not None and claim.call_i < fire.call_i):
        return NO_OCCASION
    due_t = (
        max(add.deadline_t, add.ret_t + (add.delay_ns or 0)) if add.delay_ns is not None else add.deadline_t
    )
    due_t = max(due_t, add.ret_t)
    if fire.call_t <= due_t + late_ns:
        return KEPT
    return _broken(
        run,
        "T2",
        history,
        "late",
        [add.call_i, fire.call_i],
        f"fires by t = {due_t + late_ns} (due {due_t}, late bound {late_ns} ns)",
        f"fired at t = {fire.call_t}, {fire.call_t - due_t - late_ns} ns beyond the bound",
    )


def exactly_once(run: Run, history: OperationHistory) -> Judgement:
    """T3. An occasion is a task that was added and that fired or had to fire before the end.

    Each add arms the task once (adding a pending task moves it), so there are at most as many fires as adds.
    """
    adds = [add for add in history.adds if add.err is None]
    if not adds:
        return NO_OCCASION
    if len(history.fires) > len(adds):
        return _broken(
            run,
            "T3",
            history,
            "fired-twice",
            [fire.call_i for fire in history.fires],
            f"fires at most once an add ({len(adds)} here)",
            f"fired {len(history.fires)} times",
        )
    last = adds[-1]
    if any(fire.call_i > last.call_i for fire in history.fires):
        return KEPT
    disarmed = history.cancels or history.cancelled or history.claim is not None
    deadline_t = last.deadline_t
    if disarmed or deadline_t is None:
        return NO_OCCASION
    if not run.whole:
        return UNDECIDED
    if last.ret_i is None or not due_by_the_end(run, deadline_t):
        return NO_OCCASION
    return _broken(
        run,
        "T3",
        history,
        "never-fired",
        [last.call_i, last.ret_i],
        "a task that is not cancelled fires exactly once",
        f"its deadline passed at t = {deadline_t}, {run.end_t - deadline_t} ns before the end, and it never fired",
    )


def cancelled_does_not_fire(run: Run, history: OperationHistory) -> Judgement:
    """T4. An occasion is a task with a cancel, or a completion not by its expiry, that returned before the deadline
    (less the early bound), or, where cancel is a barrier, a cancel that succeeded. Of a completion that came before the
    task was in the timer only the registration's return tells that the task was taken back. Needs `early_ns`."""
    occasions = 0
    for stop in _stops(history):
        bound_t = _armed_deadline_t(history, stop)
        if bound_t is None or stop.ret_t is None:
            continue
        barrier = run.profile.cancel_is_barrier and stop.f == "timer_cancel"
        in_time = _settled_t(history, stop) < bound_t - (run.early_ns or 0)
        if not in_time and not barrier:
            continue
        occasions = 1
        wrong = next((fire for fire in history.fires if _ruled_out(history, stop, in_time, fire)), None)
        if wrong is not None:
            return _broken(
                run,
                "T4",
                history,
                "fired-after-cancel" if stop.f == "timer_cancel" else "fired-though-completed",
                [stop.call_i, stop.end_i, wrong.call_i],
                f"{stop.f} returned at t = {stop.ret_t}, {bound_t - stop.ret_t} ns before the deadline: "
                "the task does not fire",
                f"it fired at t = {wrong.call_t}",
            )
    return KEPT if occasions else NO_OCCASION


def _stops(history: OperationHistory) -> list[Call]:
    """What must keep the task from firing: cancels that did not say that they failed, and completions, but for those
    that this very expiry made."""
    stops = [cancel for cancel in history.cancels if cancel.out != 0 and cancel.err is None]
    return [stop for stop in (*stops, *history.winners) if history.fire_of(stop) is None]


def _settled_t(history: OperationHistory, stop: Call) -> int:
    """By when this stop has taken effect.

    An add that came after the completion is taken back by the registration, at the latest when it returns (KAFKA-2226).
    If the deadline came first, the task may by then have been handed to the executor, which nothing takes back; so an
    add with no delay that had to wait for a lock fires although its operation was completed long before.
    """
    assert stop.ret_t is not None
    if stop.f != "force_complete" or not _has_late_add(history, stop):
        return stop.ret_t
    registration = history.registration
    if registration is None or registration.ret_t is None:
        return NEVER
    return max(stop.ret_t, registration.ret_t)


def _has_late_add(history: OperationHistory, stop: Call) -> bool:
    return any(add.end_i > stop.call_i for add in history.adds)


def _ruled_out(history: OperationHistory, stop: Call, in_time: bool, fire: Call) -> bool:
    """Whether this stop forbids this fire."""
    if stop.f == "force_complete":
        # Until the registration has taken back an add that came after the completion, the task may fire.
        registration = history.registration
        taken_back = registration is not None and fire.call_i > registration.end_i
        return taken_back or not _has_late_add(history, stop)
    # A cancel after the deadline rules out what starts after it; one that says that it won rules out any fire.
    if not in_time and stop.out != 1 and fire.call_i < stop.end_i:
        return False
    # An add that may have taken effect after the cancel arms the task again.
    rearmed_i = min((add.call_i for add in history.adds if add.end_i > stop.call_i), default=NEVER)
    return fire.call_i < rearmed_i


def _armed_deadline_t(history: OperationHistory, stop: Call) -> int | None:
    """The deadline of the add that this stop answers: for a cancel the last add that had returned before it; a
    completion answers also an add that comes after it (the timer's late add: KAFKA-2226)."""
    if stop.f == "force_complete":
        deadlines = [add.deadline_t for add in history.adds if add.deadline_t is not None]
        return min(deadlines, default=None)
    before = [add for add in history.adds if add.end_i < stop.call_i]
    return before[-1].deadline_t if before else None
