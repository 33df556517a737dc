"""Bugs of where a log begins and ends: what is deleted of it, and what ListOffsets says (D1, L1)."""

from dataclasses import replace
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.delayed_produce import DelayedDeleteRecords
from purgatorio_broker.error import Error
from purgatorio_broker.log import Log
from purgatorio_broker.network import data_requests
from purgatorio_broker.partition import Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.mutant.patch import Patch, edited


def _one_is_all(self: DelayedDeleteRecords) -> bool:
    return DelayedParts.decide(self) or len(self.undecided()) < len(self.results())


def _all_time_out(self: DelayedDeleteRecords) -> None:
    results = self.results()
    if self.undecided():
        results = {p: replace(r, error=Error.REQUEST_TIMED_OUT) for p, r in results.items()}
    self._callback(results)


MUTANTS: Final = (
    felt("records-stay", "deleted records can be read", "D1", Patch(Log, "raise_start", nothing)),
    felt("delete-beyond-end", "a deletion beyond the end is taken for one of everything", "D1",
         edited(Partition, "delete_before", "if offset == -1 else offset",
                "if offset == -1 else min(offset, high_watermark)")),
    felt("below-start-served", "an offset below the low watermark is served from there", "D1",
         edited(Log, "place", "if not",
                "offset = max(offset, min(self.start(), self.end())) if offset >= 0 else offset\n    if not")),
    felt("deletion-ends-fetches", "deleting records answers the fetches that wait for the partition", "F1",
         edited(ReplicaManager, "_delete_before", "meant = replica",
                "[one.force_complete() for one in self._fetch.cancel_for_key(partition)]; meant = replica")),
    felt("deletion-times-out-well", "a deletion of records that timed out is answered without an error", "D1",
         edited(DelayedDeleteRecords, "at_time_out", "Error.REQUEST_TIMED_OUT, low_watermark=-1",
                "Error.NONE, low_watermark=result.requested_offset"), brokers=2),
    felt("low-watermark-unseen", "a replica that has deleted records wakes no deletion", "D1",
         edited(Partition, "follower_fetched", " or self._low_watermark() > low_before", ""), brokers=2),
    felt("end-listed-short", "ListOffsets says an end one below the end", "L1",
         edited(data_requests, "_look_up", "return -1, end", "return -1, max(end - 1, 0)")),
    felt("listed-in-any-epoch", "who asks for offsets with a leader epoch that nobody knows is told them", "L1",
         edited(data_requests, "_look_up", "replica.ends(epoch,", "replica.ends(None,")),
    felt("later-than-the-time", "the first record of a time is looked for behind it", "L1",
         edited(data_requests, "_look_up", "found[0] >= wanted_ms", "found[0] > wanted_ms")),
    felt("earliest-is-0", "ListOffsets says that every partition begins at 0, whatever is deleted", "L1",
         edited(data_requests, "_look_up", "return -1, replica.log_start()", "return -1, 0")),
    felt("one-deletion-is-all", "a deletion in several partitions is answered when it is done in one", "D1",
         Patch(DelayedDeleteRecords, "decide", _one_is_all), brokers=2),
    felt("deleted-parts-time-out-together",
         "at the time-out of a deletion of records the partitions that are done time out too", "D1",
         Patch(DelayedDeleteRecords, "on_complete", _all_time_out), brokers=2),
    felt("no-time-to-delete-is-30-s", "a deletion of records with a time-out of 0 waits for 30 s", "D1",
         edited(ReplicaManager, "delete_records", "timeout_ms, results, self._low_watermark",
                "timeout_ms or 30_000, results, self._low_watermark"), brokers=2),
)  # fmt: skip
