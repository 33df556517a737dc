"""The requests and responses of one scene of a trace: exchanges, connections, and typed views of message bodies.

The bodies are untrusted input. A field that is missing or has a wrong type counts as zero. If a body cannot be decoded,
no clause judges the request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from purgatorio_wire.history.bound import MS
from purgatorio_wire.sentence import WAYS
from purgatorio_wire.trace.record import RENAMED, Body, WireEvent

LOADING: Final = frozenset({14, 15, 16})
"""The coordinator is not available yet (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)."""
EXCUSED: Final[Mapping[int, str]] = {
    **dict.fromkeys((5, 6, 9, 13, 56, 72, 74, 78), "the leader moved"),
    **dict.fromkeys((29, 30, 31, 53), "the client is not allowed to"),
    **dict.fromkeys((10, 18, 87), "the broker is set up to refuse such records"),
    26: "the session time-out is outside of the broker's bounds", 32: "the clocks of broker and client differ",
    44: "a policy of the broker forbids it", 81: "the broker limits the members of a group",
    89: "the broker's quota is used up",
}  # fmt: skip
"""The errors that are unrelated to the tested promise, with their meaning."""
BUSY: Final = frozenset({7, 8, 41, *EXCUSED})
"""The controller did not answer in time, is missing or has changed, or throttles the client."""
END_OF_TIME: Final = 1 << 62
OF_2_0: Final[Mapping[str, int]] = {
    "join_group": 3, "sync_group": 2, "heartbeat": 2, "leave_group": 2, "offset_commit": 4,
}  # fmt: skip
"""The first request versions of Kafka 2.0. A broker may check older versions less."""
COMMITS: Final = ("offset_commit", "txn_offset_commit")
"""The requests that commit offsets: directly, or with a transaction."""
LIST: Final = "list_groups"
DELETE_OFFSETS: Final = "offset_delete"
ABOUT_GROUPS: Final[Mapping[str, str]] = {
    "describe_groups": "groups", "delete_groups": "results", LIST: "groups",
}  # fmt: skip
"""The requests about groups, with the list of groups in the response."""
_OF_FIRST: Final = (*COMMITS, "leave_group", "describe_groups", "delete_groups")
"""The requests whose error is that of the first part of the response."""
_NAMES_GROUP: Final[Mapping[str, str]] = {
    **dict.fromkeys(("join_group", "sync_group", "heartbeat", "leave_group", *COMMITS, DELETE_OFFSETS), "group_id"),
    "describe_groups": "groups", "delete_groups": "groups_names", LIST: "",
}  # fmt: skip
"""The requests to a group, with the field that names the group."""
OF_LAG: Final = "describe_share_group_offsets"
ALTERS, FORGETS = "alter_share_group_offsets", "delete_share_group_offsets"
"""The requests that change the start offsets of a share group without members."""
Names = tuple[str, str, str, str]
"""The fields of: the list of topics, a topic's name, its list of partitions, a partition's number."""
FORGOTTEN: Final = ("forgotten_topics_data", "topic", "partitions", "")
OTHERS: Final = (("topics", "name", "partitions", "partition_index"),) * 2
NAMED: Final[Mapping[str, tuple[Names, Names]]] = {
    "produce": (
        ("topic_data", "name", "partition_data", "index"), ("responses", "name", "partition_responses", "index"),
    ),
    "fetch": (
        ("topics", "topic", "partitions", "partition"), ("responses", "topic", "partitions", "partition_index"),
    ),
    **dict.fromkeys(
        ("share_fetch", "share_acknowledge"),
        (("topics", "topic", "partitions", "partition_index"), ("responses", "topic", "partitions", "partition_index")),
    ),
    "list_offsets": OTHERS, "delete_records": OTHERS,
    "offset_commit": OTHERS, "offset_delete": OTHERS,
    "add_partitions_to_txn": (
        ("v3_and_below_topics", "name", "partitions", ""),
        ("results_by_topic_v3_and_below", "name", "results_by_partition", "partition_index"),
    ),
    "txn_offset_commit": OTHERS,
    "offset_fetch": (("topics", "name", "partition_indexes", ""), OTHERS[1]),
    **dict.fromkeys(
        ("create_topics", "metadata"), (("topics", "name", "", ""),) * 2
    ),
    "delete_topics": (("topic_names", "", "", ""), ("responses", "name", "", "")),
    "create_partitions": (("topics", "name", "", ""), ("results", "name", "", "")),
    "leave_group": (("members", "member_id", "", ""),) * 2,
    "describe_groups": (("groups", "", "", ""), ("groups", "group_id", "", "")),
    "delete_groups": (("groups_names", "", "", ""), ("results", "group_id", "", "")),
    **dict.fromkeys(
        ("consumer_group_describe", "share_group_describe", "streams_group_describe"),
        (("group_ids", "", "", ""), ("groups", "group_id", "", ""))
    ),
    "describe_configs": (("resources", "resource_name", "", ""), ("results", "resource_name", "", "")),
    **dict.fromkeys(
        ("incremental_alter_configs", "alter_configs"),
        (("resources", "resource_name", "", ""), ("responses", "resource_name", "", "")),
    ),
    "describe_producers": ((*OTHERS[0][:2], "partition_indexes", ""), OTHERS[1]),
    "describe_transactions": (
        ("transactional_ids", "", "", ""), ("transaction_states", "transactional_id", "", ""),
    ),
    ALTERS: (
        ("topics", "topic_name", "partitions", "partition_index"),
        ("responses", "topic_name", "partitions", "partition_index"),
    ),
    FORGETS: (("topics", "topic_name", "", ""), ("responses", "topic_name", "", "")),
    OF_LAG: (
        ("topics", "topic_name", "partitions", ""), ("topics", "topic_name", "partitions", "partition_index"),
    ),
    "elect_leaders": (
        ("topic_partitions", "topic", "partitions", ""),
        ("replica_election_results", "topic", "partition_result", "partition_id"),
    ),
    "offset_for_leader_epoch": (("topics", "topic", "partitions", "partition"),) * 2,
    "find_coordinator": (("coordinator_keys", "", "", ""), ("coordinators", "key", "", "")),
}  # fmt: skip
"""For requests about several topics, partitions, members or groups: the names of these fields in the request and in the
response. A name of "" means the strings of a list themselves; a number of "" with partitions means their numbers."""


def integer(body: Mapping[str, object] | None, name: str, default: int = 0) -> int:
    value = None if body is None else body.get(name)
    return value if isinstance(value, int) else default


def text(body: Mapping[str, object] | None, name: str) -> str:
    value = None if body is None else body.get(name)
    return value if isinstance(value, str) else ""


def items(body: Mapping[str, object] | None, name: str) -> Iterator[Body]:
    value = None if body is None else body.get(name)
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))


def texts(body: Mapping[str, object] | None, name: str) -> Iterator[str]:
    value = None if body is None else body.get(name)
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def integers(body: Mapping[str, object] | None, name: str) -> Iterator[int]:
    value = None if body is None else body.get(name)
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, int))


class Part(NamedTuple):
    topic: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


def parts(body: Body | None, names: Names) -> Iterator[tuple[Part, Body]]:
    """The partitions in a request or a response, each with its body. The number is 0 if there is none."""
    topics, name, partitions, number = names
    if not name:
        yield from ((Part(one, 0), {}) for one in texts(body, topics))
    for topic in items(body, topics):
        if partitions and not number:
            yield from ((Part(text(topic, name), one), {}) for one in integers(topic, partitions))
        else:
            for each in items(topic, partitions) if partitions else (topic,):
                yield Part(text(topic, name), integer(each, number)), each


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of a connection: the event, the time, the side that closed it, and the reason if known."""

    i: int
    t: int
    by: str
    err: str


