"""Bugs of concrete delayed operations: of the broker's replicas, groups and share fetches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mutants.reference.mutant import Mutant, known
from purgatorio_broker.delayed_produce import DelayedProduce
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.group_coordinator import DelayedJoin, GroupCoordinator
from purgatorio_broker.partition import Isolation, Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.mutant.patch import edited, wrapped


def _without_isolation(
    answer: Callable[..., None], self: ReplicaManager, params: FetchParams, *given: object
) -> None:
    answer(self, replace(params, isolation=Isolation.HIGH_WATERMARK), *given)


_ALL: Final = (
    known(16, "days/group.txt::actions_of_an_expired_join_run",
          edited(DelayedJoin, "on_expiration", "self._coordinator.actions.run_all()", "pass")),
    known(25, "days/share.txt::completed_while_it_reads_it_gives_the_locks_back", edited(
          DelayedShareFetch, "_complete_from", "self.force_complete()", "self.force_complete() or True"),
          interleaving=True),
    known(27, "days/broker.txt::becoming_a_follower_answers_who_waits",
          edited(DelayedProduce, "try_complete", " and self.force_complete()", "")),
    known(28, "days/group.txt::a_heartbeat_in_time_keeps_the_member",
          edited(GroupCoordinator, "_heard_of", "group.update(member.id, satisfied=False)", "pass")),
    known(30, "days/group.txt::a_killed_group_s_sessions_end_without_expiring",
          edited(GroupCoordinator, "_remove", "self._heartbeats.check_and_complete", "")),
    known(31, "days/broker.txt::the_minimum_counts_at_most_the_replicas",
          edited(ReplicaManager, "_note_follower", "self._check_later(partition)", "pass")),
    # Nor is it noted what the follower has deleted: that is what a client feels of it (D1).
    known(32, "days/broker.txt::the_minimum_counts_at_most_the_replicas", edited(
          ReplicaManager, "_note_follower", "self._check_later(partition)", "pass", ", request.log_start", "",
          "    try:\n", "    self.check_key(partition)\n        try:\n")),
    known(96, "days/broker.txt::a_committed_reader_stops_at_the_open_transaction",
          wrapped(ReplicaManager, "_answer_fetch", _without_isolation)),
    known(97, "days/broker.txt::a_consumer_waits_for_the_high_watermark", edited(
          Partition, "ends", "self._ends()", "replace(self._ends(), high_watermark=self._ends().log_end)")),
    # `alias = locked; alias.clear()`, and then what is left is unlocked.
    known(98, "days/share.txt::a_read_that_raises_leaves_no_lock",
          edited(DelayedShareFetch, "_unlock", "in locked", "in list(locked)[:0]")),
)  # fmt: skip

BROKER_MUTANTS: Final[dict[int, Mutant]] = {mutant.number: mutant for mutant in _ALL}
"""By number; instead of a scenario each has the test or the day in `tests/wire` that finds it."""
