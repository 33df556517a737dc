"""Random programs for the threads of the reference: its executors, and the reaper without a timer.

The programs test these promises of the executor (`purgatorio.threads`, on the explorer's `Sync`): an accepted action
runs once, or `shutdown_now` drops the action. Actions run in the order of submission. After a shutdown, no action is
accepted.

The promises of the reaper: two turns never overlap. After a call has awaited the shutdown, no turn begins. If a turn
fails, the fault policy gets the exception, and the next turn begins after a pause (O8). In these programs, a turn is a
wait that a notification ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from purgatorio import DirectExecutor, QueuedExecutor
from purgatorio.executors import LoopExecutor
from purgatorio.reaper import POLL_MS, Reaper
from purgatorio.sync import Executor, ExecutorClosed
from purgatorio.threads import _Executor
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.random_program.act import Drawn
from purgatorio_stress.random_program.instruments import Loop
from purgatorio_stress.random_program.player import Planned, PlannedExit, Player, vocabulary
from purgatorio_stress.scenario.world import World

_THREADED, _QUEUED, _LOOP, _DIRECT = 0, 1, 2, 3


class ExecutorPlayer(Player):
    """Setting: the kind of executor. A thing is an action. Each submission of an action has its own number."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        (self.kind,) = drawn.settings
        self.loop = Loop(world.sync)
        self.failed = [0]
        self.executor = self._made()
        self.calls_back_on_callers = self.kind != _THREADED
        self.moment = [0]
        self.taken: dict[int, tuple[int, int]] = {}
        """By number of an accepted submission, the moments of its begin and of its end."""
        self.refused: list[int] = []
        """The moments at which refused submissions began."""
        self.ran: list[int] = []
        self.running = [0]
        self.dropped = [0]
        self.shut: list[int] = []
        """The moments at which shutdowns had ended."""
        self.begun_to_shut: list[int] = []
        self.called: set[int] = set()

    def _made(self) -> Executor:
        sync, faults = self.world.sync, self.world.faults
        if self.kind == _THREADED:
            return _Executor("executor", sync, lambda *text: self.told.append(sys.exc_info()[1]))
        if self.kind == _QUEUED:
            return QueuedExecutor(faults=faults, sync=sync)
        return LoopExecutor(self.loop, faults=faults, sync=sync) if self.kind == _LOOP else DirectExecutor()

    def _next(self) -> int:
        self.moment[0] += 1
        return self.moment[0]

    def _action(self, number: int, thing: int) -> None:
        self.running[0] += 1
        if self.running[0] > 1 and self.kind == _THREADED:
            self.breaks("T3", "executor", "two actions ran at once")
        self.ran.append(number)
        try:
            if self.kind == _THREADED and not self.executor.is_current():
                self.breaks("CHECK", "executor", "is_current() is False inside an action")
            if thing not in self.called:
                self.called.add(thing)
                self.call_back("run", thing)
        except (Planned, PlannedExit):
            self.failed[0] += 1
            raise
        finally:
            self.running[0] -= 1

    # The verbs.

    def do_submit(self, thing: int) -> None:
        begun = number = self._next()
        try:
            self.executor.submit(lambda: self._action(number, thing))
        except Planned as error:
            if self.kind != _DIRECT:
                raise
            self.told.append(error)
        except ExecutorClosed:
            self.refused.append(begun)
            if not self.begun_to_shut:
                self.breaks("T3", "executor", "refused, although it was not shut down")
            return
        if any(end < begun for end in self.shut) and self.kind != _DIRECT:
            self.breaks("CHECK", "executor", "it took an action after its shutdown")
        self.taken[number] = begun, self._next()

    def do_shutdown(self) -> None:
        self.begun_to_shut.append(self._next())
        self.executor.shutdown()
        self.shut.append(self._next())

    def do_drop(self) -> None:
        self.begun_to_shut.append(self._next())
        dropped = self.executor.shutdown_now()
        self.dropped[0] += dropped
        self.shut.append(self._next())

    def do_close(self) -> None:
        self.begun_to_shut.append(self._next())
        self.loop.close()

    def do_wait(self, timeout_ms: int) -> None:
        """`await_termination`. When it returns True, all actions that were accepted before the call have run or were
        dropped."""
        taken, inside = set(self.taken), self.executor.is_current()
        ended = self.executor.await_termination(timeout_ms)
        left = taken - set(self.ran)
        if ended and inside and self.kind == _THREADED:
            self.breaks("P3", "executor", "an action got the result that its own executor has ended")
        # With several threads, another thread may have taken an action of a queue, to run or to drop it.
        exact = self.kind != _QUEUED or len(self.drawn.threads) == 1
        if ended and exact and len(left) > self.dropped[0] and not self.running[0]:
            self.breaks("T3", "executor", f"it has ended, and {len(left)} actions have not run")

    def do_run(self) -> None:
        """Run the waiting actions on the caller, if the executor has no thread."""
        if isinstance(self.executor, QueuedExecutor):
            self.run_until_empty(self.executor.run_all)
        if self.kind == _LOOP:
            self.run_until_empty(self.loop.turn)

    # The end.

    def final(self) -> Iterator[Broken]:
        """Check that each accepted action ran once or was dropped, and that actions ran in order of submission."""
        self.do_run()
        counts = {number: self.ran.count(number) for number in self.ran}
        if any(count > 1 for count in counts.values()):
            yield Broken("T3", "executor", "an action ran twice")
        left = len(set(self.taken) - set(self.ran))
        if left != self.dropped[0]:
            yield Broken("T3", "executor", f"{left} actions never ran, {self.dropped[0]} were dropped")
        if self.kind == _THREADED and len(self.told) != self.failed[0]:
            yield Broken("O8", "executor", f"{self.failed[0]} failed, {len(self.told)} were reported")
        if self.kind != _DIRECT:
            known = [number for number in self.ran if number in self.taken]
            for first, then in pairwise(known):
                if self.taken[then][1] < self.taken[first][0]:
                    yield Broken("T6", "executor", "an action ran before another that was submitted earlier")
        yield from super().final()


