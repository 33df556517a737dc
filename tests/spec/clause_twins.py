"""For each way in which a clause can be broken a hand-made history, and its twin that keeps it.

A function makes both: `broken` changes the one thing that matters. It stands under its clause, its cause and the
profiles that it is made for.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from purgatorio_spec.trace.record import State
from spec.trace_builder import MS, Trace

Story = Callable[[Trace, bool], None]
Maker = Callable[[bool], Trace]

TWINS: Final[list[tuple[str, str, Maker]]] = []
"""Clause, cause, and the maker of both histories."""


def twin(clause: str, cause: str, *profiles: str) -> Callable[[Story], Story]:
    """A row of `TWINS` for each of the profiles."""

    def told(story: Story) -> Story:
        def make(broken: bool, profile: str = "locked") -> Trace:
            made = Trace(profile)
            story(made, broken)
            return made

        TWINS.extend((clause, cause, partial(make, profile=profile)) for profile in profiles or ("locked",))
        return story

    return told


@twin("O1", "completed-twice")
def completed_twice(made: Trace, broken: bool) -> None:
    made.register("a")
    made.check("k", "a")
    if broken:
        made.complete("a", th="other", out=0)
    else:
        made.both("force_complete", "a", th="other", out=0)


@twin("O1", "two-winners")
def two_winners(made: Trace, broken: bool) -> None:
    made.register("a")
    made.check("k", "a")
    made.both("force_complete", "a", th="other", out=1 if broken else 0)


@twin("O1", "winner-without-callback")
def winner_without_callback(made: Trace, broken: bool) -> None:
    made.register("a")
    with (
        made.call("force_complete", "a", out=1),
        made.call("on_complete", "a", th="other" if broken else "w"),
    ):
        pass


@twin("O1", "loser-ran-callback")
def loser_ran_callback(made: Trace, broken: bool) -> None:
    made.register("a")
    made.complete("a", out=0 if broken else 1)


@twin("O1", "lost-to-nobody", "locked", "pending-flag")
def lost_to_nobody(made: Trace, broken: bool) -> None:
    made.register("a")
    evaluation = made.start("try_complete", "a", th="c")
    made.both("force_complete", "a", out=0)
    if not broken:
        made.ready("a")
        made.complete("a", th="c")
    made.end(evaluation, 0 if broken else 1)
    made.wait(100 * MS)
    if broken:
        made.expire("a")


@twin("O2", "callback-without-force")
def callback_without_force(made: Trace, broken: bool) -> None:
    made.register("a")
    if broken:
        made.both("on_complete", "a")
    else:
        made.complete("a")


@twin("O2", "true-and-never-ready")
def true_and_never_ready(made: Trace, broken: bool) -> None:
    made.register("a")
    if not broken:
        made.ready("a")
    made.check("k", "a")


@twin("O2", "true-before-ready")
def true_before_ready(made: Trace, broken: bool) -> None:
    made.register("a")
    made.check("k", "a")
    made.ready("a", back_ns=500 if broken else 50_000)


@twin("O3", "expired-twice")
def expired_twice(made: Trace, broken: bool) -> None:
    made.register("a")
    made.wait(200 * MS)
    with made.call("timer_fire", "a", th="exec"):
        made.complete("a", th="exec")
        made.point("on_expiration", "a", th="exec")
        if broken:
            made.point("on_expiration", "a", th="exec")


@twin("O3", "expiration-without-its-completion")
def expiration_without_its_completion(made: Trace, broken: bool) -> None:
    made.register("a")
    made.wait(200 * MS)
    if broken:
        made.check("k", "a")
    with made.call("timer_fire", "a", th="exec"):
        if not broken:
            made.complete("a", th="exec")
        made.point("on_expiration", "a", th="exec")


@twin("O4", "ready-before-registration")
def ready_before_registration(made: Trace, broken: bool) -> None:
    made.ready("a", th="w")
    with (
        made.call("try_complete_else_watch", "a", keys=["k"], delay_ns=MS, out=0 if broken else 1),
        made.call("try_complete", "a", out=0 if broken else 1),
    ):
        if not broken:
            made.complete("a")


@twin("O4", "unclaimed-on-return")
def unclaimed_on_return(made: Trace, broken: bool) -> None:
    made.register("a")
    made.ready("a")
    made.check("k", *([] if broken else ["a"]))
    made.wait(200 * MS)
    if broken:
        made.expire("a")


@twin("O4", "never-claimed", "pending-flag")
def never_claimed(made: Trace, broken: bool) -> None:
    made.register("a")
    made.ready("a")
    made.check("k")
    if not broken:
        with made.call("try_complete", "a", th="later", out=1):
            made.complete("a", th="later")


@twin("O4", "left-to-the-time-out", "pending-flag")
def left_to_the_time_out(made: Trace, broken: bool) -> None:
    made.register("a")
    made.ready("a")
    made.check("k")
    if not broken:
        made.attempt("a", out=0, th="later")
    made.wait(200 * MS)
    made.expire("a")


@twin("O4", "left-to-the-time-out", "pending-flag")
def left_to_a_time_out_that_is_not_told(made: Trace, broken: bool) -> None:
    """Where fires are not recorded, its `on_expiration` tells."""
    left_to_the_time_out(made, broken)
    made.header = replace(made.header, recorded=tuple(f for f in made.header.recorded if f != "timer_fire"))
    made.events = [event for event in made.events if event.f != "timer_fire"]


@twin("O5", "never-completed")
def never_completed(made: Trace, broken: bool) -> None:
    made.register("a")
    made.wait(5_000 * MS)
    if not broken:
        made.expire("a")
    made.register("b")


@twin("O5", "expired-late", "locked", "pending-flag")
def expired_late(made: Trace, broken: bool) -> None:
    """A failed check has armed its time-out anew."""
    made.stands_still()
    made.register("a")
    made.wait(40 * MS)
    made.check("k")
    if broken:
        made.both("timer_cancel", "a", out=1)
        made.add("a", delay_ns=111 * MS)
    made.wait(111 * MS if broken else 110 * MS)
    made.expire("a")


@twin("O5", "expired-late")
def expired_late_and_no_timer_is_told(made: Trace, broken: bool) -> None:
    """Its `on_expiration` tells."""
    made.stands_still()
    made.header = replace(
        made.header, recorded=tuple(f for f in made.header.recorded if not f.startswith("timer_"))
    )
    registration = made.start("try_complete_else_watch", "a", keys=["k"], delay_ns=100 * MS)
    made.end(registration, 0)
    made.wait(151 * MS if broken else 150 * MS)
    made.complete("a", th="exec", cancel=False)
    made.point("on_expiration", "a", th="exec")


@twin("O6", "overlap")
def overlap(made: Trace, broken: bool) -> None:
    made.register("a")
    force = made.start("force_complete", "a", th="one")
    done = made.start("on_complete", "a", th="one")
    if broken:
        made.attempt("a", out=0, th="two")
    made.end(done)
    if not broken:
        made.attempt("a", out=0, th="two")
    made.end(force, 1)


@twin("O6", "overlap", "locked", "pending-flag")
def two_tries(made: Trace, broken: bool) -> None:
    registration = made.start("try_complete_else_watch", "a", keys=["k"], th="one")
    made.attempt("a", out=0, th="one")
    last = made.start("try_complete", "a", th="one")
    if broken:
        made.attempt("a", out=0, th="two")
    made.end(last, 0)
    if not broken:
        made.attempt("a", out=0, th="two")
    made.end(registration, 0)


@twin("O7", "try_complete_else_watch-answered-true")
def registration_answered_true(made: Trace, broken: bool) -> None:
    _registration(made, completes=not broken, answer=1)


@twin("O7", "try_complete_else_watch-answered-false")
def registration_answered_false(made: Trace, broken: bool) -> None:
    _registration(made, completes=broken, answer=0)


def _registration(made: Trace, completes: bool, answer: int) -> None:
    with (
        made.call("try_complete_else_watch", "a", keys=["k"], out=answer),
        made.call("try_complete", "a", out=1 if completes else 0),
    ):
        if completes:
            made.complete("a")


@twin("O7", "try_complete-answered-true")
def try_answered_true(made: Trace, broken: bool) -> None:
    _try(made, completes=not broken, answer=1)


@twin("O7", "try_complete-answered-false")
def try_answered_false(made: Trace, broken: bool) -> None:
    _try(made, completes=broken, answer=0)


def _try(made: Trace, completes: bool, answer: int) -> None:
    with made.call("try_complete", "a", out=answer):
        if completes:
            made.complete("a")


@twin("O7", "check-miscounted")
def check_miscounted(made: Trace, broken: bool) -> None:
    made.register("a")
    made.check("k", "a", out=2 if broken else 1)


@twin("P1", "garbage")
def garbage(made: Trace, broken: bool) -> None:
    for name in ("a", "b", "c", "d", "e"):
        made.register(name, ["k", "l"])
        made.check("k", name)
    made.register("live", ["k", "l"])
    made.gauge(watched=9 if broken else 8, delayed=1)


@twin("P2", "watched-out-of-bounds")
def watched_too_few(made: Trace, broken: bool) -> None:
    made.register("a", ["k", "l"])
    made.gauge(watched=1 if broken else 2, delayed=1)


@twin("P2", "watched-out-of-bounds")
def watched_too_many(made: Trace, broken: bool) -> None:
    made.register("a", ["k", "l"])
    made.gauge(watched=3 if broken else 2, delayed=1)


@twin("P2", "delayed-above-live")
def delayed_above_live(made: Trace, broken: bool) -> None:
    made.register("a")
    made.complete("a", cancel=False)
    made.gauge(watched=0, delayed=1 if broken else 0)


@twin("P4", "empty-lists")
def empty_lists(made: Trace, broken: bool) -> None:
    made.register("a", ["k", "l"])
    made.point("quiesce", state=State(2, 1, 2))
    made.check("k", "a")
    made.check("l")
    made.point("quiesce", state=State(0, 0, 1 if broken else 0))


@twin("T5", "negative")
def negative(made: Trace, broken: bool) -> None:
    made.gauge(watched=0, delayed=-1 if broken else 0)


@twin("T5", "size-wrong")
def size_wrong(made: Trace, broken: bool) -> None:
    for name in ("a", "b", "c"):
        made.add(name)
    made.cancel("b")
    made.gauge(watched=0, delayed=3 if broken else 2)


@twin("T5", "size-wrong")
def size_too_small_in_an_interval(made: Trace, broken: bool) -> None:
    for name in ("a", "b", "c"):
        made.add(name)
    reading = made.start("gauge", th="metrics")
    made.cancel("b")
    made.end(reading, state=State(None, 0 if broken else 1))


@twin("T1", "early")
def early(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(9 * MS if broken else 10 * MS)
    made.fire("a")


@twin("T2", "late")
def late(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(61 * MS if broken else 59 * MS)
    made.fire("a")


@twin("T2", "answered-late", "request-log")
def answered_late(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(61 * MS if broken else 59 * MS)
    made.complete("a", cancel=False)


@twin("T3", "fired-twice")
def fired_twice(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=MS)
    made.wait(2 * MS)
    made.fire("a")
    if broken:
        made.fire("a")


@twin("T3", "never-fired")
def never_fired(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=MS)
    made.wait(2 * MS)
    if not broken:
        made.fire("a")
    made.wait(50 * MS)
    made.gauge(watched=0, delayed=1 if broken else 0)


@twin("T3", "fired-and-never-added")
def fired_and_never_added(made: Trace, broken: bool) -> None:
    if not broken:
        made.add("a", delay_ns=0)
    made.fire("a")


@twin("T4", "fired-though-given-back")
def fired_though_given_back(made: Trace, broken: bool) -> None:
    """What a key gave back before its deadline; its twin was given back when it was being handed over."""
    made.register("a", delay_ns=10 * MS)
    made.wait(0 if broken else 11 * MS)
    made.give_back("k", "a")
    made.wait(12 * MS)
    made.expire("a")
    made.register("b", delay_ns=10 * MS)
    made.give_back("k", "b")


@twin("O2", "completed-under-a-lost-key")
def completed_under_a_lost_key(made: Trace, broken: bool) -> None:
    """A key that gave the operation back completes it no more; another of its keys may."""
    made.register("a", ["k", "l"])
    made.give_back("k", "a")
    made.ready("a")
    made.check("k" if broken else "l", "a")


@twin("O2", "completed-under-a-lost-key")
def completed_under_another_lost_key(made: Trace, broken: bool) -> None:
    """One key gave the operation back and took it off the other too."""
    made.register("a", ["k", "l"])
    made.give_back("k", "a", off=["l"] if broken else [])
    made.ready("a")
    made.check("l", "a")


@twin("O2", "given-back-by-another-key")
def given_back_by_another_key(made: Trace, broken: bool) -> None:
    made.register("a", ["k", "l"])
    made.give_back("m" if broken else "l", "a")


@twin("O2", "given-back-twice")
def given_back_twice(made: Trace, broken: bool) -> None:
    """By one key; each of two keys may."""
    made.register("a", ["k", "l"])
    made.give_back("k", "a")
    made.give_back("k" if broken else "l", "a")


@twin("O2", "not-given-back")
def not_given_back(made: Trace, broken: bool) -> None:
    """Watched when its key was cancelled, and completed by another later; its twin was being evaluated just then, and
    who came after the call, or whose time was over, was not asked for."""
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
    made.ready("a")
    made.check("l", "a")
    made.give_back("k", "late")


@twin("O3", "expired-without-its-callback")
def expired_without_its_callback(made: Trace, broken: bool) -> None:
    made.register("a", delay_ns=10 * MS)
    made.wait(11 * MS)
    with made.call("timer_fire", "a", th="exec"):
        made.complete("a", th="exec")
        if not broken:
            made.point("on_expiration", "a", th="exec")


@twin("T4", "fired-after-cancel", "locked", "netty-hashed-wheel", "asyncio")
def fired_after_cancel(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.cancel("a")
    made.wait(20 * MS)
    if broken:
        made.fire("a")


@twin("T4", "cancelled-after-it-ran", "timer", "netty-hashed-wheel", "asyncio")
def cancelled_after_it_ran(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    made.fire("a", th="w")
    made.cancel("a", out=int(broken))
    made.add("b", delay_ns=10 * MS)
    made.cancel("b", out=1)


@twin("T4", "fired-after-cancel", "netty-hashed-wheel")
def fired_behind_the_barrier(made: Trace, broken: bool) -> None:
    made.add("a", delay_ns=10 * MS)
    made.wait(20 * MS)
    made.cancel("a")
    if not broken:
        made.add("a", delay_ns=0)
    made.fire("a")


@twin("T4", "fired-though-completed")
def fired_though_completed(made: Trace, broken: bool) -> None:
    made.register("a", delay_ns=10 * MS)
    made.wait(20 * MS if not broken else 0)
    made.complete("a", cancel=False)
    made.wait(20 * MS)
    made.fire("a")
    made.register("b", delay_ns=10 * MS)
    made.complete("b")
