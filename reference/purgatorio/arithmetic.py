"""The arithmetic of timing wheels: pure functions of integers, with preconditions and postconditions.

A *tick* is the width of a bucket. The *interval* of a level is tick x size. The *virtual id* of a time is the number of
its tick, counted from 0. The clock of a level is always a multiple of the level's tick. (Varghese and Lauck, "Hashed
and Hierarchical Timing Wheels", schemes 6 and 7; Kafka's `TimingWheel`.)

Times and deadlines are integers in one unit (milliseconds in this package), of any sign and any size. Python's integers
do not overflow, so there is no largest delay.

The lines `pre:` and `post:` are contracts. If CrossHair is installed, it searches for inputs that break a contract:

    crosshair check purgatorio.arithmetic --analysis_kind=PEP316 --per_condition_timeout=5

>>> bucket_expiration(deadline=17, tick=5), bucket_index(deadline=17, tick=5, size=4)
(15, 3)
>>> is_expired(14, clock=10, tick=5), is_expired(15, clock=10, tick=5)  # 10 to 14 is the current tick
(True, False)
>>> is_within_level(29, clock=10, interval=20), is_within_level(30, clock=10, interval=20)
(True, False)
>>> rounds_left(deadline_tick=9, cursor_tick=0, size=4)  # not due at the visits of ticks 1 and 5, due at 9
2
"""


def floor_to_tick(time: int, tick: int) -> int:
    """The start of the tick that `time` lies in.

    pre: tick >= 1
    post: __return__ <= time < __return__ + tick
    post: __return__ % tick == 0
    """
    return time - time % tick


def virtual_id(deadline: int, tick: int) -> int:
    """The number of the tick that `deadline` lies in.

    pre: tick >= 1
    post: __return__ * tick <= deadline < (__return__ + 1) * tick
    """
    return deadline // tick


def bucket_index(deadline: int, tick: int, size: int) -> int:
    """The index of the bucket of `deadline` in a level. Two ticks that the level can hold at once have different
    buckets.

    pre: tick >= 1 and size >= 1
    post: 0 <= __return__ < size
    post: (deadline // tick - __return__) % size == 0
    """
    return virtual_id(deadline, tick) % size


def bucket_expiration(deadline: int, tick: int) -> int:
    """The time when the bucket of `deadline` is due: the start of the tick, up to tick - 1 before the deadline.

    pre: tick >= 1
    post: __return__ <= deadline < __return__ + tick
    """
    return virtual_id(deadline, tick) * tick


def is_expired(deadline: int, clock: int, tick: int) -> bool:
    """Whether `deadline` is in the current tick of a level, or before this tick. If so, the task fires at once.

    pre: tick >= 1 and clock % tick == 0
    post: __return__ == (deadline - deadline % tick <= clock)
    """
    return deadline < clock + tick


def is_within_level(deadline: int, clock: int, interval: int) -> bool:
    """Whether a level can hold `deadline`. It cannot hold `clock + interval`, which has the same bucket as `clock`.

    pre: interval >= 1
    post: __return__ == (deadline - clock < interval)
    """
    return deadline < clock + interval


def level_of(deadline: int, clock: int, tick: int, size: int) -> tuple[int, int]:
    """The number and the tick of the level that gets a new task, if the clock of the lowest level is `clock`.

    (-1, tick) if the task fires at once. The clock of a level is the clock of the lowest level, rounded down to the
    tick of the level. The number of levels grows with the logarithm of the delay. `size` must be above 1: with one
    bucket, the interval of each level is one tick, so a further level would hold no later deadline.

    pre: 1 <= tick <= 3 and 2 <= size <= 3 and clock % tick == 0
    pre: 0 <= clock <= 40 and deadline - clock <= 30
    post: (__return__[0] == -1) == (deadline < clock + tick)
    post: __return__[0] == -1 or deadline - floor_to_tick(clock, __return__[1]) < __return__[1] * size
    post: __return__[0] < 1 or deadline - floor_to_tick(clock, __return__[1] // size) >= __return__[1]
    """
    if is_expired(deadline, clock, tick):
        return -1, tick
    level, level_tick = 0, tick
    while not is_within_level(deadline, floor_to_tick(clock, level_tick), level_tick * size):
        level, level_tick = level + 1, level_tick * size
    return level, level_tick


def rounds_left(deadline_tick: int, cursor_tick: int, size: int) -> int:
    """For `HashedWheel`: the number of visits of the task's slot before the visit that fires the task.

    `cursor_tick` is the last visited tick. The rounds count from the cursor, not from tick 0. So the wait does not
    depend on the time of the add (netty #1959).

    pre: size >= 1 and deadline_tick > cursor_tick
    post: __return__ >= 0
    post: cursor_tick + __return__ * size < deadline_tick <= cursor_tick + (__return__ + 1) * size
    """
    return (deadline_tick - cursor_tick - 1) // size


def is_due(expiration: int, now: int) -> bool:
    """Whether a bucket or task with this expiration may be taken out of the delay queue.

    post: __return__ == (wait_time(expiration, now) == 0)
    """
    return expiration <= now


def wait_time(expiration: int, now: int) -> int:
    """The time to sleep until `expiration`, in the unit of the arguments. 0 only if `expiration` is due.

    post: __return__ >= 0
    post: now + __return__ >= expiration
    post: __return__ == 0 or now + __return__ == expiration
    """
    return max(expiration - now, 0)
