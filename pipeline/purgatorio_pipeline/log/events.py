"""The events that the points of a log become."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import takewhile
from typing import Any

import orjson

from purgatorio_pipeline.log.mapping import LogMapping
from purgatorio_pipeline.log.table import Point
from purgatorio_spec.trace.record import Event

Origin = dict[str, object]
"""The row of the log that an event comes from, as a field of the event (see `as_logged`)."""


class EventMaker:
    """Makes events of points, which come in the order of time."""

    def __init__(self, answers: bool, mapping: LogMapping) -> None:
        self.i = 0
        self.requests = 0
        self.unordered = 0
        """Requests that came at the time of an event of their key, and that this event did not answer in time."""
        self.first_unordered = ""
        self._answers = answers
        self._answer_ns = mapping.answer_ns or 0
        self._answer_early_ns = mapping.answer_early_ns or 0
        self._needs_event = mapping.answer_early_ns is not None
        self._skew_ns = mapping.skew_ns
        self._waiting: dict[str, dict[str, int]] = {}
        """By key, the requests with the times at which they were enqueued."""
        self._recent: deque[tuple[int, str, Origin]] = deque()
        """Events that may have come after what is enqueued now: their times, keys and rows."""
        self._keys: dict[str, list[str]] = {}
        self._ready: set[str] = set()
        self._may_be_ready: dict[str, Origin] = {}
        """Requests with an event of their key that may have come before them, and the row of the event."""
        self._ended_until: dict[str, int] = {}
        """Requests that have ended, and until when an event of their key may still have caused that."""
        self._beside: dict[str, int] = {}
        """Requests without an order with an event of their key, and the time of the event."""
        self._open: list[tuple[int, int, str, str]] = []
        """Events that are being answered: until when, the `i` of the call, its thread, its key."""
        self._idle: list[int] = []
        self._threads = 0
        self._row: Origin = {}
        """Of the first event of a point."""

    def events(self, point: Point) -> Iterator[Event]:
        t, _, row, what, request, keys, delay_ns = point
        yield from self._answered(t)
        self._forget_ended(t)
        while self._recent and self._recent[0][0] < t - self._skew_ns:
            self._recent.popleft()
        self._row = {"x_log_row": row}
        if what == "event":
            yield from self._event(t, orjson.loads(keys or "[]"))
        elif request is not None:
            named = tuple(orjson.loads(keys)) if keys else (f"of {request}",)
            if what == "enqueued":
                yield from self._enqueued(t, request, named, delay_ns)
            else:
                yield from self._ended(t, request, what)

    def _event(self, t: int, keys: Iterable[str]) -> Iterator[Event]:
        if not self._answers:
            return
        for key in keys:
            waiting = self._waiting.get(key, {})
            beside = {request: since for request, since in waiting.items() if t <= since + self._skew_ns}
            yield from self._made_ready(
                t, (request for request in waiting if request not in beside), self._row
            )
            number = heappop(self._idle) if self._idle else self._threads
            self._threads += number == self._threads
            th = f"event-{number}"
            heappush(self._open, (t + self._answer_ns, self.i, th, key))
            yield self._made(th, t, "call", "check_and_complete", keys=(key,))
            self._recent.append((t, key, self._row))
            self._beside.update(dict.fromkeys(beside, t))
            if self._needs_event:
                # The event may answer these. That it must, the log does not show, so they are ready only when they
                # are answered: a ready request must be answered by the next event.
                yield from self._made_ready(
                    t, (request for request in beside if request in self._ended_until), self._row
                )
                self._may_be_ready.update(dict.fromkeys(beside, self._row))

    def _made_ready(self, t: int, requests: Iterable[str], row: Origin) -> Iterator[Event]:
        for request in requests:
            if request not in self._ready:
                self._ready.add(request)
                t_call = t - self._answer_early_ns
                yield self._made("log", t, "at", "ready", id=request, t_call=t_call, x=row)

    def _answered(self, t: int) -> Iterator[Event]:
        """The returns of the calls for events whose time for an answer ended before this time. At the end of the log,
        some calls are open."""
        while self._open and self._open[0][0] < t:
            due_t, c, th, _ = heappop(self._open)
            heappush(self._idle, int(th.removeprefix("event-")))
            yield self._made(th, due_t, "ret", "check_and_complete", c=c)

    def _forget_ended(self, t: int) -> None:
        for request in [*takewhile(lambda one: self._ended_until[one] < t, self._ended_until)]:
            del self._ended_until[request]
            for key in self._keys.pop(request, ()):
                waiting = self._waiting[key]
                del waiting[request]
                if not waiting:
                    del self._waiting[key]
            self._ready.discard(request)
            self._may_be_ready.pop(request, None)
            self._beside.pop(request, None)

    def _enqueued(self, t: int, request: str, keys: tuple[str, ...], delay_ns: int | None) -> Iterator[Event]:
        self.requests += 1
        if self._answers:
            self._keys[request] = list(dict.fromkeys(keys))
            for key in self._keys[request]:
                self._waiting.setdefault(key, {})[request] = t
        c = self.i
        yield self._made(
            "log", t, "call", "try_complete_else_watch", id=request, keys=keys, delay_ns=delay_ns, x=self._row
        )
        if delay_ns is not None:
            add = self.i
            yield self._made(
                "log", t, "call", "timer_add", id=request, delay_ns=delay_ns, deadline_t=t + delay_ns
            )
            yield self._made("log", t, "ret", "timer_add", id=request, c=add)
        yield self._made("log", t, "ret", "try_complete_else_watch", id=request, c=c, out=0)
        for event_t, row in ((event_t, row) for event_t, key, row in self._recent if key in keys):
            self._beside[request] = event_t
            if self._needs_event:
                self._may_be_ready[request] = row

    def _ended(self, t: int, request: str, what: str) -> Iterator[Event]:
        expired = what == "timed_out"
        event_t = self._beside.pop(request, None)
        if event_t is not None and what != "gone" and (expired or t > event_t + self._answer_ns):
            self.unordered += 1
            self.first_unordered = self.first_unordered or request
        outer = "timer_fire" if expired else "try_complete"
        self._ended_until.setdefault(request, t + self._answer_early_ns)
        if what == "gone":
            yield self._made("log", t, "at", "cancelled", id=request, x=self._row)
            return
        if request in self._may_be_ready and not expired:
            yield from self._made_ready(t, [request], self._may_be_ready[request])
        begun = self.i
        if expired or self._answers:
            yield self._made("log", t, "call", outer, id=request, x=self._row)
        force = self.i
        told = None if expired or self._answers else self._row
        yield self._made("log", t, "call", "force_complete", id=request, x=told)
        done = self.i
        yield self._made("log", t, "call", "on_complete", id=request)
        yield self._made("log", t, "ret", "on_complete", id=request, c=done)
        yield self._made("log", t, "ret", "force_complete", id=request, c=force, out=1)
        if expired or self._answers:
            out = None if expired else 1
            yield self._made("log", t, "ret", outer, id=request, c=begun, out=out)

    def _made(self, th: str, t: int, ph: Any, f: str, **rest: Any) -> Event:
        event = Event(self.i, th, t, ph, f, **rest)
        self.i += 1
        return event
