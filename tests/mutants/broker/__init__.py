"""Mutants of the project's own broker that change its responses. `purgatorio wire` must find each of them.

A text file has the mutants of one subject as diffs. A module of the same name has the mutants that need code.
`client_visible_mutant` has the functions that define a mutant.
"""

from collections.abc import Mapping
from typing import Final

from mutants.broker import (
    appends,
    committed_offsets,
    connections,
    fetch_sessions,
    fetches,
    group_joins,
    group_members,
    group_rebalances,
    group_syncs,
    log_bounds,
    share_groups,
    static_members,
    topics,
    transactions,
    waiting,
)
from mutants.broker.client_visible_mutant import FeltMutant, told

_ALL: Final = (
    *connections.MUTANTS, *waiting.MUTANTS, *appends.MUTANTS, *fetches.MUTANTS, *fetch_sessions.MUTANTS,
    *log_bounds.MUTANTS, *topics.MUTANTS, *group_joins.MUTANTS, *group_rebalances.MUTANTS, *group_syncs.MUTANTS,
    *group_members.MUTANTS, *static_members.MUTANTS, *committed_offsets.MUTANTS, *transactions.MUTANTS,
    *share_groups.MUTANTS, *told("consumer_groups"),
)  # fmt: skip

MUTANTS: Final[Mapping[str, FeltMutant]] = {mutant.name: mutant for mutant in _ALL}
"""By name, in the order of the subjects."""
