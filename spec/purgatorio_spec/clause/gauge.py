"""P1, P2, P4, T5: the gauges, and what they show about garbage.

With `least` and `most` what the events around a reading allow, over the interval in which it was taken:

    P1  at rest:  watched <= waiting + the most entries that (purge interval) operations have + unseen
    P2  least <= watched <= most;  at rest: delayed <= live + plain tasks + overcounted
    P4  at rest:  keys <= watched
    T5  size() >= 0,  least <= size() <= most + overcounted

with  overcounted = min(raced, threads - 1)  in the dialects of Kafka, and 0 elsewhere.

*waiting*: entries of what is registered, not completed, and not given back by every key. What a key gives back is out
of the timer, and what all keys gave back is watched nowhere. No operation has more than the widest that was registered
by then. *unseen*: entries of operations that the purge's estimate may have missed. Kafka's purge sets the estimate to
the number of tasks in the timer, so whatever was watched and not in the timer at that moment drops out of it for good:
operations handed over to run, those without a time-out, those that one of several keys gave back, and registrations
between watching and the timer's add. It counts what the *last* purge may have missed, at the moment at which that was
most: after more completions than the interval and that allowance, there must have been another purge. A moment of
virtual time may hold any number of registrations. Of those, it counts as many as were open at once, or as other threads
began during one `advance_clock`: there a purge may be held between reading the timer's size and using it.

*raced*: `locked` and `pending-flag` count a task that was cancelled while it was added, or moved from bucket to bucket,
until its bucket is flushed: tasks of which a cancel began during an add, or another thread did something during it,
each from the call of that cancel on, and no more than the threads other than the reader's can have in flight. At a
`quiesce` that has ended once the task would have been late, and a reaper's period more. So it is with a task that ended
once and was added again, where it is unknown whether it ended again.
"""

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.history.part import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, STILL_OPEN

P1 = Clause(
    "P1",
    "completed operations are removed: when nothing runs, watched entries are those of waiting operations, plus at "
    "most purge_interval completed ones and the entries that the last purge could not see",
    formula="at rest: watched <= waiting + most_entries(purge_interval) + unseen",
    records=("gauge|quiesce", "try_complete_else_watch", "force_complete"),
    constants=("purge_interval",),
    needs_whole=True,
)


@P1.of_reading
def garbage_is_bounded(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `watched` at rest.

    *waiting*: the entries of what is registered, not completed, and not given back by every key. *most_entries(n)*:
    those of the n operations with the most keys. *unseen*: the most, over the moments at which the last purge may have
    been, of the entries of what was watched and out of the timer then, and completed since: handed over to run, without
    a time-out, or being registered. In virtual time only so many count as being registered as were so at once.
    """
    if not reading.at_rest or reading.watched is None or run.purge_interval is None:
        return NO_OCCASION
    most = reading.waiting + reading.garbage_most
    if reading.watched <= most:
        return KEPT
    if run.facts.unsettled_before(reading.ret_i):
        return STILL_OPEN  # what a key gave back, and nobody told, a purge leaves out while another key watches it
    return Broken(
        "garbage",
        reading.events,
        f"watched <= {most} = {reading.waiting} of those that wait + {reading.garbage_most - reading.unseen} of "
        f"{run.purge_interval} others, the purge interval, + {reading.unseen} that the last purge may not have seen",
        f"watched = {reading.watched}",
    )


P2 = Clause(
    "P2",
    "the gauges PurgatorySize and NumDelayedOperations stay within the bounds that the trace implies",
    formula="watched_least <= watched <= watched_most;  "
    "at rest: delayed <= live + plain tasks + min(raced, threads - 1)",
    records=("gauge|quiesce", "try_complete_else_watch", "force_complete"),
)


@P2.of_reading
def gauges_bound_the_truth(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of which it is known since when it may have been taken: one recorded as an interval, at
    rest, or as a point that is not the first event of its thread.

    `watched` counts every entry of an operation that is still live, and never more than were ever made. At rest,
    `delayed` counts no more than the operations still live, which no key has given back, and the timer's tasks that are
    no operations; in the dialects of Kafka also, one for each thread other than the reader's at most, the *raced*:
    tasks of which a cancel has begun during which another event was recorded, or that came during an add, up to a
    `quiesce` at which they are long overdue.
    """
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
            f"at rest, delayed <= {most} operations still live and plain tasks"
            + (f", {overcounted} of them cancelled in a race" if overcounted else ""),
            f"delayed = {reading.delayed}",
        )
    return KEPT


P4 = Clause(
    "P4",
    "the list of a key goes with its last entry: when nothing runs, no more keys have a list than entries are watched",
    formula="at rest: keys <= watched",
    records=("gauge|quiesce", "try_complete_else_watch"),
    asked_by=("keys",),
)


@P4.of_reading
def empty_lists_are_dropped(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `keys` and `watched` at rest. A list that is not empty has an entry, so that of keys
    above the entries some lists are empty. `keys` is read not before `watched`, or a purge between the two is accused.
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


T5 = Clause(
    "T5",
    "size() returns the number of pending tasks; calls that race with it may change it by as many; it is never "
    "negative",
    formula="0 <= size();  tasks_least <= size() <= tasks_most + min(raced, threads - 1)",
    records=("timer_add", "timer_fire", "timer_cancel", "gauge|quiesce"),
    constants=("tick_ns",),
)


@T5.of_reading
def size_is_exact(run: Run, reading: Reading) -> Finding:
    """An occasion is a reading of `delayed` like those of P2; where cancelled tasks are counted until the next tick, a
    reading at rest. A point was taken somewhere after the event before it of its thread: it is judged as an interval
    from there. Even at rest a reaper may be moving one task from bucket to bucket, unseen by the recorder: only
    a `quiesce` excludes that, so elsewhere the lower bound gives way by one task.
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
    return min(reading.raced, run.facts.threads - 1) if run.profile.counts_raced else 0
