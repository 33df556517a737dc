"""Random programs for every timer: tasks, functions, drains, stops, executors that refuse tasks, and callbacks that
call the timer."""

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
from purgatorio_stress.random_program.instruments import STEPPED, SharedTimer, SharedWheel
from purgatorio_stress.random_program.player import Vocabulary, vocabulary
from purgatorio_stress.random_program.timer_player import (
    CLOCKS_MS,
    DELAYS,
    FAR_MS,
    INLINE,
    LONGEST_MS,
    LOOP,
    RAISING,
    Make,
    TimerKind,
    TimerPlayer,
)


def _made(make: Callable[..., Timer], player: TimerPlayer, tick_ms: int, number: int, **more: int) -> Timer:
    """A timer. A tick of 1 ms is the default, and not passed."""
    tick = {} if tick_ms == 1 else {"tick_ms": tick_ms}
    return make(f"timer-{number}", **tick, **more, **player.parts)


def _system(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return _made(SystemTimer, player, tick_ms, number, wheel_size=size)


def _heap(player: TimerPlayer, tick_ms: int, size: int, number: int) -> Timer:
    return _made(HeapTimer, player, tick_ms, number)


def _hashed(player: TimerPlayer, tick_ms: int, size: int, number: int, own_worker: bool = False) -> Timer:
    worker = {"own_worker": True} if own_worker else {}
    return _made(HashedWheel, player, tick_ms, number, wheel_size=size, **worker)


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
    integers = {"integer_handles": integer_handles}
    timer = _made(make, player, tick_ms, number, wheel_size=slots, levels=1, **integers)
    if races and isinstance(timer, IntrusiveTimer):
        timer._wheel = SharedWheel(player.world.sync, player.clock.now_ms() // tick_ms, slots)
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


_LISTS: Final = {"delays": DELAYS, "ends": (*(0,) * 20, *(1,) * 10, *range(2, 2 * len(CLOCKS_MS)))}


def _known_before(drawn: Drawn, dialect: str) -> bool:
    """Whether each added task was added before the threads. A concurrent first add of one task to two timers is not
    allowed."""
    known = {act.args[0] for act in drawn.before if act.do == "add"}
    added = {act.args[0] for act in drawn.acts() if act.do == "add"}
    return len(drawn.threads) < 2 or added <= known


def _fits_executor(drawn: Drawn) -> bool:
    """Whether the program has one thread if an event loop is its executor."""
    return drawn.settings[2] != LOOP or len(drawn.threads) == 1


def _ends(drawn: Drawn, dialect: str) -> bool:
    """Whether a stop without a time-out waits for no task that is never due."""
    waits = any(act.do == "finish" and act.args[0] < 0 for act in drawn.acts())
    return not waits or all(thing[0] != FAR_MS for thing in drawn.things)


def _raises_at_most(drawn: Drawn) -> bool:
    """Whether callbacks on the draining thread only raise or exit, if there are several timers and threads. They may
    run under locks of one timer, and must not wait for those of another."""
    inside = drawn.settings[2] in (INLINE, RAISING) and len(drawn.threads) > 1
    return not inside or all(one.act.do in ("raise", "exit") for one in drawn.callbacks)


def _walks_once_alone(drawn: Drawn) -> bool:
    """Whether there is at most one walk, in a program of one thread. Two walks would exceed the time of a program."""
    walks = [act.do for thread in drawn.threads for act in thread].count("walk")
    return walks <= (1 if len(drawn.threads) == 1 else 0)


def _one_thread(drawn: Drawn, dialect: str) -> bool:
    return len(drawn.threads) == 1


def _vocabulary(
    name: str,
    kind: TimerKind,
    *classes: type,
    like: str = "",
    stepping: frozenset[str] = frozenset(),
    legal: Callable[[Drawn, str], bool] = lambda drawn, dialect: True,
) -> Vocabulary:
    return vocabulary(
        name,
        partial(TimerPlayer, kind),
        *(*classes, TimerTask),
        like=("timer", like or name),
        lists=_LISTS,
        horizon_ms=LONGEST_MS,
        stepping=stepping,
        tick_ms=lambda drawn: drawn.settings[0],
        start_ms=lambda drawn: CLOCKS_MS[drawn.settings[3] // 2],
        legal=lambda drawn, dialect: (
            legal(drawn, dialect)
            and _walks_once_alone(drawn)
            and (kind.timers == 1 or _raises_at_most(drawn))
            and _fits_executor(drawn)
        ),
    )


_STRICT: Final = TimerRules(strict=True)
_LOOSE: Final = TimerRules()
_INTEGERS: Final = partial(_intrusive, integer_handles=True)

TIMERS: Final = (
    _vocabulary("system", TimerKind(_system, _LOOSE, lags=True), SystemTimer),
    _vocabulary("hashed", TimerKind(_hashed, _STRICT, exact=True), HashedWheel),
    _vocabulary("heap", TimerKind(_heap, _LOOSE), HeapTimer),
    _vocabulary("intrusive", TimerKind(_intrusive, _STRICT), IntrusiveTimer),
    _vocabulary("intrusive-integers", TimerKind(_INTEGERS, _STRICT), IntrusiveTimer, like="intrusive"),
    _vocabulary("intrusive-drains", TimerKind(partial(_intrusive, stepped=True), _STRICT), stepping=STEPPED),
    _vocabulary("two-timers", TimerKind(_intrusive, _STRICT, timers=2), legal=_known_before),
    _vocabulary(
        "mixed-timers",
        TimerKind(_mixed, _LOOSE, timers=2, lags=True),
        like="two-timers",
        legal=_one_thread,
    ),
    _vocabulary("mock", TimerKind(_mock, _LOOSE, moves_clock=True, exact=True), MockTimer, legal=_one_thread),
    *(
        _vocabulary(
            f"reaper-{name}",
            TimerKind(_driven(make), TimerRules(driven=True)),
            ReaperTimer,
            like="reaper-of-timer",
        )
        for name, make in (
            ("system", _system),
            ("intrusive", _intrusive),
            ("heap", _heap),
            ("hashed", _hashed),
        )
    ),
    _vocabulary(
        "hashed-worker",
        TimerKind(partial(_hashed, own_worker=True), TimerRules(strict=True, driven=True)),
        HashedWheel,
        legal=_ends,
    ),
)
"""The vocabularies of all timers."""
