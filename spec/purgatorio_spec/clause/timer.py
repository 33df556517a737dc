"""The clauses T1 to T4: a task fires not early, not late, once, and not after its cancel. `clauses.toml` has the rules
and their formulas. In virtual time, T2 and T3 wait for the first chance to run (see `Run.chance_t`).

An add of a pending task moves the task. But a task that was due before the move may be at the executor already, where
the timer cannot stop it. If such a task fires, its cause can be the add before the move.
"""

from typing import NamedTuple

from purgatorio_spec.clause.declaration import Broken, Clause, FastRule, Finding
from purgatorio_spec.clause.lost import Due, at_the_end, end_of_request, may_have_been_given_back
from purgatorio_spec.durations import exact
from purgatorio_spec.history.block import OperationBlock, Truth, limited
from purgatorio_spec.history.operation import NEVER, Call, InForce, OperationHistory, latest_due_t
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_BOUND, NO_OCCASION, STILL_OPEN, WANT_OF_RECORDS

T1 = Clause("T1")


@T1.of_operation
def not_early(run: Run, history: OperationHistory) -> Finding:
    """Judge each fire of the task.

    If the task was added twice, each fire needs an add of its own.
    """
    if _is_judged_elsewhere(history):
        return NO_OCCASION
    early_ns = run.early_ns or 0
    occasions = 0
    unanswered = history.in_force(early_ns, cancelled=True)
    for fire in history.fires:
        if run.facts.halted_i is not None and run.facts.halted_i < fire.call_i:
            break  # T4 forbids this fire, early or not
        unanswered = [one for one in unanswered if one.until_i >= fire.call_i]
        adds = [one.add for one in unanswered if one.reaches(fire.call_i)]
        deadlines = [add.deadline_t for add in adds if add.deadline_t is not None]
        if not deadlines or len(deadlines) < len(adds):
            continue
        occasions = 1
        due = next((add for add in adds if add.may_run(fire.call_t, early_ns)), None)
        if due is not None:
            unanswered = [one for one in unanswered if one.add is not due]
            continue
        earliest_t = min(deadlines) - early_ns
        return Broken(
            "early",
            [*(add.call_i for add in adds), fire.call_i],
            f"fires at t >= {run.at(earliest_t)} (deadline {run.at(min(deadlines))}, early bound {exact(early_ns)})",
            f"fired at t = {run.at(fire.call_t)}, {exact(earliest_t - fire.call_t)} early",
            stands=run.profile.answered_in_time,
        )
    return KEPT if occasions else NO_OCCASION


T1.fast_rule = FastRule(
    occasion=lambda b: (
        b.fire_n.equals(1) & b.add_n.equals(1) & b.deadline_t.given() & (b.add_call < b.fire_call)
    ),
    broken=lambda b: b.fire_n.equals(1) & b.deadline_t.given() & (b.fire_t < b.in_time_t),
)


T2 = Clause("T2")


@T2.of_operation
def not_late(run: Run, history: OperationHistory) -> Finding:
    """Judge each fire of the task that only one add can have caused.

    The timer may compute the deadline at any time between the call and the return of the add. So lateness counts from
    the return, or from the end of the run before it, if that is later. With the profile `request-log`, the answer to a
    request counts like a fire: the answer must come at most `late_ns` after the time-out.
    """
    late_ns = run.late_ns or 0
    if _is_judged_elsewhere(history):
        return NO_OCCASION
    if not history.fires:
        return _answered_in_time(run, history, late_ns) if run.profile.answered_in_time else NO_OCCASION
    occasion, before_t = False, 0
    waiting = history.in_force(run.early_ns or 0)
    for fire in history.fires:
        causes = [one for one in waiting if one.reaches(fire.call_i)]
        waiting = [one for one in waiting if one not in causes]
        due_t = _due_of_the_only(history, causes, fire)
        if due_t is not None:
            occasion, add = True, causes[0].add
            due_t = max(due_t, before_t)
            last_t = run.chance_t(due_t + late_ns, add.call_i)
            if fire.call_t > last_t:
                return Broken(
                    "late",
                    [add.call_i, fire.call_i],
                    f"fires by t = {run.at(last_t)} (due {run.at(due_t)}, {run.late_bound})",
                    f"fired at t = {run.at(fire.call_t)}, {exact(fire.call_t - last_t)} beyond the bound",
                    stands=run.profile.answered_in_time,
                )
        if fire.ret_t is None:
            break
        before_t = max(before_t, fire.ret_t)
    return KEPT if occasion else NO_OCCASION


