"""Bugs of fetches: how long they wait and for what, who wakes them, and what they are told (F1 to F9)."""

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from mutants.broker.client_visible_mutant import felt, handled, known, never
from purgatorio_broker.delayed_fetch import DelayedFetch
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import data_requests
from purgatorio_broker.network.follower import Follower
from purgatorio_broker.network.node import Node
from purgatorio_broker.partition import NOTHING_READ, Partition
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.request import RequestLayer
from purgatorio_stress.mutant.patch import Patch, edited, wrapped


def _each_told(change: Callable[[FetchResult], FetchResult]) -> Patch:
    """What a fetch that waited is told of each partition is changed."""

    def answered(
        answer: Callable[..., None],
        self: ReplicaManager,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        callback: FetchCallback,
    ) -> None:
        answer(self, params, partitions, lambda found: callback({p: change(r) for p, r in found.items()}))

    return wrapped(ReplicaManager, "_answer_fetch", answered)


def _with_the_old_mark(result: FetchResult) -> FetchResult:
    ends, start = result.data.ends, result.data.start
    if ends is None or start is None:
        return result
    return replace(result, data=replace(result.data, ends=replace(ends, high_watermark=start)))


def _without_error(result: FetchResult) -> FetchResult:
    return FetchResult(Error.NONE, NOTHING_READ) if result.error is Error.OFFSET_OUT_OF_RANGE else result


_TRIES: Final[dict[int, int]] = {}


def _tried_once(try_it: Callable[..., bool], self: DelayedFetch) -> bool:
    """Twice at its registration, once at an event, and no more."""
    tries = _TRIES[id(self)] = _TRIES.get(id(self), 0) + 1
    if self.is_completed() or tries > 3:
        _TRIES.pop(id(self), None) if self.is_completed() else None
        return False
    return try_it(self)


_WAKES_NOBODY: Final = edited(
    ReplicaManager, "_append", "self._check_later(partition)", "pass",
    "self.actions.add(partial(self._fetch.check_and_complete, partition))", "pass",
)  # fmt: skip
_APPEND_UNHEARD: Final = cast(Callable[..., object], _WAKES_NOBODY.replacement)
_APPENDS: Final = itertools.count(1)
_LOST_OF: Final = 50


def _one_in_fifty_wakes_nobody(append: Callable[..., object], *given: object) -> object:
    return append(*given) if next(_APPENDS) % _LOST_OF else _APPEND_UNHEARD(*given)


_STOPPED: Final[set[str]] = set()
_GROWN: Final[set[TopicPartition]] = set()


def _stop_noted(
    stop: Callable[..., None], self: ReplicaManager, partition: TopicPartition, **more: bool
) -> None:
    _STOPPED.add(partition.topic)
    stop(self, partition, **more)


def _growth_noted(grow: Callable[..., None], self: Node, totals: Mapping[str, int]) -> None:
    for name, total in totals.items():
        topic = self.cluster.topic(name)
        had = 0 if topic is None else topic.partitions
        _GROWN.update(TopicPartition(name, number) for number in range(had, total))
    grow(self, totals)


def _wakes_nobody_there(
    append: Callable[..., object], self: ReplicaManager, partition: TopicPartition, *given: object
) -> object:
    silent = partition.topic in _STOPPED or partition in _GROWN
    return (_APPEND_UNHEARD if silent else append)(self, partition, *given)


_ASKED_FOR: Final = threading.local()
_FETCH_UNDER: Final = cast(
    Callable[..., None],
    edited(
        ReplicaManager, "fetch_records", "callback: FetchCallback,", "callback: FetchCallback, keys,",
        "operation, list(partitions)", "operation, keys[:len(partitions)]",
    ).replacement,
)  # fmt: skip


def _keys_noted(
    fetch: Callable[..., None],
    self: RequestLayer,
    params: FetchParams,
    partitions: Mapping[TopicPartition, FetchPartition],
    send: FetchCallback,
) -> None:
    _ASKED_FOR.keys = list(partitions)
    fetch(self, params, partitions, send)


def _watched_from_the_first_on(*given: object) -> None:
    """As many keys as there are partitions, of all that were asked for."""
    _FETCH_UNDER(*given, _ASKED_FOR.keys)


