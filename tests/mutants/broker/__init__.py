"""Mutants of the project's own broker that clients can see. `purgatorio wire` must find each of them.

Each mutant is a diff in the text file of its subject. `client_visible_mutant` explains the line below its name.
"""

from collections.abc import Mapping
from typing import Final

from mutants.broker.client_visible_mutant import VisibleMutant, mutants_of

SUBJECTS: Final = (
    "connections", "waiting", "appends", "fetches", "fetch_sessions", "log_bounds", "topics", "group_joins",
    "group_rebalances", "group_syncs", "group_members", "static_members", "committed_offsets", "transactions",
    "share_groups", "consumer_groups",
)  # fmt: skip

MUTANTS: Final[Mapping[str, VisibleMutant]] = {
    mutant.name: mutant for subject in SUBJECTS for mutant in mutants_of(subject)
}
"""By name, in the order of the subjects."""