def _late(b: OperationBlock) -> Truth:
    return b.fire_n.equals(1) & (b.fire_t > b.chance_t(b.latest_due_t + limited(b.run.late_ns or 0)))


def _undisturbed(b: OperationBlock) -> Truth:
    cancelled = (b.stopped_call < b.fire_call) & ~(b.cancel_ret < b.add_call).surely()
    stopped = cancelled.surely() | (b.win_call < b.fire_call).surely()
    return b.fire_n.equals(1) & b.add_n.equals(1) & (b.add_call < b.fire_call) & ~stopped & b.timed


def _answered(b: OperationBlock) -> Truth:
    ended = b.fire_n.equals(0) & b.win_n.equals(1) & b.add_n.equals(1) & b.timed
    return b.always(b.run.profile.answered_in_time) & ended


def _answered_late(b: OperationBlock) -> Truth:
    return _answered(b) & (b.win_t > b.latest_due_t + limited(b.run.late_ns or 0))


T2.fast_rule = FastRule(
    occasion=lambda b: _undisturbed(b) | _answered(b), broken=lambda b: _late(b) | _answered_late(b)
)


def _due_of_the_only(history: OperationHistory, causes: list[InForce], fire: Call) -> int | None:
    """The time at which the fire was due, if one add is its only cause, and no cancel or completion came before it. (A
    later cancel is inside the expiry's own `force_complete`, or too late to matter.)"""
    if len(causes) != 1 or (history.claim is not None and history.claim.call_i < fire.call_i):
        return None
    (add,) = (one.add for one in causes)
    cancelled = any(one.call_i < fire.call_i and one.end_i > add.call_i for one in _cancels(history))
    return None if cancelled else add.latest_due_t


def _answered_in_time(run: Run, history: OperationHistory, late_ns: int) -> Finding:
    """Whether a request of a log ended in time. If its client gave it up, it must not have been overdue then."""
    due_t = history.adds[0].latest_due_t if len(history.adds) == 1 else None
    end = end_of_request(history)
    if end is None or due_t is None:
        return NO_OCCASION
    end_i, end_t, seen = end
    if end_t <= due_t + late_ns:
        return KEPT
    return Broken(
        "answered-late",
        [history.adds[0].call_i, end_i],
        f"answered or timed out by t = {run.at(due_t + late_ns)} (due {run.at(due_t)}, {run.late_bound})",
        f"{seen} at t = {run.at(end_t)}, {exact(end_t - due_t - late_ns)} beyond the bound",
        stands=True,
    )


T3 = Clause("T3")


@T3.of_operation
def exactly_once(run: Run, history: OperationHistory) -> Finding:
    """Judge the number of fires of the task.

    A cancel does not stop the task if it returned 0, or if it came before the last add. An add that raised an exception
    is not judged, because the task may be pending or not. The next run of a task may wait for the end of its previous
    run. So *overdue* counts from this end, if the end is later than the deadline. T4 judges a fire of a cancelled task.
    """
    if _is_judged_elsewhere(history):
        return NO_OCCASION
    in_force = history.in_force(run.early_ns or 0)
    answers = {add.call_i for fire in history.fires for add in _causes(run, in_force, fire)}
    most = max(len(answers), min(len(history.adds), 1))
    if len(history.fires) > most:
        here = "1 was" if most == 1 else f"{most} were"
        calls = "adds and resets" if any(add.f == "timer_reset" for add in history.adds) else "adds"
        fewer = f": of its {len(history.adds)} {calls}, only {here} in force and due when it fired"
        return Broken(
            "fired-twice" if history.adds else "fired-and-never-added",
            [fire.call_i for fire in history.fires],
            f"fires at most once for each add{fewer if most < len(history.adds) else f' ({most} here)'}",
            f"fired {len(history.fires)} times",
        )
    adds = [add for add in history.adds if add.err is None]
    if not adds:
        return KEPT if history.fires else NO_OCCASION
    last = adds[-1]
    # If adds overlap, any of them may be the last to take effect.
    latest = [add for add in adds if add.end_i >= last.call_i]
    after = [fire for fire in history.fires if fire.call_i > last.call_i]
    if any(add in latest for fire in after for add in _causes(run, in_force, fire)):
        return KEPT
    due_t = latest_due_t(latest)
    if due_t is None or _taken_back(history, last) or _may_find_it_ended(history, last):
        return KEPT if history.fires else NO_OCCASION
    if not run.whole:
        return WANT_OF_RECORDS
    runs_still = any(fire.ret_t is None for fire in history.fires)
    due_t = max([due_t, *(fire.ret_t for fire in history.fires if fire.ret_t is not None)])
    due = Due.NOT_YET if runs_still else at_the_end(run, due_t, last.call_i)
    if due is Due.NOT_YET:
        return KEPT if history.fires else NO_OCCASION
    if may_have_been_given_back(run, history, history.keys) or history.may_have_claimed:
        return STILL_OPEN
    if due is Due.UNBOUNDED:
        return NO_BOUND
    unbound = "" if run.late_ns is not None else ": without a late bound, when the timer comes to rest"
    only = f"only fired at t = {run.at(after[-1].call_t)}, for an add before" if after else "never fired"
    if any(cancel.out == 0 and cancel.call_i > last.call_i for cancel in history.cancels):
        only += ", although a cancel returned 0: too late"
    return Broken(
        "never-fired",
        [last.call_i, last.end_i, *(fire.call_i for fire in after)],
        f"a task that is not cancelled fires exactly once{unbound}",
        f"it was due by t = {run.at(due_t)}, {exact(run.facts.end_t - due_t)} before the end, and {only}",
    )


