"""The requests and responses of one scene of a trace: exchanges, connections, and typed views of message bodies.

Bodies are untrusted. A field that is missing or has a wrong type reads as zero. If a body cannot be understood, no
clause has an occasion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from purgatorio_wire.history.bound import MS
from purgatorio_wire.history.violation_kind import WAYS
from purgatorio_wire.trace.record import RENAMED, Body, WireEvent

LOADING: Final = frozenset({14, 15, 16})
"""The coordinator is not there yet (COORDINATOR_LOAD_IN_PROGRESS, _NOT_AVAILABLE, NOT_COORDINATOR)."""
EXCUSED: Final[Mapping[int, str]] = {
    **dict.fromkeys((5, 6, 9, 13, 56, 72, 74, 78), "the leader moved"),
    **dict.fromkeys((29, 30, 31, 53), "the client is not allowed to"),
    **dict.fromkeys((10, 18, 87), "the broker is set up to refuse such records"),
    26: "the session time-out is outside of the broker's bounds",
    32: "the clocks of broker and client differ",
    44: "a policy of the broker forbids it",
    81: "the broker limits the members of a group",
    89: "the broker's quota is used up",
}
"""Errors that are unrelated to the tested promise, and what they mean."""
BUSY: Final = frozenset({7, 8, 41, *EXCUSED})
"""The controller did not answer in time, is not there or another, or is asked too often."""
END_OF_TIME: Final = 1 << 62
OF_2_0: Final[Mapping[str, int]] = {
    "join_group": 3, "sync_group": 2, "heartbeat": 2, "leave_group": 2, "offset_commit": 4,
}  # fmt: skip
"""The first versions of Kafka 2.0. What is asked in older ones may be answered by a broker that checks less."""
COMMITS: Final = ("offset_commit", "txn_offset_commit")
"""By what a group says how far it has read: at once, or with a transaction."""
LIST: Final = "list_groups"
ABOUT_GROUPS: Final[Mapping[str, str]] = {
    "describe_groups": "groups", "delete_groups": "results", LIST: "groups",
}  # fmt: skip
"""What is asked about groups, and where the answer says it of each."""
_NAMES_GROUP: Final[Mapping[str, str]] = {
    **dict.fromkeys(("join_group", "sync_group", "heartbeat", "leave_group", *COMMITS), "group_id"),
    "describe_groups": "groups", "delete_groups": "groups_names", LIST: "",
}  # fmt: skip
"""What is asked of a group, and the field that names it."""


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


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of a connection: when, by which side, and why if known."""

    i: int
    t: int
    by: str
    err: str


