"""Turns a recorded wire trace into one verdict for each clause.

A *row* is the judgment of one response by one clause: kept, broken, late or undecided. After a late or undecided row,
the scene is repeated (`name#2`). The *cause* of a row is the kind of violation that the row shows or tests for. The
*gap* of a row is the lateness that a broken broker would have. For example, a broker that forgets a request answers at
its time-out, so the gap is the time from the promised response to the time-out.

One broken row makes the clause VIOLATED. One late row makes the clause UNKNOWN. Two late rows make the clause VIOLATED
if they have one scene and one cause. A repetition counts as the same scene. If two late rows overlap in time, one pause
of the machine may explain both, so the two rows count as one.

A row is *slightly late* if the response was late by less than a quarter of the gap. A busy processor may cause such
rows, so they count only if late rows are frequent. Let L be the number of late rows of one scene and cause, and D the
number of decided rows of this cause in all scenes. If L is less than a tenth of D, the slightly late rows do not count.
If L is less than a quarter of D, they can make the clause VIOLATED, but not UNKNOWN. If one row of a cause shows that
the broker is busy (`Row.busy`), late rows of this cause never make the clause VIOLATED.

A clause is also UNKNOWN in these cases:

* All rows of a cause are undecided, or a scene of the clause did not end.
* A scene declares that it tests the clause (`Scene.asked`), and no row of this scene is decided.
* In one scene, more rows of a cause are *forgotten* than decided. A forgotten row is undecided because the machine was
  very slow, and its response was late by nearly the whole gap (`LOST_GAPS`), as if the broker had forgotten the
  request.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from purgatorio_spec.failure import Failure, failure_of
from purgatorio_spec.judge.result import Cause, ClauseResult, RunResult, accusing_nobody, verdict_of
from purgatorio_spec.trace.record import Header, Implementation
from purgatorio_spec.verdict import Verdict, Violation
from purgatorio_wire.clause.commit import committed
from purgatorio_wire.clause.consumer_group import consumer_groups
from purgatorio_wire.clause.coordinator import coordinated
from purgatorio_wire.clause.cut_connection import cut_connections, unread_answers
from purgatorio_wire.clause.exchange import about_all, answered_once, decodes, in_order, one_at_a_time
from purgatorio_wire.clause.fetch import at_followers, compacted, fetches, sessions, turns
from purgatorio_wire.clause.group_description import coordinators, described
from purgatorio_wire.clause.membership import coordinator_away, failed, memberships, refused_at_sight
from purgatorio_wire.clause.produce import back_in_sync, produces
from purgatorio_wire.clause.quota import quotas, quotas_described
from purgatorio_wire.clause.rebalance import rebalances
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.clause.share_group import shared
from purgatorio_wire.clause.static_member import static_members
from purgatorio_wire.clause.topic import (
    batches_told,
    deletes_records,
    done_in_time,
    elections,
    epochs_ended,
    epochs_told,
    offsets_listed,
    pages,
    settings_changed,
    settings_described,
    topics_come_and_go,
    topics_grow,
)
from purgatorio_wire.history.bound import Bounds, RowStatus
from purgatorio_wire.history.finding import Row, Rows
from purgatorio_wire.history.group import Group, groups
from purgatorio_wire.history.history import Scene
from purgatorio_wire.history.log import Topics
from purgatorio_wire.history.scenes import scenes
from purgatorio_wire.trace.file import WireTrace, read_trace
from purgatorio_wire.trace.record import DRAWN, PROFILE, WireEnd, WireEvent, WireHeader

FIRST: Final = "X1"
"""A request without a response explains what follows from it."""
LATE_ROWS_NEEDED: Final = 2
ROWS_TO_A_NEAR_ONE: Final = 10
"""Slightly late rows count for VIOLATED if at least one in this number of decided rows is late."""
ROWS_TO_A_DOUBT: Final = 4
"""Slightly late rows count for UNKNOWN if at least one in this number of decided rows is late."""
FAR_GAPS: Final = 0.25
"""A row that is late by less than this part of the gap is slightly late."""
LOST_GAPS: Final = 0.9
"""A forgotten request is late by the whole gap. In random scenes, which have thousands of rows, smaller lateness
does not count."""


def unmet(asked: set[tuple[str, str]], decided: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs in `asked` (a scene or clause, and a cause) that have no decided row. For the cause "", a decided row
    of any cause is enough."""
    held = list(decided)
    return sorted(asked - {*held, *((what, "") for what, _ in held)})


