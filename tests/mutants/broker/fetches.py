"""Mutants of fetches: their waits, the events that complete them, and their responses (F1 to F9)."""

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from mutants.broker.client_visible_mutant import felt, known, never, told
from purgatorio_broker.delayed_fetch import DelayedFetch
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchCallback, FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.node import Node
from purgatorio_broker.partition import NOTHING_READ
from purgatorio_broker.replica_manager import ReplicaManager
from purgatorio_broker.request import RequestLayer
from purgatorio_stress.mutant.patch import Patch, edited, wrapped


def _each_told(change: Callable[[FetchResult], FetchResult]) -> Patch:
    """Changes the result of each partition of a Fetch that waited."""

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
    *told("fetches"),
    felt("fetch-never-waits", "a Fetch is answered at once", "F1", Patch(ReplicaManager, "_has_to_wait", never)),
    felt("lost-check", "an append completes no Fetch", "F3", _WAKES_NOBODY),
    felt("not-re-armed", "a waiting Fetch is tried at the first event only", "F3 F7",
         wrapped(DelayedFetch, "try_complete", _tried_once)),
    known(97, "F9 F1", brokers=2),
    felt("one-in-fifty-lost", "one of fifty appends completes no Fetch", "F3",
         wrapped(ReplicaManager, "_append", _one_in_fifty_wakes_nobody)),
    felt("high-watermark-of-before", "a Fetch that waited returns the high watermark from before its wait", "F5",
         _each_told(_with_the_old_mark)),
    felt("recreated-wakes-nobody", "an append to a topic that was created again completes no Fetch", "F3",
         wrapped(ReplicaManager, "stop_replica", _stop_noted),
         wrapped(ReplicaManager, "_append", _wakes_nobody_there)),
    felt("grown-wakes-nobody", "an append to a partition that was added to its topic completes no Fetch", "F3",
         wrapped(Node, "_grow", _growth_noted),
         wrapped(ReplicaManager, "_append", _wakes_nobody_there)),
    felt("absent-shifts-the-keys",
         "a Fetch watches an unknown partition that it names first, and not the partition that it names last", "F3",
         wrapped(RequestLayer, "fetch", _keys_noted),
         Patch(ReplicaManager, "fetch_records", _watched_from_the_first_on)),
    felt("deleted-as-nothing", "a waiting Fetch gets no error when its records are deleted", "D1",
         _each_told(_without_error)),
)  # fmt: skip