@dataclass(slots=True)
class Exchange:
    """One request and its response. `t` is before the send. `answer_t` is None without a response.

    `watched_t`: a response would have been recorded until this time.
    """

    i: int
    t: int
    conn: str
    corr: int
    api: str
    version: int
    body: Body
    answer: WireEvent | None = None
    again: list[WireEvent] = field(default_factory=list)
    watched_t: int = 0
    closed: Closed | None = None
    behind: bool = False
    """At the send, another request of the connection waited, or a quota delayed the connection. The broker may handle
    this request only afterwards."""
    held_t: int = -1
    """A quota may delay the connection until this time. After an append with acks=0, the delay is unknown, so it counts
    as endless."""
    session_error: int = 0
    """The expected error of a fetch with an unknown session or a wrong epoch."""
    session: int = 0
    """For an incremental fetch, the id of its session."""
    session_t: int = 0
    """The start of this session."""
    at_second: bool = False
    """The request was sent to the second broker, which may be a follower."""
    done_t: int | None = None
    """The broker has certainly handled the request by this time: the time of its response, or, if none is due, of the
    response to the next request of the connection."""

    @property
    def answer_t(self) -> int | None:
        """The time at which the response was read."""
        return None if self.answer is None else self.answer.t

    @property
    def until_t(self) -> int:
        """The time at which the response was read, or the end of the recording."""
        return self.answer_t or self.watched_t

    @property
    def ended_t(self) -> int:
        """The time at which the response was read, or END_OF_TIME."""
        return self.answer_t or END_OF_TIME

    @property
    def got(self) -> Body | None:
        """The fields of the response. None if there is none, or it cannot be decoded."""
        return None if self.answer is None else self.answer.body

    @property
    def owed(self) -> bool:
        """Whether a response is due: to every request except a produce with acks 0."""
        return not (self.api == "produce" and integer(self.body, "acks", 1) == 0)

    @property
    def unread(self) -> bool:
        """Whether the response cannot be decoded. X3 judges this, and no other clause does."""
        return self.answer is not None and self.answer.body is None

    @property
    def throttled_ms(self) -> int:
        """The time by which a quota delays the connection after the response."""
        return integer(self.got, "throttle_time_ms")

    @property
    def error(self) -> int:
        """The error code of the response, or of the first partition, member or group in it; 0 if there is none."""
        own = integer(self.got, "error_code")
        if own or self.api not in _OF_FIRST:
            return own
        return integer(next((said for _, said in parts(self.got, NAMED[self.api][1])), None), "error_code")

    @property
    def requested(self) -> list[tuple[Part, Body]]:
        """The partitions (or topics, members, groups) that the request names, each with its part of the request."""
        return [*parts(self.body, NAMED[self.api][0])]

    @property
    def results(self) -> dict[Part, Body]:
        """The parts of the response about them."""
        return dict(parts(self.got, NAMED[self.api][1]))

    @property
    def codes(self) -> dict[Part, int]:
        """Their error codes."""
        told = self.results.items()
        return {x: integer(said, "error_code") or integer(said, "partition_error_code") for x, said in told}

    @property
    def pairs(self) -> list[tuple[Part, Body, Body | None]]:
        """What the request names, each with its part of the request and of the response."""
        results = self.results
        return [(part, asked, results.get(part)) for part, asked in self.requested]

    # The fields of requests to groups.

    @property
    def member(self) -> str:
        return text(self.body, "member_id")

    @property
    def instance(self) -> str:
        return text(self.body, "group_instance_id")

    @property
    def number(self) -> int:
        """The generation id of a sync, a heartbeat or a commit. -1 if there is none."""
        return integer(self.body, "generation_id", integer(self.body, "generation_id_or_member_epoch", -1))

    @property
    def session_ms(self) -> int:
        return integer(self.body, "session_timeout_ms")

    @property
    def session_asked_ms(self) -> int | None:
        """The session time-out of a join. None for other requests."""
        return self.session_ms if self.api == "join_group" else None

    @property
    def rebalance_ms(self) -> int:
        """The rebalance time-out of a join. Before version 1, the session time-out."""
        given = integer(self.body, "rebalance_timeout_ms", -1)
        return given if given >= 0 else self.session_ms

    @property
    def protocols(self) -> dict[str, str]:
        """The protocols of a join, each with its metadata (the subscription)."""
        return {text(one, "name"): text(one, "metadata") for one in items(self.body, "protocols")}

    @property
    def names_no_protocol(self) -> bool:
        """Whether a join has no protocols, or no protocol type."""
        none = "protocols" in self.body and not any(items(self.body, "protocols"))
        return none or self.body.get("protocol_type") == ""

    def apart(self, other: Exchange) -> bool:
        """Whether two joins cannot be in one group: they have no common protocol, or different protocol types."""
        kinds = {text(one.body, "protocol_type") for one in (self, other)}
        return len(kinds) > 1 or not {*self.protocols} & {*other.protocols}

    @property
    def leavers(self) -> list[str]:
        """The members in a LeaveGroup. Empty for other requests."""
        if self.api != "leave_group":
            return []
        return [text(one, "member_id") for one in items(self.body, "members")] or [self.member]

    @property
    def left_with(self) -> dict[str, int]:
        """The error code of each leaving member. Before version 3, all members have one error code."""
        told = {text(said, "member_id"): integer(said, "error_code") for said in items(self.got, "members")}
        return {member: told.get(member, self.error) for member in self.leavers}

    @property
    def of_a_member(self) -> bool:
        """Whether the request has a member id. From version 4 on, a join without a member id starts no rebalance."""
        named = self.member or self.instance or self.leavers
        return bool(named) or (self.api == "join_group" and self.version < 4)

    @property
    def answered(self) -> bool:
        return self.got is not None and self.error == 0

    @property
    def joined(self) -> bool:
        """Whether the request is a join whose response has a generation."""
        return self.api == "join_group" and self.answered

    @property
    def given(self) -> str:
        """The member id in the response to a join."""
        return text(self.got, "member_id")

    @property
    def generation(self) -> int:
        """The generation id in the response to a join. -1 if there is none."""
        return integer(self.got, "generation_id", -1)

    @property
    def leader(self) -> str:
        return text(self.got, "leader")

    @property
    def protocol(self) -> str:
        return text(self.got, "protocol_name")

    def id_over_t(self, latest: bool = False) -> int:
        """The earliest expiry of the session of the member id from this join, if the member sends no request. `latest`:
        the latest expiry."""
        return (self.ended_t if latest else self.t) + self.session_ms * MS

    @property
    def events(self) -> tuple[int, ...]:
        return (self.i,) if self.answer is None else (self.i, self.answer.i)

    @property
    def wait_ms(self) -> int:
        """The maximum wait of the request, by its own fields."""
        if self.api in ("fetch", "share_fetch"):
            return integer(self.body, "max_wait_ms")
        if self.api == "join_group":
            return max(
                integer(self.body, "rebalance_timeout_ms", -1), integer(self.body, "session_timeout_ms")
            )
        return max(integer(self.body, "timeout_ms"), 0)


