"""The *boundary plan*: calls for cases that a short random plan does not reach, such as every level of a wheel, idle
times, long delays, and many tasks at once.

In real time, the plan takes ten seconds. Then come six idle seconds, and six seconds with one waiting task. In virtual
time, a long delay takes no time, and the plan has these phases: crowds, the first tasks of the second and third level,
many tasks that are mostly cancelled, every level of the declared wheel (at least four), weeks, jumps over several
buckets, and in a purgatory completed operations. The method of each phase describes it. If the subject's `advance` is
slow, the plan is shorter.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import (
    AGAIN,
    KEYS_MOST,
    MAX_TIME_NS,
    Add,
    Call,
    Cancel,
    CancelKey,
    Check,
    Description,
    Force,
    Gauge,
    Quiesce,
    Ready,
    Register,
)
from purgatorio_conformance.subject.plan import MS

_DAYS_NS: Final = 3 * 24 * 3_600_000 * MS
_LONGEST_NS: Final = 25 * 24 * 3_600_000 * MS
_LEVELS_LEAST: Final = 4
_BUCKETS: Final = 12
"""A level is used only if the available time holds at least this many of its buckets."""

_IDLE_NS: Final = 6_000 * MS
_EPOCH_MOST_S: Final = 10.0
_LEAPS: Final = 3
"""A level is left out if passing its buckets would take longer than `_EPOCH_MOST_S` (seconds). To estimate this, the
plan measures `_LEAPS` leaps of one bucket. The shortest leap counts, because other work of the machine is not the
subject's. If the level before shows that these leaps alone take too long, no leap is made."""

_GROWS: Final = 16
"""Each leap to a far time is at most this many times as long as the leap before."""

REACHES_FROM: Final = 500
"""A plan with fewer timers or operations runs without these phases: the user requested a small run."""

REAL_NS: Final = 9_000 * MS
"""In real time, the plan waits for no delay that is longer than this."""
_SECOND_LEVEL_NS: Final = 1_000 * MS
_BITS: Final = 31
_BITS_32: Final = 1 << 32
_TURN_MOST: Final = 64
"""In a wheel with more buckets, the tasks of `_through_weeks` do not fill a whole revolution."""

_GARBAGE_MOST: Final = 24_000
_CROWD: Final = 3_000
"""More than the usual limits in code, such as 1,000, or the 2,048 places of a queue."""
_CROWD_REAL: Final = 600
"""The crowd in real time. More operations with one deadline would make each other late."""
_CROWD_NS: Final = 2_000 * MS
_CLEARED: Final = 300
"""More than 100: asyncio removes canceled timers only above this number."""
_PURGES: Final = 4
_ALIKE: Final = ("key-Aa", "key-BB")
_LEAST_HASH: Final = "polygenelubricants"
"""In Java, the keys of `_ALIKE` have one hash. `_LEAST_HASH` has the hash -2**31, whose absolute value does
not fit into 32 bits."""
_OUTERMOST: Final = tuple(
    tuple("".join(pairs) + end for pairs in itertools.product(("Aa", "BB"), repeat=6))
    for end in ("vhszjwf", "qmshrec")
)
"""Keys with the hash 0, and with the hash 65,535: they are in the first and last of up to 65,536 (2**n) lists."""
_LIVE_ONE_IN: Final = 4
REAPER_NS: Final = 250 * MS
_SHARED: Final = (7, 11)
"""Each operation of `garbage` has one of 7 shared keys, one of 11 shared keys, and a key of its own."""
_KEYS: Final = 3
"""The number of keys of each operation of `_begin`."""


class ReachingRun(Protocol):
    """The interface of a run for `BoundaryPlan`, in virtual or real time. Times are in nanoseconds. All methods raise
    SubjectFailed."""

    @property
    def now_ns(self) -> int:
        """The time of the driver's clock. In virtual time, only the methods below move it."""

    def call(self, call: Call, through: tuple[int, ...] = ()) -> None:
        """Make the call. `through`: bucket widths of levels; time stops at their boundaries before the call's
        deadline."""

    def advance_through(self, until_ns: int) -> None:
        """Let time pass until this moment, with a stop at every moment of interest."""

    def leap(self, by_ns: int) -> None:
        """Let this time pass in one step."""

    def settle(self) -> None:
        """Let time pass beyond every pending deadline."""


