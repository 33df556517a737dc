"""The possible contents of each partition, computed from the requests and responses of a scene.

An append takes effect between its request and its acknowledgement. So at any time there is a minimum (the acknowledged
appends) and a maximum (the appends that were sent). Clauses require the minimum and allow the maximum. The end of a
transaction writes a marker to each of its partitions, which has the same bounds. The last stable offset is at most the
first record of any transaction that is certainly open, and at least the first record of the first transaction that may
be open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.history import (
    END_OF_TIME,
    OF_LAG,
    Exchange,
    Part,
    integer,
    integers,
    items,
    text,
    texts,
)
from purgatorio_wire.history.transaction import ProducerEpoch, Transaction, transactions
from purgatorio_wire.trace.record import BY_NOBODY, Body, Written

BY_ID: Final[Mapping[str, int]] = {"fetch": 13, "produce": 13, "offset_commit": 10, "offset_fetch": 10}
"""The first version of a request that has only topic ids, no names."""
UNKNOWN_ERROR: Final = -1
MAY_BE_THERE: Final = frozenset({0, 7, 20, UNKNOWN_ERROR})
"""Errors of a produce whose records are or may be in the log: none, timed out, too few replicas after the append, or an
error that says nothing about the log."""


COMMITTED: Final = 1
"""The isolation level read_committed."""
DEFAULT: Final = 5
"""The source of a setting that nobody has set."""
EPOCH_FAR: Final = 50
"""An epoch that is greater than the known epoch by this number cannot be a real epoch."""
MARKER_BYTES: Final = 200
"""The maximum size of a transaction marker."""
UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, OTHER_TOPIC_ID = 3, 100, 103
GONE: Final = frozenset({UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, OTHER_TOPIC_ID})
"""The errors of a request with the id of a deleted topic, whether a new topic with this name exists or not."""


def unknown_topic(one: Exchange) -> int:
    """The error for a topic that does not exist; requests by id have another one (KIP-516)."""
    by_id = (
        any(text(x, "topic_id") for x in items(one.body, "topics")) if one.api == "delete_topics" else False
    )
    return UNKNOWN_TOPIC_ID if by_id or one.version >= BY_ID.get(one.api, END_OF_TIME) else UNKNOWN_TOPIC


@dataclass(frozen=True, slots=True)
class Append:
    """A produce to one partition. `ack_t` is None without an acknowledgement. `base` is -1 if unknown."""

    exchange: Exchange
    t: int
    ack_t: int | None
    count: int
    bytes: int
    base: int
    error: int
    acks: int
    taken_t: int | None
    """The time at which it is certainly in the log, also for acks=0, which has no acknowledgement."""
    lowest: int
    """The lowest possible base offset."""
    written: Written = BY_NOBODY
    within: Transaction | None = None
    """The transaction of the append."""
    ends: Transaction | None = None
    """For a marker, the transaction that it ends."""
    highest: int = END_OF_TIME
    """The highest possible base offset, if no response gave it."""

    @property
    def may_be_there(self) -> bool:
        """Whether its records may be in the log."""
        return self.error in MAY_BE_THERE

    def may_be_behind(self, offset: int) -> bool:
        """Whether its base offset may be at or above `offset`."""
        return (self.base if self.base >= 0 else self.highest) >= offset


@dataclass(slots=True)
class Log:
    """The appends and the deletions of one partition."""

    appends: list[Append] = field(default_factory=list)
    settled_t: int = END_OF_TIME
    """The first successful response of the partition. Metadata may name a leader before it leads."""
    low: list[tuple[int, int]] = field(default_factory=list)
    """The acknowledged low watermarks, each with the time of its response."""
    deletes_t: list[int] = field(default_factory=list)
    """The times of the DeleteRecords requests."""
    transactions: list[Transaction] = field(default_factory=list)
    """The transactions with this partition."""
    repeats: list[Append] = field(default_factory=list)
    """Batches that idempotent producers sent again. The log has each such batch once."""

    def least(self, t: int, offset: int) -> int:
        """The bytes at or above `offset` that are certainly in the log at `t`."""
        return sum(one.bytes for one in self.taken(t) if one.lowest >= offset)

    def most(self, t: int, offset: int) -> int:
        """The bytes at or above `offset` that may be in the log at `t`."""
        return sum(
            one.bytes for one in self.appends if one.t <= t and one.may_be_there and one.may_be_behind(offset)
        )

    def largest(self, offset: int) -> int:
        """The size of the largest append that may be at or above `offset`."""
        return max((one.bytes for one in self.appends if one.may_be_behind(offset)), default=0)

    def taken(self, t: int) -> Iterator[Append]:
        """The appends that are certainly in the log at `t`."""
        return (one for one in self.appends if one.taken_t is not None and one.taken_t <= t)

    def surely(self, t: int) -> Iterator[Append]:
        """The appends that were acknowledged by `t`."""
        return (
            one for one in self.appends
            if one.ack_t is not None and one.ack_t <= t and one.error == 0 and one.base >= 0
        )  # fmt: skip

    def least_end(self, t: int) -> int:
        """The lowest possible end offset at `t`."""
        there = [*self.surely(t)]
        end = max((one.base + one.count for one in there), default=0)
        if not self.transactions:
            return end
        # Offsets have no gaps, and each marker has an offset too.
        markers = sum(one.ended_t <= t for one in self.transactions)
        return max(end, sum(one.count for one in there) + markers)

    def moments(self, surely: bool) -> Iterator[int]:
        """The times at which the log may grow. With `surely`: the times at which it has certainly grown."""
        times = (one.taken_t if surely else one.t for one in self.appends)
        return (t for t in times if t is not None)

    def own_end(self, one: Exchange) -> int:
        """The lowest possible end offset when this request is handled, by the earlier appends of its connection.
        Appends with acks=0 count too, because a failed append with acks=0 ends the connection."""
        end = 0
        for append in self.appends:
            if append.exchange.conn == one.conn and append.t < one.t:
                if append.acks == 0:
                    end += append.count
                elif append.base >= 0:
                    end = append.base + append.count
        return end

    def again(self, written: Written) -> bool:
        """Whether a batch of an idempotent producer with this sequence number may already be in the log."""
        return written != BY_NOBODY and any(x.may_be_there for x in self.appends if x.written == written)

    def replicated_end(self, t: int) -> int:
        """The lowest possible high watermark at `t`. Kafka answers a fetch above it like a fetch of a truncated log."""
        return max((one.base + one.count for one in self.surely(t) if one.acks == -1), default=0)

    def most_end(self, t: int) -> int:
        """The highest possible end offset at `t`. Only Purgatorio writes to its topics."""
        return sum(one.count for one in self.appends if one.t <= t and one.may_be_there)

    def forget_wrong_offsets(self) -> None:
        """Make an acknowledged base offset unknown if the log cannot have been so long. M1 judges the acknowledgement.
        What follows from a wrong offset is no violation of its own."""
        self.appends = [
            replace(x, base=-1, lowest=0)
            if x.base >= 0 and x.base + x.count > self.most_end(x.ack_t or x.t)
            else x
            for x in self.appends
        ]

    def low_at(self, t: int) -> int:
        """The highest low watermark that was acknowledged by `t`."""
        return max((low for ack_t, low in self.low if ack_t <= t), default=0)

    def start(self, t: int, until: int) -> tuple[int, int]:
        """The lowest and the highest possible log start for a request from `t` to `until`. A concurrent DeleteRecords
        may move it, at most to the end."""
        least = self.low_at(t)
        under_way = sum(x <= until for x in self.deletes_t) > sum(x <= t for x, _ in self.low)
        return least, self.most_end(until) if under_way else least

    def first_of(self, one: Transaction) -> int | None:
        """The first offset of a transaction. None if it has no records, or some offset is unknown."""
        bases = [append.base for append in self.appends if append.within is one and append.may_be_there]
        return min(bases) if bases and min(bases) >= 0 else None


@dataclass(slots=True)
class CommittedLog(Log):
    """A log for readers with isolation level `read_committed`: it ends at the last stable offset. `whole`: the log for
    other readers."""

    whole: Log = field(default_factory=Log)

    @classmethod
    def of(cls, log: Log) -> Log:
        """The log itself, if it has no transactions."""
        if not log.transactions:
            return log
        return cls(log.appends, log.settled_t, log.low, log.deletes_t, log.transactions, whole=log)

    def least(self, t: int, offset: int) -> int:
        end = self.least_end(t)
        return sum(one.bytes for one in self.surely(t) if one.base >= offset and one.base + one.count <= end)

    def most(self, t: int, offset: int) -> int:
        end = self.most_end(t)
        return sum(
            one.bytes for one in self.appends
            if one.t <= t and one.may_be_there and one.may_be_behind(offset)
            and max(one.base, one.lowest) < end and (one.within is None or one.within.may_end_t <= t)
        )  # fmt: skip

    def least_end(self, t: int) -> int:
        begins = self.low_at(t)
        firsts = [
            max(one.base if one.base >= 0 else self.whole.least_end(one.t), begins)
            for one in self.appends
            if one.within is not None and one.may_be_there and one.t <= t < one.within.ended_t
        ]
        return min([self.whole.least_end(t), *firsts])

    def most_end(self, t: int) -> int:
        _, begins = self.whole.start(t, t)
        firsts = [
            max(one.base, begins)
            for one in self.surely(t)
            if one.within is not None and t < one.within.may_end_t
        ]
        return min([self.whole.most_end(t), *firsts])

    def start(self, t: int, until: int) -> tuple[int, int]:
        return self.whole.start(t, until)

    def moments(self, surely: bool) -> Iterator[int]:
        yield from self.whole.moments(surely)
        yield from (one.ended_t if surely else one.may_end_t for one in self.transactions)


@dataclass(slots=True)
class Change:
    """An IncrementalAlterConfigs without an error for a topic: the times of request and response. `shown_t`: the time
    of the first response to DescribeConfigs that shows it."""

    t: int
    done_t: int
    changes: list[Body]
    shown_t: int = END_OF_TIME

    def shown_in(self, said: Body) -> bool:
        """Whether a response to DescribeConfigs has all values that it sets."""
        told = {text(x, "name"): text(x, "value") for x in items(said, "configs")}
        sets = (x for x in self.changes if not integer(x, "config_operation"))
        return all(told.get(text(x, "name")) == text(x, "value") for x in sets)


@dataclass(slots=True)
class Topic:
    """The requests about a topic. Times are those of requests and of their successful responses."""

    name: str
    asked_t: int = END_OF_TIME
    made_t: int | None = None
    delete_t: int | None = None
    deleted_t: int | None = None
    replicas: int = 1
    preferred: int | None = None
    """The preferred leader of its first partition, if the request to create it has assignments."""
    configs: dict[str, str] = field(default_factory=dict)
    """The settings of its creation."""
    defaults: dict[str, str] = field(default_factory=dict)
    """The defaults of its settings, by DescribeConfigs."""
    altered: list[Change] = field(default_factory=list)
    partitions: int = 0
    """The number of partitions at its creation. 0 if the broker chose it."""
    id: str = ""
    """The topic id from its creation. A later topic with the same name has another id."""
    grown: list[tuple[int, int | None, int]] = field(default_factory=list)
    """For each CreatePartitions without an error: the time of the request, of the response, and the new number."""

    @property
    def compacts(self) -> bool:
        return "compact" in self.configs.get("cleanup.policy", "")

    def settings(self, one: Exchange, late_ns: int) -> list[dict[str, str]]:
        """The settings that may be in effect when the broker handles this request. `late_ns`: the time for which a
        broker may work with the former settings after it has shown the new ones."""
        found = [self.configs]
        for new in self.altered:
            if new.t <= one.until_t:
                after = [self._after(held, new.changes) for held in found]
                found = after if new.shown_t + late_ns <= one.t else found + after
        return found

    def _after(self, held: dict[str, str], changes: list[Body]) -> dict[str, str]:
        """The settings after these changes, without those whose value is unknown."""
        after: dict[str, str | None] = {**held}
        for one in changes:
            name, value = text(one, "name"), text(one, "value")
            had = after.get(name, self.defaults.get(name))
            match integer(one, "config_operation"), had:
                case 0, _:  # SET
                    after[name] = value
                case 1, _:  # DELETE
                    after[name] = self.defaults.get(name)
                case 2, str():  # APPEND
                    after[name] = ",".join(dict.fromkeys(f"{had},{value}".split(",")))
                case 3, str():  # SUBTRACT
                    after[name] = ",".join(x for x in had.split(",") if x not in value.split(","))
        return {name: value for name, value in after.items() if value is not None}

    @property
    def named_settings(self) -> set[str]:
        return {*self.configs} | {text(x, "name") for new in self.altered for x in new.changes}

    @property
    def changed_t(self) -> set[int | None]:
        """The times of the responses that confirm its creation, its growth, or its deletion."""
        return {self.made_t, self.deleted_t, *(done_t for _, done_t, _ in self.grown)}

    def there_at(self, t: int) -> bool:
        """Whether it was created by `t`, and not deleted."""
        return (self.made_t or END_OF_TIME) <= t and (self.deleted_t is None or self.deleted_t > t)

    def partitions_at(self, t: int) -> int | None:
        """The number of partitions at `t`. None if it is unknown, or a request to change it was open."""
        if not self.partitions or any(
            asked < t and (done is None or done > t) for asked, done, _ in self.grown
        ):
            return None
        return max([self.partitions, *(count for asked, _, count in self.grown if asked < t)])


@dataclass(slots=True)
class Topics:
    """Topics and logs of one scene, from all its exchanges."""

    topics: dict[str, Topic]
    logs: dict[Part, Log]
    epochs: dict[Part, list[tuple[int, int, int]]]
    """Leader epochs by metadata: time of the request, time of the response, epoch."""
    insync: dict[Part, list[tuple[int, int, int]]]
    """In-sync replicas by metadata: time of the request, time of the response, number."""
    leaders: dict[Part, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Leaders by metadata: time of the response, and the leader."""
    transactions: list[Transaction] = field(default_factory=list)

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> Topics:
        exchanges = [*exchanges]
        topics = cls(
            {}, defaultdict(Log), defaultdict(list), defaultdict(list), transactions=transactions(exchanges)
        )
        gather: Mapping[str, Callable[[Exchange], None]] = {
            "create_topics": topics._create, "delete_topics": topics._delete, "create_partitions": topics._grow,
            "produce": topics._produce, "fetch": topics._fetch, "delete_records": topics._delete_records,
            "metadata": topics._metadata, "incremental_alter_configs": topics._alter, "alter_configs": topics._alter,
            "describe_configs": topics._describe,
        }  # fmt: skip
        for one in exchanges:
            if one.api in gather:
                gather[one.api](one)
        topics._mark()
        return topics

    def stays(self, name: str) -> bool:
        """Whether the topic is known, has one replica, and is not deleted."""
        topic = self.topics.get(name)
        return topic is not None and topic.replicas == 1 and topic.delete_t is None

    def epoch(self, part: Part, t: int) -> int | None:
        """The newest leader epoch that was returned by `t`."""
        return max((epoch for _, told_t, epoch in self.epochs.get(part, ()) if told_t <= t), default=None)

    def last_epoch(self, part: Part, t: int) -> int:
        """The highest possible leader epoch at `t`: epochs do not go back."""
        told = self.epochs.get(part, ())
        return min((epoch for asked_t, _, epoch in told if asked_t >= t and epoch >= 0), default=END_OF_TIME)

    def in_sync_around(self, part: Part, from_t: int, to_t: int) -> int | None:
        """The number of in-sync replicas from `from_t` to `to_t`. None if the metadata before and after this time
        differ."""
        said = self.insync.get(part, ())
        before = [count for asked, answered, count in said if answered <= from_t]
        behind = [count for asked, _, count in said if asked >= to_t]
        return before[-1] if before and behind and before[-1] == behind[0] else None

    def given_up(self, part: Part, since_t: int, needed: int) -> tuple[int, int] | None:
        """Two times of metadata, between which the in-sync set shrank, but not below `needed` replicas. None if it did
        not shrink, or changed again."""
        said = self.insync.get(part, ())
        counts = [count for asked_t, _, count in said if asked_t >= since_t]
        fewer = [
            (before_t, told_t)
            for (before_t, _, before), (asked_t, told_t, count) in pairwise(said)
            if asked_t >= since_t and needed <= count < before
        ]
        # The set shrank once, and never grew again.
        return fewer[0] if len(fewer) == 1 and counts == sorted(counts, reverse=True) else None

    def _create(self, one: Exchange) -> None:
        if one.body.get("validate_only"):
            return
        errors = one.codes
        ids = {text(said, "name"): text(said, "topic_id") for said in items(one.got, "topics")}
        for asked in items(one.body, "topics"):
            name = text(asked, "name")
            topic = self.topics.setdefault(name, Topic(name))
            topic.asked_t = min(topic.asked_t, one.t)
            if errors.get(Part(name)) == 0 and topic.made_t is None:
                topic.made_t = one.answer_t
                topic.id = ids.get(name, "")
                topic.replicas = max(
                    integer(asked, "replication_factor", 1),
                    *(_length(given, "broker_ids") for given in items(asked, "assignments")),
                    1,
                )
                assigned = sum(1 for _ in items(asked, "assignments"))
                first = next(items(asked, "assignments"), None)
                topic.preferred = next(integers(first, "broker_ids"), None)
                topic.partitions = assigned or max(integer(asked, "num_partitions"), 0)
                topic.configs = {text(x, "name"): text(x, "value") for x in items(asked, "configs")}

    def _grow(self, one: Exchange) -> None:
        if one.body.get("validate_only"):
            return
        for part, asked, said in one.pairs:
            topic = self.topics.get(part.topic)
            if topic is not None and not integer(said, "error_code"):
                topic.grown.append((one.t, one.answer_t, integer(asked, "count")))

    def _alter(self, one: Exchange) -> None:
        for part, asked, said in [] if one.body.get("validate_only") else one.pairs:
            topic, done = self.topics.get(part.topic), said is not None and not integer(said, "error_code")
            if topic is not None and one.answer_t is not None and done:
                others = topic.named_settings if one.api == "alter_configs" else ()  # which it resets
                changes = [*({"name": x, "config_operation": 1} for x in others), *items(asked, "configs")]
                topic.altered.append(Change(one.t, one.answer_t, changes))

    def _describe(self, one: Exchange) -> None:
        for said in items(one.got, "results"):
            if (topic := self.topics.get(text(said, "resource_name"))) is not None:
                for new in topic.altered:
                    if new.done_t <= one.t and new.shown_in(said):
                        new.shown_t = min(new.shown_t, one.ended_t)
                defaults = {
                    text(x, "name"): text(x, "value")
                    for x in items(said, "configs") if integer(x, "config_source") == DEFAULT
                }  # fmt: skip
                for topic in self.topics.values():
                    topic.defaults |= defaults

    def _delete(self, one: Exchange) -> None:
        errors = one.codes
        for name in (*texts(one.body, "topic_names"), *(text(x, "name") for x in items(one.body, "topics"))):
            topic = self.topics.get(name)
            if topic is not None:
                topic.delete_t = one.t if topic.delete_t is None else topic.delete_t
                if errors.get(Part(name)) == 0 and topic.deleted_t is None:
                    topic.deleted_t = one.answer_t

    def _produce(self, one: Exchange) -> None:
        for part, batches, answer in produced(one):
            count, size = (summed(batches, name) for name in ("count", "bytes"))
            error = 0 if answer is None else integer(answer, "error_code")
            base = integer(answer, "base_offset", -1)
            acks = integer(one.body, "acks")
            ack_t = None if answer is None or error else one.answer_t
            log = self.logs[part]
            if error in GONE and log.settled_t <= one.t:
                error = UNKNOWN_ERROR  # M1 judges it: the partition is there, and so may be the records
            taken_t, lowest = (one.done_t, log.least_end(one.t)) if acks == 0 else (ack_t, base)
            if ack_t is not None:
                log.settled_t = min(log.settled_t, ack_t)
            written = written_by(batches)
            again = log.again(written)
            base = base if ack_t else -1
            within = self._within(one, part, written, error) if transactional(batches) else None
            append = Append(
                one, one.t, ack_t, count, size, base, error, acks, taken_t, lowest, written, within
            )
            (log.repeats if again else log.appends).append(append)

    def _within(self, one: Exchange, part: Part, written: Written, error: int) -> Transaction | None:
        """The last transaction of the producer with this partition. If there is none, a new transaction with an unknown
        end. None for a refused append."""
        by = ProducerEpoch(written.producer_id, written.producer_epoch)
        begun = [x for x in self.transactions if x.producer == by and part in x.parts and x.begun_t <= one.t]
        if begun:
            return begun[-1]
        if error not in MAY_BE_THERE:
            return None
        stray = Transaction(text(one.body, "transactional_id"), by, one.t, one.t, {part: one.t})
        self.transactions.append(stray)
        return stray

    def _mark(self) -> None:
        """Add the transaction markers to the logs, from the time at which they may be there. No response has their
        offsets."""
        placed = [(one, self.logs[part]) for one in self.transactions for part in one.parts]
        for one, log in placed:
            log.transactions.append(one)
        for one, log in placed:
            if (t := one.may_end_t) < END_OF_TIME:
                by = one.ending or Exchange(-1, t, "", 0, "", 0, {})
                marker = Append(by, t, None, 1, MARKER_BYTES, -1, 0, -1, None, log.least_end(t), ends=one)
                log.appends.append(marker)
        for log in {id(log): log for _, log in placed}.values():
            log.appends = [
                x if x.ends is None else replace(x, highest=log.most_end(x.ends.ended_t) - 1)
                for x in log.appends
            ]
        for log in self.logs.values():
            log.forget_wrong_offsets()

    def _fetch(self, one: Exchange) -> None:
        if one.answer_t is None or one.error or one.at_second:
            return
        for part, answer in one.results.items():
            if integer(answer, "error_code", -1) == 0:
                log = self.logs[part]
                log.settled_t = min(log.settled_t, one.answer_t)

    def _delete_records(self, one: Exchange) -> None:
        for part, _, said in one.pairs:
            self.logs[part].deletes_t.append(one.t)
            if one.answer_t is not None and integer(said, "error_code", -1) == 0:
                self.logs[part].low.append((one.answer_t, integer(said, "low_watermark")))

    def _metadata(self, one: Exchange) -> None:
        if one.answer_t is None:
            return
        asked = {text(topic, "name") for topic in items(one.body, "topics")}
        for topic in items(one.got, "topics"):
            name = text(topic, "name")
            if (
                name in asked
                and one.body.get("allow_auto_topic_creation", True)
                and not integer(topic, "error_code")
            ):
                made = self.topics.setdefault(name, Topic(name))
                made.asked_t = min(made.asked_t, one.t)
                made.made_t = made.made_t or one.answer_t
            for partition in items(topic, "partitions"):
                part = Part(name, integer(partition, "partition_index"))
                if "leader_epoch" in partition:
                    self.epochs[part].append((one.t, one.answer_t, integer(partition, "leader_epoch")))
                self.insync[part].append((one.t, one.answer_t, _length(partition, "isr_nodes")))
                self.leaders[part].append((one.answer_t, integer(partition, "leader_id", -1)))


