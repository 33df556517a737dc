"""The twins of T8 to T12: for each way to break them a hand-made history, and one that keeps them."""

from dataclasses import replace
from typing import Final

from purgatorio_spec.trace.record import FUNCTIONS
from spec.clause_twins import TWINS as OTHER_TWINS
from spec.clause_twins import Maker, twin
from spec.trace_builder import MS, Trace

P: Final = 100 * MS
"""The period of the tasks here; the late bound of the traces is half of it."""


def declared(made: Trace, catch_up: str = "burst", turn: str | None = None, *, virtual: bool = False) -> None:
    """The header of a timer with periodic tasks."""
    made.header = replace(
        made.header,
        recorded=FUNCTIONS,
        timer=replace(made.header.timer, catch_up=catch_up, turn=turn),
        clock=replace(made.header.clock, id="manual" if virtual else "monotonic"),
    )


def repeat(made: Trace, kind: str = "rate", *, first_ns: int = P) -> int:
    """Add the task `a`; when it is due first."""
    c = made.start(f"timer_fixed_{kind}", "a", delay_ns=P)
    made.end(c, deadline_t=made.events[c].t + first_ns)
    return made.events[c].t + first_ns


def at(made: Trace, t: int) -> None:
    """The next event is recorded then."""
    assert made.t + 1_000 <= t
    made.t = t - 1_000


def run_at(made: Trace, *moments: int, lasts_ns: int = 0) -> None:
    """A run of `a` starts at each of them."""
    for t in moments:
        at(made, t)
        with made.call("timer_fire", "a", th="exec"):
            made.wait(lasts_ns)


def advance_to(made: Trace, t: int, runs: int = 0) -> None:
    """Virtual time goes there at once, and so many runs of `a` come of it."""
    c = made.start("advance_clock")
    at(made, t)
    for _ in range(runs):
        made.t = t - 1_000
        with made.call("timer_fire", "a"):
            made.t = t - 1_000
    made.t = t - 1_000
    made.end(c)


@twin("T8", "ran-before-its-period", "timer", "asyncio")
def twice_in_a_period(made: Trace, broken: bool) -> None:
    """Two fires in one period."""
    declared(made)
    d = repeat(made)
    run_at(made, d, d + P)
    run_at(made, *([d + P + 9 * MS] if broken else [d + 2 * P]))


@twin("T8", "ran-before-its-period", "timer")
def early_after_a_long_run(made: Trace, broken: bool) -> None:
    """A fixed delay counts from the end of the run, not from its start."""
    declared(made)
    d = repeat(made, "delay")
    run_at(made, d, lasts_ns=60 * MS)
    run_at(made, d + P if broken else d + P + 61 * MS)


@twin("T8", "ran-before-its-period", "timer")
def burst_where_skip_is_declared(made: Trace, broken: bool) -> None:
    """Rearmed in the past: all that was missed is run at once. The twin declares that."""
    declared(made, "skip" if broken else "burst", virtual=True)
    d = repeat(made)
    advance_to(made, d, 1)
    advance_to(made, d + 4 * P + 60 * MS, 4)


@twin("T8", "ran-before-its-period", "timer")
def burst_where_once_is_declared(made: Trace, broken: bool) -> None:
    """One run for all that were missed."""
    declared(made, "once", virtual=True)
    d = repeat(made)
    advance_to(made, d, 1)
    advance_to(made, d + 4 * P + 60 * MS, 4 if broken else 1)
    advance_to(made, d + 5 * P, 1)


@twin("T8", "ran-before-its-period", "timer")
def caught_up_where_restart_is_declared(made: Trace, broken: bool) -> None:
    """The periods are counted from the last run."""
    declared(made, "restart", virtual=True)
    d = repeat(made)
    advance_to(made, d + 60 * MS, 1)
    advance_to(made, d + P, int(broken))
    advance_to(made, d + P + 60 * MS, 1)


@twin("T9", "drifted", "timer")
def rearmed_from_now(made: Trace, broken: bool) -> None:
    """Each run is 20 ms late, and the next counted from it: in time each, and a whole period behind after five."""
    declared(made)
    d = repeat(made)
    run_at(made, *(d + n * P + (n + 1 if broken else 1) * 20 * MS for n in range(6)))


@twin("T9", "drifted", "timer")
def late_after_a_run(made: Trace, broken: bool) -> None:
    """A fixed delay may be late by its bound, however long a run takes."""
    declared(made)
    d = repeat(made, "delay")
    run_at(made, d, lasts_ns=3 * P)
    run_at(made, d + 4 * P + (60 if broken else 40) * MS)


@twin("T9", "drifted", "timer")
def a_period_left_out(made: Trace, broken: bool) -> None:
    """Under `skip` a period may be left out only if the run before lasted into it."""
    declared(made, "skip")
    d = repeat(made)
    run_at(made, d, lasts_ns=0 if broken else P + 10 * MS)
    run_at(made, d + 2 * P)


@twin("T9", "drifted", "timer")
def skipped_though_the_clock_stopped_there(made: Trace, broken: bool) -> None:
    """In virtual time too: a slot may be left out if the clock stops nowhere in its bounds."""
    declared(made, "skip", virtual=True)
    d = repeat(made)
    advance_to(made, d, 1)
    advance_to(made, d + P + (50 if broken else 60) * MS + 1_000)  # the add lasted a microsecond
    advance_to(made, d + 2 * P, 1)
    advance_to(made, d + 2 * P + 50 * MS)