@dataclass(slots=True)
class Lane:
    """One connection: its requests and responses in order."""

    name: str
    requests: list[Exchange] = field(default_factory=list)
    answers: list[WireEvent] = field(default_factory=list)
    closed: Closed | None = None
    refused: str = ""


@dataclass(slots=True)
class Scene:
    """The events of one repetition of a scene. `end_t`: the end of its recording."""

    name: str
    lanes: dict[str, Lane]
    exchanges: list[Exchange]
    stimuli: list[WireEvent]
    end_t: int

    @property
    def base(self) -> str:
        """The name without the repetition, because rows of repetitions count as rows of one scene."""
        return self.name.partition("#")[0]

    @property
    def asked(self) -> set[tuple[str, str]]:
        """The clauses that the scene tests, each with a kind of violation, or "" for any kind. A kind of another
        version of Purgatorio counts as any. Empty if the scene found no coordinator: the end record says why."""
        if self.without_coordinator:
            return set()
        said = (text(one.body, "text") for one in self.stimuli if text(one.body, "what") == "asks")
        kinds = (kind.partition(" ") for kind in said)
        asked = ((RENAMED.get(clause, clause), cause) for clause, _, cause in kinds)
        return {(clause, cause if cause in WAYS.get(clause, ()) else "") for clause, cause in asked}

    @property
    def held_up_ms(self) -> int:
        """The longest delay by a quota that the scene itself did not set."""
        own = {text(one.body, "conn") for one in self.stimuli if text(one.body, "what") == "quota"}
        return max((one.throttled_ms for one in self.exchanges if one.conn not in own), default=0)

    @property
    def without_coordinator(self) -> bool:
        """Whether the scene requested a coordinator and found none."""
        looked = self.of("find_coordinator")
        told = [said for one in looked for said in ([*items(one.got, "coordinators")] or [one.got or {}])]
        return bool(looked) and all(integer(said, "error_code", 15) in LOADING for said in told)

    @property
    def stopped(self) -> list[tuple[int, int]]:
        """The times in which a replica was certainly stopped."""
        spans: list[tuple[int, int]] = []
        begun: int | None = None
        for event in self.stimuli:
            what = text(event.body, "what")
            if what == "stopped":
                begun = event.t
            elif what == "continues" and begun is not None:
                spans.append((begun, event.t))
                begun = None
        return [*spans, (begun, self.end_t)] if begun is not None else spans

    def continued_t(self, end: int) -> int:
        """The time at which a replica that was stopped until `end` certainly runs again. The command that resumes it
        may take some time."""
        return min(
            (x.t for x in self.stimuli if x.t >= end and text(x.body, "what") == "continued"), default=end
        )

    def of(self, *apis: str) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in apis]

    def set_t(self, group: str, setting: tuple[str, str]) -> int:
        """The time at which the broker accepted a setting of a group."""
        return min(
            (
                one.ended_t
                for one in self.of("incremental_alter_configs")
                for asked in items(one.body, "resources")
                if text(asked, "resource_name") == group
                and setting in ((text(x, "name"), text(x, "value")) for x in items(asked, "configs"))
                and not any(integer(said, "error_code") for said in items(one.got, "responses"))
            ),
            default=END_OF_TIME,
        )

    def by_group(self) -> dict[str, list[Exchange]]:
        """The exchanges of each consumer group. A request about several groups is split by group. The empty name is no
        group: a broker refuses it."""
        found: dict[str, list[Exchange]] = defaultdict(list)
        for one in self.exchanges:
            if one.api == LIST:
                for group, exchanges in found.items():
                    exchanges.append(_about(one, group))
            elif names := _NAMES_GROUP.get(one.api):
                asked = [text(one.body, names), *texts(one.body, names)]
                said = [*filter(None, asked)]
                for group in said:
                    found[group].append(one if len(said) == 1 else _about(one, group))
        return found


def _about(one: Exchange, group: str) -> Exchange:
    """The part of a request about several groups, and of its response, that is about one group."""
    body = {**one.body, _NAMES_GROUP[one.api]: [group]}
    if one.answer is None or one.answer.body is None:
        return replace(one, body=body)
    told, got = ABOUT_GROUPS[one.api], one.answer.body
    narrow = {**got, told: [said for said in items(got, told) if text(said, "group_id") == group]}
    return replace(one, body=body, answer=replace(one.answer, body=narrow))