def _not_fired(b: OperationBlock) -> Truth:
    stopped = (b.stopped_n > 0) & ~(b.cancel_ret < b.add_call).surely()
    armed = b.fire_n.equals(0) & ~stopped & b.cut_n.equals(0) & b.win_n.equals(0)
    return armed & b.deadline_t.given() & b.due(b.deadline_t)


T3.fast_rule = FastRule(
    occasion=lambda b: b.add_n.equals(1) & b.fire_n.equals(1),
    broken=lambda b: (
        (b.add_n.equals(0) & (b.fire_n > 0))
        | (b.add_n.equals(1) & ((b.fire_call < b.add_call).surely() | _not_fired(b)))
    ),
)


def _is_judged_elsewhere(history: OperationHistory) -> bool:
    """Whether other clauses judge the task: T8 to T10 judge periodic tasks, and T11 judges tasks with a reset."""
    return history.is_periodic or bool(history.resets)


def _cancels(history: OperationHistory) -> list[Call]:
    """The cancels that did not report a failure. An open cancel, or one that raised, may have succeeded."""
    return [cancel for cancel in history.cancels if cancel.out != 0]


def _taken_back(history: OperationHistory, add: Call) -> bool:
    """Whether the task may have been cancelled: by a cancel that may have come after this add, or at the end of its
    operation."""
    cancelled = any(cancel.end_i > add.call_i for cancel in _cancels(history))
    return cancelled or bool(history.cancelled) or history.claim is not None


def _causes(run: Run, in_force: list[InForce], fire: Call) -> list[Call]:
    """The adds that can be causes of the fire: those that are due, or any if none is due (T1 is about that)."""
    adds = [one.add for one in in_force if one.reaches(fire.call_i)]
    if run.early_ns is None:
        return adds
    return [add for add in adds if add.may_run(fire.call_t, run.early_ns)] or adds


def _may_find_it_ended(history: OperationHistory, add: Call) -> bool:
    """Whether this is a reset without a result that may have come after the end of the task, or when a thread began to
    run it, and armed nothing."""
    ended = bool(history.fires) or any(cancel.call_i < add.end_i for cancel in _cancels(history))
    return add.f == "timer_reset" and add.out is None and ended


T4 = Clause("T4")


class _Stop(NamedTuple):
    """A call after which a task must not fire: its interval, the time by which it has certainly taken effect
    (`settled_t`), and the earliest deadline of the task. `from_i`: the call forbids fires that start after this
    position."""

    cause: str
    f: str
    call_i: int
    end_i: int
    settled_t: int
    deadline_t: int
    from_i: int
    th: str | None = None
    """If set, it forbids only fires of this thread."""
    says: bool = True
    """Whether a cancel had a result."""
    taken: Call | None = None
    """The add that it cancelled, although it overlaps this add."""


