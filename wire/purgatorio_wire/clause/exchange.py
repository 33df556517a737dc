"""The clauses X1 to X4: the response to any request."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from purgatorio_wire.clause.consumer_group import OFF, OWN_BEAT_MS
from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import (
    Row,
    Rows,
    after,
    answered_with,
    broken,
    checked,
    kept,
    named,
    undecided,
)
from purgatorio_wire.history.history import (
    BUSY,
    LOADING,
    NAMED,
    OF_2_0,
    OF_LAG,
    Exchange,
    Lane,
    Part,
    Scene,
    integer,
    items,
    parts,
    text,
)
from purgatorio_wire.history.log import UNKNOWN_TOPIC, Topics, asked_and_told, produced, unknown_topic
from purgatorio_wire.history.transaction import ADD
from purgatorio_wire.trace.record import Body

_OF_TOPICS: Final = frozenset({
    "produce", "fetch", "add_partitions_to_txn", "list_offsets", "delete_records", "delete_topics", "create_partitions",
    "offset_commit", "describe_configs", "describe_producers", "offset_for_leader_epoch",
})  # fmt: skip

EMPTY: Final[Mapping[str, tuple[object, ...]]] = {
    "authorized_operations": (-(1 << 31), 0), "documentation": (None, ""), "synonyms": ([],),
}  # fmt: skip
"""The fields that a request may include, with their values if it does not. (Kafka 2.3 writes no operations, 0.)"""
_NAMES: Final = ("name", "topic", "topic_name")
"""The fields with the name of a topic."""
_REPEATED: Final = frozenset({
    "member_id", "group_instance_id", "group_id", "transactional_id", "topic_id", "resource_type", "replication_factor",
    "endpoint_type",
})  # fmt: skip
"""The fields of a request that its response repeats."""
_SAME: Final[Mapping[str, tuple[str, ...]]] = {
    "node_id": ("host", "port"), "cluster_id": ("cluster_id",), "api_key": ("min_version", "max_version"),
    "name": ("min_version_level", "max_version_level"),
}  # fmt: skip
"""The fields that do not change during a scene: those of each broker, of the cluster, of each API, and of each
feature."""
_LISTS: Final = ("api_keys", "finalized_features")
"""The lists whose number of entries does not change."""
_NEEDLESS: Final = (
    "diverging_epoch", "current_leader", "snapshot_id", "preferred_read_replica", "record_errors", "error_message",
    "acknowledge_error_message", "topic_config_error_code",
)  # fmt: skip
"""The fields that only an error or another request gives a value."""
_NOTHING: Final[frozenset[str]] = frozenset({"-1", "0", "", "None", "NONE", "[]"})
"""Their values otherwise."""
_READS: Final = {
    "metadata": "", "list_groups": "", "list_transactions": "", "describe_client_quotas": "", "offset_fetch": "",
    "find_coordinator": "coordinators", OF_LAG: "groups", "elect_leaders": "",
    "describe_cluster": "", "api_versions": "",
}  # fmt: skip
"""Requests that no scene sends with wrong arguments, with the list of their results."""
_LEAVES_OUT: Final = frozenset({"share_fetch"})
"""Requests whose responses leave out what has nothing new."""
API_VERSIONS: Final = "api_versions"
FIRST_FLEXIBLE: Final = 3
"""The first version of ApiVersions of KIP-511."""
PATIENCE_MS: Final = 5000
"""A request without a response for this long after its requested wait counts as unanswered."""


def answered_once(bounds: Bounds, scene: Scene, answered: frozenset[tuple[str, int]]) -> Rows:
    """X1. `answered`: the APIs and versions that the broker answered in the run. X3 judges versions that it never
    answers, and M2 judges a response to a Produce with acks=0."""
    for lane in scene.lanes.values():
        for one in lane.requests:
            if one.owed and (one.api, one.version) in answered:
                row = _once(bounds, scene, lane, one)
                if row is not None:
                    yield row
        yield from _unasked(lane)


def _once(bounds: Bounds, scene: Scene, lane: Lane, one: Exchange) -> Row | None:
    if one.again:
        more = one.again[0]
        seen = f"{1 + len(one.again)} answers, the second after {after(more.t, one.t)}"
        return broken("X1", "answered-twice", one, "one answer", seen, *(extra.i for extra in one.again))
    if one.answer is not None:
        return kept("X1")
    if (later := _passed_over(lane, one)) is not None:
        allowed = "one answer, before the answers to later requests"
        seen = f"no answer, although {later.api} #{later.corr}, which was sent later, was answered"
        return broken("X1", "never-answered", one, allowed, seen, *later.events)
    closed = one.closed
    if closed is not None and closed.by == "peer" and closed.t <= one.watched_t:
        if any(not other.owed for other in lane.requests):
            # After an error of a Produce with acks=0, the broker closes the connection.
            return undecided("X1", "the connection was closed after a Produce with acks=0")
        seen = f"the broker closed the connection after {after(closed.t, one.t)}"
        return broken("X1", "closed", one, "one answer, and the connection stays open", seen, closed.i)
    if closed is not None and closed.err:
        return undecided("X1", "the client could not read from the connection any longer")
    limit = _patience_ends(scene, one)
    if one.watched_t < limit or not scene.name:
        # The recording of this request ended too early. Requests outside of scenes are not judged either: at the end of
        # a run, the broker deletes a hundred topics at once, and its groups wait for the replicas, which do the same.
        return None
    if one.watched_t < limit + bounds.added_ns(one.t, one.watched_t):
        seen = f"no answer in {after(one.watched_t, one.t)}, while the machine was overloaded"
        return undecided("X1", seen, "never-answered")
    return broken("X1", "never-answered", one, "one answer", f"no answer in {after(one.watched_t, one.t)}")


def _passed_over(lane: Lane, one: Exchange) -> Exchange | None:
    """The first later request of the connection that has a response. Responses come in order, so `one` gets none."""
    return next((x for x in lane.requests if x.i > one.i and x.owed and x.answer is not None), None)


def _patience_ends(scene: Scene, one: Exchange) -> int:
    """The latest time of any answer: for a JoinGroup or SyncGroup, the longest timeout of any member."""
    waits_ms = one.wait_ms
    if one.api in ("join_group", "sync_group"):
        group = text(one.body, "group_id")
        joins = (x.wait_ms for x in scene.of("join_group") if text(x.body, "group_id") == group)
        waits_ms = max(joins, default=waits_ms)
    return max(one.t, one.held_t) + (waits_ms + PATIENCE_MS) * MS


def _unasked(lane: Lane) -> Rows:
    by_corr = {one.corr: one for one in lane.requests}
    for answer in lane.answers:
        if answer.c is None and (answer.corr or 0) not in by_corr:
            yield Row(
                "X1", RowStatus.BROKEN, "without-a-request", f"connection {lane.name}", (answer.i,),
                "only responses to requests", f"a response with correlation id {answer.corr}, which no request has",
            )  # fmt: skip


def in_order(scene: Scene) -> Rows:
    """X2. An occasion is a response to a request that was sent while an earlier request of the connection was
    waiting. X1 judges an earlier request without a response."""
    for lane in scene.lanes.values():
        came = [(one, one.answer.i) for one in lane.requests if one.owed and one.answer is not None]
        for at, (one, answer_i) in enumerate(came):
            waiting = [(other, i) for other, i in came[:at] if i > one.i]
            passed = [other for other, i in waiting if i > answer_i]
            for first in [*passed, *(other for other, _ in waiting)][:1]:
                allowed = f"the answer to {first.api} #{first.corr} first"
                seen = f"answered before {first.api} #{first.corr}, which was sent earlier"
                yield checked("X2", "answered-out-of-order", one, not passed, allowed, seen, *first.events)


def one_at_a_time(scene: Scene, topics: Topics) -> Rows:
    """X2. An occasion is an append after a waiting fetch of the same partition on the same connection: the appended
    record, known by its offset, cannot be in the response to that fetch ("the broker's request processing allows
    only a single in-flight request per connection in order to guarantee this ordering")."""
    for lane in scene.lanes.values():
        for at, one in enumerate(lane.requests):
            if one.api != "fetch" or one.answer is None or one.unread or one.error:
                continue
            came = {part: list(items(said, "records")) for part, said in one.results.items()}
            for append in lane.requests[at + 1 :]:
                if append.api != "produce" or append.i > one.answer.i:
                    continue
                for part, _, said in produced(append):
                    base = integer(said, "base_offset", -1)
                    if not topics.stays(part.topic) or part not in came or base < 0:
                        continue  # the offset may belong to a record that was deleted
                    ahead = any(integer(x, "base") <= base <= integer(x, "last") for x in came[part])
                    allowed = f"an answer without record {base}, which was sent after the Fetch"
                    yield checked(
                        "X2", "handled-out-of-order", one, not ahead, allowed, "an answer with this record",
                        *append.events,
                    )  # fmt: skip


def decodes(scene: Scene, answered: frozenset[tuple[str, int]], offered: dict[str, tuple[int, int]]) -> Rows:
    """X3. The occasions are the responses, and the versions that ApiVersions offers."""
    for one in scene.exchanges:
        if one.answer is not None:
            err = one.answer.err or ""
            if err.startswith("newer:"):
                yield undecided("X3", f"{one.api} v{one.version}: {err}")
            elif err:
                yield broken("X3", "undecodable", one, f"a response of version {one.version}", err)
            elif (
                one.api == API_VERSIONS
                and one.version > offered.get(API_VERSIONS, (0, 99))[1] >= FIRST_FLEXIBLE
            ):
                own = (x for x in items(one.got, "api_keys") if integer(x, "api_key", -1) == 18)
                told = [(integer(x, "min_version"), integer(x, "max_version")) for x in own]
                allowed, seen = (
                    f"{named(x)}, versions {y}"
                    for x, y in ((OFF, [offered[API_VERSIONS]]), (one.error, told))
                )
                yield checked("X3", "newer-version-unanswered", one, seen == allowed, allowed, seen)
            elif one.answer.left:
                seen = f"{one.answer.left} bytes after the end of the response"
                yield broken("X3", "bytes-left", one, f"a response of version {one.version}", seen)
            else:
                yield kept("X3")
            continue
        first, last = offered.get(one.api, (0, -1))
        if not one.owed or not first <= one.version <= last or (one.api, one.version) in answered:
            continue
        if one.closed is not None and one.closed.by == "peer":
            seen = f"the broker closed the connection after {after(one.closed.t, one.t)}"
        elif (scene.name and one.watched_t >= _patience_ends(scene, one)) or _passed_over(  # see `_once`
            scene.lanes[one.conn], one
        ):
            seen = f"no request of this version was answered, in {after(one.watched_t, one.t)}"
        else:
            continue
        yield broken(
            "X3", "listed-version-refused", one, f"an answer: ApiVersions lists {one.api} v{first} to v{last}", seen,
        )  # fmt: skip
    for lane in scene.lanes.values():
        if lane.closed is not None and lane.closed.err.startswith("no frames") and lane.closed.by == "us":
            yield Row(
                "X3", RowStatus.BROKEN, "no-frame", f"connection {lane.name}", (lane.closed.i,),
                "frames of the Kafka protocol", lane.closed.err,
            )  # fmt: skip


def about_all(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """X4. The occasions are the responses, except those that a quota delays: they may be empty."""
    names: dict[str, set[str]] = defaultdict(set)
    shown = dict[str, object]()
    for said in (said for one in scene.of("create_topics") for said in items(one.got, "topics")):
        name, topic_id = text(said, "name"), text(said, "topic_id")
        if topic_id and not integer(said, "error_code"):
            names[topic_id].add(name)
            if name in topics.topics and topics.topics[name].delete_t is None:
                names[name].add(topic_id)
    for one in scene.exchanges:
        if one.got is None or one.throttled_ms:
            continue
        flags = {name: value for name, value in one.body.items() if name.startswith("include_")}
        asks = (x for _, x in one.requested) if one.api == "fetch" else ()
        flags["diverges"] = any(integer(x, "last_fetched_epoch", -1) >= 0 for x in asks)
        wrong = ", ".join((*_odd(one.got, flags, names, shown), *_other(one.body, one.got)))
        beat_ms = integer(one.got, "heartbeat_interval_ms")
        if beat_ms not in (0, OWN_BEAT_MS) and shown.setdefault(one.api, beat_ms) != beat_ms:
            wrong += f"heartbeat_interval_ms {beat_ms}, not as before"
        yield checked("X4", "other-field", one, not wrong, "fields that fit the request", wrong)
        for said in [one.got, *items(one.got, _READS[one.api])] if one.api in _READS else ():
            yield answered_with(
                "X4", "refused", one, integer(said, "error_code"), 0, "", {*BUSY, *LOADING, OFF}
            )
        for bodies in asked_and_told(one) if one.api in {*NAMED} - _LEAVES_OUT else ():
            asked, told = (list(parts(*each)) for each in zip(bodies, NAMED[one.api], strict=True))
            if integer(bodies[1], "error_code") or (not asked and not _names_none(one, bodies[0])):
                continue  # a request about all topics names none; nor do old versions that are about one group
            named, told_names = (sorted(part for part, _ in held) for held in (asked, told))
            right = told_names in (named, sorted({*named}))  # what is named twice may be answered once
            allowed, seen = (
                ", ".join(_words(one, part) for part, _ in held) or "nothing" for held in (asked, told)
            )
            wanted = f"an answer that contains {allowed}"
            yield checked("X4", "partition-missing", one, right, wanted, f"an answer that contains {seen}")
            if {*named} == {*told_names}:
                wrong = ", ".join(x for part, said in told for x in _other(dict(asked)[part], said))
                yield checked("X4", "other-field", one, not wrong, "the fields of the request", wrong)
            if scene.name:  # requests outside of scenes name topics of scenes
                yield from _not_there(one, told, topics)


def _names_none(one: Exchange, asked: Body) -> bool:
    """Whether a request has an empty list. (Metadata 0 is about all topics then, and a fetch about its session.)"""
    excepted = one.api in ("fetch", "delete_topics") or (one.api == "metadata" and not one.version)
    return asked.get(NAMED[one.api][0][0]) == [] and not excepted


def _odd(said: Body, flags: Body, names: Mapping[str, set[str]], shown: dict[str, object]) -> Iterator[str]:
    """The fields of a response that the request did not include, the topic ids with the name of another topic, and what
    former responses (`shown`) said otherwise of the cluster. `flags`: what the request includes. `names`: the names of
    the created topics by id, and the ids of those that stay by name."""
    said = {**said, "node_id": said["broker_id"]} if "broker_id" in said else said  # of DescribeCluster
    fails = integer(said, "error_code") or integer(said, "acknowledge_error_code")
    for name, value in said.items():
        for each in value if isinstance(value, list) and name != "records" else (value,):
            if isinstance(each, dict):
                yield from _odd(each, flags, names, shown)
        needless = name in _NEEDLESS and not fails and not (name == "diverging_epoch" and flags["diverges"])
        if (
            needless
            and {f"{x}" for x in (value.values() if isinstance(value, dict) else (value,))} - _NOTHING
        ):
            yield f"{name} {value}"
        empty = next((EMPTY[x] for x in EMPTY if name.endswith(x)), (value,))
        asked = [wanted for flag, wanted in flags.items() if name.endswith(flag.removeprefix("include_"))]
        if asked and not any(asked) and value not in empty:
            yield f"{name} {value}"
    name, topic_id = next(filter(None, (text(said, x) for x in _NAMES)), ""), text(said, "topic_id")
    internal = said.get("is_internal") and name in names
    both = name and topic_id and name != topic_id
    if internal or (
        both and not (topic_id in names.get(name, {topic_id}) and name in names.get(topic_id, {name}))
    ):
        yield f"{name} with topic id {said.get('topic_id')}, internal: {said.get('is_internal')}"
    for what, fields in _SAME.items():
        if {what, *fields} <= said.keys():
            told = [said[x] for x in fields]
            if shown.setdefault(f"{what} {said[what] if fields[0] != what else ''}", told) != told:
                yield f"{fields} {told} of {what} {said[what]}"
    for what in _LISTS:
        size = sum(1 for _ in items(said, what))
        if what in said and not fails and shown.setdefault(what, size) != size:
            yield f"{size} {what}"
    brokers = [integer(x, "node_id", integer(x, "broker_id")) for x in items(said, "brokers")]
    if "brokers" in said and (len({*brokers}) < max(len(brokers), 1)):
        yield f"brokers {brokers}"
    if brokers and integer(said, "controller_id", -1) not in {-1, *brokers}:
        yield f"controller {said.get('controller_id')}"


def _other(asked: Body, told: Body) -> Iterator[str]:
    """The fields of a response that repeat a field of the request, with another value."""
    for name in _REPEATED & asked.keys() & told.keys():
        both = asked[name], told[name]
        if both[0] != both[1] and not any(x in (None, "", -1) for x in both):
            yield f"{name} {told[name]}"


def _not_there(one: Exchange, told: list[tuple[Part, Body]], topics: Topics) -> Rows:
    """A topic or partition that was never created gets an error, even if the request also names others."""
    if one.api not in _OF_TOPICS or (one.api == "produce" and integer(one.body, "acks") not in (-1, 1)):
        return
    if one.api == "offset_commit" and all(integer(said, "error_code") for _, said in told):
        return  # it was refused as a whole
    if one.api == "offset_commit" and one.version < OF_2_0[one.api]:
        return  # Kafka before 2.0 searches for the topic alone
    for part, said in told:
        name = "partition_error_code" if one.api == ADD else "error_code"
        topic, error = topics.topics.get(part.topic), integer(said, name)
        if one.api == ADD and error not in (0, UNKNOWN_TOPIC):
            continue  # it was refused as a whole
        partitions = None if topic is None or topic.delete_t is not None else topic.partitions_at(one.t)
        if topic is not None and (partitions is None or part.number < partitions):
            continue
        wanted = unknown_topic(one) if topic is None else UNKNOWN_TOPIC
        yield answered_with(
            "X4", "unknown-partition-other-error", one, error, wanted, f" for {_words(one, part)}"
        )


def _words(one: Exchange, part: Part) -> str:
    return f"{part}" if NAMED[one.api][0][2] else part.topic
