"""What an outcome is worth; apart from the scenarios, for who only reads results."""

from enum import StrEnum


class Grade(StrEnum):
    """Acceptable: also seen when the tasks run one after the other, in some order. Interesting: breaks nothing, and
    only an interleaving gives it. Forbidden: breaks a clause, the scenario's own look, or a structure. Unknown: none of
    these can be said."""

    ACCEPTABLE = "acceptable"
    INTERESTING = "interesting"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