@T4.of_operation
def cancelled_does_not_fire(run: Run, history: OperationHistory) -> Finding:
    """Judge the fires of the task against each stop.

    If all events of the trace are on one thread, a cancel that returned 1 is a barrier in every profile: no other
    thread can have been starting the task. Then a cancel without a result is a barrier too, but only in a profile with
    barriers. (On several threads, a cancel without a result may come too late, and cannot report this.) If an operation
    is completed before its task is in the timer, the task counts as cancelled when the registration returns. A
    `cancel_for_key` during the registration is no stop. Rule 4 has these conditions:

    - The cancel returned 0 before the deadline minus `early_ns`, and the task fired later.
    - Every add, run and other cancel that began before the end of this cancel had ended before this cancel began.
    - Of these adds, runs and cancels, the last to begin was an add.
    - Each earlier add was followed by a run or a cancel of its own.
    - No record was dropped.
    """
    stops = [*_cancel_stops(run, history), *_completion_stops(run, history), *_key_stops(run, history)]
    for stop in stops:
        wrong = _ruled_out(history, stop)
        if wrong is not None:
            return _fired_all_the_same(run, stop, wrong)
    halted_i = run.facts.halted_i
    fire = next((fire for fire in history.fires if halted_i is not None and fire.call_i > halted_i), None)
    if halted_i is not None and fire is not None:
        return Broken(
            "fired-after-the-end",
            [*(add.call_i for add in history.adds), halted_i, fire.call_i],
            f"the timer had stopped at t = {run.at(run.facts.end_t)}: no task starts after that",
            f"it fired at t = {run.at(fire.call_t)}",
            stands=True,
        )
    waited = halted_i is not None and bool(history.adds) and not history.fires
    refused = _refused_though_it_waited(run, history)
    return refused or (KEPT if stops or waited else NO_OCCASION)


def _stopped_in_time(b: OperationBlock) -> Truth:
    won = (b.win_t < b.in_time_t) & ((b.add_ret < b.win_call) | (b.reg_ret_t < b.in_time_t))
    holds = b.always(b.run.cancel_is_final(None)) | (b.stopped_t < b.in_time_t)
    cancelled = b.stopped_n.equals(1) & (b.cancel_call > b.add_ret) & holds
    waited = b.always(b.run.facts.halted_i is not None) & (b.add_n > 0)
    return b.fire_n.equals(0) & ((b.deadline_t.given() & (won.surely() | cancelled)) | waited)


def _fired_in_spite(b: OperationBlock) -> Truth:
    won_by_it = b.win_n.equals(0) | b.by_expiry
    inside = b.cancel_th.equals(b.fire_th) & (b.fire_call < b.cancel_call) & (b.cancel_ret <= b.fire_ret)
    excused = won_by_it & (b.stopped_n.equals(0) | inside)
    fired = (b.fire_n > 0) & ((b.stopped_n > 0) | (b.win_n > 0)) & ~excused.surely()
    # No column has the result of a cancel. It matters for a late cancel if only a success is final.
    final = (
        b.always(b.run.cancel_is_final(1) and not b.run.cancel_is_final(None))
        & ~(b.stopped_t < b.in_time_t).surely()
    )
    refused = (b.cancel_n > 0) & b.stopped_n.equals(0) & (b.fire_n > 0) & (b.fire_call > b.cancel_ret)
    halted = b.always(b.run.facts.halted_i is not None) & (b.fire_t >= limited(b.run.facts.end_t)).surely()
    return fired | (final & (b.stopped_n > 0)) | refused | halted


T4.fast_rule = FastRule(_stopped_in_time, _fired_in_spite)


