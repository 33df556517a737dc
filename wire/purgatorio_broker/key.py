"""The keys under which operations wait. Keys of different kinds are never equal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition. Produce, Fetch, DeleteRecords and elections wait under this key."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic. Its creation and deletion wait under this key."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupJoinKey:
    """A group. The joins of a rebalance wait under this key."""

    group: str


@dataclass(frozen=True, slots=True)
class GroupSyncKey:
    """A group. The syncs of its members wait under this key."""

    group: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class ShareGroupKey:
    """A partition in a share group. Checked after acknowledgements, releases, and the end of fetches."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class SharePartitionKey:
    """A partition for all share groups. Checked after a change of the high watermark or of the leader."""

    partition: TopicPartition
