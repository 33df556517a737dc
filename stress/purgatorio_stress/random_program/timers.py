"""Random programs for every timer: tasks, functions, drains, stops, executors that refuse, and callbacks that make
such calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from purgatorio import (
    HashedWheel,
    HeapTimer,
    MockTimer,
    ReaperTimer,
    SystemTimer,
    TimerTask,
)
from purgatorio.timer import IntrusiveTimer
from purgatorio.timer.interface import Timer
from purgatorio_spec.oracle.timer_history import TimerRules
from purgatorio_stress.explorer.races import RacingSync
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.player import BEFORE, CALLBACK, THREAD, Plain, Verb, Vocabulary
from purgatorio_stress.random_program.timer_player import (
    DELAYS,
    INLINE,
    LONGEST_MS,
    RAISING,
    STEPPED,
    Make,
    SharedTimer,
    SharedWheel,
    TimerKind,
    TimerPlayer,
)
from purgatorio_stress.stateful.boundary_clocks import CLOCKS_MS

_HORIZON_MS: Final = 40


def _system(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return SystemTimer(f"timer-{number}", tick_ms=tick_ms, wheel_size=size, **player.parts)


def _heap(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return HeapTimer("timer", tick_ms=tick_ms, **player.parts)


def _hashed(player: TimerPlayer, tick_ms: int, size: int, number: int, own_worker: bool = False) -> Timer:
    return HashedWheel("timer", tick_ms=tick_ms, wheel_size=size, own_worker=own_worker, **player.parts)


def _intrusive(
    player: TimerPlayer,
    tick_ms: int,
    size: int,
    number: int,
    integer_handles: bool = False,
    stepped: bool = False,
) -> Timer:
    slots = 1 << size.bit_length() - 1 if size > 0 else size
    races = isinstance(player.world.sync, RacingSync)
    make = SharedTimer if races or stepped else IntrusiveTimer
    timer = make(
        f"timer-{number}", tick_ms=tick_ms, wheel_size=slots, levels=1,
        integer_handles=integer_handles, **player.parts,
    )  # fmt: skip
    if races:
        timer._wheel = SharedWheel(player, tick_ms, slots)
    return timer


def _mixed(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return (_intrusive if number == 0 else _system)(player, tick_ms, size, number)


def _mock(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return MockTimer(player.clock, sync=player.world.sync)  # type: ignore[arg-type]  # it moves like a manual clock


def _driven(make: Make) -> Make:
    def made(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
        world = player.world
        return ReaperTimer(
            "reaper", make(player, tick_ms, size, number), faults=world.faults, sync=world.sync
        )

    return made


_DOMAINS: Final = {
    "step": (1, 2, 3, 4, 8, 9),
    "pass": (1, 1, 2, 2, 3, 4, 5, 8, 9, 30),
    "sleep": (1, 2, 3, 5),
    "wait": (0, 0, 0, 1, 2, 9),
    "nap": (2, 5, 9),
    "times": (1, 1, 2),
    "turns": (5, 3),
    "timer": (0, 1),
    "first": (0,),
    "end": (0, 3),
}

_COMMON: Final = (
    Verb("add", ("thing",), weight=8),
    Verb("cancel", ("thing",), weight=4),
    Verb("forget", ("thing",), weight=1),
    Verb("size", weight=1),
    Verb("probe", ("thing",), weight=1),
    Verb("close", where=THREAD + CALLBACK, weight=1),
    Verb("raise", where=CALLBACK),
    Verb("exit", where=CALLBACK),
)
_DRAINED: Final = (
    Verb("drain", ("wait",), weight=5),
    Verb("step", ("step",), BEFORE + THREAD, weight=3),
    Verb("run", where=BEFORE + THREAD, weight=2),
    Verb("pass", ("pass",), BEFORE + THREAD, weight=4),
    Verb("refuse", ("times",), weight=1),
    Verb("walk", ("turns",), THREAD, weight=1),
)
_STOPS: Final = (Verb("stop", where=THREAD + CALLBACK, weight=1), Verb("finish", ("end",), THREAD, weight=1))
_SLEEP: Final = (Verb("sleep", ("sleep",), THREAD, weight=3),)
_REAPED: Final = (*_SLEEP, Verb("drive", weight=1))
_CALLS: Final = (
    Verb("call_later", ("thing",), weight=1),
    Verb("uncall", ("thing",), weight=1),
    Verb("call_every", ("thing",), BEFORE + THREAD, weight=1),
    Verb("unrepeat", where=THREAD + CALLBACK, weight=1),
    Verb("misuse", where=BEFORE + THREAD, weight=1),
)
_FUNCTIONS: Final = (
    Verb("call_later", ("thing",), weight=5),
    Verb("uncall", ("thing",), weight=3),
    *_CALLS[2:],
    Verb("call_at", ("thing",), weight=2),
    Verb("next_due", weight=1),
)
_ENDS: Final = (*(0,) * 20, *(1,) * 10, *range(2, 2 * len(CLOCKS_MS)))
_SETTINGS: Final = ((1, 1, 1, 2, 3), (2, 2, 3, 4), (0, 0, 0, 1, RAISING), _ENDS)
_HASHED_SETTINGS: Final = (_SETTINGS[0], (2, 1, 3, 4), *_SETTINGS[2:])
"""The settings of `HashedWheel`, which may have one slot."""
_REAPED_SETTINGS: Final = (*_SETTINGS[:2], (0, 0, INLINE), *_SETTINGS[3:])
_THING: Final = (DELAYS,)
_SECOND: Final = (
    Verb("add", ("thing", "timer"), weight=8),
    Verb("forget", ("thing", "timer"), weight=2),
    Verb("drain", ("first", "timer"), weight=5),
    Verb("size", ("timer",), weight=1),
)


def _known_before(drawn: Drawn, dialect: str) -> bool:
    """Whether each added task was added before the threads. A concurrent first add of one task to two timers is not
    allowed."""
    known = {act.args[0] for act in drawn.before if act.do == "add"}
    added = {act.args[0] for act in drawn.acts() if act.do == "add"}
    return len(drawn.threads) < 2 or added <= known


def _raises_at_most(drawn: Drawn, dialect: str) -> bool:
    """Whether callbacks on the draining thread only raise or exit. They may run under locks of the timer."""
    inside = drawn.settings[2] in (INLINE, RAISING)
    return not inside or all(one.act.do in ("raise", "exit") for one in drawn.callbacks)


def _walks_once_alone(drawn: Drawn) -> bool:
    """Whether there is at most one walk, in a program of one thread. Two walks would exceed the time of a program."""
    walks = [act.do for thread in drawn.threads for act in thread].count("walk")
    return walks <= (1 if len(drawn.threads) == 1 else 0)


def _one_thread(drawn: Drawn, dialect: str) -> bool:
    return len(drawn.threads) == 1


_ALL_RAISE: Final = (1, 2, RAISING, 0)
_SHIFTED: Final = (3, 2, 0, 2 * CLOCKS_MS.index(-1_001))
_PLAIN: Final = Plain(
    ((1,), (3,)),
    "add.0",
    "add.1,refuse.1,step.3,drain.2,cancel.0,close,walk.5",
    raising=_ALL_RAISE,
    shifted=_SHIFTED,
)
_PLAIN_FUNCTIONS: Final = Plain(
    ((1,), (3,)),
    "call_later.0",
    "call_later.1,refuse.1,step.3,drain.2,uncall.0,close,walk.5",
    raising=_ALL_RAISE,
    shifted=_SHIFTED,
)
_PLAIN_SECOND: Final = Plain(
    ((1,), (3,)), "add.0.0", "add.0.1,add.1.1,forget.0.0,drain.0.0,step.3,walk.5", mirrored=((1,), (3,))
)
_PLAIN_DRAINS: Final = Plain(
    ((3,), (6,)),
    "",
    "drain.2,drain.9,drain.5,add.0,call_later.1,call_at.1,cancel.0,close",
    shapes=((1,), (1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1)),
    shifted=_SHIFTED,
)
_PLAIN_REAPED: Final = Plain(
    ((1,), (3,)), "add.0", "add.1,call_later.1,cancel.0,sleep.5,close", (1, 2, INLINE, 0)
)
_PLAIN_MOCK: Final = Plain(((1,), (3,)), "add.0", "add.1,cancel.0,drain.3,close")
_PLAIN_WORKER: Final = Plain(((1,), (3,)), "add.0", "add.1,cancel.0,sleep.5,close,finish.3,stop")


def _vocabulary(
    name: str,
    kind: TimerKind,
    verbs: tuple[Verb, ...],
    *classes: type,
    horizon_ms: int = LONGEST_MS,
    settings: tuple[tuple[int, ...], ...] = _SETTINGS,
    plain: Plain = _PLAIN,
    stepping: frozenset[str] = frozenset(),
    legal: Callable[[Drawn, str], bool] = lambda drawn, dialect: True,
) -> Vocabulary:
    return Vocabulary(
        name,
        verbs,
        settings,
        _THING,
        partial(TimerPlayer, kind),
        (*classes, TimerTask),
        _DOMAINS,
        ("run",),
        horizon_ms=horizon_ms,
        tick_ms=lambda drawn: drawn.settings[0],
        start_ms=lambda drawn: CLOCKS_MS[drawn.settings[3] // 2],
        legal=lambda drawn, dialect: (
            legal(drawn, dialect) and _walks_once_alone(drawn) and _raises_at_most(drawn, dialect)
        ),
        plain=plain,
        stepping=stepping,
        small=((1,), (0,), (4,)),
        apart={
            "TimerTask.entry": "for timers",
            "TimerTask.set_entry": "for timers",
            "SystemTimer.wheel": "shows its parts",
            "SystemTimer.queue": "shows its parts",
            "IntrusiveTimer.hand_over": "for drains and batches",
            "IntrusiveTimer.leave": "for nodes",
        },
    )


def _without(verbs: tuple[Verb, ...], *names: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs if verb.do not in names)


_STRICT: Final = TimerRules(strict=True)
_LOOSE: Final = TimerRules()

TIMERS: Final = (
    _vocabulary("system", TimerKind(_system, _LOOSE, lags=True), (*_COMMON, *_DRAINED, *_CALLS), SystemTimer),
    _vocabulary(
        "hashed",
        TimerKind(_hashed, _STRICT),
        (*_COMMON, *_DRAINED, *_CALLS, *_STOPS),
        HashedWheel,
        settings=_HASHED_SETTINGS,
    ),
    _vocabulary("heap", TimerKind(_heap, _LOOSE), (*_COMMON, *_DRAINED, *_CALLS), HeapTimer),
    _vocabulary(
        "intrusive",
        TimerKind(_intrusive, _STRICT),
        (*_COMMON, *_DRAINED, *_FUNCTIONS),
        IntrusiveTimer,
        plain=_PLAIN_FUNCTIONS,
    ),
    _vocabulary(
        "intrusive-integers",
        TimerKind(partial(_intrusive, integer_handles=True), _STRICT),
        (*_COMMON, *_DRAINED, *_FUNCTIONS),
        IntrusiveTimer,
        plain=_PLAIN_FUNCTIONS,
    ),
    _vocabulary(
        "intrusive-drains",
        TimerKind(partial(_intrusive, stepped=True), _STRICT),
        (
            Verb("drain", ("nap",), THREAD, weight=6),
            Verb("add", ("thing",), weight=4),
            Verb("call_later", ("thing",), weight=2),
            Verb("call_at", ("thing",), weight=2),
            Verb("cancel", ("thing",), weight=2),
            Verb("probe", ("thing",), weight=1),
            Verb("close", where=THREAD, weight=1),
        ),
        plain=_PLAIN_DRAINS,
        stepping=STEPPED,
    ),
    _vocabulary(
        "two-timers",
        TimerKind(_intrusive, _STRICT, timers=2),
        (*_without(_COMMON, "add", "forget", "size", "close"), *_without(_DRAINED, "drain"), *_SECOND),
        plain=_PLAIN_SECOND,
        legal=_known_before,
    ),
    _vocabulary(
        "mixed-timers",
        TimerKind(_mixed, _LOOSE, timers=2, lags=True),
        (*_without(_COMMON, "add", "forget", "size", "close"), *_without(_DRAINED, "drain"), *_SECOND),
        plain=_PLAIN_SECOND,
        legal=_one_thread,
    ),
    _vocabulary(
        "mock",
        TimerKind(_mock, _LOOSE, moves_clock=True),
        (*_COMMON, *_CALLS, Verb("drain", ("pass",), weight=5)),
        MockTimer,
        plain=_PLAIN_MOCK,
        legal=_one_thread,
    ),
    *(
        _vocabulary(
            f"reaper-{name}",
            TimerKind(_driven(make), TimerRules(driven=True)),
            (*_COMMON, *_CALLS, *_REAPED),
            ReaperTimer,
            horizon_ms=_HORIZON_MS,
            settings=_REAPED_SETTINGS,
            plain=_PLAIN_REAPED,
        )
        for name, make in (("system", _system), ("intrusive", _intrusive), ("heap", _heap))
    ),
    _vocabulary(
        "hashed-worker",
        TimerKind(partial(_hashed, own_worker=True), TimerRules(strict=True, driven=True)),
        (*_COMMON, *_CALLS, *_STOPS, *_SLEEP),
        HashedWheel,
        plain=_PLAIN_WORKER,
        horizon_ms=_HORIZON_MS,
        settings=_REAPED_SETTINGS,
    ),
)
"""The vocabularies of all timers."""
