"""Small programs that people have written, in addition to the enumerated `scope`: programs with many operations
(purges, crowds, levels), with a new start of the subject, or with more calls than the programs of the scope."""

from __future__ import annotations

from typing import Final

from purgatorio_conformance.protocol.boundary_plan import REAPER_NS
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Force,
    Gauge,
    Quiesce,
    Ready,
    Register,
)
from purgatorio_conformance.protocol.small_program import (
    ARM,
    ARMING,
    CALLBACK,
    CLAIM,
    DISARM,
    DONE,
    ERRORS,
    EXPIRED,
    FORCE,
    GIVE_UP,
    LEVEL,
    LISTS,
    MOVED,
    PURGE,
    RECHECK,
    TIMER,
    TRY,
    Barrier,
    Delays,
    Expiry,
    Fault,
    Inside,
    LaneCall,
    SmallProgram,
    Stepped,
    Until,
)

_VOLLEYS: Final = 100
_OTHERS: Final = 60
"""So many that one of them shares its lock with the one that is stopped, where operations share a few dozen locks."""
_DEEP: Final = 20
"""So many completions are made one inside the other."""
_CROWD: Final = 600
"""So many expire at once: more than the queue of an executor may take."""
_LOOKS_MORE: Final = 50
"""More than what a purge may have missed: one operation a thread."""