def levels_of(description: Description, room_ns: int) -> list[int]:
    """Return the bucket width of each level of the declared wheel, the finest first: at least
    four levels, and as many as reach a bucket of three days. The list ends earlier if twelve buckets of the next level
    do not fit into `room_ns`. Without a declared wheel, a level has 20 buckets."""
    tick_ns, size = description.grain_ns, max(2, description.buckets)
    found = [tick_ns]
    while (len(found) < _LEVELS_LEAST or found[-1] < _DAYS_NS) and found[-1] * size * _BUCKETS <= room_ns:
        found.append(found[-1] * size)
    return found


class BoundaryPlan:
    """Makes the calls of the boundary plan, for one part (timer or purgatory) of a subject."""

    def __init__(
        self,
        run: ReachingRun,
        description: Description,
        part: Part,
        seed: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._clock_s = clock_s
        self._description = description
        self._part = part
        self._rng = random.Random(f"reach/{seed}")
        self._unit_ns = description.unit_ns
        self._fit = description.fit
        self._rounded = description.rounded
        self._size = max(2, description.buckets)
        self._turn = min(self._size, _TURN_MOST)
        self._count = 0
        self._begun: list[str] = []
        self._room_ns = 0
        self.left_out = ""
        """The phases that were left out, with the reason."""

    def through_levels(self, *, longest_ns: int) -> None:
        """Run all levels with buckets of at most `longest_ns`, with idle gaps between the levels."""
        # The levels get a third of the remaining time. The gaps and the later phases need the rest.
        self._room_ns = min(self._description.most_delay_ns * 2, MAX_TIME_NS - self._run.now_ns) // 3
        levels = [width for width in levels_of(self._description, self._room_ns) if width <= longest_ns]
        self._crowd(_CROWD)
        self._run.settle()
        self.first_of_levels()
        passed_s, before_ns = 0.0, levels[0]

        def too_slow(by_ns: int, times: int = 1) -> bool:
            """Whether `times` leaps of `by_ns` take too long, at the speed of the last measured leaps."""
            return passed_s * (by_ns // before_ns) * times > _EPOCH_MOST_S

        for number, width_ns in enumerate(levels):
            slow = too_slow(width_ns, _LEAPS)
            if not slow:
                passed_s, before_ns = min(self._leap_s(width_ns) for _ in range(_LEAPS)), width_ns
                slow = too_slow(width_ns, min(_BUCKETS + self._size, self._room_ns // width_ns))
            if slow:
                self.left_out = (
                    f"levels with buckets of {width_ns:,} ns or more: the clock advances too slowly to reach "
                    "them"
                )
                return
            self._idle()
            self._level(levels[: number + 1])
            if number > 1:
                self._revolution(levels[: number + 1], -levels[number - 1], 0)
            self._run.settle()
        # Then weeks, once: no level is so wide. In milliseconds, weeks do not fit into 31 bits.
        weeks = self._weeks(levels[0])
        if before_ns < weeks[-1] <= longest_ns:
            if too_slow(weeks[-1]):
                self.left_out = "a task that waits for weeks: the clock advances too slowly to reach it"
                return
            self._through_weeks(levels, weeks)
            # Then short delays: their deadlines do not fit into 31 bits either.
            self._level(levels[:2])
            self._run.settle()

    def _weeks(self, tick_ns: int) -> list[int]:
        """Return the delays of the last tasks, in ascending order. If `MAX_TIME_NS` allows it, tasks wait until
        half a revolution before each of the next two multiples of 2**31 ticks. The longest delay lasts weeks."""
        now_ns, left_ns = self._run.now_ns, MAX_TIME_NS - self._run.now_ns
        bits_ns = tick_ns << _BITS
        first_ns = bits_ns - now_ns % bits_ns - self._rounded(tick_ns * self._turn // 2)
        delays = (first_ns, first_ns + bits_ns, 2 * bits_ns + tick_ns)
        found = [delay_ns for delay_ns in delays if 0 < delay_ns <= left_ns * 3 // 4]
        last_ns = min(_LONGEST_NS, left_ns // 2)
        return found if found and found[-1] >= last_ns else [*found, last_ns]

    def _through_weeks(self, levels: list[int], weeks: list[int]) -> None:
        """Begin tasks with all these delays, and with the delays of about 2**31 and 2**32 ticks that are shorter than
        the longest. When a delay of weeks ends, begin a task for each tick of two revolutions. So all tasks of one
        revolution are in different buckets."""
        now_ns, tick_ns = self._run.now_ns, levels[0]
        most_ns = min(weeks[-1], self._description.most_delay_ns)
        counts = (
            (tick_ns << bits) + beside for bits in (_BITS, _BITS + 1) for beside in (-tick_ns, 0, tick_ns)
        )
        for delay_ns in (*weeks, *(count for count in counts if count <= most_ns)):
            self._begin(delay_ns, levels[-1:])
        for delay_ns in weeks:
            self._run.advance_through(now_ns + self._rounded(delay_ns))
            for number in range(2 * self._turn):
                self._begin(number * levels[0], levels[:1])
        self._run.settle()

    def _leap_s(self, by_ns: int) -> float:
        """Measure a leap. A task ends it: a timer without a task may sleep, and catch up only at the next task."""
        last_ns = self._fit(self._unit_ns)
        begun_s = self._clock_s()
        self._run.leap(max(0, self._rounded(by_ns) - last_ns))
        self._begin(last_ns, [])
        self._run.advance_through(self._run.now_ns + last_ns)
        return self._clock_s() - begun_s

    def in_real_time(self) -> None:
        """Run the levels whose buckets are reached within seconds, an idle gap, and some tasks after the gap."""
        widths = [width for width in levels_of(self._description, MAX_TIME_NS) if width <= REAL_NS]
        waiting = self._hours_and_weeks() if self._part == "purgatory" else []
        self._crowd(_CROWD_REAL)
        for number in range(len(widths)):
            for delay_ns in self._delays(widths[: number + 1]):
                if delay_ns <= REAL_NS + widths[0]:
                    self._begin(delay_ns, widths)
        self._run.settle()
        self._run.leap(_IDLE_NS)
        for delay_ns in self._delays(widths[:2]):
            self._begin(min(delay_ns, 300 * MS), widths)
        self._run.settle()
        # If only one task waits, no other event wakes the thread that sleeps until its deadline.
        self._begin(_IDLE_NS, widths)
        self._run.settle()
        for name in waiting:
            self._run.call(Ready(name))
            self._run.call(Check(name))

    def _hours_and_weeks(self) -> list[str]:
        """Register operations with long delays; return their names. If a number of 32 bits holds a deadline (in
        nanoseconds or in milliseconds), some differences of two of these deadlines overflow."""
        hours = (1_000 * _BITS_32 + quarter * _BITS_32 // 4 for quarter in range(4))
        weeks = ((_BITS_32 + quarter * _BITS_32 // 4) * MS for quarter in range(4))
        fit = [delay_ns for delay_ns in map(self._fit, (*hours, *weeks)) if delay_ns > REAL_NS]
        for number, delay_ns in enumerate(fit):
            self._run.call(Register(f"waits-{number}", (f"waits-{number}",), delay_ns))
        return [f"waits-{number}" for number in range(len(fit))]

    def _crowd(self, many: int) -> None:
        """Begin many tasks in one bucket, or many operations under one key. One check completes half of the operations,
        and the other half expires together."""
        delay_ns = self._fit(_CROWD_NS)
        for number in range(many):
            name = f"crowd-{number}"
            if self._part == "timer":
                self._run.call(Add(name, delay_ns))
                continue
            self._run.call(Register(name, ("crowd", f"{name}-1"), delay_ns))
            if number * 4 // many % 2:
                # In stretches: a wrong check may stop after several vain tries, or after several completions.
                self._run.call(Ready(name))
        if self._part == "purgatory":
            self._run.call(Check("crowd"))
            self._at_rest()
            self._given_back(many // 6, delay_ns)
            self._alike(delay_ns)
            self._under_many(delay_ns)

    def _given_back(self, many: int, delay_ns: int) -> None:
        """If `cancel_for_key` disarms only some of the operations that it returns, the others expire."""
        if "cancel-key" in self._description.capabilities:
            for number in range(many):
                self._run.call(Register(f"back-{number}", ("back",), delay_ns))
            self._run.call(CancelKey("back"))

    def _alike(self, delay_ns: int) -> None:
        """Use many keys with equal hashes. A purgatory with lists by hash may return or forget operations of another
        key, or lack room for all the keys."""
        given_back, checked = _ALIKE
        for key in (*_ALIKE, _LEAST_HASH, *_OUTERMOST[-1]):
            self._run.call(Register(f"under-{key}", (key,), delay_ns))
        if "cancel-key" in self._description.capabilities:
            self._run.call(CancelKey(given_back))
        for key in (checked, _LEAST_HASH, *_OUTERMOST[-1]):
            self._run.call(Ready(f"under-{key}"))
            self._run.call(Check(key))

    def _under_many(self, delay_ns: int) -> None:
        """A purgatory with room for fewer keys forgets the last key of this operation."""
        keys = tuple(f"many-{number}" for number in range(KEYS_MOST))
        self._run.call(Register("under-many", keys, delay_ns))
        self._run.call(Ready("under-many"))
        self._run.call(Check(keys[-1]))

    def first_of_levels(self, *, real: bool = False) -> bool:
        """Begin short delays in sequence for one revolution of the second level. Each deadline is within one revolution
        of the first level. Then begin a task of the second level and a task of the third, the first of these levels in
        a new run. In real time, nothing is done if a revolution of the second level takes more than a second. Returns
        False if a task ended so late that the next deadline would leave the revolution of the first level."""
        widths = levels_of(self._description, self._description.most_delay_ns)[:3]
        if len(widths) < 3 or self._size < 4 or (real and widths[2] > _SECOND_LEVEL_NS):
            return True
        turn_ns = widths[1] // 4 if real else widths[1] - 2 * widths[0]
        until_ns = self._run.now_ns + widths[2] + 2 * widths[1]
        while self._run.now_ns < until_ns:
            now_ns = self._run.now_ns
            deadline_ns = now_ns + self._rounded(turn_ns - widths[0])
            deadline_ns -= widths[0] * (deadline_ns % widths[1] < widths[0])
            self._begin(deadline_ns - now_ns, widths[:1])
            self._run.advance_through(deadline_ns + self._rounded(widths[0]))
            if real:
                self._run.settle()
                if self._run.now_ns > deadline_ns + widths[1] - turn_ns - widths[0]:
                    return False
        for wide_ns in widths[1:]:
            self._begin(wide_ns + wide_ns // 2, widths[:1])
        self._run.settle()
        return True

    def _idle(self) -> None:
        """Let more than five seconds pass without a pending task: in a jump, then in small advances."""
        self._run.leap(self._rounded(_IDLE_NS))
        for _ in range(7):
            self._run.leap(self._rounded(_IDLE_NS // 6))

    def _level(self, widths: list[int]) -> None:
        """Begin tasks before, at and after a boundary of the widest level, one finer bucket later, and halfway."""
        wide_ns = widths[-1]
        finer_ns = widths[-2] if len(widths) > 1 else self._unit_ns
        for beside_ns in (-self._unit_ns, 0, self._unit_ns, finer_ns, wide_ns // 2):
            now_ns = self._run.now_ns
            boundary_ns = now_ns + -now_ns % wide_ns + wide_ns
            self._run.advance_through(boundary_ns + self._rounded(beside_ns))
            most_ns = max(2 * wide_ns, self._room_ns // 4)
            added = [
                self._begin(delay_ns, widths) for delay_ns in self._delays(widths) if delay_ns <= most_ns
            ]
            self._disturb(added, widths)

    def over_buckets(self, most_ns: int) -> None:
        """Test moves of a task into a finer bucket that still has an overdue task of the previous revolution. The run
        must allow tasks to be late by one clock jump of `most_ns`."""
        longest_ns = self._description.most_delay_ns
        # If the subject's longest delay cuts a planned delay, the task is late by more than one leap.
        levels = [
            width
            for width in levels_of(self._description, MAX_TIME_NS - self._run.now_ns)
            if 5 * width <= longest_ns
        ]
        for number in range(1, len(levels)):
            if levels[number - 1] <= most_ns:
                for beside_ns in (0, levels[number - 1]):
                    self._overslept(levels[: number + 1], beside_ns, most_ns)
        fits = [number for number in range(len(levels) - 2) if 3 * levels[number] <= most_ns]
        if fits:
            widths = levels[: fits[-1] + 3]
            fine_ns = widths[-3]
            self._revolution(widths, -fine_ns, fine_ns)
            self._run.leap(3 * fine_ns)
            self._run.settle()

    def over_wraps(self, most_ns: int, start_ns: int) -> None:
        """Jump over each moment at which a counter of 31 or 32 bits (of ticks or of milliseconds) overflows. Tasks are
        due before, at and after this moment. The counter was 0 at time 0, or at the start of the run. The run must
        allow tasks to be late by one clock jump of `most_ns`."""
        half_ns = self._rounded(most_ns // 2)
        counts = {one for one in (self._description.grain_ns, MS) if one % self._unit_ns == 0}
        for origin_ns, one_ns, bits in itertools.product((0, start_ns), sorted(counts), (_BITS, _BITS + 1)):
            left_ns = -(self._run.now_ns - origin_ns) % (one_ns << bits) - half_ns
            if left_ns < 0 or self._run.now_ns + left_ns + 4 * most_ns > MAX_TIME_NS:
                continue
            by_ns = half_ns
            while left_ns > 0:
                by_ns = min(_GROWS * by_ns, left_ns)
                left_ns -= by_ns
                if self._leap_s(by_ns) * _GROWS > _EPOCH_MOST_S and left_ns > 0:
                    self.left_out = (
                        "counts of 31 and 32 bits: the clock advances too slowly to reach their ends"
                    )
                    return
            for beside_ns in (-one_ns, 0, one_ns):
                self._begin(half_ns + beside_ns, [])
            self._run.leap(2 * half_ns)
            self._run.settle()

    def mostly_taken_back(self) -> None:
        """Begin tasks with different deadlines in random order, and cancel most of them. A timer that removes canceled
        tasks only when they are the majority may then disturb the order of the other tasks."""
        tick_ns = self._description.grain_ns
        delays = [number * tick_ns for number in range(1, _CLEARED + 1)]
        self._rng.shuffle(delays)
        added = [self._begin(delay_ns, [tick_ns]) for delay_ns in delays]
        for name in self._rng.sample(added, _CLEARED * 4 // 5):
            self._take_back(name)
        self._run.settle()

    def _overslept(self, widths: list[int], beside_ns: int, most_ns: int) -> None:
        """Jump over at least one of the widest buckets, until `beside_ns` after the start of a bucket. Tasks in the
        finer buckets before this moment are then late by at most `most_ns`. Tasks one revolution later are not due."""
        fine_ns, wide_ns = widths[-2:]
        now_ns = self._run.now_ns
        until_ns = now_ns + -now_ns % wide_ns + 2 * wide_ns + beside_ns
        for number in range(min(self._size, most_ns // fine_ns)):
            for moment_ns in (until_ns - number * fine_ns, until_ns - number * fine_ns + wide_ns):
                self._begin(moment_ns - now_ns, widths)
        self._run.leap(until_ns - now_ns)
        self._run.settle()

    def _revolution(self, widths: list[int], before_ns: int, due_ns: int) -> None:
        """Begin two tasks. The second task is due one revolution of a finer level after the first, and moves to this
        level about when the first is due. Relative to a boundary of the widest level, the first task is added at
        `before_ns`, and is due at `due_ns`."""
        wide_ns, widest_ns = widths[-2:]
        now_ns = self._run.now_ns
        boundary_ns = now_ns + -now_ns % widest_ns + widest_ns
        for moment_ns in (boundary_ns + due_ns + wide_ns, boundary_ns + before_ns):
            self._begin(moment_ns - now_ns, widths)
        self._run.advance_through(boundary_ns + before_ns)
        self._begin(due_ns - before_ns, widths)

    def _delays(self, widths: list[int]) -> Iterator[int]:
        wide_ns, size = widths[-1], self._size
        buckets = (1, 2, size // 2, size - 1, size)
        beside = (-self._unit_ns, 0, self._unit_ns)
        for number in buckets:
            yield number * wide_ns + self._rng.choice(beside)
        yield wide_ns
        yield wide_ns
        yield wide_ns * size - wide_ns + self._rng.randrange(wide_ns)
        for width_ns in widths[:-1]:
            yield self._rng.randint(1, size) * width_ns + self._rng.choice(beside)
        yield self._rng.randrange(wide_ns, 2 * wide_ns)

    def _disturb(self, added: list[str], widths: list[int]) -> None:
        """Cancel some of the tasks, at once or after a cascade. Then add some tasks again."""
        chosen = self._rng.sample(added, len(added) // 4)
        for number, name in enumerate(chosen):
            if number % 2:
                self._run.advance_through(self._run.now_ns + widths[max(0, len(widths) - 2)])
            self._take_back(name)
        if self._part == "timer" and not AGAIN.isdisjoint(self._description.capabilities):
            for name in self._rng.sample(sorted(self._begun), len(added) // 4):
                delay_ns = self._fit(self._rng.choice(widths) * self._rng.randint(1, 3))
                self._run.call(Add(name, delay_ns), tuple(widths))
                if "gauge" in self._description.capabilities:
                    self._run.call(Gauge())
        self._begun.clear()

    def _begin(self, delay_ns: int, widths: list[int]) -> str:
        self._count += 1
        delay_ns = self._fit(delay_ns)
        if self._part == "timer":
            name = f"far-{self._count}"
            self._begun.append(name)
            self._run.call(Add(name, delay_ns), tuple(widths))
        else:
            name = f"far-op-{self._count}"
            self._run.call(
                Register(name, tuple(f"{name}-{key}" for key in range(_KEYS)), delay_ns), tuple(widths)
            )
        return name

    def _take_back(self, name: str) -> None:
        if self._part == "timer":
            if "cancel" in self._description.capabilities:
                self._run.call(Cancel(name))
        elif "cancel-key" in self._description.capabilities and self._rng.random() < 0.5:
            self._run.call(CancelKey(f"{name}-0"))
        else:
            self._complete(name, f"{name}-1")

    def _complete(self, name: str, key: str) -> None:
        if "force" in self._description.capabilities and self._rng.random() < 0.5:
            self._run.call(Force(name))
        else:
            self._run.call(Ready(name))
            self._run.call(Check(key))

    def garbage(self, readings: int) -> None:
        """Complete operations that stay in the lists of other keys: several times the purge interval. In each phase,
        read the sizes at rest about `readings` times. At first no operation waits. This shows an estimate that a purge
        sets too low. Later, one of four operations waits. If a purge subtracts waiting operations from its estimate,
        the next purge is late. In the end, as many operations as two purge intervals wait. Then all are completed."""
        interval = self._description.purge_interval
        if interval is None or interval * _PURGES > _GARBAGE_MOST:
            self.left_out = self.left_out or f"purges: the interval is {interval or 'not declared'}"
            return
        self._run.settle()
        count = max(interval * _PURGES, 200)
        each = max(1, count // readings)
        far_ns = self._fit(3_600_000 * MS)

        def register(name: str, number: int, shared: tuple[int, ...] = _SHARED) -> None:
            keys = (f"{name}-0", *(f"left-{number % many}-{many}" for many in shared))
            self._run.call(Register(name, keys, far_ns))

        for number in range(count):
            name = f"garbage-{number}"
            if number == count * 9 // 16:
                # A quarter of an interval after a purge. If checked operations do not count, the next purge is late.
                for key in [f"left-{each}-{many}" for many in _SHARED for each in range(many)]:
                    self._run.call(Check(key))
            if number < count * 3 // 8 and "force" in self._description.capabilities:
                # A purgatory that leaves operations of one key to the checks of that key never purges these.
                register(name, number, ())
                self._run.call(Force(name))
            else:
                register(name, number)
                self._complete(name, f"{name}-0")
            if number % each == 0:
                self._at_rest()
        for alike in _OUTERMOST:
            # A purge that skips the first list, or the last list, keeps more operations than the bound allows.
            for number in range(2 * interval + 20):
                name = f"{alike[0]}-{number}"
                keys = (f"{name}-0", *(alike[(number + beside) % len(alike)] for beside in range(_KEYS - 1)))
                self._run.call(Register(name, keys, far_ns))
                self._complete(name, keys[0])
            self._at_rest()
        for number in range(count):
            name = f"taken-{number}"
            for call in (Register(name, (name,), far_ns), Ready(name), Check(name)):
                self._run.call(call)
            if number % each == 0:
                self._at_rest()
        for number in range(count if "cancel-key" in self._description.capabilities else 0):
            both = (f"given-{number}-0", f"given-{number}-1")
            self._run.call(Register(f"given-{number}", both, far_ns))
            for key in both:
                self._run.call(CancelKey(key))
        for number in range(count):
            register(f"left-{number}", number)
            if number % _LIVE_ONE_IN:
                self._complete(f"left-{number}", f"left-{number}-0")
            if number % each == 0:
                self._at_rest()
        self._at_rest()
        most = count + 2 * interval * _LIVE_ONE_IN
        for number in range(count, most, _LIVE_ONE_IN):
            register(f"left-{number}", number)
        self._at_rest()
        for number in range(0, most, _LIVE_ONE_IN):
            self._complete(f"left-{number}", f"left-{number}-0")
        self._at_rest()

    def _at_rest(self) -> None:
        for _ in range(2):
            self._run.leap(self._rounded(REAPER_NS))
        self._run.call(Quiesce())
