"""The clauses under their ids: sentence, what a trace must record for them, and the functions that judge.

A clause function is pure: it gets the run's constants and one part of a history, and returns a `Judgement`. The ids
are public interface; `purgatorio_spec.clause.public` has them all, those that no trace can show among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from purgatorio_spec.clause import answer, completion, gauge, limbo, lost, timer
from purgatorio_spec.history.check import CheckCall
from purgatorio_spec.history.operation import OperationHistory
from purgatorio_spec.history.reading import Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import Judgement

OperationJudge: TypeAlias = Callable[[Run, OperationHistory], Judgement]
CheckJudge: TypeAlias = Callable[[Run, CheckCall], Judgement]
ReadingJudge: TypeAlias = Callable[[Run, Reading], Judgement]


@dataclass(frozen=True, slots=True)
class Clause:
    """A promise.

    `records`: the functions that a trace must record (`a|b`: one of them). `constants`: what its header must give.
    `needs_whole`: without an end record, or with dropped records, the clause cannot PASS.
    """

    id: str
    promise: str
    records: tuple[str, ...]
    constants: tuple[str, ...] = ()
    of_operation: OperationJudge | None = None
    of_check: CheckJudge | None = None
    of_reading: ReadingJudge | None = None
    needs_whole: bool = False

    def skipped(self, run: Run) -> str | None:
        """Why it is not judged for this run, or None if it is."""
        if self.id not in run.profile.clauses:
            return f"profile {run.profile.name} does not promise it"
        missing = [names for names in self.records if run.recorded.isdisjoint(names.split("|"))]
        if missing:
            return f"the trace does not record {', '.join(missing).replace('|', ' or ')}"
        absent = [name for name in self.constants if getattr(run, name) is None]
        if absent:
            return f"the header does not give {', '.join(absent)}"
        return None


CLAUSES: Final[dict[str, Clause]] = {
    clause.id: clause
    for clause in (
        Clause(
            "O1",
            "on_complete starts at most once; force_complete returns true to exactly one caller, "
            "and that caller's call contains it",
            ("force_complete", "on_complete"),
            of_operation=completion.once,
        ),
        Clause(
            "O2",
            "a cause: on_complete only inside a force_complete; try_complete returns true only if the operation "
            "could have been ready",
            ("force_complete", "on_complete"),
            of_operation=completion.caused,
        ),
        Clause(
            "O3",
            "on_expiration at most once, only after the on_complete that the expiry itself caused",
            ("on_expiration", "on_complete", "force_complete"),
            of_operation=completion.expiration_after_completion,
        ),
        Clause(
            "O4",
            "no lost completion: a check that starts after the operation is ready leads to its completion, "
            "never to its time-out",
            ("ready", "check_and_complete", "try_complete_else_watch", "try_complete", "force_complete"),
            of_operation=lost.no_lost_completion,
        ),
        Clause(
            "O5",
            "nothing stays in limbo: at the end every operation with a time-out is completed, "
            "unless cancelled by key or shut down",
            ("try_complete_else_watch", "force_complete"),
            of_operation=limbo.nothing_in_limbo,
            needs_whole=True,
        ),
        Clause(
            "O6",
            "try_complete and on_complete of one operation never overlap",
            ("try_complete", "on_complete"),
            of_operation=completion.no_overlap,
        ),
        Clause(
            "O7",
            "the answers: try_complete_else_watch is true iff this call completed it; "
            "check_and_complete counts exactly what it completed",
            ("try_complete_else_watch", "check_and_complete", "try_complete", "force_complete"),
            of_operation=answer.registration_and_try,
            of_check=answer.check_counts,
        ),
        Clause(
            "P1",
            "completed operations leave: at quiescence the watched entries are at most "
            "(purge interval + operations still live) x the most keys of one operation",
            ("gauge|quiesce", "try_complete_else_watch", "force_complete"),
            ("purge_interval",),
            of_reading=gauge.garbage_is_bounded,
            needs_whole=True,
        ),
        Clause(
            "P2",
            "the gauges PurgatorySize and NumDelayedOperations bound the truth",
            ("gauge|quiesce", "try_complete_else_watch", "force_complete"),
            of_reading=gauge.gauges_bound_the_truth,
        ),
        Clause(
            "T1",
            "not early: a task fires no earlier than its deadline, less the early bound of its tick",
            ("timer_add", "timer_fire"),
            ("early_ns",),
            of_operation=timer.not_early,
        ),
        Clause(
            "T2",
            "not late: a task fires within the lateness that the header declares",
            ("timer_add", "timer_fire"),
            ("late_ns",),
            of_operation=timer.not_late,
        ),
        Clause(
            "T3",
            "fires at most once; without cancel exactly once",
            ("timer_add", "timer_fire", "timer_cancel"),
            of_operation=timer.exactly_once,
            needs_whole=True,
        ),
        Clause(
            "T4",
            "a task that was cancelled, or whose operation was completed other than by this very expiry, "
            "before its deadline does not fire",
            ("timer_add", "timer_fire"),
            ("early_ns",),
            of_operation=timer.cancelled_does_not_fire,
        ),
        Clause(
            "T5",
            "size() is exact at quiescence and never negative",
            ("timer_add", "timer_fire", "timer_cancel", "gauge|quiesce"),
            ("tick_ns",),
            of_reading=gauge.size_is_exact,
        ),
    )
}
"""Every clause that is judged from a trace, by id."""
