"""`VirtualLoop`: an asyncio event loop in virtual time. The adapter moves the clock, and runs the callbacks one by one.
The loop has no sockets."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

_Ts = TypeVarTuple("_Ts")
_LOG = logging.getLogger(__name__)


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose clock is at 0 until `advance` or `run`. Its callbacks run only in these, `begin`, `turn` and
    `settle`, also if a task calls them."""

    def __init__(self) -> None:
        super().__init__()
        self._now_ns = 0
        self._next: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()

    def begin(self, coroutine: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Create a task, and run it up to its first wait, as an `await` of the coroutine does."""
        task = self.create_task(coroutine)
        self._run(self._next.pop())
        return task

    def run(self, by_ns: int) -> None:
        """Let time pass: the clock stops at each deadline of the loop, and all that is due there runs."""
        until_ns = self._now_ns + by_ns
        self.settle()
        while self._timers and self._timers[0][0] <= until_ns:
            self._now_ns = self._timers[0][0]
            self.settle()
        self._now_ns = until_ns

    def advance(self, by_ns: int) -> None:
        """Move the clock forward by `by_ns`, without a callback. By 0: run one callback."""
        if not by_ns:
            self.turn()
        self._now_ns += by_ns

    def turn(self) -> bool:
        """Run one callback. Returns whether there was one."""
        while self._timers and self._timers[0][0] <= self._now_ns:
            self._next.append(heapq.heappop(self._timers)[2])
        if self._next:
            self._run(self._next.popleft())
            return True
        return False

    def settle(self) -> None:
        """Run all callbacks that are due, and all that they add."""
        while self.turn():
            pass

    def close(self) -> None:
        """Cancel all tasks."""
        for task in asyncio.all_tasks(self):
            task.cancel()
        self.settle()
        super().close()

    def _run(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            outer, task = asyncio._get_running_loop(), asyncio.current_task(self)
            asyncio._set_running_loop(self)
            if task is not None:  # a call inside a task
                asyncio.tasks._leave_task(self, task)
            try:
                handle._run()
            finally:
                if task is not None:
                    asyncio.tasks._enter_task(self, task)
                asyncio._set_running_loop(outer)

    def time(self) -> float:
        return self._now_ns / 1e9

    def call_soon(
        self, callback: Callable[[Unpack[_Ts]], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._next.append(asyncio.Handle(callback, args, self, context))
        return self._next[-1]

    call_soon_threadsafe = call_soon  # `LoopExecutor` calls it

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        # A wait for the rest of a time may be less than a nanosecond: it ends later, or it would come again for ever.
        due_ns = max(round(when * 1e9), self._now_ns + (when > self.time()))
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (due_ns, next(self._numbers), handle))
        return handle

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Raise the error of a callback in the call that ran the callback. A finalizer can raise nothing, and must not
        format a traceback: pytest may be parsing source. So what nobody retrieved is one line of the log."""
        if "handle" not in context:
            if not isinstance(context.get("exception"), asyncio.CancelledError):  # `close` cancels
                _LOG.error("%s: %r", context["message"], context.get("exception"))
            return
        raise context.get("exception") or RuntimeError(context["message"])

    def __del__(self) -> None:
        """The loop holds no socket, so no warning is needed if it was not closed."""

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self