@dataclass(slots=True)
class Exchange:
    """One request and what came back. `t` is before its send; `answer_t` is None where nothing came.

    `watched_t`: until when an answer would have been seen.
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
    """The connection was busy when it was sent, with another request that waited or by a quota: a broker may only begin
    with it afterwards."""
    held_t: int = -1
    """Until when a quota may hold the connection up: for ever behind an append with acks 0, of which it is not told."""
    session_error: int = 0
    """Of a fetch of a session that is not there, or out of its turn."""
    session: int = 0
    """Of a fetch that is the next one of a session, and says what has changed in it: its number."""
    session_t: int = 0
    """When that session was begun."""
    at_second: bool = False
    """It was asked of the second broker, which may follow where the first one leads."""
    done_t: int | None = None
    """When it surely was dealt with: by its answer, or, where none is owed, by that to the next of its connection."""

    @property
    def answer_t(self) -> int | None:
        """When the answer had been read."""
        return None if self.answer is None else self.answer.t

    @property
    def until_t(self) -> int:
        """When the answer had been read, or until when it would have been."""
        return self.answer_t or self.watched_t

    @property
    def ended_t(self) -> int:
        """When the answer had been read, or never."""
        return self.answer_t or END_OF_TIME

    @property
    def got(self) -> Body | None:
        """The answer's fields, where it could be read."""
        return None if self.answer is None else self.answer.body

    @property
    def owed(self) -> bool:
        """Whether an answer is owed: to every request but a produce with acks 0."""
        return not (self.api == "produce" and integer(self.body, "acks", 1) == 0)

    @property
    def unread(self) -> bool:
        """Whether it was answered with what cannot be read: X3's, and nothing to any other thread."""
        return self.answer is not None and self.answer.body is None

    @property
    def throttled_ms(self) -> int:
        """How long a quota holds the connection up after the answer."""
        return integer(self.got, "throttle_time_ms")

    @property
    def error(self) -> int:
        """The error code of the whole answer, or of the first partition of a commit, the first member that leaves or
        the first group that is asked about; 0 where there is none."""
        got = self.got
        if self.api in COMMITS:
            got = next((part for topic in items(got, "topics") for part in items(topic, "partitions")), None)
        elif self.api in ABOUT_GROUPS:
            got = next(items(got, ABOUT_GROUPS[self.api]), None)
        elif self.api == "leave_group" and not integer(got, "error_code"):
            got = next(items(got, "members"), None)
        return integer(got, "error_code")

    # Of a group's requests.

    @property
    def member(self) -> str:
        return text(self.body, "member_id")

    @property
    def instance(self) -> str:
        return text(self.body, "group_instance_id")

    @property
    def number(self) -> int:
        """The generation that a sync, a heartbeat or a commit is sent in; -1 of none."""
        return integer(self.body, "generation_id", integer(self.body, "generation_id_or_member_epoch", -1))

    @property
    def session_ms(self) -> int:
        """What a join asks for, as its rebalance time-out."""
        return integer(self.body, "session_timeout_ms")

    @property
    def session_asked_ms(self) -> int | None:
        """The same; None of other requests."""
        return self.session_ms if self.api == "join_group" else None

    @property
    def rebalance_ms(self) -> int:
        """Before version 1 the session's."""
        given = integer(self.body, "rebalance_timeout_ms", -1)
        return given if given >= 0 else self.session_ms

    @property
    def protocols(self) -> dict[str, str]:
        """The protocols that a member has, and its subscription by each."""
        return {text(one, "name"): text(one, "metadata") for one in items(self.body, "protocols")}

    @property
    def names_no_protocol(self) -> bool:
        """Whether a join names no protocol, or not of which kind."""
        none = "protocols" in self.body and not any(items(self.body, "protocols"))
        return none or self.body.get("protocol_type") == ""

    def apart(self, other: Exchange) -> bool:
        """Whether two joins have no protocol in common, or theirs are of two kinds: they cannot be members of one
        group."""
        kinds = {text(one.body, "protocol_type") for one in (self, other)}
        return len(kinds) > 1 or not {*self.protocols} & {*other.protocols}

    @property
    def leavers(self) -> list[str]:
        """The members that a LeaveGroup names; empty for another request."""
        if self.api != "leave_group":
            return []
        return [text(one, "member_id") for one in items(self.body, "members")] or [self.member]

    @property
    def left_with(self) -> dict[str, int]:
        """The result of each; before version 3 there is one."""
        told = {text(said, "member_id"): integer(said, "error_code") for said in items(self.got, "members")}
        return {member: told.get(member, self.error) for member in self.leavers}

    @property
    def of_a_member(self) -> bool:
        """Whether a member asked: a join without any id begins no rebalance."""
        named = self.member or self.instance or self.leavers
        return bool(named) or (self.api == "join_group" and self.version < 4)

    @property
    def answered(self) -> bool:
        return self.got is not None and self.error == 0

    @property
    def joined(self) -> bool:
        """Whether it is a join that was answered with a generation."""
        return self.api == "join_group" and self.answered

    @property
    def given(self) -> str:
        """The member id that a join was answered with."""
        return text(self.got, "member_id")

    @property
    def generation(self) -> int:
        """That a join was answered with."""
        return integer(self.got, "generation_id", -1)

    @property
    def leader(self) -> str:
        return text(self.got, "leader")

    @property
    def protocol(self) -> str:
        """The chosen one."""
        return text(self.got, "protocol_name")

    def id_over_t(self, latest: bool = False) -> int:
        """When the session of the member id given by this join expires, unless the member sends a request: it runs
        since then. `latest`: the time at which it has certainly expired."""
        return (self.ended_t if latest else self.t) + self.session_ms * MS

    @property
    def events(self) -> tuple[int, ...]:
        return (self.i,) if self.answer is None else (self.i, self.answer.i)

    @property
    def wait_ms(self) -> int:
        """How long it may wait by its own words."""
        if self.api in ("fetch", "share_fetch"):
            return integer(self.body, "max_wait_ms")
        if self.api == "join_group":
            return max(
                integer(self.body, "rebalance_timeout_ms", -1), integer(self.body, "session_timeout_ms")
            )
        return max(integer(self.body, "timeout_ms"), 0)


@dataclass(slots=True)
class Lane:
    """One connection: its requests and answers in order."""

    name: str
    requests: list[Exchange] = field(default_factory=list)
    answers: list[WireEvent] = field(default_factory=list)
    closed: Closed | None = None
    refused: str = ""


@dataclass(slots=True)
class Scene:
    """The events of one scene in one repetition. `end_t`: until when it was watched."""

    name: str
    lanes: dict[str, Lane]
    exchanges: list[Exchange]
    stimuli: list[WireEvent]
    end_t: int

    @property
    def base(self) -> str:
        """Its name without the repetition: rows of repetitions are the same question again."""
        return self.name.partition("#")[0]

    @property
    def asked(self) -> set[tuple[str, str]]:
        """The clauses that the scene tests, each with a kind of violation, or "" for any kind. A kind of another
        version of Purgatorio counts as any. Empty if no coordinator came: the end record says why."""
        if self.without_coordinator:
            return set()
        said = (text(one.body, "text") for one in self.stimuli if text(one.body, "what") == "asks")
        return {
            (RENAMED.get(clause, clause), cause if cause in WAYS else "")
            for clause, _, cause in (kind.partition(" ") for kind in said)
        }

    @property
    def held_up_ms(self) -> int:
        """The longest time that it was held up by a quota that is not its own."""
        own = {text(one.body, "conn") for one in self.stimuli if text(one.body, "what") == "quota"}
        return max((one.throttled_ms for one in self.exchanges if one.conn not in own), default=0)

    @property
    def without_coordinator(self) -> bool:
        """Whether it searched for a coordinator, and none was found."""
        looked = self.of("find_coordinator")
        told = [said for one in looked for said in ([*items(one.got, "coordinators")] or [one.got or {}])]
        return bool(looked) and all(integer(said, "error_code", 15) in LOADING for said in told)

    def of(self, *apis: str) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in apis]

    def by_group(self) -> dict[str, list[Exchange]]:
        """The exchanges of each consumer group alone; of a question about several, what is about it. Nothing has the
        empty name, and asking for it is refused for that."""
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
    """Of a question about several groups, and its answer, what is about one."""
    body = {**one.body, _NAMES_GROUP[one.api]: [group]}
    if one.answer is None or one.answer.body is None:
        return replace(one, body=body)
    told, got = ABOUT_GROUPS[one.api], one.answer.body
    narrow = {**got, told: [said for said in items(got, told) if text(said, "group_id") == group]}
    return replace(one, body=body, answer=replace(one.answer, body=narrow))