def counting(late: Iterable[Row], decided: int) -> list[Row]:
    """The late rows that count, among those of one clause, cause and scene. `decided`: the number of decided rows."""
    rows = list(late)
    return [row for row in rows if row.gaps >= FAR_GAPS or len(rows) * ROWS_TO_A_NEAR_ONE >= decided]


def repeats(late: Iterable[Row], decided: int) -> bool:
    """Whether at least LATE_ROWS_NEEDED late rows of one clause, cause and scene count and do not overlap in time."""
    apart, free_t = 0, -1
    for row in sorted(counting(late, decided), key=lambda one: one.late[1]):
        if row.late[0] > free_t:
            apart, free_t = apart + 1, row.late[1]
    return apart >= LATE_ROWS_NEEDED


@dataclass(frozen=True, slots=True)
class Wire:
    """The data for all scenes of a trace: the bounds, the offered versions, and the versions with a response."""

    bounds: Bounds
    offered: Mapping[str, tuple[int, int]]
    answered: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, header: WireHeader, events: Iterable[WireEvent]) -> Wire:
        control = [one for one in events if one.ev == "control"]
        answered = {
            (one.api, one.version)
            for one in events
            if one.ev == "answer" and one.api is not None and one.version is not None
        }
        return cls(Bounds.of(header.declared, control), header.versions, frozenset(answered))


Judge: TypeAlias = Callable[[Wire, Scene, Topics], Iterable[Row]]


def _of_groups(judge: Callable[[Group], Rows]) -> Judge:
    return lambda wire, scene, topics: (row for group in groups(scene, wire.bounds) for row in judge(group))


def _of_topics(judge: Callable[[Bounds, Scene, Topics], Rows]) -> Judge:
    return lambda wire, scene, topics: judge(wire.bounds, scene, topics)


def _of_bounds(judge: Callable[[Bounds, Scene], Rows]) -> Judge:
    return lambda wire, scene, topics: judge(wire.bounds, scene)


JUDGES: Final[tuple[tuple[str, Judge], ...]] = (
    ("X1", lambda wire, scene, topics: answered_once(wire.bounds, scene, wire.answered)),
    ("X2", lambda wire, scene, topics: in_order(scene)),
    ("X2", lambda wire, scene, topics: one_at_a_time(scene, topics)),
    ("X3", lambda wire, scene, topics: decodes(scene, wire.answered, dict(wire.offered))),
    ("X4", _of_topics(about_all)),
    ("F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 M1 D1 R1 R2 R3 R4", _of_topics(fetches)),
    ("F3", _of_topics(at_followers)),
    ("M1", lambda wire, scene, topics: compacted(scene)),
    ("F6", _of_bounds(sessions)),
    ("F7", lambda wire, scene, topics: turns(scene, topics)),
    ("F8 F10 M1 M2 M3 M4 M5 M6 M7 R5 R8", _of_topics(produces)),
    ("M4", _of_topics(back_in_sync)),
    ("A1 A2", _of_topics(topics_come_and_go)),
    ("A1", _of_topics(settings_described)),
    ("A1", _of_topics(pages)),
    ("A1", _of_topics(settings_changed)),
    ("A1 A2 A3 D1 E1 M1", _of_topics(done_in_time)),
    ("D1", _of_topics(deletes_records)),
    ("A3", _of_topics(topics_grow)),
    ("E1", _of_topics(elections)),
    ("L1 R4", _of_topics(offsets_listed)),
    ("L1", lambda wire, scene, topics: epochs_ended(scene, topics)),
    ("A1 L1 M1", _of_topics(epochs_told)),
    ("M1", _of_topics(batches_told)),
    ("R2 R5 R6 R8", _of_topics(coordinated)),
    ("S1 S2 S3 S4 S5 S6 S7 S8 S9", _of_topics(shared)),
    ("G1 G2 G3 G4 G5 G6 G7 G8", _of_groups(rebalances)),
    ("G0 G3 G7 G8 G9 G10 G12 R7", _of_groups(memberships)),
    ("G4 G8 G11", _of_groups(static_members)),
    ("G13", _of_groups(described)),
    ("G13", lambda wire, scene, topics: coordinators(scene)),
    ("G11 G13 G14 G15", _of_topics(consumer_groups)),
    ("G0 G9", _of_bounds(refused_at_sight)),
    ("G8 G10", lambda wire, scene, topics: coordinator_away(scene)),
    ("G4 G5 G8 G10 G12 G13 R7", lambda wire, scene, topics: failed(scene)),
    ("G12 R7", _of_topics(committed)),
    ("C1", _of_bounds(cut_connections)),
    ("C1", _of_bounds(unread_answers)),
    ("Q1", _of_bounds(quotas)),
    ("Q1", lambda wire, scene, topics: quotas_described(scene)),
)
"""The functions that judge a scene, each with the clauses of its rows."""


