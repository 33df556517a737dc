"""What a trace of a user's log says about the log: which promises it can show, and what it lacks."""

from collections.abc import Mapping
from typing import Final

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
    "O5": ("completed", "timed_out", "timeout", "promises.late_ms"),
    "T1": ("timed_out", "timeout", "promises.early_ms"),
    "T2": ("timed_out", "timeout", "promises.late_ms"),
}
"""The entries of the mapping that a clause needs."""


def unknown_end(left_out: tuple[str, int]) -> str:
    """Why these requests of a log are left out, and the remedy: a word of their rows, and their number."""
    word, count = left_out
    return (
        f"requests left out ({count:,}): the mapping does not say whether {word!r} ends a request. In [words], "
        f"set gone = {word!r} if it says that a client gave up, or ignored = {word!r} if it ends no request"
    )
