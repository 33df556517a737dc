"""For each way in which a clause can be broken a hand-made history, and its twin that keeps it.

A function makes both: `broken` changes the one thing that matters. `TWINS` says clause, cause and profile of each.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from purgatorio_spec.trace.record import State
from trace_builder import MS, Trace


def completed_twice(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.check("k", "a")
    if broken:
        made.complete("a", th="other", out=0)
    else:
        with made.call("force_complete", "a", th="other", out=0):
            pass
    return made


def two_winners(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.check("k", "a")
    with made.call("force_complete", "a", th="other", out=1 if broken else 0):
        pass
    return made


def winner_without_callback(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    with (
        made.call("force_complete", "a", out=1),
        made.call("on_complete", "a", th="other" if broken else "w"),
    ):
        pass
    return made


def loser_ran_callback(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.complete("a", out=0 if broken else 1)
    return made


def callback_without_force(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    if broken:
        with made.call("on_complete", "a"):
            pass
    else:
        made.complete("a")
    return made


def true_and_never_ready(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    if not broken:
        made.point("ready", "a", th="c", back_ns=500)
    made.check("k", "a")
    return made


def true_before_ready(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.check("k", "a")
    made.point("ready", "a", th="c", back_ns=500 if broken else 50_000)
    return made


def expired_twice(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.wait(200 * MS)
    with made.call("timer_fire", "a", th="exec"):
        made.complete("a", th="exec")
        made.point("on_expiration", "a", th="exec")
        if broken:
            made.point("on_expiration", "a", th="exec")
    return made


def expiration_without_its_completion(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.wait(200 * MS)
    if broken:
        made.check("k", "a")
    with made.call("timer_fire", "a", th="exec"):
        if not broken:
            made.complete("a", th="exec")
        made.point("on_expiration", "a", th="exec")
    return made


def ready_before_registration(broken: bool) -> Trace:
    made = Trace()
    made.point("ready", "a", back_ns=500)
    with (
        made.call("try_complete_else_watch", "a", keys=["k"], delay_ns=MS, out=0 if broken else 1),
        made.call("try_complete", "a", out=0 if broken else 1),
    ):
        if not broken:
            made.complete("a")
    return made


def unclaimed_on_return(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.point("ready", "a", th="c", back_ns=500)
    made.check("k", *([] if broken else ["a"]))
    made.wait(200 * MS)
    if broken:
        made.expire("a")
    return made


def never_claimed(broken: bool) -> Trace:
    made = Trace("pending-flag")
    made.register("a")
    made.point("ready", "a", th="c", back_ns=500)
    made.check("k")
    if not broken:
        with made.call("try_complete", "a", th="later", out=1):
            made.complete("a", th="later")
    return made


def left_to_the_time_out(broken: bool) -> Trace:
    made = Trace("pending-flag")
    made.register("a")
    made.point("ready", "a", th="c", back_ns=500)
    made.check("k")
    if not broken:
        made.attempt("a", out=0, th="later")
    made.wait(200 * MS)
    made.expire("a")
    return made


def left_to_a_time_out_that_is_not_told(broken: bool) -> Trace:
    """Where fires are not recorded, its `on_expiration` tells."""
    made = left_to_the_time_out(broken)
    made.header = replace(made.header, recorded=tuple(f for f in made.header.recorded if f != "timer_fire"))
    made.events = [event for event in made.events if event.f != "timer_fire"]
    return made


def never_completed(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.wait(5_000 * MS)
    if not broken:
        made.expire("a")
    made.register("b")
    return made


def overlap(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    force = made.start("force_complete", "a", th="one")
    done = made.start("on_complete", "a", th="one")
    if broken:
        made.attempt("a", out=0, th="two")
    made.end(done)
    if not broken:
        made.attempt("a", out=0, th="two")
    made.end(force, 1)
    return made


def registration_answered_true(broken: bool) -> Trace:
    return _registration(completes=not broken, answer=1)


def registration_answered_false(broken: bool) -> Trace:
    return _registration(completes=broken, answer=0)


def _registration(completes: bool, answer: int) -> Trace:
    made = Trace()
    with (
        made.call("try_complete_else_watch", "a", keys=["k"], out=answer),
        made.call("try_complete", "a", out=1 if completes else 0),
    ):
        if completes:
            made.complete("a")
    return made


def try_answered_true(broken: bool) -> Trace:
    return _try(completes=not broken, answer=1)


def try_answered_false(broken: bool) -> Trace:
    return _try(completes=broken, answer=0)


def _try(completes: bool, answer: int) -> Trace:
    made = Trace()
    with made.call("try_complete", "a", out=answer):
        if completes:
            made.complete("a")
    return made


def check_miscounted(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.check("k", "a", out=2 if broken else 1)
    return made


def garbage(broken: bool) -> Trace:
    made = Trace()
    for name in ("a", "b", "c", "d", "e"):
        made.register(name, ["k", "l"])
        made.check("k", name)
    made.register("live", ["k", "l"])
    made.gauge(watched=9 if broken else 8, delayed=1)
    return made


def watched_too_few(broken: bool) -> Trace:
    made = Trace()
    made.register("a", ["k", "l"])
    made.gauge(watched=1 if broken else 2, delayed=1)
    return made


def watched_too_many(broken: bool) -> Trace:
    made = Trace()
    made.register("a", ["k", "l"])
    made.gauge(watched=3 if broken else 2, delayed=1)
    return made


def delayed_above_live(broken: bool) -> Trace:
    made = Trace()
    made.register("a")
    made.complete("a", cancel=False)
    made.gauge(watched=0, delayed=1 if broken else 0)
    return made


def negative(broken: bool) -> Trace:
    made = Trace()
    made.gauge(watched=0, delayed=-1 if broken else 0)
    return made


def size_wrong(broken: bool) -> Trace:
    made = Trace()
    for name in ("a", "b", "c"):
        made.add(name)
    made.cancel("b")
    made.gauge(watched=0, delayed=3 if broken else 2)
    return made


def size_too_small_in_an_interval(broken: bool) -> Trace:
    made = Trace()
    for name in ("a", "b", "c"):
        made.add(name)
    reading = made.start("gauge", th="metrics")
    made.cancel("b")
    made.end(reading, state=State(None, 0 if broken else 1))
    return made


def early(broken: bool) -> Trace:
    made = Trace()
    made.add("a", delay_ns=10 * MS)
    made.wait(9 * MS if broken else 10 * MS)
    made.fire("a")
    return made


def late(broken: bool) -> Trace:
    made = Trace()
    made.add("a", delay_ns=10 * MS)
    made.wait(61 * MS if broken else 59 * MS)
    made.fire("a")
    return made


def fired_twice(broken: bool) -> Trace:
    made = Trace()
    made.add("a", delay_ns=MS)
    made.wait(2 * MS)
    made.fire("a")
    if broken:
        made.fire("a")
    return made


def never_fired(broken: bool) -> Trace:
    made = Trace()
    made.add("a", delay_ns=MS)
    made.wait(2 * MS)
    if not broken:
        made.fire("a")
    made.wait(50 * MS)
    made.gauge(watched=0, delayed=1 if broken else 0)
    return made


def fired_and_never_added(broken: bool) -> Trace:
    made = Trace()
    if not broken:
        made.add("a", delay_ns=0)
    made.fire("a")
    return made


def fired_though_given_back(broken: bool) -> Trace:
    """What a key gave back before its deadline; its twin was given back when it was being handed over."""
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    made.wait(0 if broken else 11 * MS)
    made.give_back("k", "a")
    made.wait(12 * MS)
    made.expire("a")
    made.register("b", delay_ns=10 * MS)
    made.give_back("k", "b")
    return made


def completed_under_a_lost_key(broken: bool) -> Trace:
    """A key that gave the operation back completes it no more; another of its keys may."""
    made = Trace()
    made.register("a", ["k", "l"])
    made.give_back("k", "a")
    made.point("ready", "a", th="c", back_ns=500)
    made.check("k" if broken else "l", "a")
    return made


def given_back_by_another_key(broken: bool) -> Trace:
    made = Trace()
    made.register("a", ["k", "l"])
    made.give_back("m" if broken else "l", "a")
    return made


def given_back_twice(broken: bool) -> Trace:
    """By one key; each of two keys may."""
    made = Trace()
    made.register("a", ["k", "l"])
    made.give_back("k", "a")
    made.give_back("k" if broken else "l", "a")
    return made


def not_given_back(broken: bool) -> Trace:
    """Watched when its key was cancelled, and completed by another later; its twin was being evaluated just then, and
    who came after the call, or whose time was over, was not asked for."""
    made = Trace()
    made.register("a", ["k", "l"])
    made.register("old", ["k", "m"], delay_ns=MS)
    made.wait(2 * MS)
    if broken:
        made.give_back("k")
    else:
        with made.call("try_complete", "a", th="e", out=0):
            made.give_back("k")
    made.expire("old")
    made.register("late", ["k"])
    made.point("ready", "a", th="c", back_ns=500)
    made.check("l", "a")
    made.give_back("k", "late")
    return made


def expired_without_its_callback(broken: bool) -> Trace:
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    made.wait(11 * MS)
    with made.call("timer_fire", "a", th="exec"):
        made.complete("a", th="exec")
        if not broken:
            made.point("on_expiration", "a", th="exec")
    return made


def fired_after_cancel(broken: bool, profile: str = "locked") -> Trace:
    made = Trace(profile)
    made.add("a", delay_ns=10 * MS)
    made.cancel("a")
    made.wait(20 * MS)
    if broken:
        made.fire("a")
    return made


def fired_behind_the_barrier(broken: bool, profile: str = "netty-hashed-wheel") -> Trace:
    made = Trace(profile)
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    made.cancel("a")
    if not broken:
        made.add("a", delay_ns=0)
    made.fire("a")
    return made


def fired_though_completed(broken: bool) -> Trace:
    made = Trace()
    made.register("a", delay_ns=10 * MS)
    made.wait(20 * MS if not broken else 0)
    made.complete("a", cancel=False)
    made.wait(20 * MS)
    made.fire("a")
    made.register("b", delay_ns=10 * MS)
    made.complete("b")
    return made


Maker = Callable[[bool], Trace]

TWINS: Final[tuple[tuple[str, str, Maker], ...]] = (
    ("O1", "completed-twice", completed_twice),
    ("O1", "two-winners", two_winners),
    ("O1", "winner-without-callback", winner_without_callback),
    ("O1", "loser-ran-callback", loser_ran_callback),
    ("O2", "callback-without-force", callback_without_force),
    ("O2", "true-and-never-ready", true_and_never_ready),
    ("O2", "true-before-ready", true_before_ready),
    ("O3", "expired-twice", expired_twice),
    ("O3", "expiration-without-its-completion", expiration_without_its_completion),
    ("O2", "completed-under-a-lost-key", completed_under_a_lost_key),
    ("O2", "given-back-by-another-key", given_back_by_another_key),
    ("O2", "given-back-twice", given_back_twice),
    ("O2", "not-given-back", not_given_back),
    ("O3", "expired-without-its-callback", expired_without_its_callback),
    ("O4", "ready-before-registration", ready_before_registration),
    ("O4", "unclaimed-on-return", unclaimed_on_return),
    ("O4", "never-claimed", never_claimed),
    ("O4", "left-to-the-time-out", left_to_the_time_out),
    ("O4", "left-to-the-time-out", left_to_a_time_out_that_is_not_told),
    ("O5", "never-completed", never_completed),
    ("O6", "overlap", overlap),
    ("O7", "try_complete_else_watch-answered-true", registration_answered_true),
    ("O7", "try_complete_else_watch-answered-false", registration_answered_false),
    ("O7", "try_complete-answered-true", try_answered_true),
    ("O7", "try_complete-answered-false", try_answered_false),
    ("O7", "check-miscounted", check_miscounted),
    ("P1", "garbage", garbage),
    ("P2", "watched-out-of-bounds", watched_too_few),
    ("P2", "watched-out-of-bounds", watched_too_many),
    ("P2", "delayed-above-live", delayed_above_live),
    ("T1", "early", early),
    ("T2", "late", late),
    ("T3", "fired-twice", fired_twice),
    ("T3", "never-fired", never_fired),
    ("T3", "fired-and-never-added", fired_and_never_added),
    ("T4", "fired-after-cancel", fired_after_cancel),
    ("T4", "fired-though-given-back", fired_though_given_back),
    ("T4", "fired-after-cancel", lambda broken: fired_after_cancel(broken, "netty-hashed-wheel")),
    ("T4", "fired-after-cancel", lambda broken: fired_after_cancel(broken, "asyncio")),
    ("T4", "fired-after-cancel", fired_behind_the_barrier),
    ("T4", "fired-though-completed", fired_though_completed),
    ("T5", "negative", negative),
    ("T5", "size-wrong", size_wrong),
    ("T5", "size-wrong", size_too_small_in_an_interval),
)
"""Clause, cause, and the maker of both histories."""
