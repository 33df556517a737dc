"""A profile: the set of clauses that a kind of subject (timer or purgatory) promises. `profiles.toml` lists them by id,
or by their `group` in `clauses.toml`. Other clauses are SKIPPED.

The constants of a subject (tick, early and late bound, purge interval) come from the header of the trace, and have no
defaults.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

CLAUSE_ENTRIES: Final[Mapping[str, Any]] = tomllib.loads(
    files(__package__).joinpath("clause", "clauses.toml").read_text("utf-8")
)
"""The declarations of the clauses, by id. `code` has the clauses that no trace can show."""

REAPER_PERIOD_NS: Final = 200_000_000
"""Kafka's reaper polls for at most this long, then purges if it must (`ExpiredOperationReaper`). So a purgatory is at
rest when no event happened for a whole period."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: its name, the clauses that it promises, and the meaning of its cancel, its check and its lock.

    `claimed_on_return`: a check of a ready operation returns only when the completion has begun (O4 in the form of
    `locked`). Otherwise the completion may begin after the return, but is not left to the time-out.
    `cancel_is_barrier`: after a successful cancel the task does not start, at any time (T4).
    """

    name: str
    clauses: frozenset[str]
    source: str
    claimed_on_return: bool = False
    completes_beside: bool = False
    """Its lock is held over try_complete alone: on_complete may overlap one (O6)."""
    cancel_is_barrier: bool = False
    counts_cancelled: bool = False
    """Its size counts cancelled tasks until the next tick, so it is exact only at rest (T5)."""
    answered_in_time: bool = False
    """Its time-out limits every answer: an answer that comes after the late bound breaks T2 too."""
    hands_over: bool = False
    """Each check brings one unit, for one of the waiting operations (a pool, a semaphore, a queue)."""
    counts_raced: bool = False
    """Until a bucket is flushed, its size counts tasks that were cancelled while they were moved (T5)."""


def _profile(name: str, said: Mapping[str, str]) -> Profile:
    named = said["clauses"].split()
    clauses = frozenset(id for id, one in CLAUSE_ENTRIES.items() if id in named or one.get("group") in named)
    return Profile(name, clauses, said["source"], **dict.fromkeys(said.get("also", "").split(), True))


PROFILES: Final[dict[str, Profile]] = {
    name: _profile(name, said)
    for name, said in tomllib.loads(files(__package__).joinpath("profiles.toml").read_text("utf-8")).items()
}
"""By name."""
