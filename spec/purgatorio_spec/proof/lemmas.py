"""The arithmetic of the wheels, proved for all integers with symbolic tick and size.

The formula `q = floor(x / T)` is written `q*T <= x < q*T + T`. For proofs with such products, z3 needs the first lemma
as a hint: a < b implies a*T + T <= b*T. Claims about threads (an add during an advance, a cancel during a flush) are
not proved here. The models check such claims.
"""

from collections.abc import Callable
from dataclasses import dataclass

from purgatorio_spec.proof.solver import Fact, Term, choose, integers


@dataclass(frozen=True, slots=True)
class Question:
    """Hypotheses, and the formula that should follow from them."""

    hypotheses: tuple[Fact, ...]
    goal: Fact


@dataclass(frozen=True, slots=True)
class Lemma:
    """A statement, its question, and its negative control: a mistake with which z3 must refute the question."""

    id: str
    statement: str
    twin: int | str
    question: Callable[[bool], Question]
    """The formula for the correct wheel (False), or for the wheel with the mistake (True)."""


def is_floor(quotient: Term, value: Term, tick: Term) -> Fact:
    return (quotient * tick <= value) & (value < quotient * tick + tick)


def spaced(low: Term, high: Term, tick: Term) -> Fact:
    """The multiplication hint: distinct multiples of a tick are at least a tick apart."""
    return (low < high).implies(low * tick + tick <= high * tick)


def _multiples(weak: bool) -> Question:
    low, high, tick = integers("low high tick")
    return Question(((tick >= 0) if weak else (tick >= 1), low < high), low * tick < high * tick)


def _level(rounded_up: bool) -> Question:
    """The level above has tick U and the lower clock, floored to U, as its clock; the lower level's interval is U.

    A level takes a task if the level below did not take it, if the task is not expired by the clock of this level, and
    if its deadline is before the end of this level.
    """
    tick, size, lower, upper, deadline = integers("tick size lower_clock upper_clock deadline")
    aligned = (upper <= lower) & (lower < upper + tick)
    if rounded_up:
        aligned = (lower <= upper) & (upper < lower + tick)
    past_lower_end = deadline >= lower + tick
    below_end = deadline < upper + tick * size
    takes = past_lower_end & ~(deadline < upper + tick) & below_end
    return Question((tick >= 1, size >= 2, aligned), takes.iff(past_lower_end & below_end))


def _buckets(inclusive: bool) -> Question:
    """Ticks v, w inserted at clocks <= k with v < clock + n, still unpolled at k, in one bucket: v - w = m*n."""
    size, clock, clock_v, clock_w, v, w, laps = integers("size clock clock_v clock_w v w laps")
    end = 1 if inclusive else 0
    live = [
        size >= 1,
        clock_v <= clock,
        clock_w <= clock,
        v >= clock,
        w >= clock,
        v < clock_v + size + end,
        w < clock_w + size + end,
        (v - w).equals(laps * size),
    ]
    return Question(tuple(live), v.equals(w))


def _counted_slot(from_clock: bool) -> Question:
    """The mistaken slot (v - clock) mod n instead of v mod n: v was inserted at k, w at a later clock."""
    if not from_clock:
        return _buckets(False)
    size, clock_v, clock_w, v, w, laps = integers("size clock_v clock_w v w laps")
    same = ((v - clock_v) - (w - clock_w)).equals(laps * size)
    live = (clock_v <= clock_w, v > clock_w, w > clock_w, v < clock_v + size, w < clock_w + size)
    return Question((size >= 1, same, *live), v.equals(w))


def _expiration(rounded_up: bool) -> Question:
    deadline, tick, quotient = integers("deadline tick quotient")
    expiration = quotient * tick + (tick if rounded_up else tick * 0)
    goal = (expiration <= deadline) & (deadline < expiration + tick)
    return Question((tick >= 1, is_floor(quotient, deadline, tick)), goal)


def _cascade(clock_stands: bool) -> Question:
    """A bucket of tick n*T and number V is flushed; the clock of the level below, of tick T, is w*T."""
    tick, size, bucket, below, deadline = integers("tick size bucket below deadline")
    big = tick * size
    facts = [tick >= 1, size >= 1, is_floor(bucket, deadline, big)]
    if not clock_stands:
        facts.append(below * tick >= bucket * big)
    return Question(tuple(facts), deadline < below * tick + big)


def _cascade_once(same_level: bool) -> Question:
    """A task that goes strictly down from level L can be moved at most L times before it fires."""
    level, after, moves_left, left_after = integers("level after moves_left left_after")
    facts = [level >= 0, after >= 0, moves_left.equals(level), left_after.equals(after)]
    facts.append((after <= level) if same_level else (after < level))
    return Question(tuple(facts), left_after <= moves_left - 1)


def _not_early(inclusive: bool) -> Question:
    """The clock of the lowest level is k*T <= now, and it fires d; q = floor(d / T)."""
    tick, clock, now, deadline, quotient = integers("tick clock now deadline quotient")
    end = clock * tick + tick
    fires = (deadline <= end) if inclusive else (deadline < end)
    facts = (tick >= 1, clock * tick <= now, fires, is_floor(quotient, deadline, tick))
    return Question((*facts, spaced(clock, quotient, tick)), quotient * tick <= now)


