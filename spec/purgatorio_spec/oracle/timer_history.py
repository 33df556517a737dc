"""Judges the recorded events of one task in a timer that several threads use.

The model is `timer_set`. In addition, a call takes effect at some moment between its start and its end. A drain passes
each task to the executor at some moment between the drain's start and its end. `judge_task` computes all possible
states of the task after each event. If no state is possible, the last event determines which promise is broken. Each
task is judged alone: only the order within a drain (T6) and `size()` (`possible_sizes`) are about several tasks.

With d the deadline (the clock's reading in `add`, plus the delay) and T the tick, the task is due from floor(d / T) * T
on. There are three rules in addition to the rules of `timer_set`:

* If drains overlap, the tasks that are due at the start of each drain have been passed to the executor when all these
  drains have ended.
* After a stop, the timer refuses every task, and `add` raises the refusal. Every other task was cancelled before, is
  returned by the stop, or is passed to the executor.
* If an executor refuses a task, the task waits for a later drain, or `add` raises the exception.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_NEVER: Final = 1 << 80


@dataclass(frozen=True, slots=True)
class TimerRules:
    """`strict`: after a close, no task can be added, and waiting tasks are dropped. `driven`: the timer has its own
    thread, which drains it as soon as a task is due, before time moves on. `recalls`: the executor is an event loop,
    and all calls are made on its thread. So a cancel or a move also stops a task that was handed over."""

    strict: bool = False
    driven: bool = False
    recalls: bool = False


@dataclass(frozen=True, slots=True)
class TimerCall:
    """A call that has ended, or a fire. Positions are numbers in one order of the whole run.

    `do`: `add`, `cancel`, `drain`, `close`, `stop` (returns the waiting tasks), `finish` (a stop that waits), `fired`.
    `task`: for `add`, `cancel`, `fired`. `due_ms`: for an `add`. `error`: the kind of its exception: `closed`,
    `refused`, or "". `answer`: for `stop` the returned tasks, for `finish` whether it ended. `refused`: for a drain,
    whether an executor refused a task meanwhile.
    """

    do: str
    begin: int
    end: int
    begin_ms: int
    end_ms: int
    task: str = ""
    timer: int = 0
    due_ms: int = 0
    error: str = ""
    answer: tuple[str, ...] = ()
    refused: bool = False


_Waiting = tuple[int, int, int] | None
"""Due at, in which timer, since which moment."""

_Handed = tuple[tuple[int, int], ...]
"""For each later firing, the earliest and the latest time."""

_State = tuple[_Waiting, _Handed, frozenset[int], frozenset[int]]
"""The waiting tasks, the tasks that were handed over, the closed timers, and the calls without an effect yet."""

_START: Final[_State] = (None, (), frozenset(), frozenset())


def judge_task(task: str, calls: tuple[TimerCall, ...], rules: TimerRules, now_ms: int = 0) -> str:
    """Empty if the history is possible. Otherwise the clause, a colon, and the description. `calls`: all calls of the
    run; calls about other tasks are ignored. `now_ms`: the time at the end, if time moved after the last call."""
    wrong, states = _followed(task, _about(task, calls), rules)
    if wrong:
        return wrong
    if all(handed for _, handed, _, _ in states):
        return f"T3: {task} was handed over, and did not run"
    end_ms = max([now_ms, *(call.end_ms for call in calls)])
    if rules.driven and all(
        handed or (waits is not None and waits[0] <= end_ms and not closed)
        for waits, handed, closed, _ in states
    ):
        return f"T2: {task} was due, and waits at {end_ms} ms"
    return ""


def possible_sizes(
    tasks: Iterable[str], calls: tuple[TimerCall, ...], rules: TimerRules, timer: int
) -> tuple[int, int]:
    """The smallest and the largest correct result of `size()` after these calls, while no other call is open."""
    least = most = 0
    for task in tasks:
        waits = _may_wait(task, calls, rules, timer)
        least += waits == {True}
        most += True in waits
    return least, most


def earliest(tasks: Iterable[str], calls: tuple[TimerCall, ...], rules: TimerRules, timer: int) -> int | None:
    """The deadline of the first task that certainly waits; None if there is none."""
    dues: list[int] = []
    for task in tasks:
        _, states = _followed(task, _about(task, calls), rules)
        waiting = [waits[0] for waits, _, _, _ in states if waits is not None and waits[1] == timer]
        if waiting and len(waiting) == len(states):
            dues.append(max(waiting))
    return min(dues, default=None)


def _may_wait(task: str, calls: tuple[TimerCall, ...], rules: TimerRules, timer: int) -> set[bool]:
    _, states = _followed(task, _about(task, calls), rules)
    return {waits is not None and waits[1] == timer for waits, _, _, _ in states}


def _about(task: str, calls: tuple[TimerCall, ...]) -> tuple[TimerCall, ...]:
    return tuple(call for call in calls if call.task in ("", task))


@lru_cache(maxsize=100_000)
def _followed(task: str, calls: tuple[TimerCall, ...], rules: TimerRules) -> tuple[str, frozenset[_State]]:
    follower = _Follower(task, calls, rules)
    return follower.wrong(), frozenset(follower.states)


class _Follower:
    """All possible states of one task at each moment."""

    def __init__(self, task: str, calls: tuple[TimerCall, ...], rules: TimerRules) -> None:
        self.states: set[_State] = {_START}
        self._task = task
        self._calls = calls
        self._rules = rules
        self._open: set[int] = set()
        self._drains: list[int] = []
        self._fired = 0

    def wrong(self) -> str:
        """Follow the events to the end, or to the first event after which no state is possible."""
        calls = self._calls
        moments = sorted(
            (position, ends, number)
            for number, call in enumerate(calls)
            for position, ends in ((call.begin, False), (call.end, True))
            if not (ends and call.do == "fired")
        )
        for at, ends, number in moments:
            call = calls[number]
            before = self.states
            if call.do == "fired":
                self._fired += 1
                self.states = {after for state in before for after in _after_firing(state, call)}
            elif ends:
                self._close_over(at)
                self._open.discard(number)
                self._end(number, call)
            else:
                self._begin(number, call)
                self._close_over(at)
            if not self.states:
                self.states = before
                return self._why(call)
        return ""

    def _begin(self, number: int, call: TimerCall) -> None:
        self._open.add(number)
        if call.do == "drain":
            self._drains.append(number)
        else:
            self.states = {
                (waits, handed, closed, left | {number}) for waits, handed, closed, left in self.states
            }

    def _end(self, number: int, call: TimerCall) -> None:
        if call.do != "drain":
            self.states = {
                state
                for state in self.states
                if number not in state[3]
                and not (call.do == "finish" and call.answer and _in(state[0], call))
            }
        elif not any(self._calls[other].do == "drain" for other in self._open):
            drains = [self._calls[other] for other in self._drains]
            self._drains = []
            if not any(drain.error or drain.refused for drain in drains):
                self.states = {
                    state for state in self.states if not any(_left_behind(state, drain) for drain in drains)
                }

    def _close_over(self, at: int) -> None:
        """Add the states that the open calls can reach."""
        waiting = list(self.states)
        while waiting:
            for after in self._effects(waiting.pop(), at):
                if after not in self.states:
                    self.states.add(after)
                    waiting.append(after)

    def _effects(self, state: _State, at: int) -> Iterator[_State]:
        waits, handed, closed, left = state
        strict, driven = self._rules.strict, self._rules.driven
        for number in left:
            call, rest = self._calls[number], left - {number}
            if call.do == "add":
                yield from self._added(call, (waits, handed, closed, rest), at)
            elif call.do == "cancel":
                yield None, () if self._rules.recalls else handed, closed, rest
            elif call.do != "stop" or _in(waits, call) is (self._task in call.answer) or self._changed(call):
                drops = _in(waits, call) and call.do != "finish"
                if not (drops and strict):
                    yield waits, handed, closed | {call.timer}, rest
                if drops:
                    yield None, handed, closed | {call.timer}, rest
        for number in self._open:
            call = self._calls[number]
            if call.do == "drain" and waits is not None and _in(waits, call) and waits[0] <= call.end_ms:
                yield None, _with(handed, (waits[0], _NEVER)), closed, left
                if call.timer in closed:
                    yield None, handed, closed, left
            if call.do == "drain" and handed and call.timer in closed:
                yield waits, handed[1:], closed, left
            if call.do == "drain" and handed and call.refused and waits is None:
                # Refused, so the task waits again.
                yield (handed[0][0], call.timer, at), handed[1:], closed, left
        if driven and waits is not None:
            yield None, _with(handed, (waits[0], _NEVER if closed else waits[0])), closed, left
        if driven and closed and (waits is not None or handed):
            yield None, handed, closed, left
            yield waits, handed[1:], closed, left

    def _added(self, call: TimerCall, state: _State, at: int) -> Iterator[_State]:
        waits, handed, closed, rest = state
        if self._rules.recalls and not call.error:
            state = waits, handed, closed, rest = waits, (), closed, rest
        if waits is not None:
            # The task leaves its old place first.
            yield None, handed, closed, rest | {self._calls.index(call)}
        if call.error == "closed":
            if call.timer in closed:
                yield state
                yield None, handed, closed, rest
            return
        if call.error:
            yield state
            yield None, handed, closed, rest
            return
        if call.timer in closed:
            if self._rules.strict and not self._others_meet(call):
                return
            # If the task was cancelled during the add, the add need not report that the timer is closed.
            yield None, handed, closed, rest
            if self._rules.strict:
                return
        due_ms = max(call.due_ms, call.end_ms) if self._rules.driven else call.due_ms
        yield (due_ms, call.timer, at), handed, closed, rest
        if call.due_ms <= call.end_ms:
            yield None, _with(handed, (call.due_ms, _NEVER)), closed, rest

    def _changed(self, stop: TimerCall) -> bool:
        """Whether the task was cancelled or added again during the stop. Then the stop removed an old entry, and does
        not return the task."""
        return self._task not in stop.answer and any(
            call.do in ("add", "cancel") and call.begin < stop.end and stop.begin < call.end
            for call in self._calls
        )

    def _others_meet(self, call: TimerCall) -> bool:
        others = (self._calls[number] for number in self._open)
        return any(other is not call and other.do in ("add", "cancel") for other in others)

    def _why(self, call: TimerCall) -> str:
        task = self._task
        if call.do == "drain":
            return f"T2: a drain at {call.begin_ms} ms left {task}, which was due"
        if call.do != "fired":
            seen = call.error or ("answered " + ", ".join(call.answer) if call.answer else "no error")
            return f"T3: {call.do} at {call.begin_ms} ms ({seen}) does not fit what became of {task}"
        if any(handed for _, handed, _, _ in self.states):
            return f"T2: {task} fired at {call.begin_ms} ms, too late"
        dues = sorted({waits[0] for waits, _, _, _ in self.states if waits is not None})
        if dues and dues[0] > call.begin_ms:
            return f"T1: {task} fired at {call.begin_ms} ms, due at {dues[0]} ms"
        return f"T3: {task} fired at {call.begin_ms} ms (for the {self._fired}. time), though no drain handed it over"


def _in(waits: _Waiting, call: TimerCall) -> bool:
    return waits is not None and waits[1] == call.timer


def _with(handed: _Handed, one: tuple[int, int]) -> _Handed:
    return tuple(sorted((*handed, one)))


def _after_firing(state: _State, call: TimerCall) -> Iterator[_State]:
    waits, handed, closed, left = state
    for number, (from_ms, by_ms) in enumerate(handed):
        if from_ms <= call.begin_ms <= by_ms:
            yield waits, handed[:number] + handed[number + 1 :], closed, left


def _left_behind(state: _State, drain: TimerCall) -> bool:
    waits, _, closed, _ = state
    return (
        waits is not None
        and waits[1] == drain.timer
        and drain.timer not in closed
        and waits[0] <= drain.begin_ms
        and waits[2] <= drain.begin
    )
