"""The possible states of a partition that a waiting request names, shared by several tables."""

from enum import Enum


class Replica(Enum):
    """The place of the partition's replica, as seen from the broker of the waiting request."""

    LEADS = "here, and leads"
    FOLLOWS = "here, and follows"
    ELSEWHERE = "not here any more"
    UNKNOWN = "the broker does not know the partition"
    OFFLINE = "in a directory that is offline"


REFUSALS = {
    Replica.FOLLOWS: "NOT_LEADER_OR_FOLLOWER",
    Replica.ELSEWHERE: "NOT_LEADER_OR_FOLLOWER",
    Replica.UNKNOWN: "UNKNOWN_TOPIC_OR_PARTITION",
    Replica.OFFLINE: "KAFKA_STORAGE_ERROR",
}
"""The error for the client that needs a leader."""