@twin("T9", "stopped-running", "timer")
def lost_its_place(made: Trace, broken: bool) -> None:
    """It runs twice and never again."""
    declared(made)
    d = repeat(made)
    run_at(made, d, d + P)
    if not broken:
        made.cancel("a")
    made.wait(9 * P)
    made.point("quiesce", state=None)


@twin("T9", "stopped-running", "timer")
def never_ran(made: Trace, broken: bool) -> None:
    """Its first deadline is reached and nothing comes; a run that lasts is not missed."""
    declared(made, "once")
    d = repeat(made)
    if not broken:
        at(made, d)
        c = made.start("timer_fire", "a", th="exec")
        made.wait(9 * P)
        made.end(c)
        run_at(made, d + 9 * P + 2 * MS)
    else:
        made.wait(9 * P)
        made.point("ready", "z")


@twin("T10", "ran-after-cancel", "timer", "timer-cancel-barrier")
def cancelled_from_outside(made: Trace, broken: bool) -> None:
    declared(made)
    d = repeat(made)
    run_at(made, d)
    made.cancel("a")
    run_at(made, *([d + P] if broken else []))
    made.wait(3 * P)


@twin("T10", "ran-after-cancel", "timer")
def cancelled_by_itself(made: Trace, broken: bool) -> None:
    """The timer adds the task again behind the run, whatever happened in it; even what was due by then must not run."""
    declared(made)
    d = repeat(made)
    at(made, d)
    with made.call("timer_fire", "a", th="exec"):
        made.wait(P + MS)
        made.cancel("a", th="exec")
    if broken:
        run_at(made, d + P + 2 * MS)
    made.wait(3 * P)


@twin("T10", "ran-after-cancel", "timer")
def handed_over_once(made: Trace, broken: bool) -> None:
    """A run that was due before its cancel may have been handed over, but no second."""
    declared(made)
    d = repeat(made)
    at(made, d + P + 10 * MS)
    made.cancel("a")
    run_at(made, d + P + 11 * MS)
    if broken:
        run_at(made, d + P + 12 * MS)


def reset(made: Trace, delay_ns: int, out: int = 1) -> None:
    """`a` is moved to so far from now."""
    c = made.start("timer_reset", "a", delay_ns=delay_ns)
    made.end(c, out, deadline_t=made.events[c].t + delay_ns)


@twin("T11", "fired-at-former-deadline", "timer", "asyncio")
def former_deadline(made: Trace, broken: bool) -> None:
    declared(made)
    made.add("a", delay_ns=P)
    made.wait(P // 2)
    reset(made, 4 * P)
    made.wait(P // 2 if broken else 4 * P)
    made.fire("a")


@twin("T11", "fired-at-former-deadline", "timer-cancel-barrier")
def former_deadline_that_had_come(made: Trace, broken: bool) -> None:
    """Due, and reset before it ran; its twin was started by another thread, which may have taken it before."""
    declared(made)
    made.add("a", delay_ns=P)
    made.wait(P)
    reset(made, 4 * P)
    made.fire("a", th="w" if broken else "exec")


@twin("T11", "fired-late-after-reset", "timer")
def reset_to_earlier(made: Trace, broken: bool) -> None:
    """The timer sleeps to the former deadline: the reset does not wake it."""
    declared(made)
    made.add("a", delay_ns=9 * P)
    reset(made, P)
    made.wait(9 * P if broken else P)
    made.fire("a")


@twin("T11", "fired-not-once-after-reset", "timer")
def fired_at_both(made: Trace, broken: bool) -> None:
    """What ran already is armed anew by a reset that says so, once."""
    declared(made)
    made.add("a", delay_ns=P)
    made.wait(P)
    made.fire("a")
    reset(made, P)
    made.wait(P)
    made.fire("a")
    if broken:
        made.fire("a")


@twin("T12", "ran-in-the-same-turn", "timer")
def endless_turn(made: Trace, broken: bool) -> None:
    """Each task adds the next one without a delay; with `next` a turn runs one of them."""
    declared(made, turn="next", virtual=True)
    made.add("a", delay_ns=0)
    turn = made.start("advance_clock")
    with made.call("timer_fire", "a"):
        made.add("b", delay_ns=0)
    if not broken:
        made.end(turn)
        turn = made.start("advance_clock")
    made.fire("b", th="w")
    made.end(turn)


@twin("T12", "left-for-a-later-turn", "timer")
def left_over(made: Trace, broken: bool) -> None:
    """With `same` it runs before the advance returns."""
    declared(made, turn="same", virtual=True)
    made.add("a", delay_ns=0)
    turn = made.start("advance_clock")
    with made.call("timer_fire", "a"):
        made.add("b", delay_ns=0)
    if broken:
        made.end(turn)
        turn = made.start("advance_clock")
    made.fire("b", th="w")
    made.end(turn)


TWINS: Final[list[tuple[str, str, Maker]]] = OTHER_TWINS
"""Those of all clauses."""
