"""P1, P2, T5: the gauges, and what they say of garbage."""

from __future__ import annotations

from purgatorio_spec.history.reading import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_OCCASION, UNDECIDED, Judgement, Violation


def _miscounted(run: Run, clause: str, reading: Reading, cause: str, allowed: str, seen: str) -> Judgement:
    """Broken, unless records were dropped: then the bounds were counted from what was left."""
    return UNDECIDED if run.dropped else _broken(clause, reading, cause, allowed, seen)


def _broken(clause: str, reading: Reading, cause: str, allowed: str, seen: str) -> Judgement:
    events = (reading.call_i,) if reading.call_i == reading.ret_i else (reading.call_i, reading.ret_i)
    return Judgement(1, Violation(clause, f"reading@{reading.call_i}", cause, events, allowed, seen))


def garbage_is_bounded(run: Run, reading: Reading) -> Judgement:
    """P1. An occasion is a reading of `watched` at rest. Needs `purge_interval`."""
    if not reading.at_rest or reading.watched is None or run.purge_interval is None:
        return NO_OCCASION
    most = (run.purge_interval + reading.live) * reading.most_keys
    if reading.watched <= most:
        return KEPT
    return _miscounted(
        run,
        "P1",
        reading,
        "garbage",
        f"watched <= {most} = ({run.purge_interval} + {reading.live} live) x {reading.most_keys} keys",
        f"watched = {reading.watched}",
    )


def gauges_bound_the_truth(run: Run, reading: Reading) -> Judgement:
    """P2. An occasion is a reading at rest, or one recorded as an interval.

    `watched` counts every entry of an operation that is still live, and never more than were ever made. At rest,
    `delayed` counts no more than the operations still live.
    """
    if not reading.at_rest and not reading.bounded:
        return NO_OCCASION
    if reading.watched is not None and not reading.watched_least <= reading.watched <= reading.watched_most:
        return _miscounted(
            run,
            "P2",
            reading,
            "watched-out-of-bounds",
            f"{reading.watched_least} <= watched <= {reading.watched_most}",
            f"watched = {reading.watched}",
        )
    if reading.delayed is not None and reading.at_rest and reading.delayed > reading.live:
        return _miscounted(
            run,
            "P2",
            reading,
            "delayed-above-live",
            f"at rest, delayed <= {reading.live} operations still live",
            f"delayed = {reading.delayed}",
        )
    return KEPT


def size_is_exact(run: Run, reading: Reading) -> Judgement:
    """T5. An occasion is a reading of `delayed` at rest, or one recorded as an interval.

    A reading recorded as a point was taken somewhere before its record, so while anything happens it says nothing
    exact. Even at rest a reaper may be moving one task from bucket to bucket, unseen by the recorder: only a `quiesce`
    excludes that, so elsewhere the lower bound gives way by one task.
    """
    if reading.delayed is None:
        return NO_OCCASION
    if reading.delayed < 0:
        return _broken("T5", reading, "negative", "size() >= 0", f"size() = {reading.delayed}")
    bounded = reading.bounded and not run.profile.counts_cancelled
    if not reading.at_rest and not bounded:
        return NO_OCCASION
    least = reading.tasks_least - (0 if reading.quiesce else 1)
    if least <= reading.delayed <= reading.tasks_most:
        return KEPT
    return _miscounted(
        run,
        "T5",
        reading,
        "size-wrong",
        f"{max(least, 0)} <= size() <= {reading.tasks_most} (tasks added, not cancelled, not fired)",
        f"size() = {reading.delayed}",
    )
