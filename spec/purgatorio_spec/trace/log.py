"""What a trace of a user's log says about the log: which promises it can show, and what it lacks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from purgatorio_spec.trace.record import Header

PROFILE: Final = "request-log"
LOG_CLAUSES: Final[Mapping[str, str]] = {
    "O1": "answered once",
    "O2": "answered only after an event of its key",
    "O4": "answered in time by an event of its key",
    "O5": "answered or timed out in the end",
    "T1": "not timed out too early",
    "T2": "not timed out, or answered, too late",
}
"""The promises that a log can show, by clause."""

NEEDED_ENTRIES: Final[Mapping[str, tuple[str, ...]]] = {
    "O2": ("completed", "event", "promises.answer_early_ms"),
    "O4": ("completed", "event", "promises.answer_ms"),
    "O5": ("enqueued", "completed", "timed_out", "timeout", "promises.late_ms"),
    "T1": ("timed_out", "timeout", "promises.early_ms"),
    "T2": ("timed_out", "timeout", "promises.late_ms"),
}
"""The entries of the mapping that a clause needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What `purgatorio convert --from-log` has found in a log, in the `params` of the trace's header.

    `lacking`: by clause, the entries of the mapping that the clause needs and the mapping does not name. `time_zone`:
    of the log's owner, a name or an offset such as +0100. `answer_ns`: the promised time between an event of a key and
    the answer. `unknown_ends`: by word that the mapping does not know, the number of requests that only this word may
    have ended. `beyond_events`: the number of requests from a time without events of keys. `files`: if there are
    several, the number of rows before each file, and its name."""

    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    time_zone: str = "UTC"
    answer_ns: int = 0
    unknown_ends: Mapping[str, int] = field(default_factory=dict)
    beyond_events: int = 0
    files: Sequence[tuple[int, str]] = ()

    def params(self) -> dict[str, object]:
        """The `params` of a header. `log_facts` reads them."""
        return {name: value for name, value in asdict(self).items() if value}

    def row(self, number: int) -> str:
        """The name of a row of the log."""
        before, file = next((one for one in reversed(self.files) if one[0] < number), (0, ""))
        return f"row {number - before:,}{file and f' of {file}'}"


def log_facts(header: Header | None) -> LogFacts:
    """The facts of a trace from a log. Of another trace, or instead of values of another type, the defaults."""
    params = header.params if header is not None and header.profile == PROFILE else {}
    zone, lacking, ends = params.get("time_zone"), params.get("lacking"), params.get("unknown_ends")
    listed = (
        {clause: lacking.get(clause) for clause in NEEDED_ENTRIES} if isinstance(lacking, Mapping) else {}
    )
    return LogFacts(
        lacking={
            clause: known
            for clause, names in listed.items()
            if isinstance(names, list)
            and (known := [name for name in NEEDED_ENTRIES[clause] if name in names])
        },
        time_zone=zone if isinstance(zone, str) else "UTC",
        answer_ns=_number(params, "answer_ns"),
        unknown_ends={word: count for word, count in ends.items() if isinstance(count, int)}
        if isinstance(ends, Mapping)
        else {},
        beyond_events=_number(params, "beyond_events"),
        files=_files(params.get("files")),
    )


def _files(found: object) -> list[tuple[int, str]]:
    files: list[tuple[int, str]] = []
    for one in found if isinstance(found, list) else ():
        match one:
            case [int(before), str(name)]:
                files.append((before, name))
    return files


def _number(params: Mapping[str, object], name: str) -> int:
    found = params.get(name)
    return found if isinstance(found, int) else 0


def unknown_end(left_out: tuple[str, int]) -> str:
    """Why these requests of a log are left out, and the remedy: a word of their rows, and their number."""
    word, count = left_out
    return (
        f"requests left out ({count:,}): the mapping does not say whether {word!r} ends a request. In [words], write "
        f"{word!r} for completed, timed_out or gone (a client gave up), or for ignored if it ends no request"
    )
