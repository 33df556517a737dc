"""P1, P2, P4, T5: the gauges, and the garbage that they show.

`least` and `most` are the bounds that the events around a reading allow, over the interval in which it was taken:

    P1  at rest:  watched <= waiting + the most entries that (purge interval) operations have + unseen
    P2  least <= watched <= most;  at rest: delayed <= live + plain tasks + overcounted
    P4  at rest:  keys <= watched
    T5  size() >= 0,  least <= size() <= most + overcounted

with  overcounted = raced  in the dialects of Kafka, and 0 elsewhere.

*waiting*: the entries of operations that are registered, not completed, and not returned by every key. An operation
that a key returned is out of the timer; one that all keys returned is watched nowhere.

*unseen*: the entries of operations that the purge's estimate may have missed. Kafka's purge sets the estimate to the
number of tasks in the timer. So the estimate permanently loses every operation that is watched and not in the timer
at that moment: operations handed over to run, those without a time-out, those that one of several keys returned, and
registrations between watching and the timer's add. *unseen* counts the entries that the *last* purge may have missed,
at the time at which there were most. After more completions than the interval and that allowance, there must have
been another purge. An instant of virtual time may contain any number of registrations. Of those, it counts as many as
were open at once, or as other threads began during one `advance_clock`: there a purge may be paused between reading
the timer's size and using it.

*raced*: `locked` and `pending-flag` count a task that was cancelled while it was added, or moved between buckets,
until its bucket is flushed. A task is raced if a cancel of it began during an add, or if another thread recorded an
event during the cancel. It counts from the call of that cancel on. Each race may leave a task behind, so any number of
them may be counted. It ends at a `quiesce` that comes a reaper's period after the task would have been late. The same
holds for a task that ended once and was added again, if it is unknown whether it ended again.
"""

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.history.part import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, STILL_OPEN

P1 = Clause(
    "P1",
    "completed operations are removed: when no call runs, every watched entry belongs to a waiting "
    "operation, except entries of at most purge_interval completed operations and entries that the last "
    "purge could not see",
    formula="at rest: watched <= waiting + most_entries(purge_interval) + unseen",
    records=("gauge|quiesce", "try_complete_else_watch", "force_complete"),
    constants=("purge_interval",),
    needs_whole=True,
)


@P1.of_reading
def garbage_is_bounded(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `watched` at rest. In the formula, *waiting* counts the entries of operations that
    are registered, not completed, and not returned by every key. *most_entries(n)* counts the entries of the n
    operations with the most keys. *unseen* counts the entries that the last purge may have missed. An entry is unseen
    if its operation was watched but not in the timer at the time of the purge, and was completed later. Such an
    operation had passed its time-out, had no time-out, or was being registered. The time of the purge is not recorded,
    so the time with the largest *unseen* counts. In virtual time, the number of such registrations is at most the
    number of registrations that were open at once."""
    if not reading.at_rest or reading.watched is None or run.purge_interval is None:
        return NO_OCCASION
    most = reading.waiting + reading.garbage_most
    if reading.watched <= most:
        return KEPT
    if run.facts.unsettled_before(reading.ret_i):
        return STILL_OPEN  # a purge leaves out what a key returned unrecorded, while another key watches it
    return Broken(
        "garbage",
        reading.events,
        f"watched <= {most} = {reading.waiting} of waiting operations + {reading.garbage_most - reading.unseen} of "
        f"{run.purge_interval} completed ones, the purge interval, + {reading.unseen} that the last purge may have "
        "missed",
        f"watched = {reading.watched}",
    )


P2 = Clause(
    "P2",
    "the gauges PurgatorySize and NumDelayedOperations stay within the bounds that follow from the trace",
    formula="watched_least <= watched <= watched_most;  at rest: delayed <= live + plain tasks + raced",
    records=("gauge|quiesce", "try_complete_else_watch", "force_complete"),
)


@P2.of_reading
def gauges_bound_the_truth(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading whose earliest possible time is known: a reading recorded as an interval, a reading at
    rest, or a point that is not the first event of its thread. `watched` is at least the number of entries of live
    operations, and at most the number of all entries ever made. At rest, `delayed` is at most the number of live
    operations that no key has returned, plus the number of timer tasks that are not operations. In Kafka's dialects,
    `delayed` may also count *raced* tasks. A task is raced if its cancel overlapped an add, or if another event was
    recorded during the cancel. A raced task counts until a `quiesce` at which the task is long overdue."""
    if not reading.bounded:
        return NO_OCCASION
    # What a key may have given back, and no event reported, is counted or not.
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
    if reading.delayed is not None and reading.at_rest and reading.delayed > most:
        return Broken(
            "delayed-above-live",
            reading.events,
            f"at rest, delayed <= {most} live operations and plain tasks"
            + (f", {overcounted} of them cancelled in a race" if overcounted else ""),
            f"delayed = {reading.delayed}",
        )
    return KEPT


P4 = Clause(
    "P4",
    "a key without entries has no list: when no call runs, the number of keys with a list is at most the "
    "number of watched entries",
    formula="at rest: keys <= watched",
    records=("gauge|quiesce", "try_complete_else_watch"),
    asked_by=("keys",),
)


@P4.of_reading
def empty_lists_are_dropped(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `keys` and `watched` at rest. Each list that is not empty has an entry. So if there
    are more keys than entries, some lists are empty. The recorder must read `keys` after `watched`. Otherwise a purge
    between the two readings would look like a violation."""
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


T5 = Clause(
    "T5",
    "size() returns the number of pending tasks, and is never negative; if another call overlaps size(), "
    "size() may count the task of this call or not",
    formula="0 <= size();  tasks_least <= size() <= tasks_most + raced",
    records=("timer_add", "timer_fire", "timer_cancel", "gauge|quiesce"),
    constants=("tick_ns",),
)


@T5.of_reading
def size_is_exact(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `delayed`, as in P2. If the profile counts cancelled tasks until the next tick, only
    a reading at rest is an occasion. A point may have been read at any time since the previous event of its thread.
    Even at rest, a reaper may be moving one task between buckets, and the recorder does not see this move. Only a
    `quiesce` excludes such a move. So without a `quiesce`, the lower bound is one less."""
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