def limit(configs: Mapping[str, str], setting: str, default: int) -> int:
    """The value of a setting that is a number of Kafka's, which has fewer than 20 digits."""
    value = configs.get(setting, "")
    return int(value) if value.isdecimal() and len(value) < 20 else default


def asked_and_told(one: Exchange) -> Iterator[tuple[Body, Body]]:
    """A request with its response. A request about the offsets of several groups is split by group. A DeleteTopics
    names all its topics in one list."""
    got = one.got or {}
    if one.api == "delete_topics" and one.body.get("topics"):
        yield {"topic_names": [text(x, "name") for x in items(one.body, "topics")]}, got
        return
    if one.api not in ("offset_fetch", OF_LAG) or "groups" not in one.body:
        yield one.body, got
        return
    told = {text(said, "group_id"): said for said in items(got, "groups")}
    yield from ((asked, told.get(text(asked, "group_id"), {})) for asked in items(one.body, "groups"))


def produced(one: Exchange) -> Iterator[tuple[Part, list[Body], Body | None]]:
    """The partitions of a produce, each with its batches and its part of the response."""
    return ((part, list(items(asked, "records")), said) for part, asked, said in one.pairs)


def summed(batches: Iterable[Body], name: str) -> int:
    """The sum of a field (`count`, `bytes`) over batches."""
    return sum(integer(batch, name) for batch in batches)


def written_by(batches: Iterable[Body]) -> Written:
    """The producer and the sequence number of the first batch."""
    first = next(iter(batches), {})
    written = Written(*(integer(first, name, -1) for name in Written._fields))
    return written if written.producer_id >= 0 else BY_NOBODY


def transactional(batches: Iterable[Body]) -> bool:
    return any(batch.get("transactional") for batch in batches)


def corrupt(batches: Iterable[Body]) -> bool:
    return any(batch.get("corrupt") for batch in batches)


def settled_parts(
    one: Exchange, topics: Topics, *, replicated: bool = False
) -> Iterator[tuple[Part, Body, Body | None]]:
    """The partitions of a request by `partition_index` whose history is known: one replica (or several, if allowed), no
    deletion, a settled log. Each comes with its request and its response."""
    for part, asked, said in one.pairs:
        known = topics.topics.get(part.topic)
        if known is None or known.delete_t is not None or (known.replicas > 1) is not replicated:
            continue
        if topics.logs[part].settled_t <= one.t:
            yield part, asked, said


def _length(body: Body, name: str) -> int:
    value = body.get(name)
    return len(value) if isinstance(value, list) else 0
