"""The keys under which operations wait. Keys of different kinds are never equal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition; produce, fetch, delete-records and elections wait under it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic; its creation and deletion wait under it."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupJoinKey:
    """The rebalance of a group: its members' joins."""

    group: str


@dataclass(frozen=True, slots=True)
class GroupSyncKey:
    """The members' syncs of a group."""

    group: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class ShareGroupKey:
    """A partition as a share group sees it: acknowledgements, releases, fetches that ended."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class SharePartitionKey:
    """A partition as all share groups see it: its high watermark and its leadership."""

    partition: TopicPartition
