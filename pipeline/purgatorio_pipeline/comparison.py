"""Compares two checks, before and after a change. The result has newly broken clauses, mended clauses, and clauses that
are no longer judged.

Two runs with the same name are a pair. If each side has a single run, the two runs are a pair with any names. Runs on
one side only are listed. A clause is `mended` only if it passes with occasions (cases that could break it). A mended
race may still exist, because a run in real time is only a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from purgatorio_pipeline.documents import fields_of
from purgatorio_pipeline.judging import Judged
from purgatorio_spec.judge.result import ClauseResult, RunResult, no_silent_pass
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.selection import wordings
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

Json = dict[str, object]


class Change(StrEnum):
    """The change of a clause. The worst change is the first."""

    BROKEN = "broken"
    """VIOLATED, but not before; or VIOLATED by a new cause."""
    LOST = "lost"
    """Judged before. Now UNKNOWN, SKIPPED, without an occasion, or in an invalid trace."""
    STILL_BROKEN = "still broken"
    """VIOLATED on both sides, without a new cause."""
    MENDED = "mended"
    """VIOLATED before. Now PASS with occasions."""
    GAINED = "gained"
    """Not judged before. Now PASS with occasions."""
    SAME = "same"


@dataclass(frozen=True, slots=True)
class ClauseChange:
    """One clause in a pair of runs. A side is None if its trace is invalid. Causes are by name."""

    clause: str
    before: ClauseResult | None
    after: ClauseResult | None

    @property
    def new_causes(self) -> list[str]:
        return [name for name in _causes(self.after) if name not in _causes(self.before)]

    @property
    def gone_causes(self) -> list[str]:
        return [name for name in _causes(self.before) if name not in _causes(self.after)]

    @property
    def change(self) -> Change:
        was, now = _state(self.before), _state(self.after)
        if now is Verdict.VIOLATED:
            return Change.BROKEN if was is not Verdict.VIOLATED or self.new_causes else Change.STILL_BROKEN
        if now is Verdict.PASS:
            kept = {Verdict.PASS: Change.SAME, Verdict.VIOLATED: Change.MENDED}
            return kept.get(was, Change.GAINED) if was is not None else Change.GAINED
        return Change.SAME if was is None else Change.LOST

    def as_json(self) -> Json:
        before, after = (
            side and fields_of(side, "verdict violations occasions") for side in (self.before, self.after)
        )
        return fields_of(self, "change before after new_causes gone_causes", before=before, after=after)


def _causes(clause: ClauseResult | None) -> Sequence[str]:
    return [] if clause is None else list(clause.causes)


def _state(clause: ClauseResult | None) -> Verdict | None:
    """VIOLATED, or PASS with occasions. None for all other results."""
    if clause is None or clause.verdict not in (Verdict.PASS, Verdict.VIOLATED):
        return None
    return clause.verdict if clause.violations or clause.occasions else None


@dataclass(frozen=True, slots=True)
class RunPair:
    """A pair of runs, with the lateness of each (None without counted tasks)."""

    before: RunResult
    after: RunResult
    lateness_before: Lateness | None = None
    lateness_after: Lateness | None = None

    @property
    def clauses(self) -> list[ClauseChange]:
        """Every clause, in the order of the registry. A clause without an occasion is UNKNOWN, as `check` prints it. An
        invalid trace has no clauses."""
        before, after = _clauses(self.before), _clauses(self.after)
        return [
            ClauseChange(name, before.get(name), after.get(name))
            for name in wordings((self.before.profile, self.after.profile))
        ]

    @property
    def changed(self) -> list[ClauseChange]:
        return [one for one in self.clauses if one.change is not Change.SAME]

    def as_json(self) -> Json:
        """The public JSON format. It has only the changed clauses."""
        return {
            "run": self.after.run,
            "before": _run_json(self.before),
            "after": _run_json(self.after),
            "clauses": {one.clause: one.as_json() for one in self.changed},
            "lateness_ns": {
                "before": _lateness_json(self.lateness_before),
                "after": _lateness_json(self.lateness_after),
            },
        }


def _clauses(run: RunResult) -> Mapping[str, ClauseResult]:
    return {} if run.verdict is Verdict.INVALID_TRACE else no_silent_pass(run).clauses


def _run_json(run: RunResult) -> Json:
    return fields_of(run, "run file subject verdict")


def _lateness_json(one: Lateness | None) -> Json | None:
    if one is None:
        return None
    return {"tasks": one.count, "early": one.early, **one.figures_ns}


@dataclass(frozen=True, slots=True)
class Comparison:
    pairs: tuple[RunPair, ...]
    only_before: tuple[RunResult, ...]
    only_after: tuple[RunResult, ...]

    def changes(self, change: Change) -> Iterator[tuple[RunPair, ClauseChange]]:
        for pair in self.pairs:
            for one in pair.clauses:
                if one.change is change:
                    yield pair, one

    def changed(self) -> list[tuple[Change, RunPair, ClauseChange]]:
        """The changed clauses of all pairs. The worst change is the first."""
        changes = [change for change in Change if change is not Change.SAME]
        return [(change, *one) for change in changes for one in self.changes(change)]

    def counted(self) -> str:
        """The number of clauses for each change, in words. "" without changes."""
        counts = ((change, sum(1 for _ in self.changes(change))) for change in Change)
        return ", ".join(f"{count:,} {change}" for change, count in counts if count)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the change: VIOLATED if a clause is newly broken, INVALID_TRACE if a later trace is invalid,
        UNKNOWN if a clause is no longer judged or an earlier trace is invalid, else PASS."""
        new = {run.verdict for run in self.only_after}
        if Verdict.VIOLATED in new or next(self.changes(Change.BROKEN), None) is not None:
            return Verdict.VIOLATED
        if Verdict.INVALID_TRACE in new | {pair.after.verdict for pair in self.pairs}:
            return Verdict.INVALID_TRACE
        nothing = not self.pairs and not self.only_after
        return Verdict.UNKNOWN if nothing or self._not_compared or Verdict.UNKNOWN in new else Verdict.PASS

    @property
    def _not_compared(self) -> str:
        """The reason why the sides cannot be compared; empty if they can."""
        if any(pair.before.verdict is Verdict.INVALID_TRACE for pair in self.pairs):
            return "a trace of BEFORE is invalid"
        if self.only_before:
            return "a run of BEFORE is not in AFTER"
        return "a clause that was judged before is UNKNOWN now" if any(self.changes(Change.LOST)) else ""

    @property
    def meaning(self) -> str:
        return {
            Verdict.PASS: "nothing got worse",
            Verdict.VIOLATED: "something is newly broken",
            Verdict.INVALID_TRACE: "a trace of AFTER is invalid",
        }.get(self.verdict, self._not_compared or "a run that is only in AFTER is UNKNOWN")

    def invalid(self) -> list[RunResult]:
        """The invalid traces of both sides."""
        runs = [
            *self.only_before,
            *self.only_after,
            *(run for one in self.pairs for run in (one.before, one.after)),
        ]
        return [run for run in runs if run.verdict is Verdict.INVALID_TRACE]

    @property
    def exit_status(self) -> int:
        """0: no change for the worse. 1: a clause is newly broken. 2: a trace is invalid. 3: a clause is lost."""
        return EXIT_STATUS[self.verdict]

    def as_json(self) -> Json:
        return {
            "kind": "compare",
            "verdict": str(self.verdict),
            "pairs": [pair.as_json() for pair in self.pairs],
            "only_before": [_run_json(run) for run in self.only_before],
            "only_after": [_run_json(run) for run in self.only_after],
        }


def compare(before: Judged, after: Judged) -> Comparison:
    """Pair the runs of two checks. If several runs of one side have one name, the first in the order of files is
    paired."""
    first, second = list(before.result.runs), list(after.result.runs)
    if len(first) == len(second) == 1:
        return Comparison((_pair(first[0], second[0], before, after),), (), ())
    left = {run.run: run for run in reversed(first)}
    pairs: list[RunPair] = []
    unpaired: list[RunResult] = []
    for run in second:
        partner = left.pop(run.run, None)
        if partner is None:
            unpaired.append(run)
        else:
            pairs.append(_pair(partner, run, before, after))
    paired = {id(pair.before) for pair in pairs}
    return Comparison(tuple(pairs), tuple(run for run in first if id(run) not in paired), tuple(unpaired))


def _pair(one: RunResult, other: RunResult, before: Judged, after: Judged) -> RunPair:
    return RunPair(one, other, _lateness(one, before), _lateness(other, after))


def _lateness(run: RunResult, judged: Judged) -> Lateness | None:
    return next((one for one in judged.lateness if one.run == run.run), None)
