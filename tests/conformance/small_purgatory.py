"""A small purgatory, and slips of it, each to be found by some program."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, cast

from mutants.diffs import Diff, diffs
from purgatorio_conformance.suite.contract import Promise, PurgatoryUnderTest
from purgatorio_conformance.suite.probe import Probe


class Small:
    """A correct purgatory with a lock for each operation."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._lists: dict[str, list[Op]] = {}
        self._timed: list[Op] = []
        self._timing = threading.Lock()
        self._making = threading.Lock()
        self._ops: dict[str, Op] = {}

    def register(self, probe: Probe) -> bool:
        op = self._ops[probe.id] = Op(probe)
        with op.lock:
            if probe.try_complete(op.force):
                return True
            for key in probe.keys:
                self._watch(op, key)
            if probe.try_complete(op.force):
                return True
        if not op.completed:
            op.deadline_ns = self._now_ns + probe.delay_ns
            probe.timer_add(partial(self._armed, op))
        return False

    def _watch(self, op: Op, key: str) -> None:
        with self._making:
            watched = self._lists.get(key)
            if watched is None:
                watched = []
                self._lists[key] = watched
            watched.append(op)

    def _armed(self, op: Op) -> None:
        with self._timing:
            self._timed.append(op)

    def check(self, key: str) -> int:
        return sum(self._tried(op) for op in [*self._lists.get(key, [])])

    def _tried(self, op: Op) -> bool:
        if op.is_completed():
            # Or two completions that check each other's keys wait for each other.
            return False
        with op.lock:
            return not op.completed and op.probe.try_complete(op.force)

    def force(self, probe: Probe) -> bool:
        return self._ops[probe.id].force()

    def advance(self, by_ns: int) -> None:
        self._now_ns += by_ns
        with self._timing:
            due = [op for op in self._timed if op.deadline_ns <= self._now_ns]
            self._timed = [op for op in self._timed if op not in due]
        for op in due:
            try:
                if not op.completed:
                    op.probe.timer_fire(op.expire)
            except Exception:
                continue
        # In their order: the same call has the same steps each time.
        for key in [*self._lists]:
            self._purge(key)

    def _purge(self, key: str) -> None:
        for op in [*self._lists[key]]:
            if op.completed:
                self._lists[key].remove(op)

    def cancel_for_key(self, key: str) -> list[Probe]:
        given_back = [op for op in self._lists.pop(key, []) if not op.completed]
        for op in given_back:
            if op in self._timed:
                self._timed.remove(op)
                op.probe.timer_cancel(lambda: None)
        return [op.probe for op in given_back]

    def gauges(self) -> tuple[int, int]:
        waiting = [op for op in self._timed if op.armed]
        return sum(map(len, self._lists.values())), len(waiting)


class Op:
    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.lock = threading.RLock()
        self.completed = False
        self.deadline_ns = 0
        self.armed = True

    def is_completed(self) -> bool:
        return self.completed

    def force(self) -> bool:
        return self.probe.force_complete(self._force)

    def expire(self) -> None:
        if self.force():
            self.probe.on_expiration()

    def _force(self) -> bool:
        with self.lock:
            if self.completed:
                return False
            self.completed = True
            self.armed = False
            self.probe.timer_cancel(lambda: None)
            self.probe.on_complete()
            return True


class Slip(NamedTuple):
    words: list[tuple[str, str]]
    after: str
    clause: str
    program: str
    programs: int
    purges: bool


def _slip(told: Diff) -> Slip:
    found = re.fullmatch(
        r"(?:after (\w+)(?:, |$))?(?:(\w+) (?:by (.*)|in (\d+) programs( with purges)?))?", told.says
    )
    assert found is not None, told.says
    after, clause, program, programs, purges = found.groups("")
    return Slip(told.changes[0].words, after, clause, program, int(programs or 0), bool(purges))


SLIPS = {one.name: _slip(one) for one in diffs(Path(__file__).with_name("small_slips.txt"))}


@cache
def _made(slip: str) -> Callable[[], PurgatoryUnderTest]:
    """The class with this slip; without a name, as it is."""
    source = Path(__file__).read_text(encoding="utf-8").partition("\n\nclass Slip")[0]
    names = [SLIPS[slip].after, slip] if slip else []
    for old, new in (pair for name in filter(None, names) for pair in SLIPS[name].words):
        assert source.count(old) == 1, (slip, old)
        source = source.replace(old, new)
    made: dict[str, object] = {"__name__": slip}
    exec(compile(source, __file__, "exec"), made)
    return cast(Callable[[], PurgatoryUnderTest], made["Small"])


def small(slip: str, _: Promise) -> PurgatoryUnderTest:
    return _made(slip)()
