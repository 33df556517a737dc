"""The clauses P1, P2, P4, T5: the values of the gauges are possible, and completed operations are purged.

A *reading* of a gauge records `watched` (entries in the lists of the keys), `delayed` (tasks in the timer), `keys` or
`size()`. `history.summary` computes the least and the greatest possible value from the other events of the trace. The
judging functions of P1 and P2 say what *unseen*, *waiting* and *raced* mean. There may be any number of raced tasks. A
task that ended, was added again, and may have ended again counts as raced too.
"""

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.history.part import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, STILL_OPEN

P1 = Clause("P1")


@P1.of_reading
def garbage_is_bounded(run: Run, reading: Reading) -> Finding:
    """Judge `watched` at rest.

    The purgatory estimates the number of operations in its lists. If the estimate exceeds the number of timer tasks by
    more than `purge_interval`, a *purge* removes the entries of completed operations. Then the purge sets the estimate
    to the number of timer tasks. So the estimate misses each operation that is in a list and not in the timer. The
    reasons:

    - The time-out of the operation has passed.
    - The operation has no time-out.
    - The registration of the operation is not finished.
    - A `cancel_for_key` of another key has returned the operation.

    A timer task that is no operation counts in that number too. So each lets one more completed operation stay.

    *unseen* counts the entries of these operations, if the operations were completed after the last purge. The time of
    the purge is not recorded, so the clause takes the time with the largest *unseen*. In virtual time, *unseen* counts
    at most m unfinished registrations. m is the larger of two numbers: the most registrations that were open at one
    time, and the most registrations that overlapped one `advance_clock` on another thread. *waiting* leaves out an
    operation that `cancel_for_key` calls have returned for each of its keys.
    """
    if not reading.at_rest or reading.watched is None or run.purge_interval is None:
        return NO_OCCASION
    most = reading.waiting + reading.garbage_most
    if reading.watched <= most:
        return KEPT
    if run.facts.unsettled_before(reading.ret_i):
        # A purge misses an operation that a `cancel_for_key` returned without a record, while another key has it.
        return STILL_OPEN
    interval, others = run.purge_interval + reading.plain_tasks, reading.plain_tasks
    of = f"the purge interval{f', and {others} tasks of others' * (others > 0)}"
    # Without an interval, each completion removes its entries, and the subject may have no purge at all.
    unseen = (
        "that the last purge may have missed"
        if run.purge_interval
        else "completed without a waiting time-out"
    )
    return Broken(
        "garbage",
        reading.events,
        f"watched <= {most} = {reading.waiting} of waiting operations + {reading.garbage_most - reading.unseen} of "
        f"{interval} completed operations ({of}) + {reading.unseen} {unseen}",
        f"watched = {reading.watched}",
    )


P2 = Clause("P2")


@P2.of_reading
def gauges_bound_the_truth(run: Run, reading: Reading) -> Finding:
    """Judge `watched` at any time, and `delayed` at rest.

    The purgatory reads the sizes before the event is recorded. If a reading is a call and a return, the earliest time
    is the call. If a reading is a single event, the earliest time is the previous event of its thread. Without such an
    event, only a reading at rest is an occasion. A task is *raced* in two cases:

    - A cancel of the task began during an add of the task.
    - Another event was recorded between the call and the return of a cancel of the task.

    A raced task counts until the first `quiesce` after (deadline + `late_ns` + 200 ms). The 200 ms are the period of
    Kafka's reaper. Without `late_ns` in the header, the clause uses 1 s. In profiles other than `locked` and
    `pending-flag`, no task is raced. In real time, a waiter of the profile `hand-over` may still be leaving at rest.
    """
    if not reading.bounded:
        return NO_OCCASION
    # Operations that a `cancel_for_key` may have returned without an event may be counted or not.
    least = 0 if run.facts.unsettled_before(reading.ret_i) else reading.watched_least
    if reading.watched is not None and not least <= reading.watched <= reading.watched_most:
        return Broken(
            "watched-out-of-bounds",
            reading.events,
            f"{least} <= watched <= {reading.watched_most}",
            f"watched = {reading.watched}",
        )
    overcounted = _may_overcount(run, reading)
    most = reading.live + reading.plain_tasks + overcounted
    at_rest = reading.at_rest and (run.virtual or not run.profile.hands_over)
    if reading.delayed is not None and at_rest and reading.delayed > most:
        return Broken(
            "delayed-above-live",
            reading.events,
            f"at rest, delayed <= {most} live operations and plain tasks"
            + (f", {overcounted} of them cancelled in a race" if overcounted else ""),
            f"delayed = {reading.delayed}",
        )
    return KEPT


P4 = Clause("P4")


@P4.of_reading
def empty_lists_are_dropped(run: Run, reading: Reading) -> Finding:
    """Judge `keys` at rest.

    A list that is not empty has an entry. So if there are more keys than entries, some lists are empty. The recorder
    must read `keys` after `watched`. If `keys` is read first, a purge between the two looks like a violation.
    """
    if not reading.at_rest or reading.keys is None or reading.watched is None:
        return NO_OCCASION
    if reading.keys <= reading.watched:
        return KEPT
    return Broken(
        "empty-lists",
        reading.events,
        f"keys <= {reading.watched}, the watched entries",
        f"keys = {reading.keys}",
    )


T5 = Clause("T5")


@T5.of_reading
def size_is_exact(run: Run, reading: Reading) -> Finding:
    """Judge `delayed`, the result of `size()`, with the readings of P2.

    With the profile `netty-hashed-wheel`, `size()` counts a cancelled task until the next tick. So a task may count for
    a tick after its cancel. P2 defines `raced`. Even at rest, a reaper may be moving one task between buckets, without
    a record. Only a `quiesce` excludes this. So without a `quiesce`, the lower bound is one less. `size()` may count a
    task until the end of its run. In real time, a plain task may report the end of its run before the count changes. So
    `size()` may count such a task for 200 ms more. If a run of a periodic task raised an exception, the task may have
    ended. It counts until the end of the first `advance_clock` in which it was due and did not run.
    """
    if reading.delayed is None:
        return NO_OCCASION
    if reading.delayed < 0:
        return Broken("negative", reading.events, "size() >= 0", f"size() = {reading.delayed}", stands=True)
    if not reading.bounded or (run.profile.counts_cancelled and not reading.at_rest):
        return NO_OCCASION
    least = max(reading.tasks_least - (0 if reading.quiesce else 1), 0)
    most = reading.tasks_most + _may_overcount(run, reading)
    if least <= reading.delayed <= most:
        return KEPT
    return Broken(
        "size-wrong",
        reading.events,
        f"{least} <= size() <= {most} (tasks added, not cancelled, not fired)",
        f"size() = {reading.delayed}",
    )


def _may_overcount(run: Run, reading: Reading) -> int:
    return reading.raced if run.profile.counts_raced else 0
