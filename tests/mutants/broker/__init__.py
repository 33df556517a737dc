"""Bugs that a client can feel, to be put into the broker behind the socket: what `purgatorio wire` must convict.

Each is a diff, in the text file of its subject; `client_visible_mutant` says what is written below its name.
"""

from collections.abc import Mapping
from typing import Final

from mutants.broker.client_visible_mutant import FeltMutant, told

SUBJECTS: Final = (
    "connections", "waiting", "appends", "fetches", "fetch_sessions", "log_bounds", "topics", "group_joins",
    "group_rebalances", "group_syncs", "group_members", "static_members", "committed_offsets", "transactions",
    "share_groups", "consumer_groups",
)  # fmt: skip

MUTANTS: Final[Mapping[str, FeltMutant]] = {
    mutant.name: mutant for subject in SUBJECTS for mutant in told(subject)
}
"""By name, subject by subject."""
