"""Mutants of share groups: waits, acquisition locks, acknowledgements and sessions (S1 to S9)."""

from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio_broker.network.shares import Shares
from purgatorio_broker.share_partition import SharePartition
from purgatorio_stress.mutant.patch import Patch

MUTANTS: Final = (
    *told("share_groups"),
    felt("share-append-wakes-nobody", "an append completes no waiting ShareFetch", "S2",
         Patch(Shares, "_moved", lambda self, partition: 0)),
    felt("share-end-frees-nothing", "the end of a share session releases no records", "S8",
         Patch(SharePartition, "release_member", lambda self, member: 0)),
    felt("share-cut-unseen", "a share session does not end when its connection closes", "S8",
         Patch(Shares, "cut", nothing)),
)  # fmt: skip
