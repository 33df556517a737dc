"""The verdicts, such as PASS, and the description of a violation."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """The result for a clause, a run or a whole check."""

    PASS = "PASS"
    VIOLATED = "VIOLATED"
    UNKNOWN = "UNKNOWN"
    """A limit was reached or records are missing, so the clause cannot be decided."""
    SKIPPED = "SKIPPED"
    """The profile does not promise the clause, or the trace does not record the needed data."""
    INVALID_TRACE = "INVALID_TRACE"


EXIT_STATUS: Final[dict[Verdict, int]] = {
    Verdict.PASS: 0,
    Verdict.VIOLATED: 1,
    Verdict.INVALID_TRACE: 2,
    Verdict.UNKNOWN: 3,
    Verdict.SKIPPED: 3,
}

_WORST_FIRST: Final = (Verdict.VIOLATED, Verdict.INVALID_TRACE, Verdict.UNKNOWN, Verdict.PASS)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst verdict of these parts: VIOLATED if a part is VIOLATED, SKIPPED only if all parts are SKIPPED."""
    present = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in present), Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a clause by an operation, task, call or reading (`subject`).

    `cause`: a short name for the kind of violation. All violations of one cause are reported once, with a count.
    `events`: the `i` of the events that show the violation. The shortest part of the run that shows it ends at the
    largest `i`. `allowed` and `seen`: texts for people.
    """

    clause: str
    subject: str
    cause: str
    events: tuple[int, ...]
    allowed: str
    seen: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a clause about one part of a run.

    `occasions`: the number of cases here that could break the clause (0 or 1). `undecided`: the reason why the
    judgement cannot be decided, or empty.
    """

    occasions: int = 0
    violation: Violation | None = None
    undecided: str = ""


NO_OCCASION: Final = Judgement()
KEPT: Final = Judgement(1)
NO_TIME_OUTS: Final = Judgement(
    1, undecided="because the mapping of the log does not name timed_out: the request may have timed out"
)
WANT_OF_RECORDS: Final = Judgement(1, undecided="because records are missing")
STILL_OPEN: Final = Judgement(1, undecided="because a call that may have done it had not returned")
NO_BOUND: Final = Judgement(
    1,
    undecided=(
        "because they were due before the end, and no late bound is known: write timer.late_ns "
        "into the header, or record quiesce"
    ),
)
