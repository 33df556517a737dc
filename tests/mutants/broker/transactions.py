"""Bugs of transactions: what is shown of an open one, how it ends, and the offsets that it commits (R1 to R8)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from mutants.broker.client_visible_mutant import felt, handled, later, nothing
from purgatorio_broker.delayed_fetch import DelayedFetch
from purgatorio_broker.group import Group
from purgatorio_broker.log import Log
from purgatorio_broker.network import data_requests, group_requests, transaction_requests
from purgatorio_broker.network.data_requests import _Fetched
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.sequences import Sequences
from purgatorio_broker.network.transactions import Ending, Transactions
from purgatorio_broker.partition import Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_stress.mutant.patch import Patch, edited, wrapped


def _ended_before_its_markers(write: Callable[..., None], self: Node, ending: Ending) -> None:
    self.transactions.ended(ending)
    later(1.0, partial(write, self, ending))


MUTANTS: Final = (
    felt("all-in-a-transaction", "to who reads what is committed, everything is in a transaction that goes on",
         "F3 F4",
         edited(Log, "append", "if producer:", "if not producer:")),
    felt("open-transaction-wakes", "a fetch that waits for what is committed is woken by what is not", "R1",
         edited(DelayedFetch, "_bytes_available", ".end(self._params.isolation)", ".high_watermark")),
    felt("open-transaction-read", "who reads what is committed is shown what is not", "R1 R4",
         edited(Partition, "read", "before = ends.end(isolation).offset", "before = ends.high_watermark.offset")),
    felt("open-transaction-counted",
         "who waits for more of what is committed than there is has what is not committed counted too", "R1",
         edited(DelayedFetch, "_bytes_available", "start.bytes_until(end)",
                "start.bytes_until(partition.ends(epoch, leader_only=False).high_watermark)")),
    felt("open-transaction-read-in-a-session",
         "who reads what is committed in a fetch session is shown what is not", "R1",
         handled(data_requests.fetch, 'fields.number("isolation_level")',
                 'fields.number("isolation_level") * (session is None)')),
    felt("end-wakes-nobody", "the end of a transaction wakes nobody who waits for it", "R2",
         edited(ReplicaManager, "_append", "    if appended.high_watermark_rose:",
                "    if marker:\n        pass\n    elif appended.high_watermark_rose:")),
    felt("abort-wakes-nobody", "the end of a transaction wakes nobody where it is aborted", "R2",
         edited(ReplicaManager, "_append", "    if appended.high_watermark_rose:",
                "    if marker == 'abort':\n        pass\n    elif appended.high_watermark_rose:")),
    felt("aborted-stay-open", "what is aborted stays open: the last stable offset moves no further", "R2 R3 R4",
         edited(Log, "first_unstable", "if record.marker and record.offset < high_watermark:",
                "if record.marker == 'commit':")),
    felt("stable-behind-the-newest", "the last stable offset is where the newest open transaction begins", "R1 R4",
         edited(Log, "first_unstable", "min(undecided.values(), default=None)",
                "max(undecided.values(), default=None)")),
    felt("stable-when-all-ended",
         "while a transaction is open the last stable offset stays, though the first that was open has ended",
         "R2 R3 R4",
         edited(Log, "first_unstable", "undecided.pop(record.producer, None)",
                "(set(undecided) == {record.producer} and undecided.clear())")),
    felt("stable-offset-not-listed", "the end that is listed for who reads what is committed is the high watermark",
         "R4",
         edited(data_requests, "_look_up", ".end(isolation).offset", ".high_watermark.offset")),
    felt("aborted-not-told", "who reads what is committed is not told what of it was aborted", "R3",
         edited(_Fetched, "_entry", "self._aborted(result) if", "[] if")),
    felt("aborted-told-from-its-begin",
         "of what was aborted that alone is told which begins where the fetch does, or behind", "R3",
         edited(Log, "aborted", "record.offset >= offset", "first >= offset")),
    felt("aborted-once-told", "of a producer the first transaction that was aborted is told, and no other", "R3",
         edited(Log, "aborted", "return tuple(found)",
                "return tuple({one.producer: one for one in reversed(found)}.values())")),
    felt("one-marker", "a transaction is ended in one of its partitions alone", "R2 R3 R4",
         edited(Node, "_write_markers", "for partition in ending.partitions},",
                "for partition in sorted(ending.partitions)[:1]},")),
    felt("ended-before-its-markers", "a transaction is said to have ended a second before its markers are written",
         "R2 R3 R4",
         wrapped(Node, "_write_markers", _ended_before_its_markers)),
    felt("never-ended", "no transaction comes to its end", "R2",
         edited(Transactions, "ended", "self._producers[ending.transactional_id].state = State.ENDED", "pass")),
    felt("epoch-stays", "who takes a transactional id over has the epoch of its former producer", "R5",
         edited(Transactions, "init", "producer.epoch += 1", "producer.epoch = 0")),
    felt("former-ends", "a producer whose id another has taken over may end what that has open", "R5",
         edited(Transactions, "_current", "producer.epoch == by[1]", "producer.epoch >= by[1]")),
    felt("former-appends", "a producer that was fenced may append", "R5",
         edited(Transactions, "writes", "if written.producer_epoch != producer.epoch:",
                "if written.producer_epoch < producer.epoch:\n"
                "            producer.appending += 1\n"
                "            return ErrorCode.none\n"
                "        if written.producer_epoch != producer.epoch:"),
         Patch(Sequences, "fence", nothing)),
    felt("taken-over-committed", "what was open is committed where its id is taken over", "R3",
         edited(Transactions, "init", "self._end(transactional_id, producer, ABORT)",
                "self._end(transactional_id, producer, 'commit')")),
    felt("taken-over-stays-open", "what was open where its id is taken over is never ended in its partitions",
         "R2 R3 R4",
         edited(Transactions, "init", "self._end(transactional_id, producer, ABORT)",
                "producer.state = State.EMPTY")),
    felt("none-ended", "an end without a transaction is taken for one", "R6",
         edited(Transactions, "end", "return ErrorCode.invalid_txn_state", "return ErrorCode.none")),
    felt("offsets-of-any-end", "the offsets of a transaction are committed though it is aborted", "R7",
         edited(Node, "_write_markers", "if ending.marker == COMMIT:", "if ending.marker:")),
    felt("offsets-of-no-end", "the offsets of a transaction are never committed", "R7",
         edited(Node, "_write_markers", "if ending.marker == COMMIT:", "if not ending.marker:")),
    felt("offsets-of-any-generation", "a transaction commits offsets of members of any generation", "G9",
         edited(transaction_requests, "refuses_held",
                "if generation == group.generation() else Error.ILLEGAL_GENERATION", "")),
    felt("offsets-of-strangers", "a transaction commits offsets of who is no member of the group", "G9",
         edited(transaction_requests, "refuses_held", "return Error.UNKNOWN_MEMBER_ID", "return Error.NONE")),
    felt("no-offsets-in-a-rebalance", "while a group rebalances its members commit nothing with a transaction",
         "R7",
         edited(transaction_requests, "refuses_held", "return Error.NONE if",
                "if group.state() is GroupState.PREPARING:\n            return Error.REBALANCE_IN_PROGRESS\n"
                "        return Error.NONE if")),
    felt("offsets-of-nobody-alone", "what a transaction holds is committed for a group without members alone", "R7",
         edited(Node, "_write_markers", "group.commit(offsets)", "group.members() or group.commit(offsets)")),
    felt("last-end-wins", "what a transaction holds is committed over what was committed behind it", "R7",
         edited(Group, "commit", "there[p].place <= one.place", "True")),
    felt("unstable-not-told", "who asks for stable offsets is told the old ones while a transaction is open", "R7",
         Patch(Transactions, "unstable", lambda self, group: set())),
    felt("unstable-for-good", "offsets are unstable though the transaction has ended", "R7",
         edited(Transactions, "unstable", "(State.ONGOING, State.ENDING)", "State")),
    felt("strangers-taken", "a transactional id that nobody has is ended and added to without an error", "R6",
         edited(Transactions, "add", "return producer\n        if producer.state is State.ENDING",
                "return ErrorCode.none\n        if producer.state is State.ENDING")),
    felt("time-of-the-first", "the time-out of a producer's later transactions runs from the beginning of its first",
         "R6 M1",
         edited(Transactions, "add", "State.ONGOING, monotonic()", "State.ONGOING, producer.begun_s or monotonic()")),
    felt("never-timed-out", "a transaction that is left open is never aborted", "R2 R4",
         Patch(Transactions, "abort_overdue", nothing)),
    felt("time-of-the-last", "the time-out of a transaction runs from what was added to it last", "R2 R4",
         edited(Transactions, "add", "producer.partitions.update",
                "if not producer.partitions.issuperset(partitions):\n"
                "            producer.begun_s = monotonic()\n        producer.partitions.update")),
    felt("renewed-epoch-stays", "the end of a transaction gives its producer no new epoch", "R8",
         edited(Transactions, "end_and_renew", "producer.epoch + 1, True", "producer.epoch, True")),
    felt("former-epoch-taken", "an end with the former epoch ends the transaction that has begun since", "R8",
         edited(Transactions, "end_and_renew", "producer.renewed and producer.state is not State.ONGOING",
                "producer.renewed")),
    felt("end-not-repeated", "an end that is sent again, because its response was lost, is fenced", "R8",
         edited(Transactions, "end_and_renew", "again = producer.renewed", "again = False")),
    felt("aborted-with-the-next",
         "the offsets of a transaction that was aborted are committed with the next one", "R7",
         edited(Transactions, "add", "producer.offsets = {}",
                "producer.offsets = producer.offsets if producer.marker == ABORT else {}")),
    felt("open-in-a-deleted-topic", "a transaction in a topic that is deleted never comes to its end", "R2",
         edited(Node, "_write_markers", "lambda results: self",
                "lambda results: any(one.base_offset < 0 for one in results.values()) or self")),
    felt("decided-by-a-deletion", "a transaction whose first record is deleted is open for nobody any more", "R1 R4",
         edited(Partition, "_ends", "if unstable is not None and unstable",
                "if unstable is not None and self._log.start() <= unstable")),
    felt("unstable-told-of-those-named",
         "who asks for all stable offsets of a group is told the old ones while a transaction is open", "R7",
         edited(group_requests, "_committed", "if stable else set()",
                'if stable and asked.has("topics") else set()')),
    felt("first-group-committed",
         "of the groups whose offsets are part of a transaction those of the first are committed", "R7",
         edited(Node, "_write_markers", "in ending.offsets.items():", "in [*ending.offsets.items()][:1]:")),
    felt("first-partition-held",
         "of the partitions whose offsets are committed with a transaction at once the first is kept", "R7",
         edited(Transactions, "hold", "update(offsets)", "update([*offsets.items()][:1])")),
    felt("unstable-spreads", "no offset of a group is stable while a transaction commits one of them", "R7",
         edited(group_requests, "_committed", "node.transactions.unstable(group_id) if stable",
                "{*offsets} if stable and node.transactions.unstable(group_id)")),
)  # fmt: skip
