"""O1, O2, O3, O6: completion happens once, for a cause, before its expiration callback, and alone."""

from __future__ import annotations

from purgatorio_spec.history.operation import Call, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation


def once(run: Run, history: OperationHistory) -> Judgement:
    """O1. An occasion is an operation with a `force_complete` or an `on_complete`."""
    if not history.forces and not history.completes:
        return NO_OCCASION
    completes, winners = history.completes, history.winners
    if len(completes) > 1:
        return _broken(
            history,
            "completed-twice",
            [done.call_i for done in completes],
            "on_complete starts at most once",
            f"it started {len(completes)} times, on {_threads(completes)}",
        )
    if len(winners) > 1:
        return _broken(
            history,
            "two-winners",
            [force.end_i for force in winners],
            "force_complete returns true to exactly one caller",
            f"it returned true {len(winners)} times, on {_threads(winners)}",
        )
    if run.dropped:
        together = any(winner.contains(done) for winner in winners for done in completes)
        return KEPT if together else UNDECIDED
    for winner in winners:
        if not any(winner.contains(done) for done in completes):
            return _broken(
                history,
                "winner-without-callback",
                [winner.call_i, winner.end_i, *(done.call_i for done in completes)],
                "the force_complete that returns true contains the on_complete",
                f"the call on {winner.th} returned true, and no on_complete ran inside it",
            )
    for done in completes:
        for force in history.forces:
            if force.contains(done) and force.out == 0:
                return _broken(
                    history,
                    "loser-ran-callback",
                    [force.call_i, done.call_i, force.end_i],
                    "the force_complete that runs on_complete returns true",
                    f"the call on {force.th} ran on_complete and returned false",
                )
    return KEPT


def caused(run: Run, history: OperationHistory) -> Judgement:
    """O2. An occasion is an operation with an `on_complete` or a `try_complete` that returned true."""
    truths = [attempt for attempt in history.tries if attempt.out == 1]
    if not history.completes and not truths:
        return NO_OCCASION
    for done in history.completes:
        if any(force.contains(done) for force in history.forces):
            continue
        if run.dropped:
            return UNDECIDED
        return _broken(
            history,
            "callback-without-force",
            [done.call_i],
            "on_complete runs only inside a force_complete of its operation",
            f"it ran on {done.th} outside of any",
        )
    if truths and run.records("ready"):
        return _could_have_been_ready(run, history, truths)
    return KEPT


def _could_have_been_ready(run: Run, history: OperationHistory, truths: list[Call]) -> Judgement:
    first = min(truths, key=lambda attempt: attempt.end_i)
    ready = history.ready
    if ready is None:
        if not run.whole:
            return UNDECIDED
        return _broken(
            history,
            "true-and-never-ready",
            [first.call_i, first.end_i],
            "try_complete returns true only if the operation could have been ready",
            f"it returned true on {first.th}, and the operation was never ready",
        )
    if ready.t_call is not None and first.ret_t is not None and first.ret_t < ready.t_call:
        return _broken(
            history,
            "true-before-ready",
            [first.call_i, first.end_i, ready.i],
            f"try_complete returns true only if the operation could have been ready (from t = {ready.t_call} on)",
            f"it returned true at t = {first.ret_t}, {ready.t_call - first.ret_t} ns before that",
        )
    return KEPT


def expiration_after_completion(run: Run, history: OperationHistory) -> Judgement:
    """O3. An occasion is an operation with an `on_expiration`."""
    expirations = history.expirations
    if not expirations:
        return NO_OCCASION
    if len(expirations) > 1:
        return _broken(
            history,
            "expired-twice",
            [expired.call_i for expired in expirations],
            "on_expiration at most once",
            f"it ran {len(expirations)} times, on {_threads(expirations)}",
        )
    (expired,) = expirations
    before = [done for done in history.completes if done.end_i < expired.call_i]
    if any(_same_expiry(run, history, done, expired) for done in before):
        return KEPT
    if run.dropped:
        return UNDECIDED
    return _broken(
        history,
        "expiration-without-its-completion",
        [expired.call_i, *(done.call_i for done in history.completes)],
        "on_expiration runs only after the on_complete that this expiry itself caused",
        "on_complete had run for another cause" if before else "no on_complete had ended before it",
    )


def _same_expiry(run: Run, history: OperationHistory, done: Call, expired: Call) -> bool:
    """Whether one run of the timer task made both calls; where fires are not recorded, whether one thread did."""
    if not run.records("timer_fire"):
        return done.th == expired.th
    return any(fire.contains(done) and fire.contains(expired) for fire in history.fires)


def no_overlap(run: Run, history: OperationHistory) -> Judgement:
    """O6. An occasion is an operation with both a `try_complete` and an `on_complete`.

    Both are recorded inside the callback, that is, under the operation's lock where there is one; so intervals of two
    threads that overlap in the recorder's order did overlap. Nesting on one thread is the normal case. Where records
    were dropped, a call without its return may have ended long ago.
    """
    if not history.completes or not history.tries:
        return NO_OCCASION
    for done in history.completes:
        for attempt in history.tries:
            if attempt.th != done.th and attempt.call_i < done.end_i and done.call_i < attempt.end_i:
                if run.dropped and (attempt.ret_i is None or done.ret_i is None):
                    return UNDECIDED
                return _broken(
                    history,
                    "overlap",
                    [max(attempt.call_i, done.call_i), min(attempt.call_i, done.call_i)],
                    "try_complete and on_complete of one operation never overlap",
                    f"try_complete ran on {attempt.th} while on_complete ran on {done.th}",
                )
    return KEPT


def _threads(calls: list[Call]) -> str:
    return ", ".join(sorted({call.th for call in calls}))


def _broken(history: OperationHistory, cause: str, events: list[int], allowed: str, seen: str) -> Judgement:
    clause = _CLAUSE_OF[cause]
    return Judgement(1, Violation(clause, history.id, cause, tuple(sorted(events)), allowed, seen))


_CLAUSE_OF = {
    "completed-twice": "O1",
    "two-winners": "O1",
    "winner-without-callback": "O1",
    "loser-ran-callback": "O1",
    "callback-without-force": "O2",
    "true-and-never-ready": "O2",
    "true-before-ready": "O2",
    "expired-twice": "O3",
    "expiration-without-its-completion": "O3",
    "overlap": "O6",
}