def _refused_though_it_waited(run: Run, history: OperationHistory) -> Broken | None:
    """A violation of rule 4 (its conditions are in `cancelled_does_not_fire`). The cancels of an operation's time-out
    are not judged, because its completion makes them."""
    if run.dropped or history.forces or history.registrations or history.cancelled:
        return None
    for cancel in history.cancels:
        if cancel.out != 0 or cancel.err is not None or cancel.ret_t is None:
            continue
        adds = [add for add in history.adds if add.call_i < cancel.end_i]
        beside = any(add.end_i > cancel.call_i or add.err is not None for add in adds)
        others = [one for one in _cancels(history) if one.call_i < cancel.end_i]
        fires = [fire for fire in history.fires if fire.call_i < cancel.end_i]
        ended = [*others, *fires]
        # A cancel may be about an add that began during it, and a fire about no add that began after its start.
        ended_i = max((*(one.end_i for one in others), *(fire.call_i for fire in fires)), default=-1)
        waiting = [add for add in adds if add.call_i > ended_i]
        deadline_t = _earliest_deadline_t(waiting)
        if (
            beside
            or len(adds) - len(waiting) > len(ended)
            or any(call.end_i > cancel.call_i for call in ended)
            or deadline_t is None
            or not _in_time(run, cancel.ret_t, deadline_t)
        ):
            continue
        again_i = min((add.call_i for add in history.adds if add not in adds), default=NEVER)
        fire = next((fire for fire in history.fires if cancel.end_i < fire.call_i < again_i), None)
        if fire is not None:
            return Broken(
                "not-cancelled-though-it-waited",
                [adds[-1].call_i, cancel.call_i, cancel.end_i, fire.call_i],
                f"{cancel.f} returns 1 for a task that waits: at t = {run.at(cancel.ret_t)}, "
                f"{exact(deadline_t - cancel.ret_t)} before the deadline, no other call had cancelled it",
                f"{cancel.f} returned 0, and the task waited until it fired at t = {run.at(fire.call_t)}",
            )
    return None


def _fired_all_the_same(run: Run, stop: _Stop, fire: Call) -> Broken:
    """The violation with the text of the broken promise: a cancel after a run of the task, a barrier, or a stop before
    the deadline."""
    events = [stop.call_i, stop.end_i, fire.call_i]
    if fire.call_i < stop.call_i:
        return Broken(
            "cancelled-after-it-ran",
            events,
            f"if {stop.f} returns 1, the task has not run and never runs",
            f"{stop.f} returned 1 at t = {run.at(stop.settled_t)}, and the task had run at t = {run.at(fire.call_t)}, "
            f"{exact(stop.settled_t - fire.call_t)} before",
        )
    if not _in_time(run, stop.settled_t, stop.deadline_t):
        how = "succeeded" if stop.says else "had no result, which this profile takes for a success,"
        alone = "" if run.profile.cancel_is_barrier else ", and there is only one thread"
        allowed = f"{stop.f} {how} at t = {run.at(stop.settled_t)}{alone}: the task does not fire at any time"
    else:
        before_ns = stop.deadline_t - stop.settled_t
        allowed = (
            f"{stop.f} took effect by t = {run.at(stop.settled_t)}, {exact(before_ns)} before the deadline: "
        )
        allowed += "the task does not fire"
    return Broken(stop.cause, events, allowed, f"it fired at t = {run.at(fire.call_t)}")


def _earliest_deadline_t(adds: list[Call]) -> int | None:
    known = [add.deadline_t for add in adds if add.deadline_t is not None]
    return min(known) if known and len(known) == len(adds) else None


def _in_time(run: Run, t: int, deadline_t: int) -> bool:
    return t < deadline_t - (run.early_ns or 0)


def _cancel_stops(run: Run, history: OperationHistory) -> list[_Stop]:
    """The stops by cancels that returned, did not report a failure, and were not made by the expiry itself.

    A barrier that returned 1 also forbids a fire that was open. If the task was added again when it may have been
    passed to the executor, or during the cancel, the result may be about another add, so the barrier forbids nothing.
    One exception: a thread that made all these calls, and starts the task itself afterwards. Another exception: if the
    cancelling thread had run the task for each add that was no longer open, a 1 is about the only open add.
    """
    stops = []
    in_force = history.in_force(run.early_ns or 0)
    for cancel in history.cancels:
        if cancel.out == 0 or cancel.err is not None or cancel.ret_t is None or history.fire_of(cancel):
            continue
        answered = [
            one.add for one in in_force if one.reaches(cancel.call_i) and one.add.end_i < cancel.call_i
        ]
        beside = [add for add in history.adds if add.call_i < cancel.end_i and add.end_i > cancel.call_i]
        taken = _taken_beside(history, cancel, beside)
        deadline_t = _earliest_deadline_t(answered if taken is None else [taken])
        if deadline_t is None:
            continue
        barrier = run.cancel_is_final(cancel.out) and (taken is not None or not beside)
        one = len(answered) == 1
        # If one thread made all these calls and starts the task itself afterwards, the task was not running then.
        alone = cancel.out == 1 and all(add.th == cancel.th for add in answered)
        th = None
        if taken is not None:
            if not (barrier or _in_time(run, cancel.ret_t, deadline_t)):
                continue
            from_i = cancel.end_i
        elif one and not beside and cancel.out == 1 and (barrier or _had_run(history, answered[0], cancel)):
            from_i = answered[0].call_i
        elif _in_time(run, cancel.ret_t, deadline_t):
            from_i = cancel.call_i
        elif barrier and (one or alone):
            from_i, th = cancel.end_i, None if one else cancel.th
        else:
            continue
        stops.append(
            _Stop(
                "fired-after-cancel",
                cancel.f,
                cancel.call_i,
                cancel.end_i,
                cancel.ret_t,
                deadline_t,
                from_i,
                th,
                cancel.out is not None,
                taken,
            )
        )
    return stops


