"""Properties of the reference's arithmetic with Hypothesis, and the same ones under its CrossHair backend.

With `--slow` each property runs a second time with `backend="crosshair"`: the inputs are then solved for, not drawn.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from purgatorio.arithmetic import (
    bucket_expiration,
    bucket_index,
    is_expired,
    is_within_level,
    level_of,
    rounds_left,
    wait_time,
)

BACKENDS = ["hypothesis", pytest.param("crosshair", marks=pytest.mark.slow)]
TIMES = st.integers(-(2**40), 2**40)
DELAYS = st.integers(1, 40)
TICKS = st.integers(1, 8)
SIZES = st.integers(2, 8)


def search(backend: str, examples: int = 200) -> settings:
    """CrossHair's inputs cost a solver call each, so it gets fewer."""
    return settings(
        backend=backend,
        max_examples=examples if backend == "hypothesis" else 30,
        deadline=None,
        database=None,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_live_ticks_never_share_a_bucket(backend: str) -> None:
    """Z2 on the code: two deadlines that one level takes at one clock, in one bucket, are of one tick."""

    @search(backend)
    @given(DELAYS, DELAYS, TIMES, TICKS, SIZES)
    def holds(first_delay: int, second_delay: int, time: int, tick: int, size: int) -> None:
        clock = time - time % tick
        first, second = clock + first_delay, clock + second_delay
        for deadline in (first, second):
            assume(not is_expired(deadline, clock, tick))
            assume(is_within_level(deadline, clock, tick * size))
        if bucket_index(first, tick, size) == bucket_index(second, tick, size):
            assert bucket_expiration(first, tick) == bucket_expiration(second, tick)

    holds()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_level_takes_what_lies_between_the_lower_end_and_its_own(backend: str) -> None:
    """Z1 on the code: below its end, and not below the end of the level under it."""

    @search(backend)
    @given(st.integers(0, 400), st.integers(-5, 400), st.integers(1, 4), st.integers(2, 4))
    def holds(time: int, delay: int, tick: int, size: int) -> None:
        clock = time - time % tick
        deadline = clock + delay
        level, level_tick = level_of(deadline, clock, tick, size)
        if level < 0:
            assert deadline < clock + tick
            return
        level_clock = clock - clock % level_tick
        assert deadline < level_clock + level_tick * size
        assert deadline >= level_clock + level_tick
        if level:
            lower_tick = level_tick // size
            assert deadline >= clock - clock % lower_tick + lower_tick * size

    holds()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_slot_is_visited_at_the_tasks_tick_after_its_rounds(backend: str) -> None:
    """Z11 on the code, against counting the visits one by one."""

    @search(backend)
    @given(st.integers(0, 50), st.integers(1, 60), st.integers(1, 8))
    def holds(cursor: int, delay: int, size: int) -> None:
        target = cursor + delay
        visits = [tick for tick in range(cursor + 1, target + 1) if (target - tick) % size == 0]
        assert rounds_left(target, cursor, size) == len(visits) - 1

    holds()


@pytest.mark.parametrize("backend", BACKENDS)
def test_waiting_is_never_rounded_down_to_a_busy_loop(backend: str) -> None:
    """What is not due waits, and is due when it wakes."""

    @search(backend)
    @given(TIMES, TIMES)
    def holds(expiration: int, now: int) -> None:
        wait = wait_time(expiration, now)
        assert (wait == 0) == (expiration <= now)
        assert now + wait >= expiration

    holds()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_search_finds_the_inclusive_interval(backend: str) -> None:
    """The twin: with `<=` instead of `<`, a shared bucket is found by either backend."""

    def inclusive(deadline: int, clock: int, interval: int) -> bool:
        return deadline <= clock + interval

    @search(backend, examples=2000)
    @given(st.integers(-4, 4), st.integers(0, 16), st.integers(0, 16), st.integers(1, 2), st.integers(2, 3))
    def holds(ticks: int, first: int, second: int, tick: int, size: int) -> None:
        clock = ticks * tick
        for delay in (first, second):
            assume(delay >= 0 and inclusive(clock + delay, clock, tick * size))
        if bucket_index(clock + first, tick, size) == bucket_index(clock + second, tick, size):
            assert bucket_expiration(clock + first, tick) == bucket_expiration(clock + second, tick)

    with pytest.raises(AssertionError):
        holds()