MUTANTS: Final = (
    felt("fetch-never-waits", "a fetch is answered at once", "F1", Patch(ReplicaManager, "_has_to_wait", never)),
    felt("min-bytes-ignored", "a waiting fetch is answered at any byte", "F1 F7",
         edited(DelayedFetch, "try_complete", "more_bytes is None", "more_bytes != 0")),
    felt("min-bytes-by-partition", "the bytes of the partitions do not add up", "F7",
         edited(DelayedFetch, "try_complete", "available_bytes += more_bytes",
                "available_bytes = max(available_bytes, more_bytes)")),
    felt("lost-check", "an append wakes no fetch", "F3", _WAKES_NOBODY),
    felt("not-re-armed", "a waiting fetch is tried at one event, and at no other", "F3 F7",
         wrapped(DelayedFetch, "try_complete", _tried_once)),
    felt("min-bytes-0-waits", "min_bytes 0 is taken for 1", "F4",
         edited(ReplicaManager, "_has_to_wait", "params.min_bytes", "max(params.min_bytes, 1)"),
         edited(DelayedFetch, "try_complete", "self._params.min_bytes", "max(self._params.min_bytes, 1)")),
    felt("max-wait-0-empty", "max_wait 0 brings no data", "F4",
         edited(ReplicaManager, "_read", "= params.max_bytes",
                "= params.max_bytes if params.max_wait_ms > 0 else 0",
                "empty = True", "empty = params.max_wait_ms > 0")),
    felt("waited-for-nothing", "a fetch that waited is answered without data", "F5 F3",
         edited(ReplicaManager, "_answer_fetch", "self._read(params, partitions)",
                "{p: self._read_one(params, p, r, 0, at_least_one=False) for p, r in partitions.items()}")),
    felt("error-waits", "a fetch with an error waits, one without does not", "F6",
         edited(ReplicaManager, "_has_to_wait", "return False\n    return", "return True\n    return False and")),
    felt("epoch-unchecked", "a leader epoch that nobody knows is served", "F6",
         edited(Partition, "_readable", "current_epoch is not None and current_epoch != role.epoch", "False")),
    felt("deleted-topic-silent", "a deleted topic wakes no fetch", "F8",
         edited(ReplicaManager, "stop_replica", "self._check_later(partition)", "pass")),
    felt("unreplicated-shown", "consumers read to the log's end", "F9",
         edited(data_requests, "_isolation", "if replica >= 0", "if True"), brokers=2),
    known(97, "F9 F1", brokers=2),
    felt("one-in-fifty-lost", "of fifty appends one wakes no fetch", "F3",
         wrapped(ReplicaManager, "_append", _one_in_fifty_wakes_nobody)),
    felt("more-than-min-bytes", "a waiting fetch wants a byte more than min_bytes", "F3 F7",
         edited(DelayedFetch, "try_complete", ">= self._params", "> self._params")),
    felt("replicas-wake-produce", "a high watermark that rises by a replica wakes no consumer", "F3",
         edited(ReplicaManager, "_note_follower", "self._check_later(",
                "self._produce.check_and_complete("), brokers=2),
    felt("partition-room-ignored", "a waiting fetch counts more than its partitions have room for", "F1",
         edited(DelayedFetch, "_bytes_available", "status.request.max_bytes)", "1 << 30)")),
    felt("older-segment-adds-nothing",
         "a fetch that waits at the end of a segment is not woken by what begins the next", "F3",
         edited(DelayedFetch, "_bytes_available", "start.is_on_older_segment(end)", "False")),
    felt("a-batch-of-each", "each partition of a fetch brings a batch, whatever max_bytes says", "F7",
         edited(ReplicaManager, "_read", "empty and not result.size_bytes()", "True")),
    felt("min-bytes-beyond-max-bytes", "a fetch waits for more than it has room for", "F7",
         handled(data_requests.fetch, 'min(fields.number("min_bytes"), max_bytes)', 'fields.number("min_bytes")')),
    felt("high-watermark-of-before", "a fetch that waited is told the high watermark of its beginning", "F5",
         _each_told(_with_the_old_mark)),
    felt("recreated-wakes-nobody", "an append to a topic that is made anew wakes no fetch", "F3",
         wrapped(ReplicaManager, "stop_replica", _stop_noted),
         wrapped(ReplicaManager, "_append", _wakes_nobody_there)),
    felt("grown-wakes-nobody", "an append to a partition that was added to its topic wakes no fetch", "F3",
         wrapped(Node, "_grow", _growth_noted),
         wrapped(ReplicaManager, "_append", _wakes_nobody_there)),
    felt("smallest-partition-first", "what has no room for all is filled in the order of the partitions' numbers",
         "F7",
         edited(ReplicaManager, "_read", "in partitions.items():",
                "in sorted(partitions.items(), key=lambda asked: asked[0].partition):")),
    felt("ready-part-unwatched", "appends to a partition that had something when a fetch came do not wake it",
         "F3 F7",
         edited(ReplicaManager, "fetch_records", "operation, list(partitions)",
                "operation, [p for p in partitions if not results[p].size_bytes()] or list(partitions)")),
    felt("eight-keys-at-most", "a fetch is watched under the first eight of its partitions alone", "F3",
         edited(ReplicaManager, "fetch_records", "operation, list(partitions)", "operation, list(partitions)[:8]")),
    felt("absent-shifts-the-keys",
         "a fetch is watched under what it names first and is not there, instead of what is named last", "F3",
         wrapped(RequestLayer, "fetch", _keys_noted),
         Patch(ReplicaManager, "fetch_records", _watched_from_the_first_on)),
    felt("follower-wakes-nobody", "what is replicated wakes no consumer that waits at the follower", "F3",
         edited(Follower, "_append", "self._node.manager.check_key(partition)", "pass"), brokers=2),
    felt("deleted-as-nothing", "a fetch that waited while its records were deleted is told of no error", "D1",
         _each_told(_without_error)),
)  # fmt: skip
