"""Bugs that a client can feel, to be put into the broker behind the socket: what `purgatorio wire` must convict.

A text file a subject has its bugs as diffs; a module of the same name has those that need more than that.
`client_visible_mutant` has the ways to write one down.
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
"""By name, subject by subject."""
