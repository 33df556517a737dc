"""A reading of the gauges beside the truth that the events around it allow.

A reading recorded as an interval is judged over that interval; one recorded as a point only where nothing is under way.
Lower bounds count what was certainly there from the reading's start to its end, upper bounds what may have been.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """`state` of one `gauge` or `quiesce` and its bounds.

    `at_rest`: a `quiesce`, or no recorded call of the purgatory or timer was open and nothing but readings was recorded
    for a whole reaper period before. `bounded`: recorded as an interval.
    `live`: operations registered and not completed. `most_keys`: of any one operation of the run.
    `tasks_least` leaves out tasks whose deadline is nearer than two ticks: they may have been handed over to run.
    """

    call_i: int
    ret_i: int
    t: int
    watched: int | None
    delayed: int | None
    quiesce: bool
    bounded: bool
    at_rest: bool
    live: int
    most_keys: int
    watched_least: int
    watched_most: int
    tasks_least: int
    tasks_most: int
