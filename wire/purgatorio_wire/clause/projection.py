"""Makes a trace of a purgatory from a wire trace: each waiting request becomes an operation. Then the usual code
judges O1, O4, O5, T1 and T2.

    a request    registers, with its partitions as keys and max_wait (or its time-out) as its delay
    an append    makes it `ready` between its sending and its acknowledgement + slack, when a check of the key begins
    an answer    completes it; by its expiry where it came at max_wait, or without what was waited for
    none         leaves it in limbo; where it was not watched for long enough, it was taken out

Times and bounds allow for delays of the machine, and waits that are too short are left out. So if the broker's
purgatory keeps its clauses, the new trace keeps them too. Some violations are not visible, because the inside of an
operation is not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.history.run import run_of
from purgatorio_spec.judge.context import run_facts
from purgatorio_spec.judge.rowwise import judge_run
from purgatorio_spec.judge.tally import RunTally
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.columns import event_batch
from purgatorio_spec.trace.record import Event, Header, Implementation, Phase, TimerConstants
from purgatorio_spec.verdict import Violation
from purgatorio_wire.clause.exchange import PATIENCE_MS
from purgatorio_wire.clause.fetch import FORGOTTEN_NS, waits
from purgatorio_wire.history.bound import EARLY_NS, GAPS_IN_SLACK, MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row, after, said
from purgatorio_wire.history.history import END_OF_TIME, Exchange, Scene, integer, items
from purgatorio_wire.history.log import Topics
from purgatorio_wire.trace.record import WireHeader

PROFILE: Final = PROFILES["wire-waits"]
PROJECTED: Final = tuple(clause for clause in CLAUSES if clause in PROFILE.clauses)
"""The clauses that are judged of the projection."""
RECORDED: Final = (
    "try_complete_else_watch", "check_and_complete", "force_complete", "try_complete", "on_complete", "ready",
    "timer_add", "timer_fire", "cancelled",
)  # fmt: skip
TIMED_OUT: Final = 7
LATE: Final = frozenset({"O4", "T2"})
"""A row of these is one of time: it takes company."""


@dataclass(slots=True)
class Projection:
    """The events, and the exchange of each operation with the name of its scene."""

    header: Header
    events: list[Event]
    waits: dict[str, tuple[str, Exchange]]

    def rows(self) -> tuple[RunTally, list[tuple[str, Row]]]:
        """What the clauses came to, and each violation as a row of its scene."""
        table = pa.Table.from_batches([event_batch(enumerate(self.events))])
        broken: list[Violation] = []
        run = run_of(self.header, run_facts(table, self.header), whole=True)
        tally = judge_run(run, table, tally=RunTally(told=broken.append))
        return tally, [self._row(one) for one in broken]

    def _row(self, violation: Violation) -> tuple[str, Row]:
        scene, one = self.waits[violation.subject]
        due_t = one.t + one.wait_ms * MS
        end_t = one.watched_t if one.answer_t is None else one.answer_t
        seen = "never answered" if one.answer_t is None else f"answered after {after(end_t, one.t)}"
        seen += f", {1 + len(one.again)} times" if one.again else ""
        held = RowStatus.LATE if violation.clause in LATE else RowStatus.BROKEN
        allowed = f"{CLAUSES[violation.clause].promise} (a wait of {one.wait_ms} ms)"
        gaps = 1.0 if violation.clause == "O4" else (end_t - due_t) / max(one.wait_ms * MS, FORGOTTEN_NS)
        return scene, Row(
            violation.clause,
            held,
            violation.cause,
            said(one),
            one.events,
            allowed,
            seen,
            (due_t, end_t),
            gaps,
        )


@dataclass(slots=True)
class _Writer:
    """Events in any order, by a number of their own, until all are put in the order of time."""

    made: list[tuple[int, dict[str, object]]] = field(default_factory=list)

    def add(self, t: int, th: str, ph: Phase, f: str, **more: object) -> int:
        self.made.append((t, {"th": th, "t": t, "ph": ph, "f": f, **more}))
        return len(self.made) - 1

    def events(self) -> list[Event]:
        order = sorted(range(len(self.made)), key=lambda number: (self.made[number][0], number))
        place = {number: i for i, number in enumerate(order)}
        out: list[Event] = []
        for i, number in enumerate(order):
            told = self.made[number][1]
            c = told.get("c")
            placed = {**told, "c": place[c]} if isinstance(c, int) else told
            out.append(Event(i=i, **placed))  # type: ignore[arg-type] # the fields by name, as they were added
        return out


@dataclass(frozen=True, slots=True)
class _Wait:
    """One wait: when it can be and when it surely is ready, and whether its answer has what it waited for."""

    one: Exchange
    keys: Sequence[str]
    ready_from: int = END_OF_TIME
    ready_by: int = END_OF_TIME
    enough: bool = True


def _waits(bounds: Bounds, scene: Scene, topics: Topics) -> Iterator[_Wait]:
    for fetch in waits(bounds, scene, topics):
        if fetch.one.wait_ms > 0:
            ready_from, ready_by = fetch.ready()
            keys = [f"{a.part.topic}-{a.part.number}" for a in fetch.asked]
            enough = fetch.had_enough or ready_from <= fetch.until
            yield _Wait(fetch.one, keys, ready_from, ready_by, enough)
    for one in scene.of("produce"):
        # What an append waits for is not seen; only that its time-out came, as its answer says.
        errors = [
            integer(part, "error_code")
            for topic in items(one.got, "responses")
            for part in items(topic, "partition_responses")
        ]
        if (
            integer(one.body, "acks") == -1
            and one.wait_ms > 0
            and not one.behind
            and max(errors, default=0) == TIMED_OUT
        ):
            yield _Wait(one, ["appended"], enough=False)


def projected(header: WireHeader, bounds: Bounds, played: Iterable[Scene], end_t: int) -> Projection:
    """The waits of these scenes. `end_t`: the end of the record."""
    declared_ns = header.declared.late_ms * MS
    late_ns = declared_ns + bounds.added_ns()
    writer, found = _Writer(), dict[str, tuple[str, Exchange]]()
    for scene in played:
        for wait in _waits(bounds, scene, Topics.of(scene.exchanges)):
            slack_ns = declared_ns + bounds.added_ns(wait.one.t, wait.one.until_t)
            if _is_written(writer, wait, slack_ns, late_ns):
                found[_name(wait.one)] = (scene.base, wait.one)
    closing = writer.add(end_t, "end of the record", "call", "check_and_complete", keys=("nobody's",))
    writer.add(end_t, "end of the record", "ret", "check_and_complete", c=closing, out=0)
    timer = TimerConstants(early_ns=EARLY_NS, late_ns=late_ns)
    subject = Implementation(str(header.broker.get("address", "")), "", "")
    made = Header(header.run, subject, PROFILE.name, timer, recorded=RECORDED, params=header.params)
    return Projection(made, writer.events(), found)


def _name(one: Exchange) -> str:
    return f"{one.api}-{one.i}"


def _is_written(out: _Writer, wait: _Wait, slack_ns: int, late_ns: int) -> bool:
    """Write one operation, unless it is one that was late and too short to be judged on a machine so late. `slack_ns`:
    what the machine may have added to this wait; `late_ns`: to any."""
    one, deadline = wait.one, wait.one.t + wait.one.wait_ms * MS
    name, answer_t = _name(one), one.answer_t
    wide = late_ns * GAPS_IN_SLACK > max(one.wait_ms * MS, FORGOTTEN_NS)
    if wide and (answer_t is None or answer_t > deadline + late_ns):
        return False
    registering = out.add(
        one.t,
        name,
        "call",
        "try_complete_else_watch",
        id=name,
        keys=tuple(wait.keys),
        delay_ns=one.wait_ms * MS,
    )
    adding = out.add(
        one.t, name, "call", "timer_add", id=name, delay_ns=one.wait_ms * MS, deadline_t=deadline
    )
    out.add(one.t, name, "ret", "timer_add", id=name, c=adding)
    out.add(one.t, name, "ret", "try_complete_else_watch", id=name, c=registering, out=0)
    ready_t = max(wait.ready_by, one.t) + slack_ns
    if ready_t + (GAPS_IN_SLACK - 1) * slack_ns < deadline:
        beside = f"{name} is ready"
        out.add(ready_t, beside, "at", "ready", id=name, t_call=max(wait.ready_from, one.t))
        checking = out.add(ready_t, beside, "call", "check_and_complete", keys=(wait.keys[0],))
        out.add(ready_t, beside, "ret", "check_and_complete", c=checking, out=0)
    if answer_t is None:
        if one.watched_t < deadline + PATIENCE_MS * MS + late_ns:
            out.add(one.watched_t, name, "at", "cancelled", id=name)
        return True
    expired = answer_t >= deadline - EARLY_NS or not wait.enough
    for at, t in enumerate((answer_t, *(more.t for more in one.again))):
        firing = out.add(t, name, "call", "timer_fire", id=name) if expired and not at else None
        forcing = out.add(t, name, "call", "force_complete", id=name)
        done = out.add(t, name, "call", "on_complete", id=name)
        out.add(t, name, "ret", "on_complete", id=name, c=done)
        out.add(t, name, "ret", "force_complete", id=name, c=forcing, out=1)
        if firing is not None:
            out.add(t, name, "ret", "timer_fire", id=name, c=firing)
    return True
