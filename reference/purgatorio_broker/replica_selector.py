"""Which replica a consumer is sent to: one near it, if one has what it asks for (KIP-392, Kafka's
RackAwareReplicaSelector).

The leader answers every consumer that asks it, unless a follower stands in the consumer's rack: then it answers at once
with that replica's id and no records, and nothing waits.
"""

from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["ReplicaView", "nearest_replica"]


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica in sync that has the offset which is asked for. `rack`: "" where nobody knows."""

    replica: int
    rack: str
    log_end: int


def nearest_replica(rack: str, leader: int, candidates: Collection[ReplicaView]) -> int | None:
    """The follower to be read from; None: the leader itself. In the consumer's rack, and of those the one with the
    longest log, then the smallest id; never where the leader is in that rack itself."""
    near = [view for view in candidates if rack and view.rack == rack]
    if not near or any(view.replica == leader for view in near):
        return None
    return min(near, key=lambda view: (-view.log_end, view.replica)).replica