def _counted_deadline(from_cursor: bool) -> Question:
    """The mistaken deadline clock + delay, with a clock that lags: may the task fire before its true deadline?"""
    if not from_cursor:
        return _not_early(False)
    tick, clock, now, then, delay, quotient = integers("tick clock now then delay quotient")
    stored, true = clock * tick + delay, now + delay
    fires = (stored < then * tick + tick) & (then * tick <= now + delay - delay)
    facts = (tick >= 1, delay >= 0, clock * tick <= now, clock <= then, fires, is_floor(quotient, true, tick))
    return Question((*facts, spaced(then, quotient, tick)), quotient * tick <= now)


def _not_late(rounded_up: bool) -> Question:
    """After a drain no queued bucket is due: one of tick m*T that holds d expires after now."""
    tick, factor, now, deadline, low, high = integers("tick factor now deadline low high")
    big = tick * factor
    expiration = high * big + (big if rounded_up else big * 0)
    facts = (
        tick >= 1,
        factor >= 1,
        is_floor(low, deadline, tick),
        is_floor(high, deadline, big),
        expiration > now,
        spaced(low, high * factor, tick),
    )
    return Question(facts, low * tick > now)


def _advance(clock: Term, tick: Term, time: Term, quotient: Term) -> Term:
    return choose(time >= clock * tick + tick, quotient * tick, clock * tick)


def _monotone(unguarded: bool) -> Question:
    tick, clock, time, quotient = integers("tick clock time quotient")
    after = quotient * tick if unguarded else _advance(clock, tick, time, quotient)
    facts = (tick >= 1, is_floor(quotient, time, tick), spaced(quotient, clock, tick))
    return Question(facts, after >= clock * tick)


def _overflow(stands: bool) -> Question:
    """Before: upper clock = floor of the lower one. After advancing to `time`: still."""
    tick, size, lower, upper, time, low, high = integers("tick size lower upper time low high")
    big = tick * size
    lower_after = _advance(lower, tick, time, low)
    moved = _advance(upper, big, time, high)
    recursed = choose(time >= lower * tick + tick, moved, upper * big)
    upper_after = upper * big if stands else recursed
    facts = (
        tick >= 1,
        size >= 1,
        is_floor(low, time, tick),
        is_floor(high, time, big),
        is_floor(upper, lower * tick, big),
        spaced(low, high * size, tick),
        spaced(low, lower, tick),
    )
    return Question(facts, (upper_after <= lower_after) & (lower_after < upper_after + big))


def _rounds(from_zero: bool) -> Question:
    """Single wheel: after `rounds` skipped visits, the slot of tick v is visited exactly at tick v."""
    size, cursor, target, rounds, visit = integers("size cursor target rounds visit")
    distance = target if from_zero else target - cursor - 1
    first_visit = (visit > cursor) & (visit <= cursor + size)
    laps = integers("laps")[0]
    facts = (
        size >= 1,
        cursor >= 0,
        target > cursor,
        is_floor(rounds, distance, size),
        first_visit,
        (target - visit).equals(laps * size),
    )
    return Question(facts, (visit + rounds * size).equals(target))


def _expired(inclusive: bool) -> Question:
    """`deadline < clock + tick` says exactly that the deadline's tick is the clock's or an earlier one."""
    tick, clock, deadline, quotient = integers("tick clock deadline quotient")
    end = clock * tick + tick
    expired = (deadline <= end) if inclusive else (deadline < end)
    facts = (tick >= 1, is_floor(quotient, deadline, tick))
    hints = (spaced(quotient, clock, tick), spaced(clock, quotient, tick))
    return Question((*facts, *hints), expired.iff(quotient <= clock))


LEMMAS = (
    Lemma("Z0", "distinct multiples of a tick are distinct (the hint that the others use)", "tick 0", _multiples),
    Lemma("Z1", "a task lies in a level iff lower level's end <= deadline < level's end",
          "overflow clock rounded up", _level),
    Lemma("Z2", "two live ticks never share a bucket, if the clock passes no unpolled bucket", 66, _buckets),
    Lemma("Z2b", "the same, with the slot counted from tick 0", 69, _counted_slot),
    Lemma("Z3", "bucket expiration <= deadline < bucket expiration + tick", "expiration rounded up", _expiration),
    Lemma("Z4", "a flushed task goes to a strictly lower level or fires", "clock not advanced before the flush",
          _cascade),
    Lemma("Z5", "so a task is moved at most once a level (T7)", "re-insertion into the same level", _cascade_once),
    Lemma("Z6", "not early: fired only at now >= floor(d/T)*T (T1)", 65, _not_early),
    Lemma("Z6b", "not early, with the deadline counted from now", 70, _counted_deadline),
    Lemma("Z7", "not late: what is pending after a drain has floor(d/T)*T > now (T2)", "expiration rounded up",
          _not_late),
    Lemma("Z8", "no clock goes back", "advance without its guard", _monotone),
    Lemma("Z9", "an overflow clock is the floor of the clock below, also after an advance", 63, _overflow),
    Lemma("Z10", "expired means: the deadline's tick is the clock's or an earlier one", 65, _expired),
    Lemma("Z11", "single wheel: after its rounds a slot is visited exactly at the task's tick", 72, _rounds),
)  # fmt: skip
