"""Small programs for a timer with threads of its own, which the explorer runs over the adapter that the pytest plugin
takes too (`add`, `cancel`, perhaps `reset`, `size` and `stop`).

A program is a text, part of the token: in `add.a.1000-cancel.a-wait.1000,reset.a.2000`, the task `a` is added with a
delay of 1,000 ms. Then one thread cancels the task, and another waits for 1,000 ms and resets the task. A third thread
stops the timer when all deadlines are over. The clauses of a timer judge the calls and the runs of the tasks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, Final

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.run import RunFacts, run_of
from purgatorio_spec.trace.record import Header, Implementation, State, TimerConstants, TraceClock
from purgatorio_stress.explorer.history_judge import HistoryJudge
from purgatorio_stress.explorer.history_log import HistoryLog
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.foreign.threads import ForeignClocks
from purgatorio_stress.foreign.world import World

MS: Final = 1_000_000
_EARLY_NS: Final = MS
_LATE_NS: Final = 500 * MS
"""The bounds, if the adapter has no attributes `early_ns` and `late_ns`. No thread holds up another, because time
passes only while all threads wait."""
_DUES_MS: Final = (20, 100, 200, 1_000)
"""The delay of the first task: round numbers, so that calls come at a tick of the timer."""
RUNS: Final = " runs"
SIZE: Final = "size() returned "
STOP: Final = "stop()"
"""What a table says of the run of a task, of the size, and of the end."""
_TELLS: Final = ("timer_cancel", "timer_reset")
_RECORDED: Final = ("timer_add", *_TELLS, "timer_fire", "quiesce")


@dataclass(frozen=True, slots=True)
class TimerCalls:
    """A program by its text. `least_s`: its least share of the search, in seconds. `extra`: the verdict on all programs
    holds without it, if its search is not complete."""

    text: str
    least_s: float = 0.1
    extra: bool = False

    @property
    def due_s(self) -> float:
        """When all deadlines are over."""
        dues_ms: list[int] = []
        for calls in filter(None, self.text.split("-")):
            now_ms = 0
            for name, first, *delays in (call.split(".") for call in calls.split(",")):
                now_ms += int(first) if name == "wait" else 0
                dues_ms += [now_ms + int(delay_ms) for delay_ms in delays]
        return max(dues_ms) / 1_000 + min(0.1, max(dues_ms) / 10_000)


IDLE: Final = TimerCalls("add.a.1000-wait.90000000,add.b.200-", 2.0, extra=True)
"""The timer is idle for more than a day. That costs nothing, unless it wakes often meanwhile."""


def is_timer(made: object) -> bool:
    """Whether a class is the adapter of a timer with its own clock."""
    return hasattr(made, "add") and not hasattr(made, "advance")


def programs(made: object) -> Iterator[TimerCalls]:
    """Yield the programs for this adapter, the smallest first: a call; two calls in two threads; two calls in one
    thread, and one in another. Before, the task `a` is added. The calls come at once, or at the deadline of `a`; then
    the shortest delay is zero. A timer that promises to be punctual gets short delays: if it polls, a run is short. The
    last program is `IDLE`."""
    late_ns: int = getattr(made, "late_ns", _LATE_NS)
    due = next((due for due in _DUES_MS if due * MS >= 2 * late_ns), _DUES_MS[-1])
    for now, then in zip(_pairs(made, due // 5, 2 * due), _pairs(made, 0, 2 * due), strict=True):
        yield TimerCalls(f"add.a.{due}-{now[0]}-{now[1]}")
        yield TimerCalls("-".join([f"add.a.{due}", *(calls and f"wait.{due},{calls}" for calls in then)]))
    yield IDLE


def _pairs(made: object, soon: int, later: int) -> list[tuple[str, str]]:
    """The calls of two threads, with these delays."""
    resets, cancels = hasattr(made, "reset"), hasattr(made, "cancel")
    calls = [
        *(["cancel.a"] if cancels else []),
        *([f"reset.a.{later}", f"reset.a.{soon}"] if resets else []),
        f"add.b.{soon}",
        f"add.b.{later}",
    ]
    turns = [
        *([f"cancel.a,add.b.{soon}", f"add.b.{soon},cancel.b"] if cancels else []),
        *([f"reset.a.{later},cancel.a"] if resets and cancels else []),
        f"add.b.{later},add.c.{soon}",
    ]
    pairs = [(one, "") for one in calls]
    pairs += [
        (first, second.replace(".b.", ".c.")) for first, second in combinations_with_replacement(calls, 2)
    ]
    return pairs + [(first, call.replace(".b.", ".d.")) for first in turns for call in calls]


class TimerProgram:
    """One run of a program, and its record. Its own code makes no steps."""

    def __init__(self, world: World, make: Callable[[], Any], text: str) -> None:
        self._note = world.note
        self._log = HistoryLog(world.run, unit_ns=1)
        self._clocks, self._deadline, self._callee = ForeignClocks(world), world.deadline, world.callee
        self._handles: dict[str, object] = {}
        self._timer = make()
        self._late_ns: int = getattr(self._timer, "late_ns", _LATE_NS)
        self._over_t = round(TimerCalls(text).due_s * 1e9) + self._late_ns
        before, *self._callers = text.split("-")
        self._unmade = sum(calls.count(",") + 1 for calls in text.split("-") if calls)
        self._make(before)

    def threads(self) -> list[Callable[[], object]]:
        """The bodies of the threads. See `Adapter` of the module `explored`."""

        def first() -> None:
            self._make(self._callers[0])

        def second() -> None:
            self._make(self._callers[1])

        return [first, *([second] if self._callers[1] else []), self.stop]

    def _make(self, calls: str) -> None:
        for call in calls.split(","):
            self._unmade -= 1
            name, task, *delays = call.split(".")
            if name == "wait":
                self._sleep(int(task) / 1_000)
                continue
            f, delay_ns = f"timer_{name}", int(delays[0]) * MS if delays else None
            c = self._log.call(f, task, delay_ns=delay_ns)
            due_t = None if delay_ns is None else self._log.now_ns() + delay_ns
            if due_t is not None:
                self._over_t = max(self._over_t, due_t + self._late_ns)
            act = self._callee(getattr(self._timer, name))
            said = f"{name}({', '.join([task, *(f'{delay} ms' for delay in delays)])})"
            self._note(said)
            out: object = None
            if name == "add":
                self._handles[task] = act(delay_ns, self._task(task))
            else:
                out = act(self._handles[task], *([] if delay_ns is None else [delay_ns]))
                self._note(f"{said} returned {out}")
            self._log.ret(f, c, task, deadline_t=due_t, out=int(out) if isinstance(out, bool) else None)

    def _sleep(self, seconds: float) -> None:
        self._clocks.sleep_until(self._deadline(seconds))

    def _task(self, task: str) -> Callable[[], None]:
        def run() -> None:
            self._note(task + RUNS)
            self._log.ret("timer_fire", self._log.call("timer_fire", task), task)

        return run

    def stop(self) -> None:
        """Stop the timer, when all deadlines are over."""
        # If waits end early, a thread may stand and make its calls later than planned.
        while (left_ns := self._over_t - self._log.now_ns()) > 0 or self._unmade:
            self._sleep(max(left_ns, self._late_ns, MS) / 1e9)
        if hasattr(self._timer, "size"):
            size: Any = self._callee(self._timer.size)()
            self._note(f"{SIZE}{size}")
            self._log.at("quiesce", state=State(None, size))
        self._note(STOP)
        if hasattr(self._timer, "stop"):
            self._callee(self._timer.stop)()

    def broken(self, judges: Mapping[bool, HistoryJudge]) -> tuple[Broken, ...]:
        """The broken clauses. `judges`: by whether each cancel and reset of the run told whether it succeeded."""
        rows = self._log.rows
        tells = all(row[10] is not None for row in rows if row[2] == "ret" and row[3] in _TELLS)
        return tuple(
            replace(one, subject=f"{one.clause} ({CLAUSES[one.clause].title}), task {one.subject}")
            for one in judges[tells].judge(rows)
        )


def judges(made: object, early: int, text: str) -> Mapping[bool, HistoryJudge]:
    """The judges of `TimerProgram.broken`, for one program. A cancel that returns True promises that the task does not
    run. If waits end early, tasks are late without a fault of the timer."""
    late_ns: int = getattr(made, "late_ns", _LATE_NS)
    end_t = int(TimerCalls(text).due_s * 1e9) + late_ns
    bounds = TimerConstants(
        tick_ns=MS, early_ns=getattr(made, "early_ns", _EARLY_NS), late_ns=None if early else late_ns
    )
    return {
        tells: HistoryJudge(
            run_of(
                Header(
                    run="timer",
                    implementation=Implementation("timer", "", "Python"),
                    profile="timer-cancel-barrier" if tells else "timer",
                    timer=bounds,
                    clock=TraceClock("manual", "ns"),
                    recorded=_RECORDED,
                ),
                RunFacts(end_t=end_t, rest_t=end_t),
                whole=True,
            )
        )
        for tells in (True, False)
    }
