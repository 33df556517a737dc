"""Quotas of clients (KIP-219): how many bytes a second one may produce, and for how long it is held up above that."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

WINDOW_S: Final = 10.0
"""What was not used is kept for so long, as Kafka's eleven samples of a second are."""


class Quotas:
    """Bytes a second by client id; who has none is never held up."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._rates: dict[str, float] = {}
        self._paid_s: dict[str, float] = {}

    def alter(self, client: str, bytes_per_s: float | None) -> None:
        """Let it have so many, or, by None, any number."""
        with self._lock:
            self._paid_s.pop(client, None)
            if bytes_per_s is None:
                self._rates.pop(client, None)
            else:
                self._rates[client] = bytes_per_s

    def throttle_ms(self, client: str, size_bytes: int) -> int:
        """How long who has sent so much is to be held up; 0 while it keeps its quota."""
        with self._lock:
            rate = self._rates.get(client)
            if rate is None:
                return 0
            now = self._clock()
            paid = max(self._paid_s.get(client, 0.0), now - WINDOW_S) + size_bytes / rate
            self._paid_s[client] = paid
            return max(0, round((paid - now) * 1000))
