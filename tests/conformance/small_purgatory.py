"""A small purgatory with slips, each to be found by some program."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.probe import Probe


class Small:
    """A correct purgatory with a lock for each operation; or with one slip: `late` (it looks again only where an event
    was counted meanwhile, and counts one behind its look-up), `undone` (who fails to complete may try again), `dropped`
    (who fails to try is watched no more), `last` (an expiry tries first), `made` (the list of a key is made without a
    lock), `waits` (a check gives a lock up after a while), `polite` (a force leaves a lock to who has it), `twice`
    (one that cannot have the lock asks who has it to try again, which that does once at most; `flagged`: as often
    as it is asked; `shared`: so too, and all operations have one lock), `busy` (a purge leaves out keys that are
    being checked, and a check that raises never ends), `counted` (a check ends where nothing waits, and what waits
    is counted without a lock), `worn` (checks that raise are deeper and deeper inside others, by a count, and from
    the eighth on left to those), `nested` (a registration during a check does not look again), `moved` (a purge
    takes what waits off its list and puts it back behind), `scratch` (checks go through one and the same list, one
    inside another too), `deep` (a check is made no more than sixteen deep), `indexed` (a check goes by the places
    on the list, from which others take off what is completed), `hurried` (who makes time go on gives up at a lock
    that is taken), `entered` (there is no purge during a registration, and one that raises never ends), `marked` (the
    sizes leave out what is completed, and keys that a purge found to be empty, which it notes behind its look), `rest`
    (it looks again when two keys are watched, and watches the others behind that), `sized` (a purge makes a new list,
    which takes the place of the old one if that is as long as before), `guards` (a check inside another does nothing),
    `leaks` (and a check that raises never ends), `batch` (all that is due at once expires, whatever happens meanwhile),
    `breaks` (an error in one ends the expiry of all others), `kept` (what waits is written back when all that was due
    has expired), `zero` (no time-out at once), `armed` (what is completed leaves the timer behind `on_complete`)."""

    def __init__(self, slip: str) -> None:
        self._slip = slip
        self._now_ns = 0
        self._lists: dict[str, list[_Op]] = {}
        self._timed: list[_Op] = []
        self._timing = threading.Lock()
        self._ops: dict[str, _Op] = {}
        self._events = 0
        self._making = nullcontext() if slip == "made" else threading.Lock()
        self._busy: list[str] = []
        self._shared = threading.RLock() if slip == "shared" else None
        self._waiting = 0
        self._raised = 0
        self._entered = 0
        self._scratch: list[_Op] = []
        self._timekeeper = 0
        self._empty: set[str] = set()

    def register(self, probe: Probe) -> bool:
        self._entered += 1
        done = self._registered(probe)
        self._entered -= 1
        return done

    def _registered(self, probe: Probe) -> bool:
        op = _Op(probe, self._shared or threading.RLock(), self._slip)
        self._ops[probe.id] = op
        with op.lock:
            events = self._events
            if probe.try_complete(op.force):
                return True
            first = 2 if self._slip == "rest" else len(probe.keys)
            self._watch(op, probe.keys[:first])
            looks = (
                events != self._events if self._slip == "late" else self._slip != "nested" or not self._busy
            )
            if looks and probe.try_complete(op.force):
                return True
            self._watch(op, probe.keys[first:])
        waiting = self._waiting
        self._waiting = waiting + 1
        if not op.completed and not (self._slip == "zero" and probe.delay_ns == 0):
            op.deadline_ns = self._now_ns + probe.delay_ns
            probe.timer_add(partial(self._armed, op))
        return False

    def _watch(self, op: _Op, keys: Sequence[str]) -> None:
        for key in keys:
            with self._making:
                watched = self._lists.get(key)
                if watched is None:
                    watched = []
                    self._lists[key] = watched
                self._empty.discard(key)
                watched.append(op)

    def _armed(self, op: _Op) -> None:
        with self._timing:
            self._timed.append(op)

    def check(self, key: str) -> int:
        if self._slip == "counted" and not self._waiting:
            return 0
        if self._slip in ("guards", "leaks") and self._busy:
            return 0
        if self._slip == "worn" and self._raised >= 8:
            return 0
        if self._slip == "deep" and len(self._busy) >= 16:
            return 0
        if self._slip == "indexed":
            return self._by_place(key)
        watched = self._scratch if self._slip == "scratch" else []
        watched[:] = self._lists.get(key, [])
        self._events += 1
        self._busy.append(key)
        try:
            done = sum(self._tried(op, key) for op in watched)
        except Exception:
            self._raised += 1
            if self._slip not in ("busy", "leaks"):
                self._busy.remove(key)
            raise
        self._busy.remove(key)
        self._waiting -= done
        if self._slip == "sized":
            watched = self._lists.get(key, [])
            watched[:] = [op for op in watched if not op.completed]
        return done

    def _by_place(self, key: str) -> int:
        watched, place, done = self._lists.get(key, []), 0, 0
        while place < len(watched):
            op = watched[place]
            done += self._tried(op, key)
            if not op.completed:
                place += 1
            elif op in watched:
                watched.remove(op)
        return done

    def _tried(self, op: _Op, key: str) -> bool:
        if self._slip in ("twice", "flagged", "shared"):
            return op.tried(2 if self._slip == "twice" else 100)
        if op.is_completed():
            # Or two completions that check each other's keys wait for each other.
            return False
        hurries = self._slip == "hurried" and threading.get_ident() == self._timekeeper
        if not op.lock.acquire(timeout=0 if hurries else 0.05 if self._slip == "waits" else -1):
            return False
        op.lock.release()
        with op.lock:
            try:
                return not op.completed and op.probe.try_complete(op.force)
            except Exception:
                if self._slip != "dropped":
                    raise
                self._lists[key] = [one for one in self._lists[key] if one is not op]
                return False

    def force(self, probe: Probe) -> bool:
        op = self._ops[probe.id]
        if self._slip == "polite":
            if not op.lock.acquire(blocking=False):
                return False
            op.lock.release()
        return op.force()

    def advance(self, by_ns: int) -> None:
        self._now_ns += by_ns
        self._timekeeper = threading.get_ident()
        with self._timing:
            due = [op for op in self._timed if op.deadline_ns <= self._now_ns]
            rest = [op for op in self._timed if op not in due]
            self._timed = self._timed if self._slip == "kept" else rest
        for op in due:
            try:
                if not op.completed or self._slip == "batch":
                    op.probe.timer_fire(partial(op.expire, self._slip))
            except Exception:
                if self._slip == "breaks":
                    break
        self._timed = rest if self._slip == "kept" else self._timed
        # In their order: the same call has the same steps each time.
        for key in [] if self._slip == "entered" and self._entered else [*self._lists]:
            if self._slip == "sized":
                count = len(self._lists[key])
                kept = [op for op in self._lists[key] if not op.completed]
                if len(self._lists[key]) == count:
                    self._lists[key] = kept
                continue
            for op in [] if key in self._busy else [*self._lists[key]]:
                if op.completed or self._slip == "moved":
                    self._lists[key].remove(op)
                    self._lists[key] += [] if op.completed else [op]
            if self._slip == "marked" and not self._lists[key]:
                self._empty.add(key)

    def cancel_for_key(self, key: str) -> list[Probe]:
        given_back = [op for op in self._lists.pop(key, []) if not op.completed]
        for op in given_back:
            if op in self._timed:
                self._timed.remove(op)
                op.probe.timer_cancel(lambda: None)
        return [op.probe for op in given_back]

    def gauges(self) -> tuple[int, int]:
        waiting = [op for op in self._timed if op.armed]
        watched = [op for key, ops in self._lists.items() if key not in self._empty for op in ops]
        if self._slip == "marked":
            watched = [op for op in watched if not op.completed]
        return len(watched), len(waiting)


class _Op:
    def __init__(self, probe: Probe, lock: threading.RLock, slip: str) -> None:
        self.probe = probe
        self.lock = lock
        self.completed = False
        self.asked = False
        self.deadline_ns = 0
        self.armed = True
        self._slip = slip

    def is_completed(self) -> bool:
        return self.completed

    def tried(self, rounds: int) -> bool:
        """Try it, as long as others ask for that, so often at most."""
        done = False
        for _ in range(rounds):
            if self.lock.acquire(blocking=False):
                self.asked = False
                done = not self.completed and self.probe.try_complete(self.force)
                self.lock.release()
                again = self.asked
            else:
                again, self.asked = not self.asked, True
            if self.completed or not again:
                break
        return done

    def force(self) -> bool:
        return self.probe.force_complete(self._force)

    def expire(self, slip: str) -> None:
        if slip == "last" and self.probe.try_complete(self.force):
            return
        if self.force() or slip == "batch":
            self.probe.on_expiration()

    def _force(self) -> bool:
        with self.lock:
            if self.completed:
                return False
            self.completed = True
            if self._slip != "armed":
                self._disarm()
            try:
                self.probe.on_complete()
            except Exception:
                self.completed = self._slip != "undone"
                raise
            if self.armed:
                self._disarm()
            return True

    def _disarm(self) -> None:
        self.armed = False
        self.probe.timer_cancel(lambda: None)


def small(slip: str, _: Promise) -> Small:
    return Small(slip)