class ReaperPlayer(Player):
    """Setting: the wait of a turn in ms. Thing n is turn n of the reaper."""

    def __init__(self, world: World, drawn: Drawn) -> None:
        super().__init__(world, drawn)
        (self.wait_ms,) = drawn.settings
        self.lock = world.sync.lock("work")
        self.notice = world.sync.condition(self.lock, "work.notice")
        self.turns: list[int] = []
        """The times at which turns began."""
        self.failed: list[int] = []
        """The times at which turns failed."""
        self.running = [0]
        self.asked: list[int] = []
        """The times of the requests to end."""
        self.awaited = [False]
        self.raised = [False]
        self.calls_back_on_callers = False
        self.reaper = Reaper("reaper", self._work, faults=world.faults, sync=world.sync)

    def _now_ms(self) -> int:
        return self.world.run.now_ms

    def _work(self) -> None:
        number = len(self.turns)
        self.turns.append(self._now_ms())
        self.running[0] += 1
        if self.running[0] > 1:
            self.breaks("CHECK", "reaper", "two turns at once")
        if self.awaited[0]:
            self.breaks("P3", "reaper", "a turn began after its end had been awaited")
        try:
            if number < len(self.drawn.things):
                self.call_back("turn", number)
            with self.lock:
                self.notice.wait(self.wait_ms)
        except Planned:
            self.failed.append(self._now_ms())
            raise
        finally:
            self.running[0] -= 1

    # The verbs.

    def do_stop(self) -> None:
        self.asked.append(self._now_ms())
        self.reaper.initiate_shutdown()

    def do_end(self) -> None:
        """`initiate_shutdown` and `await_shutdown`. Checks that both together take at most the wait of a turn."""
        self.do_stop()
        before_ms = self._now_ms()
        mine = self.reaper._worker.is_current()
        self.reaper.await_shutdown()
        if not self.raised[0]:
            # The owner of the reaper calls `raise_exit` once.
            self.raised[0] = not mine
            exited = self.exits["raised"]
            self.reaper.raise_exit()
            if exited and not mine:
                self.breaks(
                    "O8", "reaper", "a turn exited, and the caller that ended it did not receive the exit"
                )
        took_ms = self._now_ms() - before_ms
        if took_ms > self.wait_ms:
            self.breaks("P3", "reaper", f"its end took {took_ms} ms, and a turn waits {self.wait_ms} ms")
        if not mine:
            self.awaited[0] = True
            if self.running[0]:
                self.breaks("P3", "reaper", "its end was awaited, and a turn is continuing")

    def do_wake(self) -> None:
        """Notify the waiting turn."""
        with self.lock:
            self.notice.notify_all()

    def do_sleep(self, for_ms: int) -> None:
        """Let this thread wait for `for_ms`."""
        with self.lock:
            end_ms = self._now_ms() + for_ms
            while (left_ms := end_ms - self._now_ms()) > 0:
                self.notice.wait(left_ms)

    # The end.

    def final(self) -> Iterator[Broken]:
        """Check that the reaper continued until its shutdown, and paused after each turn that failed."""
        for at_ms in self.failed:
            after = [turn for turn in self.turns if turn > at_ms]
            if after and after[0] < at_ms + POLL_MS:
                yield Broken("O8", "reaper", f"failed at {at_ms} ms, and began again at {after[0]} ms")
            if not after and not self.asked and self._now_ms() > at_ms + POLL_MS:
                yield Broken("O8", "reaper", f"failed at {at_ms} ms, and never began again")
        if not self.asked and not self.failed and self._now_ms() > self.turns[-1] + self.wait_ms:
            yield Broken("O8", "reaper", f"the last turn began at {self.turns[-1]} ms")
        yield from super().final()


def _fits(drawn: Drawn, dialect: str) -> bool:
    """Whether a program fits the kind of executor. Only `LoopExecutor` has `close`. The actions of kinds that run them
    on the caller only submit, raise, exit or shut down."""
    (kind,) = drawn.settings
    if kind != _LOOP and any(act.do == "close" for act in drawn.acts()):
        return False
    return kind in (_THREADED, _QUEUED) or all(
        act.do in ("submit", "raise", "exit", "shutdown") for act in (one.act for one in drawn.callbacks)
    )


WORKERS: Final = (
    vocabulary("executor", ExecutorPlayer, QueuedExecutor, LoopExecutor, DirectExecutor, legal=_fits),
    vocabulary(
        "reaper",
        ReaperPlayer,
        Reaper,
        legal=lambda drawn, dialect: all(act.do not in ("stop", "end") for act in drawn.before),
    ),
)
"""The vocabularies of executors, and of the reaper."""