def _reaper_ns(soon_ns: int) -> int:
    """In whole units: by then a reaper has had a turn."""
    return soon_ns * -(-REAPER_NS // soon_ns)


def gate_programs(part: Part, delays: Delays) -> tuple[SmallProgram, ...]:
    """The programs for a part."""
    return _of_purgatory(delays) if part == "purgatory" else _of_timer(delays)


def left_behind(count: int, key: str, far_ns: int) -> tuple[Call, ...]:
    """So many completed operations stay in the list of this key."""
    names = [f"left-{number}" for number in range(count)]
    return tuple(
        call for name in names for call in (Register(name, (key, "g"), far_ns), Ready(name), Check("g"))
    )


def _of_purgatory(delays: Delays) -> tuple[SmallProgram, ...]:
    soon_ns, far_ns, level_ns = delays.soon_ns, delays.far_ns, delays.level_ns

    def inside(operation: str, *calls: Call) -> tuple[LaneCall, ...]:
        return tuple(Inside(operation, call) for call in calls)

    def waits(keys: str, operation: str = "op", delay_ns: int = far_ns) -> Register:
        return Register(operation, tuple(keys), delay_ns)

    event: tuple[Call, ...] = (Ready("op"), Check("a"))
    soon = waits("a", delay_ns=soon_ns)
    forces = ((Force("op"),),) * 4
    expiry = (Expiry("op"),)
    due = waits("a", delay_ns=delays.least_ns)
    # A wheel knows how late it is when it has moved something, and until then takes what is due for what is not.
    on_time = (waits("z", "first", soon_ns), Until("first", 0))
    crowd = tuple(waits("c", f"of-crowd-{number}", soon_ns) for number in range(_CROWD))

    def left(count: int) -> tuple[Call, ...]:
        return left_behind(count, "a", far_ns)

    def ready(count: int, *keys: str) -> tuple[Call, ...]:
        made = [Register(f"left-{number}", keys, far_ns) for number in range(count)]
        return tuple(call for one in made for call in (one, Ready(one.id)))

    # The expiry is the one too many. Anew, or what is left of the play before would have them purged earlier, by an
    # adapter that has its reaper turn after each call.
    garbage = left(delays.garbage)
    again = range(delays.garbage + 1)
    too_many = waits("c", "other", delays.purge_ns)
    purge = (*garbage, too_many)
    purges = (
        SmallProgram("purge-event", PURGE, ((Expiry("other"),), event), (TRY, DONE), (*purge, waits("a")),
                    fresh=True),
        SmallProgram("purge-registration", PURGE, ((Expiry("other"),), (waits("a"),)), (TRY, ARM), purge,
                    (Ready("op"), Check("a")), fresh=True),
        # And is left to its time-out, of which no other call reminds the timer.
        SmallProgram("purge-registration-expiry", PURGE, ((soon, *expiry), (Expiry("other"),)), (ARM,),
                    (*left(delays.garbage - 1), too_many), fresh=True),
        # Under both keys that have become empty: the purge stands where it comes to the first.
        SmallProgram("calls-beside-purge", PURGE,
                    ((Expiry("other"),), (waits("a"), waits("g", "next"), Ready("live"), Check("b"))), (),
                    (waits("b", "live"), *garbage, waits("a", "other", delays.purge_ns)),
                    (Quiesce(), Ready("op"), Check("a"), Ready("next"), Check("g")), fresh=True),
        # As many come to the list as are taken off it.
        SmallProgram("list-is-filled-again-beside-purge", PURGE,
                    ((Expiry("other"),), (Check("a"), *(waits("a", f"next-{number}") for number in again))), (),
                    (waits("a", "live"), *garbage, waits("a", "other", delays.purge_ns)),
                    (Quiesce(), *(Ready(f"next-{number}") for number in again), Check("a")), fresh=True),
        # Of one hash: what is held while the one key is released is what the garbage of the other lies under.
        SmallProgram("purge-cancel", PURGE, ((CancelKey("Aa"),), (Check("g"), Expiry("other"))), ((DISARM, "op"),),
                    (Register("op", ("Aa",), far_ns), *ready(2 * delays.garbage + _LOOKS_MORE, "BB", "g"),
                     too_many),
                    schedule=Barrier(1), fresh=True),
    )  # fmt: skip
    # It has no time-out any more, which is why it is one of those too many, and waits under its other key all the same.
    given_back = SmallProgram("purge-and-event-of-given-back", PURGE, ((Expiry("other"), Ready("op"), Check("b")),),
                             (TRY, DONE), (waits("bd"), CancelKey("d"), *left(delays.garbage - 1), too_many),
                             fresh=True)  # fmt: skip
    both = (waits("a"), waits("a", "other"))

    # Before the others: what has expired widens the bound on garbage.
    looks = SmallProgram("garbage-of-second-looks", LISTS, ((waits("ab"),), inside("op", Ready("op"))), (TRY,),
                        schedule=Barrier(delays.looks))  # fmt: skip
    # As many for each key that an operation may have.
    spoilt = SmallProgram("error-in-try-and-garbage", ERRORS, ((Check("a"),),), (TRY,), (waits("a"),),
                         left(2 * delays.looks), fault=Fault(TRY, "op"))  # fmt: skip
    half_registered = SmallProgram("error-in-registration-and-garbage", ERRORS, ((waits("a"),),), (TRY,), (),
                                  left(2 * delays.looks), fault=Fault(TRY, "op", 1))  # fmt: skip
    # Behind many that wait under the same key, a reaper's turn and another later.
    waiting = tuple(waits("a", f"waits-{number}") for number in range(_OTHERS))
    turns = tuple(Until("waits-0", max(0, far_ns - turn * _reaper_ns(soon_ns))) for turn in (1, 2))
    behind = SmallProgram("garbage-behind-those-that-wait", LISTS, ((Check("a"),),), (TRY,),
                         (*waiting, *left(2 * delays.looks), *turns, Gauge(), Quiesce(),
                          *(Ready(one.id) for one in waiting)), schedule=Barrier(1))  # fmt: skip
    return (
        *((looks, spoilt, half_registered) if delays.looks else ()),
        SmallProgram("three-events", GIVE_UP, ((Check("a"),), (Check("a"),), event), (TRY,), (waits("a"),)),
        SmallProgram("event-after-event", GIVE_UP, ((Check("a"),), (Check("a"), Check("a"), *event)), (TRY,),
                    (waits("a"),)),
        SmallProgram("event-beside-others", GIVE_UP, ((Check("a"),), (Check("b"),)), ((TRY, "op"),),
                    (waits("a"), *ready(_OTHERS, "b"))),
        SmallProgram("forces-at-once", CLAIM, forces, (FORCE,), (waits("a"),), schedule=Barrier(_VOLLEYS)),
        SmallProgram("events-and-force-at-once", CLAIM, ((Check("a"),), (Check("b"),), *forces[:2]), (TRY, FORCE),
                    (waits("ab"), Ready("op")), schedule=Barrier(_VOLLEYS)),
        # Behind what is found with fewer calls.
        *((behind,) if delays.looks else ()),
        *purges,
        given_back,
        SmallProgram("expiry-force-at-once", CLAIM, (expiry, *forces[:2]), (FORCE,), (soon,),
                     schedule=Barrier(_VOLLEYS)),
        SmallProgram("list-empties-twice-and-fills", LISTS, ((Check("a"),), (Check("a"), waits("a", "next"))), (DONE,),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a"))),
        SmallProgram("long-list-empties-and-fills", LISTS, ((waits("a"),), (Check("a"),)), (), ready(_OTHERS, "a"),
                    event),
        # What a check has passed, and another takes off, is not there for its next step to count on.
        SmallProgram("list-shrinks-behind-a-check", LISTS, ((Check("a"),), (*forces[0], Check("a"))), ((TRY, "other"),),
                    (*both, waits("a", "third"), Ready("third")), schedule=Barrier(1)),
        # Of one hash: who keeps lists by hashes has both at one place.
        SmallProgram("sizes-beside-registration", LISTS, ((Gauge(),), (Register("next", ("BB",), far_ns),)), (),
                    (Register("op", ("Aa",), far_ns),), fresh=True),
        # Anew, or what lies about completed hides an entry that is not counted.
        SmallProgram("checks-of-one-list", LISTS, ((Check("a"),), (Check("a"),)), (), (*both, Ready("op")),
                    (Quiesce(),), fresh=True),
        SmallProgram("list-empties-and-fills-at-once", LISTS, ((Check("a"),), (waits("a", "next"),)), (TRY, DONE),
                    (waits("a"), Ready("op")), (Ready("next"), Check("a")), schedule=Barrier(_VOLLEYS)),
        # What one check goes through is not another's, nor is what it counts.
        SmallProgram("checks-inside-completions-before-others", CALLBACK,
                    ((Check("a"),), inside("op", Check("b")), inside("other", Check("a"))), (DONE,),
                    (*both, waits("a", "third"), waits("b", "next"), Ready("op"), Ready("other"), Ready("third"))),
        SmallProgram("completions-that-check-the-next", CALLBACK,
                    ((Check("0"),), *(inside(f"op-{deep}", Check(f"{deep + 1}")) for deep in range(_DEEP))), (DONE,),
                    tuple(call for deep in range(_DEEP + 1)
                          for call in (Register(f"op-{deep}", (f"{deep}",), far_ns), Ready(f"op-{deep}"))),
                    schedule=Barrier(1)),
        SmallProgram("registration-inside-completion-beside-others", CALLBACK,
                    ((waits("a"),), forces[0], (Expiry("other"),), (Inside("op", waits("b", "next"), DONE),)),
                    ((ARM, "op"), (DONE, "op")), (waits("c", "other", soon_ns),)),
        # Who expires on the thread that registers it must not have the clock, for which the mover waits and behind him
        # the registration inside the completion, whose operation the expiry waits for.
        SmallProgram("registration-inside-completion-beside-due", CALLBACK,
                    ((due,), (Check("b"),), (Expiry("third"),), (Inside("op", Check("b"), EXPIRED),),
                     (Inside("other", waits("d", "next"), DONE),)), ((EXPIRED, "op"), (TRY, "other"), (DONE, "other")),
                    (waits("b", "other"), Ready("other"), waits("c", "third", 2 * soon_ns), *on_time)),
        # Nor who expires on the thread that moves time, where more does at once than an executor takes.
        SmallProgram("registration-inside-completion-beside-crowd", CALLBACK,
                    ((Check("b"),), expiry, (Inside("last", Check("b"), DONE),),
                     (Inside("other", waits("d", "next"), DONE),)),
                    ((TRY, "other"), (DONE, "op"), (DONE, "last"), (DONE, "other")),
                    (*on_time, waits("b", "other"), Ready("other"), soon, *crowd, waits("c", "last", soon_ns)),
                    schedule=Barrier(1), fresh=True),
        SmallProgram("completions-that-check-each-other", CALLBACK,
                    ((Check("a"),), (Check("b"),), inside("op", Check("b")), inside("other", Check("a"))), (DONE,),
                    (waits("a"), waits("b", "other"), waits("a", "third"), waits("b", "next"), Ready("op"),
                     Ready("other"))),
        SmallProgram("registration-inside-expiry", CALLBACK,
                    ((*expiry, Expiry("next")), inside("op", waits("b", "next", soon_ns))), (DONE, EXPIRED), (soon,)),
        SmallProgram("errors-in-tries", ERRORS, ((Check("a"),) * 16,), (TRY,), (waits("a"),), event,
                    fault=Fault(TRY, "op")),
        SmallProgram("move-force", MOVED, ((Until("op", delays.before_ns),), forces[0]), (),
                    (waits("a", delay_ns=level_ns), waits("b", "other", delays.later_ns))),
        SmallProgram("move-registration", MOVED, ((Until("op", delays.before_ns),), (waits("b", "next", level_ns),)),
                    (), (waits("a", delay_ns=level_ns), waits("c", "other", delays.later_ns))),
        SmallProgram("registration-behind-move", MOVED,
                    ((Until("op", delays.before_ns),), (waits("b", "next", delays.later_ns),)), (),
                    (waits("a", delay_ns=level_ns), waits("c", "other", delays.later_ns)), (*event, Quiesce()),
                    schedule=Stepped.BEHIND_FIRST),
        SmallProgram("force-move-registration", MOVED,
                    (forces[0], (Until("op", delays.before_ns),), (waits("c", "next", delays.before_ns),)), (),
                    (waits("a", delay_ns=level_ns), waits("b", "other", delays.later_ns)),
                    schedule=Stepped.FIRST_TWICE),
        SmallProgram("registration-beside-overdue", MOVED,
                    (expiry, (waits("b", "next", delays.turn_ns),)), (), (soon,)),
        SmallProgram("registrations-that-are-due", ARMING,
                    ((due,), (waits("b", "other", delays.least_ns),)), (), on_time),
        SmallProgram("new-level", LEVEL, ((waits("a", delay_ns=level_ns),), (waits("b", "other", delays.later_ns),)),
                    (), fresh=True),
        SmallProgram("new-key", LISTS, ((waits("a"),), (waits("b", "third"), waits("a", "other"))), (), (),
                    (Ready("op"), Ready("other"), Check("a"), Ready("third"), Check("b")), fresh=True),
        # Last: an operation of many keys widens the bound on garbage.
        SmallProgram("registration-event-5-keys", RECHECK, ((waits("abcde"),), (Ready("op"), Check("e"))), (TRY,)),
    )  # fmt: skip


def _of_timer(delays: Delays) -> tuple[SmallProgram, ...]:
    soon_ns, far_ns = delays.soon_ns, delays.far_ns
    level, later = Add("t", delays.level_ns), Add("u", delays.later_ns)
    fires = (Expiry("t"),)
    soon = Add("t", soon_ns)
    adds = tuple((Add(name, far_ns),) for name in "tuvw")
    return (
        SmallProgram("adds-at-once", LEVEL, adds, (ARM,), schedule=Barrier(_VOLLEYS)),
        # Anew, or what other tasks have left is used again first.
        SmallProgram("cancel-fire-add", TIMER, ((Cancel("t"),), (*fires, Add("v", far_ns))), (), (soon,), fresh=True,
                    schedule=Stepped.FIRST),
        SmallProgram("cancels-beside", TIMER,
                    ((Cancel("t"),), (Cancel("u"),), (Add("w", delays.level_ns), Add("v", far_ns))), (),
                    (Add("t", far_ns), Add("u", far_ns)), (Quiesce(), Cancel("v"), Cancel("w"))),
        SmallProgram("adds-that-are-due", TIMER, ((Add("t", delays.least_ns),), (Add("u", delays.least_ns),)), (),
                    (Add("v", soon_ns), Until("v", 0))),
        SmallProgram("move-cancel", MOVED, ((Until("t", delays.before_ns),), (Cancel("t"),)), (), (level, later)),
        SmallProgram("move-add", MOVED, ((Until("t", delays.before_ns),), (Add("v", delays.level_ns),)), (),
                    (level, later)),
        # Who moves it may have it in hand.
        SmallProgram("move-add-again", MOVED, ((Until("t", delays.before_ns),), (level,)), (), (level, later)),
        SmallProgram("add-behind-move", MOVED, ((Until("t", delays.before_ns),), (Add("v", delays.later_ns),)), (),
                    (level, later), (Cancel("t"), Quiesce()), schedule=Stepped.BEHIND_FIRST),
        SmallProgram("cancel-move-add", MOVED,
                    ((Cancel("t"),), (Until("t", delays.before_ns),), (Add("v", delays.before_ns),)), (),
                    (level, later), schedule=Stepped.FIRST_TWICE),
        SmallProgram("add-beside-overdue", MOVED, (fires, (Add("u", delays.turn_ns),)), (), (soon,)),
        SmallProgram("new-level", LEVEL, ((level,), (later,)), (), fresh=True),
        # In real time the second lane's come later, by some ticks.
        SmallProgram("new-bucket", LEVEL,
                    ((soon,), tuple(Add(f"u-{ticks}", soon_ns - ticks * delays.before_ns) for ticks in range(3))), (),
                    schedule=Stepped.FIRST, fresh=True),
    )  # fmt: skip