def _taken_beside(history: OperationHistory, cancel: Call, beside: list[Call]) -> Call | None:
    """The only add that overlaps the cancel, if the cancel returned 1, and its thread had run the task for each add
    before: it cannot have cancelled another add (rule 3)."""
    before = [add for add in history.adds if add.end_i < cancel.call_i]
    runs = [fire for fire in history.fires if fire.th == cancel.th and fire.end_i < cancel.call_i]
    if cancel.out != 1 or len(beside) != 1 or not before or len(runs) < len(before):
        return None
    return beside[0] if runs[-1].call_i > before[-1].end_i else None


def _had_run(history: OperationHistory, add: Call, cancel: Call) -> bool:
    """Whether a run of the task on the cancelling thread had ended when the cancel began. A run on another thread does
    not count: after the recorded end of its callback, the timer may still set the state of the task. (Until then,
    `cancel` of a Java `FutureTask` returns true.)"""
    return any(
        add.end_i < fire.call_i and fire.end_i < cancel.call_i and fire.th == cancel.th
        for fire in history.fires
    )


def _completion_stops(run: Run, history: OperationHistory) -> list[_Stop]:
    """The stop by the `force_complete` that completed the operation, unless it is the expiry's.

    If the add came after the completion, the registration cancels the task before it returns (KAFKA-2226). If the
    deadline came before that, the task may be at the executor already, and fires. So an add without a delay may fire
    although its operation was completed long before.
    """
    deadline_t = _earliest_deadline_t(history.adds)
    if deadline_t is None:
        return []
    stops = []
    for winner in history.winners:
        if winner.ret_t is None or history.fire_of(winner) is not None:
            continue
        settled_t, from_i = winner.ret_t, winner.call_i
        if any(add.end_i > winner.call_i for add in history.adds):
            registration = history.registration
            if registration is None or registration.ret_t is None:
                continue
            settled_t, from_i = max(settled_t, registration.ret_t), registration.end_i
        if _in_time(run, settled_t, deadline_t):
            stops.append(
                _Stop(
                    "fired-though-completed",
                    winner.f,
                    winner.call_i,
                    winner.end_i,
                    settled_t,
                    deadline_t,
                    from_i,
                )
            )
    return stops


def _key_stops(run: Run, history: OperationHistory) -> list[_Stop]:
    """The stops by a `cancel_for_key` that began after the registration and the adds had returned."""
    deadline_t = _earliest_deadline_t(history.adds)
    begun = [*history.registrations, *history.adds]
    return [
        _Stop(
            "fired-though-given-back",
            "cancel_for_key",
            back.call_i,
            back.point.i,
            back.point.t,
            deadline_t,
            back.point.i,
        )
        for back in history.given_back
        if deadline_t is not None
        and all(call.end_i < back.call_i for call in begun)
        and _in_time(run, back.point.t, deadline_t)
    ]


def _ruled_out(history: OperationHistory, stop: _Stop) -> Call | None:
    """The first fire that this stop forbids: the fire comes after the stop, and no later add may have armed the task
    again. (An add after the completion does not arm it.)"""
    later = (add.call_i for add in history.adds if add.end_i > stop.call_i and add is not stop.taken)
    rearmed_i = NEVER if stop.f == "force_complete" else min(later, default=NEVER)
    fires = (fire for fire in history.fires if stop.from_i < fire.call_i < rearmed_i)
    return next((fire for fire in fires if stop.th in (None, fire.th)), None)
