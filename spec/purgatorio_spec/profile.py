"""Profiles: the set of clauses that a subject (a timer or purgatory) promises. Other clauses are SKIPPED for this
subject.

The constants of a subject (tick, early and late bound, purge interval) come from the header of the trace. There are no
default values. A profile has only the promises that follow from the kind of timer or purgatory.
"""

from dataclasses import dataclass
from typing import Final

_TIMER: Final = frozenset({"T1", "T2", "T3", "T4", "T5", "T8", "T9", "T10", "T11", "T12"})
_OPERATION: Final = frozenset({"O1", "O2", "O3", "O4", "O5", "O6", "O7"})
_PURGATORY: Final = frozenset({"P1", "P2", "P4"})

REAPER_PERIOD_NS: Final = 200_000_000
"""Kafka's reaper polls for at most this long, then purges if it must (`ExpiredOperationReaper`). So a purgatory is at
rest when no event happened for a whole period."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A dialect: its name, the clauses that it promises, and the meaning of its cancel, its check and its lock.

    `claimed_on_return`: completion is claimed when the check that saw the operation ready returns (O4 in the `locked`
    form); otherwise it is never left to the time-out. `cancel_is_barrier`: after a cancel that succeeded the task
    does not start, whatever the clock says (T4).
    """

    name: str
    clauses: frozenset[str]
    source: str
    claimed_on_return: bool = False
    completes_beside: bool = False
    """Its lock is held over try_complete alone: on_complete may overlap one (O6)."""
    cancel_is_barrier: bool = False
    counts_cancelled: bool = False
    """Its size counts cancelled tasks until the next tick, so it is exact only at rest (T5)."""
    answered_in_time: bool = False
    """Its time-out limits every answer: an answer that comes after the late bound breaks T2 too."""
    counts_raced: bool = False
    """Until a bucket is flushed, its size counts tasks that were cancelled while they were moved (T5)."""


_PROFILES: Final = (
    Profile("locked", _OPERATION | _TIMER | _PURGATORY,
            "a purgatory: when a check returns, ready operations are completed; try_complete and on_complete of one "
            "operation never overlap (Kafka 4.1 and later, KAFKA-19312)",
            claimed_on_return=True, counts_raced=True),
    Profile("pending-flag", _OPERATION | _TIMER | _PURGATORY,
            "a purgatory: a check may return while another thread still completes a ready operation; two try_complete "
            "calls of one operation never overlap, but on_complete may overlap a try_complete (Kafka 1.1 to 4.0)",
            completes_beside=True, counts_raced=True),
    Profile("request-log", frozenset({"O1", "O4", "O5", "T1", "T2"}),
            "requests that wait in a server, read from a log of the server (`purgatorio convert --from-log`)",
            claimed_on_return=True, answered_in_time=True),
    Profile("netty-hashed-wheel", _TIMER,
            "io.netty.util.HashedWheelTimer: after a cancel() that returned true, the task does not run",
            cancel_is_barrier=True, counts_cancelled=True),
    Profile("asyncio", _TIMER, "asyncio loop.call_later: one thread; after a cancel, the handle does not run",
            cancel_is_barrier=True),
    Profile("timer", _TIMER, "a timer; a task that was cancelled in time does not run"),
    Profile("timer-cancel-barrier", _TIMER,
            "a timer; in addition, a task does not run after a cancel that reported success", cancel_is_barrier=True),
    Profile("jdk-scheduled-executor", _TIMER,
            'java.util.concurrent.ScheduledThreadPoolExecutor: "Delayed tasks execute no sooner than they are enabled, '
            'but without any real-time guarantees"; Future.cancel(): "if this task has not started when cancel is '
            'called, this task should never run", and cancel may return true while the task runs'),
    Profile("java-util-timer", _TIMER,
            'java.util.Timer: the delay is in milliseconds of System.currentTimeMillis(); TimerTask.cancel(): '
            '"if the task has been scheduled for one-time execution and has not yet run, [...] it will never run"',
            cancel_is_barrier=True),
    Profile("vertx-timer", _TIMER,
            'io.vertx.core.Vertx.setTimer: "a one-shot timer to fire after delay milliseconds"; cancelTimer: "true if '
            'the timer was successfully cancelled, or false if the timer does not exist"', cancel_is_barrier=True),
    Profile("jetty-executor-scheduler", _TIMER,
            "Jetty's ScheduledExecutorScheduler: "
            "\"based on JDK's ScheduledThreadPoolExecutor\", with the same promises"),
    Profile("jetty-timer-scheduler", _TIMER,
            'Jetty\'s TimerScheduler: "a scheduler based on the JVM Timer class", with the same promises',
            cancel_is_barrier=True),
    Profile("caffeine-expiry", _TIMER,
            'Caffeine.expireAfter: "each entry should be automatically removed from the cache once a duration has '
            'elapsed", when the cache runs its maintenance; an entry that was invalidated does not expire',
            cancel_is_barrier=True),
    Profile("python-sched", _TIMER,
            "Python's sched: "
            '"schedule an event for delay more time units"; cancel: "remove the event from the queue"; '
            "ValueError if it is not there", cancel_is_barrier=True),
    Profile("threading-timer", _TIMER,
            'Python\'s threading.Timer: "an action that should be run only after a certain amount of time has passed"; '
            'cancel "will only work if the timer is still in its waiting stage", and reports no result'),
    Profile("npm-timer-wheel", _TIMER,
            "npm's timer-wheel: "
            '"schedule items to be expired after a certain delay and then control when to advance"; '
            '"a minimum delay of 1000 ms"; an item that was removed is not returned', cancel_is_barrier=True),
)  # fmt: skip

PROFILES: Final[dict[str, Profile]] = {profile.name: profile for profile in _PROFILES}
"""By name."""
