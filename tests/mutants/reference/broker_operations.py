"""Bugs of concrete delayed operations: of the broker's replicas, groups and share fetches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mutants.reference.mutant import known
from purgatorio_broker.delayed_group import DelayedJoin
from purgatorio_broker.delayed_produce import DelayedProduce
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.partition import Isolation, Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.mutant.patch import edited, wrapped


def _without_isolation(
    answer: Callable[..., None], self: ReplicaManager, params: FetchParams, *given: object
) -> None:
    answer(self, replace(params, isolation=Isolation.HIGH_WATERMARK), *given)


BROKER_MUTANTS: Final = (
    known(16, "group-queued-at-expiry", edited(DelayedJoin, "on_expiration", "self._run_actions()", "pass")),
    known(25, "share-event-against-force", edited(
          DelayedShareFetch, "_complete_from", "self.force_complete()", "self.force_complete() or True"),
          interleaving=True),
    known(27, "broker-replication", edited(DelayedProduce, "try_complete", " and self.force_complete()", "")),
    known(28, "group-silent-member",
          edited(GroupCoordinator, "_heard_of", "group.update(member.id, satisfied=False)", "pass")),
    known(30, "group-leaving-member",
          edited(GroupCoordinator, "_remove", "self._heartbeats.check_and_complete", "")),
    known(31, "broker-replication",
          edited(ReplicaManager, "_note_follower", "self._check_later(partition)", "pass")),
    # Nor is it noted what the follower has deleted: that is what a client feels of it (D1).
    known(32, "broker-replication", edited(
          ReplicaManager, "_note_follower", "self._check_later(partition)", "pass", ", request.log_start", "",
          "    try:\n", "    self.check_key(partition)\n        try:\n")),
    known(96, "broker-committed-reader", wrapped(ReplicaManager, "_answer_fetch", _without_isolation)),
    known(97, "broker-unreplicated", edited(
          Partition, "ends", "self._ends()", "replace(self._ends(), high_watermark=self._ends().log_end)")),
    # `alias = locked; alias.clear()`, and then what is left is unlocked.
    known(98, "share-read-fails", edited(DelayedShareFetch, "_unlock", "in locked", "in list(locked)[:0]")),
)  # fmt: skip
"""By number."""
