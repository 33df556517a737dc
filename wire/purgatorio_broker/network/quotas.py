"""Quotas of clients (KIP-219, KIP-599): bytes per second sent or received, partitions created per second, and the
throttle time of a client that exceeds them."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

PRODUCER, CONSUMER, CREATOR = "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"
WINDOW_S: Final = 10.0
"""The time for which an unused part of a quota is kept, like Kafka's eleven samples of one second."""


class Quotas:
    """Bytes or partitions per second, for each client id and kind. A client without a quota is never throttled."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._rates: dict[tuple[str, str], float] = {}
        self._paid_s: dict[tuple[str, str], float] = {}

    def alter(self, client: str, kind: str, per_s: float | None) -> None:
        """Sets the quota, or removes it (None)."""
        with self._lock:
            self._paid_s.pop((client, kind), None)
            if per_s is None:
                self._rates.pop((client, kind), None)
            else:
                self._rates[client, kind] = per_s

    def throttle_ms(self, client: str, kind: str, size: int, *, strict: bool = False) -> int:
        """Counts bytes or partitions of a client. Returns the throttle time; 0 if the client is within its quota.
        `strict`: a client that is above its quota already is refused, and nothing is counted; others get 0."""
        with self._lock:
            rate = self._rates.get((client, kind))
            if rate is None:
                return 0
            now = self._clock()
            before = max(self._paid_s.get((client, kind), 0.0), now - WINDOW_S)
            refused = strict and before > now
            paid = self._paid_s[client, kind] = before + (0 if refused else size / rate)
            return 0 if strict and not refused else max(0, round((paid - now) * 1000))
