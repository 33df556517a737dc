"""`ShareFetches`: the share fetches of one group, the acquired records, and the events that let a waiting share fetch
continue."""

from collections.abc import Iterable, Sequence
from functools import partial

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import AtomicFlag, Cell, Lock
from purgatorio.timer.interface import Timer
from purgatorio_broker.delayed_share_fetch import DelayedShareFetch, ShareFetchCallback, ShareSurroundings
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams
from purgatorio_broker.key import ShareGroupKey, SharePartitionKey, TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.runtime import Runtime
from purgatorio_broker.share_holding import LateAnswer
from purgatorio_broker.share_log import ShareLog
from purgatorio_broker.share_partition import Acknowledgement, ShareLimits, SharePartition

EXPIRATIONS = "share"
"""The meter's key."""


class ShareFetches:
    """One group's. Run `actions` after each call, with no lock in hand; events that are no call (a time-out, a read
    that ended) run them themselves. `remote_wait_ms`: how long the tier has, whatever a member asks for."""

    def __init__(
        self,
        runtime: Runtime,
        actions: ActionQueue,
        group: str,
        partitions: Sequence[TopicPartition],
        log: ShareLog,
        limits: ShareLimits,
        *,
        remote_wait_ms: int = 500,
    ) -> None:
        self._runtime = runtime
        self._actions = actions
        self._group = group
        self._timer: Timer = runtime.timer("share")
        self._shares = tuple(
            SharePartition(partition, limits, self._timer, self._event, runtime.sync)
            for partition in partitions
        )
        self._purgatory: Purgatory[DelayedShareFetch] = runtime.purgatory("ShareFetch")
        self._surroundings = ShareSurroundings(
            log,
            remote_wait_ms,
            self._event,
            self._queue_checks,
            actions.run_all,
            self._answer_late,
            self._expired,
        )
        self._closed: AtomicFlag = runtime.sync.atomic_flag(False, "share-fetches.closed")
        self._lock: Lock = runtime.sync.lock("late-answers")
        self._late: Cell[list[LateAnswer]] = runtime.sync.cell([], "late-answers")
        self.expirations = ExpirationMeter(runtime.sync)

    def share(self, partition: TopicPartition) -> SharePartition:
        """What the group has of `partition`. KeyError for one that it does not share."""
        return {share.partition: share for share in self._shares}[partition]

    def fetch(
        self,
        member: str,
        params: FetchParams,
        partitions: Sequence[TopicPartition],
        callback: ShareFetchCallback,
    ) -> DelayedShareFetch:
        """Answer now or later; returns the operation. KeyError as `share`."""
        operation = DelayedShareFetch(
            member, params, [self.share(p) for p in partitions], callback, self._surroundings, self._runtime
        )
        keys = [key for p in partitions for key in (ShareGroupKey(self._group, p), SharePartitionKey(p))]
        self._purgatory.try_complete_else_watch(operation, keys)
        return operation

    def acknowledge(
        self, member: str, partition: TopicPartition, offsets: Iterable[int], how: Acknowledgement
    ) -> Error:
        """A member is done with these: others may find room now, or the records themselves."""
        error = self.share(partition).acknowledge(member, offsets, how)
        if error is Error.NONE:
            self._queue_checks([partition])
        return error

    def close_session(self, member: str) -> int:
        """A member is gone: what it had can be acquired again; returns how many records that were."""
        released = {share.partition: share.release_member(member) for share in self._shares}
        self._queue_checks([partition for partition, count in released.items() if count])
        return sum(released.values())

    def partition_moved(self, partition: TopicPartition) -> int:
        """Its high watermark rose, or its role changed; returns how many this completed."""
        return self._purgatory.check_and_complete(SharePartitionKey(partition))

    def waiting(self) -> int:
        """The operations that the timer holds. One whose answer comes late has been completed."""
        return self._purgatory.num_delayed()

    def check(self) -> None:
        for share in self._shares:
            share.check()
        self._purgatory.check()

    def shutdown(self) -> None:
        """Complete what waits, and answer what was put off, now."""
        self._closed.set(True)
        self._purgatory.close()
        with self._lock:
            late = list(self._late.get())
        for answer in late:
            answer.give()
        self._timer.close()

    def _queue_checks(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._actions.add(partial(self._check, partition))

    def _check(self, partition: TopicPartition) -> int:
        group = self._purgatory.check_and_complete(ShareGroupKey(self._group, partition))
        return group + self._purgatory.check_and_complete(SharePartitionKey(partition))

    def _event(self, partition: TopicPartition) -> None:
        """A read has ended, or an acquisition lock has timed out: there is no request to run the queue."""
        self._purgatory.check_and_complete(ShareGroupKey(self._group, partition))
        self._actions.run_all()

    def _answer_late(self, late: LateAnswer) -> None:
        with self._lock:
            self._late.set([other for other in self._late.get() if not other.is_given()] + [late])
        late.begin(self._timer)
        if self._closed.get():
            late.give()

    def _expired(self) -> None:
        self.expirations.mark(EXPIRATIONS)
