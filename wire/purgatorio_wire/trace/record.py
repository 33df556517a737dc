"""The kinds of records in a wire trace (`purgatorio-wire/1`): a header, events and an end record. The events:

    open      a connection was made. `err`: the connection was refused
    request   `t` is the time before the send. `body` has Kafka's own fields, with names in snake case
    answer    `t` is the time at which the whole response was read. `c` is the `i` of its request, absent without one.
              `err`: why the response cannot be decoded. `left`: the number of bytes after the body
    close     `by` this client or the peer
    stimulus  an action outside of the connections, in `body`: a replica was stopped, or open files were counted.
              `{"what": "asks", "text": "G6 late"}` is no action: it notes a clause (and a cause) that the scene tests
    control   from `t_from` to `t`: the worst lateness of this client (`late_ns`), and the longest round trip (`rtt_ns`)

The events of one scene have its name and the number of its repetition, such as `idle-fetch#2`. Times are in
nanoseconds, of the client's clock.

If no caller waited for a response and its connection was closed, the response may be missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from purgatorio_spec.trace.record import MAX_INT, MIN_INT

FORMAT: Final = "purgatorio-wire/1"
PROFILE: Final = "wire"
"""The profile in results of a broker: the promises of a broker to its clients."""

DRAWN: Final = "drawn"
"""The random scenes, each with a number: `drawn#17`."""

Kind = Literal["open", "request", "answer", "close", "stimulus", "control"]
Int = Annotated[int, Meta(ge=MIN_INT, le=MAX_INT)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
MAX_EVENTS: Final = 2_000_000
"""A longer trace is not judged: a run is a minute or two of a few thousand requests a second."""

SECOND: Final[Mapping[str, str]] = {
    "second": "second", "second_pid": "second-pid", "second_stop": "stop-command", "second_go_on": "continue-command",
}  # fmt: skip
"""The second broker in a header, and the options of `purgatorio wire` for it."""
RENAMED: Final[Mapping[str, str]] = {f"P{number}": f"M{number}" for number in range(1, 8)}
"""Clauses that traces of before name by ids that clauses of purgatories have as well."""

Body = Mapping[str, object]


class Written(NamedTuple):
    """The producer of a batch, its epoch, and the sequence number of the first record; -1 without an idempotent
    producer."""

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1


BY_NOBODY: Final = Written()
SEQUENCES: Final = 1 << 31
"""After the last sequence number comes 0."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Constants of the broker, in milliseconds. `initial_delay_ms` is group.initial.rebalance.delay.ms; None if it
    is unknown. `late_ms`: the allowed lateness of every response; `late_topics_ms`: after creating or deleting a
    topic, and after a replica continues. `session_least_ms` and `session_most_ms`: the bounds of a session;
    `note_most_bytes`: the limit of the metadata of a committed offset; `deliveries_most`: how often a share group
    delivers a record; `consumer_session_ms`, `share_session_ms`: the session time-outs of consumer groups (KIP-848) and
    of share groups; `replica_lag_ms`: the time after which a replica that does not fetch leaves the in-sync set;
    `transaction_most_ms`: the longest transaction time-out. They are None if unknown."""

    late_ms: Count = 100
    late_topics_ms: Count = 2000
    initial_delay_ms: Count | None = None
    session_least_ms: Count | None = None
    session_most_ms: Count | None = None
    note_most_bytes: Count | None = None
    deliveries_most: Count | None = None
    consumer_session_ms: Count | None = None
    share_session_ms: Count | None = None
    replica_lag_ms: Count | None = None
    transaction_most_ms: Count | None = None

    def refuses_session(self, asked_ms: int | None) -> bool:
        """Whether a session of this time-out is outside of the bounds."""
        least, most = self.session_least_ms, self.session_most_ms
        return asked_ms is not None and (
            (least is not None and asked_ms < least) or (most is not None and asked_ms > most)
        )


@dataclass(frozen=True, slots=True)
class WireHeader:
    """Line 1. `broker`: its address and its own description. `versions`: the first and last version of each API.
    `client`: the recording machine. `params`: the parameters of the run."""

    run: str
    broker: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, tuple[Int, Int]] = field(default_factory=dict)
    declared: Declared = field(default_factory=Declared)
    client: Mapping[str, object] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WireEvent:
    """One event. The docstring of the module lists its fields."""

    i: Count
    t: Int
    ev: Kind
    conn: str = ""
    scene: str = ""
    corr: Int | None = None
    c: Int | None = None
    api: str | None = None
    version: Int | None = None
    body: Body | None = None
    by: str | None = None
    err: str | None = None
    left: Int | None = None
    t_from: Int | None = None
    late_ns: Int | None = None
    rtt_ns: Int | None = None


@dataclass(frozen=True, slots=True)
class WireEnd:
    """The last record. `skipped`: the clauses that a scene cannot test on this broker, with the reason. `lost`: the
    clauses of scenes that did not end."""

    events: Count
    dropped: Count = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


WireRecord = WireHeader | WireEvent | WireEnd
