"""`OffsetMetadata`: an offset with its place in the log (Kafka's LogOffsetMetadata).

An offset alone does not say how many bytes lie before another; its segment and the position there do. A follower
learns its leader's high watermark as a bare offset, without a place: then the distance is unknown, and must not be
taken for 0 bytes, nor for enough.
"""

from dataclasses import dataclass

__all__ = ["OffsetMetadata"]


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """`segment_base`: the first offset of its segment; `position_bytes`: where it begins there. None: unknown."""

    offset: int
    segment_base: int | None = None
    position_bytes: int | None = None

    def is_on_older_segment(self, other: "OffsetMetadata") -> bool:
        """Whether its segment is known to be before that of `other`."""
        if self.segment_base is None or other.segment_base is None:
            return False
        return self.segment_base < other.segment_base

    def bytes_until(self, other: "OffsetMetadata") -> int | None:
        """The bytes from here to `other` in the same segment; None where a place is unknown or they differ."""
        if self.segment_base is None or self.segment_base != other.segment_base:
            return None
        if self.position_bytes is None or other.position_bytes is None:
            return None
        return other.position_bytes - self.position_bytes