def judge_scene(wire: Wire, scene: Scene) -> list[Row]:
    """All rows of a scene. If a judging function raises, which is an error of Purgatorio, each of its clauses gets a
    `RowStatus.FAILED` row after the rows so far."""
    rows: list[Row] = []
    try:
        topics = Topics.of(scene.exchanges)
    except Exception as error:  # the other scenes are judged all the same
        return _failures(" ".join(clauses for clauses, _ in JUDGES), scene.name, error)
    for clauses, judge in JUDGES:
        try:
            rows.extend(judge(wire, scene, topics))
        except Exception as error:  # the other clauses are judged all the same
            rows.extend(_failures(clauses, scene.name, error))
    return rows


def _failures(clauses: str, what: str, error: Exception) -> list[Row]:
    why = failure_of(f"judging {what}", error)
    return [Row(clause, RowStatus.FAILED, failure=why) for clause in dict.fromkeys(clauses.split())]


@dataclass(slots=True)
class Tallied:
    """The totals of the rows of one clause. By scene and cause: the `late` rows, the number of `decided` rows, and the
    first reason of undecided rows (`open`)."""

    occasions: int = 0
    undecided: int = 0
    broken: list[Row] = field(default_factory=list)
    late: dict[tuple[str, str], list[Row]] = field(default_factory=lambda: defaultdict(list))
    decided: Counter[tuple[str, str]] = field(default_factory=Counter)
    open: dict[tuple[str, str], str] = field(default_factory=dict)
    doubts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of forgotten rows: undecided rows that are late by at least LOST_GAPS of the gap."""
    busy: dict[str, str] = field(default_factory=dict)
    """The causes whose late rows do not count because the broker is busy, each with the row's text that shows it."""
    asked: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of scene and cause that scenes declare to test."""
    failed: Failure | None = None
    """The first error of Purgatorio while judging the clause."""

    def add(self, scene: str, row: Row) -> None:
        """Count one row of a scene. `scene`: its name without the repetition. Random scenes do not declare the clauses
        that they test, so their undecided rows make no clause UNKNOWN."""
        if row.status is RowStatus.FAILED:
            self.failed = self.failed or row.failure
            return
        self.occasions += 1
        if row.busy:
            self.busy.setdefault(row.cause, row.seen)
        if scene == DRAWN and (
            row.status is RowStatus.UNDECIDED or (row.status is RowStatus.LATE and row.gaps < LOST_GAPS)
        ):
            self.undecided += 1
            return
        if row.status is RowStatus.UNDECIDED:
            self.undecided += 1
            if row.gaps >= LOST_GAPS:
                self.doubts[scene, row.cause] += 1
                self.open[scene, row.cause] = row.seen
            self.open.setdefault((scene, row.cause), row.seen)
            return
        self.decided[scene, row.cause] += 1
        if row.status is RowStatus.BROKEN:
            self.broken.append(row)
        elif row.status is RowStatus.LATE:
            self.late[scene, row.cause].append(row)

    def _asked(self, cause: str) -> int:
        """The number of decided rows of a cause in all scenes."""
        return sum(count for (_, other), count in self.decided.items() if other == cause)

    def violations(self) -> list[Row]:
        """The rows that violate the clause: the broken rows, and late rows that repeat."""
        late = [
            row
            for key, rows in self.late.items()
            if key[1] not in self.busy and repeats(rows, self._asked(key[1]))
            for row in rows
        ]
        return [*self.broken, *late]

    def result(
        self, clause: str, end: WireEnd, told: Callable[[Violation], None] | None = None, because: str = ""
    ) -> ClauseResult:
        """The verdict. `end` has the reasons for missing occasions. `told` is called with every violation. `because`: a
        violated clause that explains scenes which did not end."""
        causes: dict[str, Cause] = defaultdict(Cause)
        for row in self.violations():
            violation = Violation(clause, row.subject, row.cause, row.events, row.allowed, row.seen)
            causes[row.cause].add(violation)
            if told is not None:
                told(violation)
        if causes:
            return ClauseResult(clause, Verdict.VIOLATED, self.occasions, dict(causes))
        if self.failed:
            return ClauseResult(clause, Verdict.UNKNOWN, self.occasions, reason=str(self.failed))
        alone = [
            row
            for key, rows in self.late.items()
            for row in counting(rows, self._asked(key[1]))
            if row.gaps >= FAR_GAPS or len(rows) * ROWS_TO_A_DOUBT >= self._asked(key[1])
        ]
        if alone:
            row = alone[0]
            what = "one late response" if len(alone) == 1 else f"{len(alone)} late responses (here the first)"
            why = self.busy.get(row.cause)
            doubt = "did not repeat" if why is None else f"may be no violation ({why})"
            reason = f"{what}, which {doubt}: {row.subject}: {row.seen}, allowed {row.allowed}"
            return ClauseResult(clause, Verdict.UNKNOWN, self.occasions, reason=reason)
        waiting = [
            (key[0], why) for key, why in self.open.items()
            if not self._asked(key[1]) or self.doubts[key] > self.decided[key]
        ]  # fmt: skip
        if waiting:
            scene, why = waiting[0]
            reason = f"{self.undecided} of {self.occasions} occasions are undecided, such as in scene {scene}: {why}"
            return ClauseResult(clause, Verdict.UNKNOWN, self.occasions, reason=reason)
        left = end.lost.get(clause)
        if left is None and (questions := unmet(self.asked, self.decided)):
            scene, cause = questions[0]
            why = self.open.get((scene, cause)) or "it had no occasion, possibly because the machine was slow"
            left = f"scene {scene} decided nothing{f' about {cause}' if cause else ''}: {why}"
        if left is not None:
            reason = f"{left}{because}; to run it again: purgatorio wire HOST:PORT --only {clause}"
            return ClauseResult(clause, Verdict.UNKNOWN, self.occasions, reason=reason)
        if not self.occasions:
            reason = end.skipped.get(clause, "no scene gave an occasion")
            return ClauseResult(clause, Verdict.SKIPPED, reason=reason)
        unsaid = self.undecided + sum(len(rows) for rows in self.late.values())
        reason = f"{unsaid} of {self.occasions} occasions are undecided" if unsaid else ""
        return ClauseResult(clause, Verdict.PASS, self.occasions, reason=reason)


def tally(wire: Wire, played: Iterable[Scene]) -> dict[str, Tallied]:
    """The totals of the rows of all scenes, by clause."""
    tallies = {clause: Tallied() for clause in WIRE_CLAUSES}
    for scene in played:
        for row in judge_scene(wire, scene):
            tallies[row.clause].add(scene.base, row)
        for clause, cause in scene.asked:
            if clause in tallies:
                tallies[clause].asked.add((scene.base, cause))
    return tallies


def judge_trace(trace: WireTrace, told: Callable[[Violation], None] | None = None) -> RunResult:
    """The verdicts on a trace, in the format of `purgatorio check`. `told` is called with every violation."""
    header = trace.header
    problems = _problems(trace)
    if header is None:
        return RunResult(
            "?", trace.name, "?", PROFILE, Verdict.INVALID_TRACE, len(trace.events), {}, tuple(problems)
        )
    end_t = max((event.t for event in trace.events), default=0)
    wire = Wire.of(header, trace.events)
    tallies = tally(wire, scenes(trace.events, end_t))
    failures = dict.fromkeys(one.failed for one in tallies.values() if one.failed is not None)
    end = trace.end or WireEnd(len(trace.events))
    clauses = dict[str, ClauseResult]()
    because = ""
    for clause, tallied in tallies.items():
        clauses[clause] = tallied.result(clause, end, told, because)
        if clause == FIRST and clauses[clause].verdict is Verdict.VIOLATED:
            because = f", probably because {FIRST} is violated"
    clauses = dict(sorted(clauses.items(), key=lambda item: _shows_at(item[1])))
    if not trace.whole:
        clauses = {
            name: _not_passed(one, "the trace has no end record, or lacks records")
            for name, one in clauses.items()
        }
    if trace.broken_count:
        clauses = {name: accusing_nobody(one) for name, one in clauses.items()}
    verdict = Verdict.INVALID_TRACE if trace.broken_count else verdict_of(clauses.values())
    return RunResult(
        header.run, trace.name, subject_of(header), PROFILE, verdict, len(trace.events), clauses, tuple(problems),
        header=_as_header(header), quarantined=trace.broken_count, failures=tuple(failures),
    )  # fmt: skip


def _shows_at(one: ClauseResult) -> tuple[bool, float]:
    """The place of a clause in reports: missing responses, which explain other violations, then the other violations in
    the order in which they occur, then other verdicts."""
    events = [max(cause.examples[0].events) for cause in one.causes.values() if cause.examples]
    return one.clause != FIRST, min(events, default=float("inf"))


def judge_file(path: Path, told: Callable[[Violation], None] | None = None) -> tuple[WireTrace, RunResult]:
    """Read a trace and judge it. `told` is called with every violation."""
    trace = read_trace(path)
    return trace, judge_trace(trace, told)


def subject_of(header: WireHeader) -> str:
    name = header.broker.get("name")
    address = header.broker.get("address")
    return f"{name if isinstance(name, str) and name else 'broker'} at {address}"


def _as_header(header: WireHeader) -> Header:
    """The header in the format of other traces, for code that shows the constants of a run."""
    return Header(header.run, Implementation(subject_of(header), "", ""), PROFILE, params=header.params)


def _not_passed(one: ClauseResult, reason: str) -> ClauseResult:
    if one.verdict is not Verdict.PASS:
        return one
    return ClauseResult(one.clause, Verdict.UNKNOWN, one.occasions, reason=reason)


def _problems(trace: WireTrace) -> list[str]:
    problems: list[str] = []
    if trace.header is None:
        problems.append("no usable header: line 1 of a trace is its header, see docs/wire.md")
    if trace.broken_count:
        plural = "" if trace.broken_count == 1 else "s"
        problems.append(f"{trace.broken_count:,} broken line{plural}, first {trace.broken[0]}")
    if trace.cut is not None:
        problems.append(f"{trace.cut}: the part before is judged, and no clause is PASS")
    elif trace.end is None and trace.header is not None:
        problems.append("no end record: the recorder did not finish; no clause is PASS")
    if trace.end is not None and trace.end.dropped:
        problems.append(f"the recorder dropped {trace.end.dropped} record(s); run fewer scenes at one time")
    return problems
