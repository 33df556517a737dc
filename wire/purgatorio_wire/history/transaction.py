"""The transactions of a scene (KIP-98): the time from which each may have ended, the time from which it has certainly
ended, and its outcome.

    open       from the response without an error to the first `add_partitions_to_txn` or `add_offsets_to_txn`
    may end    from the request that ends it (`end_txn`, or an `init_producer_id` with its id, which aborts it), or from
               its time-out
    has ended  when the coordinator lets its producer continue, with the next transaction or a new epoch. (Markers are
               written after the response to the end. Until then, requests get CONCURRENT_TRANSACTIONS.) If no client
               ends the transaction: some time after its time-out, because coordinators search for such transactions
               periodically

With the second part of KIP-890, clients add no partitions: a transaction begins with its first append or offset, and
the response to its end has the producer's next epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.history.history import END_OF_TIME, NAMED, Exchange, Part, integer, items, parts, text
from purgatorio_wire.trace.record import Body

CONCURRENT: Final = 51
TOO_LONG: Final = 50
"""INVALID_TRANSACTION_TIMEOUT: a broker has a bound of its own."""
NOT_THEIRS: Final = frozenset({47, 48, 49, 90})
"""The final errors of a coordinator: an old epoch, no open transaction, an unknown id, a fenced producer."""
INIT, ADD, END = "init_producer_id", "add_partitions_to_txn", "end_txn"
BEGINS: Final = (ADD, "add_offsets_to_txn")
"""The requests that begin a transaction, or add to it."""
ABORTED_NS: Final = 20_000 * 1_000_000
"""A transaction is aborted at the latest this long after its time-out: Kafka checks every 10 s."""
FIRST_RENEWING: Final = 5
"""The first version of `end_txn` that returns a new epoch."""
IN_TRANSACTIONS: Final = 11
"""The last version of `produce` that requires the client to add partitions to a transaction."""
OFFSETS: Final = "txn_offset_commit"
OFFSETS_IN_TRANSACTIONS: Final = 4
"""The last version of `txn_offset_commit` that requires the client to add the offsets of a group."""


_OF_PARTS: Final = ("produce", OFFSETS, ADD)
"""The requests whose responses have an error for each partition."""


@dataclass(frozen=True, slots=True)
class ProducerEpoch:
    id: int
    epoch: int


@dataclass(slots=True)
class Transaction:
    """A transaction. `commits`: None if its outcome is unknown. `asked_t`: when its end was requested, by which
    exchange (`ending`)."""

    name: str
    producer: ProducerEpoch
    begun_t: int
    times_out_t: int = END_OF_TIME
    parts: dict[Part, int] = field(default_factory=dict)
    """Its partitions, each with the time at which it was certainly added."""
    asked_t: int = END_OF_TIME
    ended_t: int = END_OF_TIME
    commits: bool | None = None
    ending: Exchange | None = None
    made_t: int = END_OF_TIME
    """When the response confirmed its begin."""

    @property
    def stray(self) -> bool:
        """Whether it has only appends to partitions that no request has added."""
        return self.times_out_t <= self.begun_t

    @property
    def may_end_t(self) -> int:
        """The earliest possible end."""
        return min(self.asked_t, self.times_out_t)


def name_of(one: Exchange) -> str:
    return text(one.body, "transactional_id") or text(one.body, "v3_and_below_transactional_id")


def producer_of(body: Body | None) -> ProducerEpoch:
    """The producer id and epoch in a request or a response."""
    batches = (batch for _, part in parts(body, NAMED["produce"][0]) for batch in items(part, "records"))
    body = next(batches, body)
    found = [
        integer(body, name, integer(body, f"v3_and_below_{name}", -1))
        for name in ("producer_id", "producer_epoch")
    ]
    return ProducerEpoch(*found)


def error_of(one: Exchange) -> int:
    """The (first) error of a response about transactions. 0 if there is none."""
    errors = one.codes.values() if one.api in _OF_PARTS else (integer(one.got, "error_code"),)
    return next(filter(None, errors), 0)


def begins(one: Exchange) -> bool:
    """Whether a request may begin a transaction, or add to it."""
    return one.api in BEGINS or adds_itself(one)


def adds_itself(one: Exchange) -> bool:
    """Whether a request adds its partitions or its group to a transaction (the second part of KIP-890)."""
    last = {"produce": IN_TRANSACTIONS, OFFSETS: OFFSETS_IN_TRANSACTIONS}
    return one.version > last.get(one.api, END_OF_TIME)


def renews(one: Exchange) -> bool:
    """Whether a request ends a transaction and also requests the next epoch of the producer."""
    return one.api == END and one.version >= FIRST_RENEWING


def went_well(one: Exchange) -> bool:
    return one.got is not None and not error_of(one)


def by_name(exchanges: Iterable[Exchange]) -> dict[str, list[Exchange]]:
    """The requests for each transactional id, in the order of their sends."""
    found: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        if (one.api in (INIT, END) or begins(one)) and (name := name_of(one)):
            found[name].append(one)
    return found


def transactions(exchanges: Iterable[Exchange]) -> list[Transaction]:
    found = [each for name, asked in by_name(exchanges).items() for each in _of_one(name, asked)]
    for each in found:
        if each.asked_t == END_OF_TIME:
            each.ended_t, each.commits = min(each.ended_t, each.times_out_t + ABORTED_NS), False
    return found


def _of_one(name: str, asked: Iterable[Exchange]) -> Iterator[Transaction]:
    now: Transaction | None = None
    timeout_ns = END_OF_TIME
    for one in asked:
        if one.api == INIT:
            if now is not None and error_of(one) != TOO_LONG:
                _initialized(now, one)
            if went_well(one):
                now, timeout_ns = None, max(integer(one.body, "transaction_timeout_ms"), 0) * 1_000_000
        elif begins(one) and went_well(one):
            if now is not None and now.ending is not None and now.ending.ended_t < one.t:
                now.ended_t = min(now.ended_t, one.ended_t)
                now = None
            if now is None:
                times_out_t = min(one.t + timeout_ns, END_OF_TIME)
                now = Transaction(name, producer_of(one.body), one.t, times_out_t, made_t=one.ended_t)
                yield now
            named = one.requested if one.api in (ADD, "produce") else ()
            now.parts = {part: one.ended_t for part, _ in named} | now.parts
        elif now is not None and _may_end(now, one):
            now.asked_t, now.ending = one.t, one
            now.commits = bool(one.body.get("committed")) if went_well(one) else None


def _may_end(now: Transaction, one: Exchange) -> bool:
    """Whether this request may have ended the transaction: no error in its response excludes this."""
    refused = error_of(one) in (CONCURRENT, *NOT_THEIRS)
    return one.api == END and now.asked_t == END_OF_TIME and not refused


def _initialized(now: Transaction, one: Exchange) -> None:
    """Record a new InitProducerId for the transactional id, which aborts an open transaction first."""
    if now.asked_t == END_OF_TIME:
        now.asked_t, now.ending = one.t, one
    if went_well(one):
        if now.ending is not None and now.ending.api == INIT:
            now.commits = False
        now.ended_t = min(now.ended_t, one.ended_t)
