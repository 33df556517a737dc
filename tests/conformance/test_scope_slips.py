"""Slips that were thought up without the scope in hand: a purgatory on one thread, each found by a program of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import pytest

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.scope import crossed, crossing_named, drawn_program, scope_delays
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated as gated_conformance
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import SCOPE, of_purgatory, play
from purgatorio_conformance.suite.probe import Probe
from purgatorio_conformance.suite.program import GatedProgram


@dataclass(eq=False)
class _Op:
    probe: Probe
    completed: bool = False
    armed: bool = False
    deadline_ns: int = 0


class OneThread:
    """A correct purgatory without locks; or with one slip: `guards` (a check inside another does nothing), `leaks` (and
    a check that raises never ends), `batch` (all that is due at once expires, whatever happens meanwhile), `breaks` (an
    error in one ends the expiry of all others), `rest` (what waits is written back when all that was due has expired),
    `zero` (no time-out at once)."""

    def __init__(self, slip: str) -> None:
        self._slip = slip
        self._now_ns = 0
        self._lists: dict[str, list[_Op]] = {}
        self._timed: list[_Op] = []
        self._ops: dict[str, _Op] = {}
        self._depth = 0

    def register(self, probe: Probe) -> bool:
        op = self._ops[probe.id] = _Op(probe)
        if self._tried(op):
            return True
        for key in probe.keys:
            self._lists.setdefault(key, []).append(op)
        if self._tried(op):
            return True
        if not op.completed and not (self._slip == "zero" and probe.delay_ns == 0):
            op.deadline_ns = self._now_ns + probe.delay_ns
            probe.timer_add(partial(self._arm, op))
        return False

    def _arm(self, op: _Op) -> None:
        op.armed = True
        self._timed.append(op)

    def _disarm(self, op: _Op) -> None:
        if op.armed:
            op.armed = False
            op.probe.timer_cancel(lambda: None)

    def _tried(self, op: _Op) -> bool:
        return not op.completed and op.probe.try_complete(partial(self._force, op))

    def _force(self, op: _Op) -> bool:
        return op.probe.force_complete(partial(self._forced, op))

    def _forced(self, op: _Op) -> bool:
        if op.completed:
            return False
        op.completed = True
        self._disarm(op)
        op.probe.on_complete()
        return True

    def check(self, key: str) -> int:
        if self._depth and self._slip in ("guards", "leaks"):
            return 0
        self._depth += 1
        watched, done = self._lists.get(key, []), 0
        try:
            for op in [*watched]:
                done += self._tried(op)
        except Exception:
            self._depth -= self._slip != "leaks"
            raise
        self._depth -= 1
        return done

    def force(self, probe: Probe) -> bool:
        return self._force(self._ops[probe.id])

    def cancel_for_key(self, key: str) -> list[Probe]:
        given_back = [op for op in self._lists.pop(key, []) if not op.completed]
        for op in given_back:
            self._disarm(op)
        return [op.probe for op in given_back]

    def advance(self, by_ns: int) -> None:
        self._now_ns += by_ns
        due = [op for op in self._timed if op.deadline_ns <= self._now_ns]
        rest = [op for op in self._timed if op not in due]
        self._timed = self._timed if self._slip == "rest" else rest
        for op in due:
            if op.armed or self._slip == "batch":
                op.armed = False
                try:
                    op.probe.timer_fire(partial(self._expire, op))
                except Exception:
                    if self._slip == "breaks":
                        break
        self._timed = rest if self._slip == "rest" else self._timed
        live = {key: [op for op in ops if not op.completed] for key, ops in self._lists.items()}
        self._lists = {key: ops for key, ops in live.items() if ops}

    def _expire(self, op: _Op) -> None:
        if self._force(op) or self._slip == "batch":
            op.probe.on_expiration()

    def gauges(self) -> tuple[int, int]:
        return sum(map(len, self._lists.values())), sum(op.armed for op in self._timed)


def _made(slip: str, _: Promise) -> OneThread:
    return OneThread(slip)


@pytest.mark.parametrize(
    ("slip", "clause"),
    [
        ("", ""),
        ("guards", "O4"),
        ("leaks", "O4"),
        ("batch", "O3"),
        ("breaks", "O5"),
        ("rest", "O5"),
        ("zero", "O5"),
    ],
)
def test_a_slip_on_one_thread_is_found(slip: str, clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By calls from inside callbacks, by callbacks that raise, and by time that comes before any event."""
    monkeypatch.setattr(gated_conformance, "_SCOPE", 450)
    promise = Promise("locked", MS, early_ns=0, late_ns=0, purge_interval=0, threads=False)
    judged = play(GatedProgram(SCOPE), of_purgatory(promise, partial(_made, slip)))
    assert not judged.broken_off
    found = {name for name, one in judged.result.clauses.items() if one.violations}
    assert clause in found if clause else not found


TIMER = Description(
    0, "", "x", ("timer", "cancel", "gauge", "add-again", "failing"), (), tick_ns=MS, wheel_size=8, lanes=2,
    gates=("timer_fire", "step"),
)  # fmt: skip
PURGATORY = Description(
    0, "", "x", ("purgatory", "cancel-key", "force", "gauge", "failing"), (), tick_ns=MS, lanes=2,
    gates=("try_complete", "force_complete", "on_complete", "on_expiration", "timer_fire"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "description", "counts"),
    [("timer", TIMER, [535, 8_144]), ("purgatory", PURGATORY, [1_877, 24_975])],
)
def test_the_programs_of_two_callers_are_enumerated(
    part: Part, description: Description, counts: list[int]
) -> None:
    """Each once, those first in which calls of new kinds meet; and each is found again by its name. How many there are
    is a decision."""
    sizes = [
        (count, [*islice(some, 60)]) for count, some in crossed(part, scope_delays(description), description)
    ]
    assert [count for count, _ in sizes] == counts
    for _, programs in sizes:
        assert len({one.name for one in programs}) == len(programs)
        again = crossing_named(programs[-1].name, part, scope_delays(description), description)
        assert again == programs[-1]
    pairs = [frozenset(type(call) for lane in one.lanes for call in lane) for one in sizes[0][1]]
    assert len({*pairs[:20]}) > 5


@pytest.mark.parametrize(
    ("part", "description"),
    [
        ("timer", TIMER),
        ("timer", replace(TIMER, capabilities=("timer",), lanes=3)),
        ("purgatory", PURGATORY),
    ],
)
def test_a_random_program_can_be_played(part: Part, description: Description) -> None:
    """What it adds has a name of its own, where the subject takes none twice; and the same name is the same program."""
    able = replace(
        description, capabilities=tuple(one for one in description.capabilities if one != "add-again")
    )
    for number in range(200):
        drawn = [
            drawn_program(f"drawn-1-{number}", part, scope_delays(able), able, virtual=True) for _ in range(2)
        ]
        assert drawn[0] == drawn[1]
        assert drawn[0].ruled_out(able, virtual=True) is None
        assert len(drawn[0].lanes) > 1
