"""The settings of a broker. The defaults are Kafka's defaults, except for noted differences."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Kafka does not have `max_connections`, `max_partitions` and `max_stored_bytes`. This broker needs them, because
    all data is in memory and clients are not trusted."""

    host: str = "127.0.0.1"
    port: int = 9092
    node_id: int = 0
    initial_delay_ms: int = 3000
    session_bounds_ms: tuple[int, int] = (6_000, 1_800_000)
    min_in_sync: int = 1
    default_partitions: int = 1
    auto_create: bool = True
    replica_lag_ms: int = 30_000
    share_lock_ms: int = 30_000
    max_message_bytes: int = 1 << 20
    max_request_bytes: int = 16 << 20
    max_fetch_bytes: int = 55 << 20
    idle_ms: int = 600_000
    max_connections: int = 1_000
    max_partitions: int = 2_000
    max_groups: int = 2_000
    max_stored_bytes: int = 1 << 30
