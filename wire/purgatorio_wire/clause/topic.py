"""The clauses A1 to A3, D1, E1, L1: creation, growth and deletion of topics, deletion of records, elections of leaders,
ListOffsets, and OffsetForLeaderEpoch."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, FORGOTTEN_NS, MS, PATIENCE_TIMES, Bounds
from purgatorio_wire.history.finding import (
    UNKNOWN_LEADER_EPOCH,
    Row,
    Rows,
    after,
    answered_with,
    broken,
    checked,
    error_is,
    in_time,
    in_words,
    kept,
    left_to_its_time_out,
    named,
    undecided,
)
from purgatorio_wire.history.history import (
    BUSY,
    END_OF_TIME,
    EXCUSED,
    NAMED,
    OF_LAG,
    OTHERS,
    Exchange,
    Part,
    Scene,
    integer,
    integers,
    items,
    parts,
    text,
    texts,
)
from purgatorio_wire.history.log import (
    COMMITTED,
    DEFAULT,
    EPOCH_FAR,
    GONE,
    UNKNOWN_TOPIC_ID,
    Append,
    CommittedLog,
    Log,
    Topic,
    Topics,
    asked_and_told,
    produced,
    settled_parts,
    written_by,
)
from purgatorio_wire.trace.record import Body

OF_TOPIC: Final = 2
"""The resource type of a topic, for its settings."""
SET, DELETE, APPEND, SUBTRACT = range(4)
OUT_OF_RANGE, UNKNOWN, NO_LEADER, TIMED_OUT, EXISTS, FORBIDDEN, NOT_NEEDED = 1, 3, 5, 7, 36, 44, 84
NOT_PREFERRED: Final = 80
"""PREFERRED_LEADER_NOT_AVAILABLE: the controller does not know yet that the replica is back."""
INVALID_TOPIC, INVALID_PARTITIONS, INVALID_REPLICATION, INVALID_PLACEMENT = 17, 37, 38, 39
INVALID_CONFIG, INVALID_REQUEST = 40, 42
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
REFUSED: Final = frozenset({37, 38, 39, 40, 44})
"""Errors of CreateTopics: invalid number of partitions or replicas, invalid placement, invalid settings; a policy."""
MOVES: Final = frozenset({5, 6})
LATEST, EARLIEST, LARGEST_TIME, EARLIEST_LOCAL, LATEST_TIERED = range(-1, -6, -1)
OF_EPOCH: Final = "offset_for_leader_epoch"
PAGES: Final = "describe_topic_partitions"
SINCE_EVER, EVER = 0, 1 << 61
"""Timestamps before and after the timestamp of every record."""
ENDS: Final = {
    LATEST: "the end offset", EARLIEST: "the start offset", SINCE_EVER: "the offset of the first record",
    EVER: "no offset, as no record has that time",
    LARGEST_TIME: "the offset of a record", EARLIEST_LOCAL: "the start offset of the broker's own log",
    LATEST_TIERED: "no offset, or the offset of a record",
}  # fmt: skip
_WAITS_FOR_NOBODY: Final = {
    "create_topics": "A1", "delete_topics": "A2", "create_partitions": "A3", "delete_records": "D1",
    "elect_leaders": "E1", "produce": "M1",
}  # fmt: skip
"""Requests that one broker handles alone, for topics with one replica, and their clauses."""
_FLAGS: Final = ("transactional", "control")
_ABSENT: Final = ("offline_replicas", "eligible_leader_replicas", "last_known_elr")
"""The replicas of a partition that are not in sync."""
LEAST_TIME_OUT_MS: Final = 2000
"""A shorter timeout_ms may pass before a busy broker handles the request."""
OF_THE_TOPIC: Final = 1
"""The source of a setting that was set for the topic itself."""
THE_LIST: Final = "cleanup.policy"
"""The only list among the settings of the scenes."""
NO_VALUE: Final = "purgatorio"
"""A value that no setting of a topic may have."""
AT_ONCE_MOST: Final = 20
"""If more topics are created within `late_topics_ms`, each of the others may take `EACH_TOPIC_MS` of a cold broker."""
EACH_TOPIC_MS: Final = 250


def done_in_time(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A1 to A3, D1, E1, M1: a request that waits for no other broker is answered when it is done or refused, not at its
    timeout_ms. Not judged: requests after a broker was stopped, because this broker may be the controller; requests
    outside of scenes, because they may create or delete a hundred topics."""
    if not scene.name:
        return
    stopped_t = min((x.t for x in scene.stimuli if text(x.body, "what") == "stops"), default=END_OF_TIME)
    for one in scene.of(*_WAITS_FOR_NOBODY):
        clause = _WAITS_FOR_NOBODY[one.api]
        if one.throttled_ms or one.unread or one.behind or one.until_t >= stopped_t:
            continue
        if one.wait_ms < LEAST_TIME_OUT_MS or integer(one.body, "acks", 1) not in (1, -1):
            continue
        known = (topics.topics.get(part.topic) for part, _ in one.requested)
        if any(topic is not None and topic.replicas > 1 for topic in known):
            continue
        errors = {*one.codes.values()}
        if TIMED_OUT in errors and (one.answer_t or 0) < one.t + one.wait_ms * MS - EARLY_NS:
            seen = f"{named(TIMED_OUT)} after {after(one.answer_t or 0, one.t)}"
            allowed = f"no answer before timeout_ms, {one.wait_ms} ms"
            yield broken(clause, "timed-out-early", one, allowed, seen)
        if errors & BUSY - {TIMED_OUT}:
            yield undecided(
                clause, "the controller was not reached, or refused the request", "left-to-its-time-out"
            )
            continue
        yield left_to_its_time_out(bounds, clause, one)


def topics_come_and_go(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A1 and A2. The broker may create or delete a topic some time after the response, so metadata is checked over
    time."""
    for one in scene.of("create_topics"):
        names = [text(asked, "name") for asked in items(one.body, "topics")]
        wrong = {
            name: INVALID_REQUEST if names.count(name) > 1 else _wrong(asked)
            for name, asked in zip(names, items(one.body, "topics"), strict=True)
        }
        for made in items(one.got, "topics"):
            topic, error = topics.topics.get(text(made, "name")), integer(made, "error_code")
            if wanted := wrong.get(text(made, "name")):
                yield answered_with("A1", "wrong-argument-accepted", one, error, wanted)
                if wanted == INVALID_REQUEST:
                    yield from _not_made(scene, one, text(made, "name"), "wrong-argument-accepted")
            elif one.body.get("validate_only") and topic is None:
                yield from _not_made(scene, one, text(made, "name"), "created-by-validation")
            elif topic is not None:
                count = integer(made, "num_partitions", -1)  # old versions, and ACLs, hide it
                if topic.partitions and topic.delete_t is None and count > 0 and not error:
                    right, allowed = count == topic.partitions, f"{topic.partitions} partitions"
                    yield checked("A1", "other-partitions", one, right, allowed, f"{count} partitions")
                yield from _second(one, topic, error)
    known = {topic.id for topic in topics.topics.values()}
    for one in scene.of("delete_topics") if scene.name else ():
        strange = {text(asked, "topic_id") for asked in items(one.body, "topics")} - known - {""}
        for said in items(one.got, "responses"):
            if text(said, "topic_id") in strange:
                error, about = integer(said, "error_code"), ": no topic has this id"
                yield answered_with("A2", "deleted-id-served", one, error, UNKNOWN_TOPIC_ID, about)
    on_request = [one for one in scene.of("metadata") if one.body.get("allow_auto_topic_creation")]
    for name in sorted({text(asked, "name") for one in on_request for asked in items(one.body, "topics")}):
        yield from _made_on_request(bounds, scene, name, on_request)
    made_t = sorted(topic.made_t for topic in topics.topics.values() if topic.made_t is not None)
    for part, log in topics.logs.items():
        if log.settled_t == END_OF_TIME and part.topic in topics.topics:
            topic = topics.topics[part.topic]
            yield from _never_leads(bounds, scene, topic, part, _crowd_ns(bounds, made_t, topic))
    for topic in topics.topics.values():
        if topic.made_t is not None:
            told = list(_told(scene, topic.name, topic.made_t, topic.delete_t or END_OF_TIME))
            yield from _led(scene, topics, topic, told)
            yield from _identified(scene, topic.name, told)
            asked = [(one, integer(said, "error_code")) for one, said in told]
            more_ns = _crowd_ns(bounds, made_t, topic)
            what = "metadata that contains the topic"
            yield from _seen(bounds, "A1", asked, topic.made_t, {0}, what, more_ns=more_ns)
        if topic.deleted_t is not None:
            told = list(_told(scene, topic.name, topic.deleted_t))
            asked = [(one, integer(said, "error_code")) for one, said in told]
            yield from _seen(bounds, "A2", asked, topic.deleted_t, {UNKNOWN}, "metadata without the topic")
            for api in ("fetch", "metadata"):
                yield from _seen(
                    bounds, "A2", [*_asked_by_id(scene.of(api), topic)], topic.deleted_t,
                    GONE, "an error: no topic has this id", "deleted-id-served",
                )  # fmt: skip


def settings_changed(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A1: IncrementalAlterConfigs or AlterConfigs changes the settings of each topic that exists, unless one of its
    values is invalid."""
    for one in scene.of("incremental_alter_configs", "alter_configs"):
        for part, asked, said in one.pairs:
            name, topic, error = part.topic, topics.topics.get(part.topic), integer(said, "error_code")
            if said is None or integer(asked, "resource_type", OF_TOPIC) != OF_TOPIC:
                continue
            changes = [*items(asked, "configs")]
            if topic is None or _wrong_changes(changes):
                about = f" for {name}: {'a change is invalid' if topic else 'there is no such topic'}"
                yield error_is("A1", "wrong-argument-accepted", one, error, None, about)
            elif topic.there_at(one.t) and all(integer(x, "config_operation") <= DELETE for x in changes):
                yield answered_with("A1", "refused", one, error, 0, f" for {name}")


def _wrong_changes(changes: Sequence[Body]) -> bool:
    """Whether a setting is named twice, set to no value or to an invalid one, or changed like a list, which it is
    not."""
    names = [text(x, "name") for x in changes]
    return len({*names}) < len(names) or any(
        text(x, "value") == NO_VALUE or x.get("value") is None
        if (how := integer(x, "config_operation")) == SET else how != DELETE and text(x, "name") != THE_LIST
        for x in changes
    )  # fmt: skip


def settings_described(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A1: DescribeConfigs returns the settings that the topic was created with, or that were altered since, or those
    of them that the request names. A setting of a former topic with the same name is not the topic's own."""
    for known in topics.topics.values():
        for new, until in zip(known.altered, [*(x.t for x in known.altered[1:]), END_OF_TIME], strict=False):
            asked = [
                (one, 0 if new.shown_in(said) else UNKNOWN)
                for one in scene.of("describe_configs")
                for said in items(one.got, "results")
                if text(said, "resource_name") == known.name and new.done_t <= one.t and one.ended_t <= until
            ]
            what = "the altered settings"
            yield from _seen(bounds, "A1", asked, new.done_t, {0}, what, "other-setting")
    shown, every = dict[tuple[str, str], object](), set[str]()
    for one in scene.of("describe_configs"):
        wanted = {
            text(x, "resource_name"): {*texts(x, "configuration_keys")} for x in items(one.body, "resources")
        }
        for said in items(one.got, "results"):
            topic = topics.topics.get(text(said, "resource_name"))
            if topic is None or topic.delete_t is not None or integer(said, "error_code"):
                continue
            held = topic.settings(one, bounds.declared.late_topics_ms * MS)
            told, keys = {text(x, "name") for x in items(said, "configs")}, wanted.get(topic.name)
            once = len(told) == sum(1 for _ in items(said, "configs")) and (keys or every <= told)
            yield checked("A1", "other-setting", one, once, f"each setting once, and {every}", f"{told}")
            every |= told
            if keys:
                right = {name for name in keys if all(name in each for each in held)} <= told <= keys
                allowed, seen = (f"the settings {', '.join(sorted(names))}" for names in (keys, told))
                yield checked("A1", "other-setting", one, right, allowed, seen)
            yield _settings_told(one, topic, held, said, shown)
    for one in scene.of("create_topics"):
        for said in items(one.got, "topics"):
            topic = topics.topics.get(text(said, "name"))
            if topic is not None and topic.made_t == one.answer_t and not integer(said, "error_code"):
                yield _settings_told(one, topic, [topic.configs], said, shown)


def _settings_told(
    one: Exchange, topic: Topic, held: Sequence[Mapping[str, str]], said: Body, shown: dict[tuple[str, str], object]
) -> Row:  # fmt: skip
    allowed, seen = next(_wrong_settings(one, topic, held, said, shown), ("", ""))
    return checked("A1", "other-setting", one, not allowed, allowed, seen)


def _wrong_settings(
    one: Exchange, topic: Topic, held: Sequence[Mapping[str, str]], said: Body, shown: dict[tuple[str, str], object]
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """What is allowed and what a response says, for each of its settings of a topic that is wrong. `held`: the settings
    that may be in effect. `shown`: what former responses said of a setting, which holds for every topic: its default,
    its type, and whether it can be changed."""
    changes = [x for new in topic.altered for x in new.changes]
    removed = {text(x, "name") for x in changes if integer(x, "config_operation") == DELETE}
    for x in items(said, "configs"):
        name, value, source = text(x, "name"), text(x, "value"), integer(x, "config_source")
        own, may, lacks = (
            source == OF_THE_TOPIC,
            {y[name] for y in held if name in y},
            any(name not in y for y in held),
        )
        seen, hidden = f"{name} {value}, of source {source}", "config_source" not in x
        if may and not (value in may and (own or hidden or name in removed)) and (own or not lacks):
            yield f"{name} {' or '.join(sorted(may))}", seen
        if not may and own and (name not in topic.named_settings or name != THE_LIST):
            yield f"no {name} of the topic itself", seen
        first = next(items(x, "synonyms"), {"value": value, "source": DEFAULT})
        if one.body.get("include_synonyms") and (text(first, "value"), integer(first, "source")) != (
            value,
            source,
        ):
            yield f"the synonym {seen}, first", f"{x.get('synonyms')}"
        for what in ("read_only", "is_sensitive", "config_type", *(("value",) if source == DEFAULT else ())):
            if what in x and (known := shown.setdefault((name, what), x[what])) != x[what]:
                yield f"{what} {known} of {name}, as before", f"{x[what]}"


def _crowd_ns(bounds: Bounds, made_t: Sequence[int], topic: Topic) -> int:
    """The additional time for a topic that is created together with many others. `made_t`: in order, of all topics."""
    since_t, around_ns = topic.made_t or 0, bounds.declared.late_topics_ms * MS
    together = bisect_right(made_t, since_t + around_ns) - bisect_left(made_t, since_t - around_ns)
    return max(0, together - AT_ONCE_MOST) * EACH_TOPIC_MS * MS


def _made_on_request(bounds: Bounds, scene: Scene, name: str, on_request: list[Exchange]) -> Rows:
    """A1: Metadata that may create topics makes a topic, again after each deletion. The scenes send such requests only
    to a broker whose settings allow this."""
    deletes_t = [one.t for one in scene.of("delete_topics") if name in texts(one.body, "topic_names")]
    for since_t, until in pairwise((0, *deletes_t, END_OF_TIME)):
        told = [(one, said) for one, said in _told(scene, name, since_t, until) if one in on_request]
        asked = [(one, integer(said, "error_code")) for one, said in told]
        if not {error for _, error in asked} - {0, NO_LEADER, UNKNOWN}:
            yield from _seen(
                bounds, "A1", asked, asked[0][0].t if asked else 0, {0, NO_LEADER}, "a new topic"
            )


def _asked_by_id(asks: Iterable[Exchange], topic: Topic) -> Iterator[tuple[Exchange, int]]:
    """Requests by the id of a deleted topic, with the error. The id is never used again, even if a topic of the same
    name is created."""
    for one in asks:
        asked = {text(x, "topic_id") for x in items(one.body, "topics")}
        if topic.id in asked - {""} and one.t >= (topic.deleted_t or END_OF_TIME):
            for told in (*items(one.got, "responses"), *items(one.got, "topics")):
                if text(told, "topic_id") == topic.id:
                    for said in (*items(told, "partitions"),) if one.api == "fetch" else (told,):
                        yield one, integer(said, "error_code")


def _wrong(asked: Body) -> int:
    """The error of a CreateTopics with invalid arguments; 0 if the arguments are valid."""
    if _NAME.fullmatch(text(asked, "name")) is None:
        return INVALID_TOPIC
    counts = [integer(asked, name, -1) for name in ("num_partitions", "replication_factor")]
    if any(items(asked, "assignments")):
        return INVALID_REQUEST if counts != [-1, -1] else 0
    if 0 in counts:
        return INVALID_REPLICATION if counts[0] else INVALID_PARTITIONS
    return INVALID_CONFIG if NO_VALUE in {text(x, "value") for x in items(asked, "configs")} else 0


def _not_made(scene: Scene, one: Exchange, name: str, cause: str) -> Rows:
    """A1: a CreateTopics with validate_only, or with a name twice, creates no topic."""
    for asked, said in _told(scene, name, one.ended_t):
        about = ": neither CreateTopics nor Metadata was allowed to create it"
        yield answered_with("A1", cause, asked, integer(said, "error_code"), UNKNOWN, about)


def _told(scene: Scene, name: str, since_t: int, until: int = END_OF_TIME) -> Iterator[tuple[Exchange, Body]]:
    """The responses about a topic to Metadata and DescribeTopicPartitions, for requests from `since_t` on that were
    answered before `until`. Without responses about an id that no topic has."""
    for one in scene.of("metadata", PAGES):
        if one.t >= since_t and one.answer_t is not None and one.answer_t < until:
            told = (said for said in items(one.got, "topics") if text(said, "name") == name)
            yield from ((one, said) for said in told if integer(said, "error_code") != UNKNOWN_TOPIC_ID)


def _led(scene: Scene, topics: Topics, topic: Topic, told: list[tuple[Exchange, Body]]) -> Rows:
    """A1: metadata lists each partition, and goes on to list it. A partition without an error has a leader; where there
    is one broker, that one, which is the only replica. A partition that was fetched there has no error."""
    most, shown_t = max([topic.partitions, *(count for _, _, count in topic.grown)]), END_OF_TIME
    nodes = [*{integer(x, "node_id") for one in scene.of("metadata") for x in items(one.got, "brokers")}]
    for one, said in told:
        shown = sorted(integer(part, "partition_index") for part in items(said, "partitions"))
        error = integer(said, "error_code")
        if one.api != PAGES and topic.partitions and not error:
            right = shown == [*range(len(shown))] and topic.partitions <= len(shown) <= most
            allowed = f"{topic.partitions} to {most} partitions, from 0 on"
            yield checked("A1", "other-partitions", one, right, allowed, f"partitions {shown}")
        if len(nodes) != 1 or topic.replicas > 1:
            continue
        if shown_t <= one.t:
            yield answered_with("A1", "not-in-effect", one, error, 0, ", as before")
        shown_t = shown_t if error else min(shown_t, one.ended_t)
        for part in items(said, "partitions"):
            error, at = integer(part, "error_code"), Part(topic.name, integer(part, "partition_index"))
            held = [[*integers(part, name)] for name in ("replica_nodes", "isr_nodes")]
            others = [*(x for name in _ABSENT for x in integers(part, name))]
            leader = integer(part, "leader_id", -1)
            if not error or (topics.logs[at].settled_t <= one.t and error not in EXCUSED):
                right = [error, leader] == [0, *nodes] and held == [nodes] * 2 and not others
                seen = f"{named(error)}, leader {leader}, replicas {held}, {others} away"
                yield checked("A1", "other-leader", one, right, f"leader {nodes[0]}, the only replica", seen)


def pages(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A1: a page of DescribeTopicPartitions lists the partitions of the topics in order, from its cursor to its limit,
    and the next cursor names the following partition (KIP-966)."""
    for one in scene.of(PAGES):
        names = sorted(text(asked, "name") for asked in items(one.body, "topics"))
        sizes = [topics.topics[x].partitions_at(one.t) or 0 for x in names if x in topics.topics]
        got = one.got
        if got is None or any(integer(x, "error_code") for x in items(got, "topics")):
            continue
        if len(sizes) < len(names) or 0 in sizes:
            continue
        cursors = one.body.get("cursor"), got.get("next_cursor")
        since, told = ([_place(x)] if isinstance(x, dict) else [] for x in cursors)
        limit = integer(one.body, "response_partition_limit")
        every = ((x, at) for x, size in zip(names, sizes, strict=True) for at in range(size))
        rest = [x for x in every if not since or x >= since[0]]
        shown = [
            (text(x, "name"), integer(part, "partition_index"))
            for x in items(got, "topics") for part in items(x, "partitions")
        ]  # fmt: skip
        right, wanted = (shown, told) == (rest[:limit], rest[limit : limit + 1]), rest[: limit + 1]
        allowed = f"{limit} partitions at most, and the cursor of the next, of {wanted}"
        yield checked("A1", "other-partitions", one, right, allowed, f"partitions {shown}, cursor {told}")


def _place(cursor: Body) -> tuple[str, int]:
    return text(cursor, "topic_name"), integer(cursor, "partition_index")


def _identified(scene: Scene, name: str, told: list[tuple[Exchange, Body]]) -> Rows:
    """A1: metadata returns the id of the creation, and a later topic of that name has another id."""
    made = [
        (one, text(said, "topic_id"))
        for one in scene.of("create_topics")
        for said in items(one.got, "topics")
        if text(said, "name") == name and text(said, "topic_id") and not integer(said, "error_code")
    ]
    if not made:
        return
    own = made[0][1]
    for one, said in told:
        if shown := text(said, "topic_id"):
            right = shown == own
            yield checked("A1", "other-topic-id", one, right, f"topic id {own} of {name}", shown)
    for one, later in made[1:]:
        right = later != own
        yield checked("A1", "topic-id-reused", one, right, "another topic id than before", own)


def _second(one: Exchange, topic: Topic, error: int) -> Rows:
    """Creating a topic that does not exist succeeds; creating one that exists, long enough after the first, does
    not."""
    if topic.made_t is None and topic.delete_t is None and error not in {0, *BUSY, *REFUSED}:
        yield broken("A1", "refused", one, "no error: the topic does not exist yet", named(error))
    if topic.made_t is None or one.answer_t == topic.made_t or one.t < topic.made_t:
        return
    if topic.delete_t is not None and (one.answer_t is None or one.answer_t >= topic.delete_t):
        return
    yield answered_with("A1", "created-twice", one, error, EXISTS)


def _never_leads(bounds: Bounds, scene: Scene, topic: Topic, part: Part, more_ns: int) -> Rows:
    """A1: a partition of a created topic can be fetched, `late_topics_ms` after the creation at the latest. If there
    are several brokers, another broker may be its leader."""
    partitions = topic.partitions_at(topic.made_t or 0)
    if topic.made_t is None or topic.delete_t is not None or partitions is None or part.number >= partitions:
        return
    asked = [
        (one, integer(said, "error_code"))
        for one in scene.of("fetch")
        for other, _, said in one.pairs
        if other == part and said is not None and one.t >= topic.made_t
    ]
    alone = any(sum(1 for _ in items(one.got, "brokers")) == 1 for one in scene.of("metadata"))
    if not any(error in EXCUSED and not (alone and error in MOVES) for _, error in asked):
        yield from _seen(bounds, "A1", asked, topic.made_t, {0}, "a partition with a leader", more_ns=more_ns)


def _seen(
    bounds: Bounds, clause: str, asked: list[tuple[Exchange, int]], since_t: int, wanted: AbstractSet[int], what: str,
    cause: str = "not-in-effect", *, more_ns: int = 0,
) -> Rows:  # fmt: skip
    """Metadata (or a fetch) shows the change at most `late_topics_ms` after the response. When it has shown the change,
    the clause is kept. `more_ns` is added to the bound after which the change is certainly late."""
    late_ns = bounds.declared.late_topics_ms * MS
    if not asked:
        return
    right, (last, error) = any(error in wanted for _, error in asked), asked[-1]
    slack_ns, seen = more_ns + bounds.added_ns(since_t, last.until_t), after(last.t, since_t)
    if not right and last.t < since_t + PATIENCE_TIMES * late_ns + slack_ns:
        yield undecided(clause, f"{named(error)} {seen} after the response; no later request", cause)
    else:
        # A starved broker applies nothing for a while: this counts if it repeats.
        seen, late = f"{named(error)} after {seen}", (since_t, last.t)
        yield checked(clause, cause, last, right, what, seen, late=late)


def topics_grow(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """A3. The occasions are CreatePartitions requests for a topic of the run, one request after the other."""
    for one in scene.of("create_partitions"):
        names = [text(asked, "name") for asked in items(one.body, "topics")]
        for part, asked, said in one.pairs:
            name, count, error = part.topic, integer(asked, "count"), integer(said, "error_code")
            topic = topics.topics.get(name)
            if topic is None or topic.made_t is None or topic.made_t > one.t or topic.delete_t is not None:
                continue
            had = topic.partitions_at(one.t)
            if had is None or said is None or one.answer_t is None or one.throttled_ms:
                continue
            wanted = 0 if count > had else INVALID_PARTITIONS
            placed = asked.get("assignments")
            if not wanted and isinstance(placed, list) and len(placed) != count - had:
                wanted = INVALID_PLACEMENT
            wanted = INVALID_REQUEST if names.count(name) > 1 else wanted
            if wanted or error or one.body.get("validate_only"):
                cause = "not-refused-count" if wanted else "partitions-not-added"
                about = f" for {names.count(name)} x {count} partitions, where the topic has {had}"
                yield answered_with("A3", cause, one, error, wanted, about)
            else:
                yield from _grown(bounds, scene, name, count, one.answer_t)


def _grown(bounds: Bounds, scene: Scene, name: str, count: int, since_t: int) -> Rows:
    """Metadata shows the partitions no later than `late_topics_ms` after the response."""
    asked = [
        (one, 0 if sum(1 for _ in items(said, "partitions")) >= count else UNKNOWN)
        for one, said in _told(scene, name, since_t)
    ]
    yield from _seen(bounds, "A3", asked, since_t, {0}, f"{count} partitions")


def elections(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """E1. There are three kinds of elections: the partition has one replica, which already leads; the partition does
    not exist; the preferred leader was stopped and runs again."""
    for one in scene.of("elect_leaders"):
        if one.error:
            continue
        for part, error in one.codes.items():
            topic = topics.topics.get(part.topic)
            if topic is not None and topic.replicas > 1 and not part.number and topic.delete_t is None:
                yield from _elected(bounds, scene, one, topic, error, topics)
                continue
            had = None if topic is None or topic.made_t is None else topic.partitions_at(one.t)
            unmade = topic is None or (had is not None and part.number >= had)
            if topic is not None and (
                topic.delete_t is not None or topic.replicas > 1
                or not (unmade or topics.logs[part].settled_t <= one.t)
            ):  # fmt: skip
                continue
            yield answered_with("E1", "other-error", one, error, UNKNOWN if unmade else NOT_NEEDED)


def _elected(bounds: Bounds, scene: Scene, one: Exchange, topic: Topic, error: int, topics: Topics) -> Rows:
    """The preferred replica was the leader, another replica is the leader now, and all replicas are in sync. Then the
    preferred replica becomes the leader, and ElectLeaders returns no error."""
    part, preferred = Part(topic.name, 0), topic.preferred
    before = [node for t, node in topics.leaders[part] if t <= one.t]
    if preferred not in before or before[-1] in (preferred, -1) or one.answer_t is None:
        return
    in_sync = [count for _, t, count in topics.insync[part] if t <= one.t]
    if in_sync[-1] != topic.replicas:
        return
    if error == TIMED_OUT and one.answer_t < one.t + one.wait_ms * MS - EARLY_NS:
        seen = f"{named(error)} after {after(one.answer_t, one.t)}"
        yield broken("E1", "timed-out-early", one, f"no answer before timeout_ms, {one.wait_ms} ms", seen)
    # The preferred replica may be the leader already, or the controller may not know that it is in sync.
    excused, about = {NOT_NEEDED, NOT_PREFERRED, *BUSY}, ": the preferred replica is in sync"
    yield answered_with("E1", "not-elected", one, error, 0, about, excused)
    if error in (0, TIMED_OUT):
        yield left_to_its_time_out(bounds, "E1", one)
    if not error:
        told = [
            (asked, 0 if integer(partition, "leader_id", -1) == preferred else UNKNOWN)
            for asked, said in _told(scene, topic.name, one.answer_t)
            for partition in items(said, "partitions")
        ]
        yield from _seen(bounds, "E1", told, one.answer_t, {0}, "the preferred replica is the leader")


def deletes_records(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """D1: the response to DeleteRecords."""
    for one in scene.of("delete_records"):
        for part, asked, said in settled_parts(one, topics, replicated=True):
            yield from _with_replicas(bounds, scene, one, part, integer(asked, "offset"), said, topics)
        if one.answer_t is None:
            continue
        for part, asked, said in settled_parts(one, topics):
            log, offset = topics.logs[part], integer(asked, "offset")
            if offset == LATEST:  # the end, if it is certain
                offset = log.least_end(one.t)
                if offset != log.most_end(one.answer_t):
                    continue
            error, low = integer(said, "error_code"), integer(said, "low_watermark", -1)
            held = topics.topics[part.topic].settings(one, bounds.declared.late_topics_ms * MS)
            if said is not None and all(x.get(THE_LIST) == "compact" for x in held):
                about, excused = ": the topic is compacted", BUSY - {FORBIDDEN}
                yield answered_with("D1", "compacted", one, error, FORBIDDEN, about, excused)
            elif said is None or error in EXCUSED:
                yield undecided("D1", f"{named(error)}: {EXCUSED.get(error, 'not answered')}")
            elif not 0 <= offset <= log.most_end(one.answer_t):
                cause = "negative-offset" if offset < 0 else "beyond-the-end"
                about = f": the log has no offset {offset}"
                yield answered_with("D1", cause, one, error, OUT_OF_RANGE, about)
            elif offset < log.low_at(one.t):  # it stays
                least, most = log.start(one.t, one.answer_t)
                right, seen = not error and least <= low <= most, f"{named(error)}, low watermark {low}"
                yield checked("D1", "low-watermark-moves", one, right, f"low watermark {least}", seen)
            elif offset <= log.least_end(one.t):
                right = error == 0 and low == offset
                allowed = f"low watermark {offset}"
                seen = f"{named(error)}, low watermark {low}"
                alone = sum(t <= one.answer_t for t in log.deletes_t) == 1 or right
                if alone or error or low < offset:
                    yield checked("D1", "low-watermark", one, right, allowed, seen)


def _with_replicas(
    bounds: Bounds, scene: Scene, one: Exchange, part: Part, offset: int, said: Body | None, topics: Topics
) -> Rows:
    """D1, for a topic with several replicas. A stopped replica cannot delete records, so the answer is
    REQUEST_TIMED_OUT. If no replica is stopped, or if it resumes long before timeout_ms, all replicas delete the
    records. They report this with their fetches, which may wait a while."""
    error, due, until = integer(said, "error_code"), one.t + one.wait_ms * MS, one.until_t
    # Records that were acknowledged with acks=1 may be above the high watermark, which does not move while a replica is
    # stopped.
    if error in (OUT_OF_RANGE, *EXCUSED) or not 0 < offset <= topics.logs[part].least_end(one.t):
        return
    spans = [span for span in scene.stopped if span[0] <= one.t <= span[1]]
    begin, end = spans[0] if spans else (one.t, until)
    if (
        any(
            one.t <= x.t <= min(until, end) and text(x.body, "what") in ("stops", "stopped")
            for x in scene.stimuli
        )
        or topics.in_sync_around(part, begin, min(until, end)) != topics.topics[part.topic].replicas
        or not bounds.stays_in_sync(begin, min(until, end))
    ):
        return
    if not spans or due >= end:
        half = (due - (scene.continued_t(end) if spans else one.t)) // 2
        promise = "an answer when the replicas have deleted the records, long before timeout_ms,"
        yield in_time(bounds, "D1", "left-to-its-time-out", one, due - half, half, promise)
        return
    promise = f"{named(TIMED_OUT)} at timeout_ms,"
    gap = max(one.wait_ms * MS, FORGOTTEN_NS)
    row = in_time(bounds, "D1", "replica-stopped", one, due, gap, promise)
    right = error == TIMED_OUT and until >= due - EARLY_NS
    seen = f"{named(error)} after {after(until, one.t)}"
    yield row.but(right, "replica-stopped", one, f"{named(TIMED_OUT)} at timeout_ms", seen)


def offsets_listed(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """The occasions are ListOffsets requests for the ends of partitions with one replica and a known history, and for
    written timestamps."""
    told: dict[Part, dict[int, int]] = defaultdict(dict)
    newest = {
        Part(text(x.body, "topic"), integer(x.body, "partition")): x
        for x in scene.stimuli if text(x.body, "what") == "newest"
    }  # fmt: skip
    for one in scene.of("list_offsets"):
        if one.answer_t is None or one.unread:
            continue
        for part, asked, said in settled_parts(one, topics):
            which, log = integer(asked, "timestamp"), topics.logs[part]
            if integer(one.body, "isolation_level") == COMMITTED:
                log = CommittedLog.of(log)
            offset, error = integer(said, "offset", -1), integer(said, "error_code")
            epoch = integer(asked, "current_leader_epoch", -1)
            known = epoch if epoch < 0 else topics.epoch(part, one.t)
            if known is not None and epoch > known + EPOCH_FAR:
                about = ": no leader had this epoch yet"
                yield answered_with("L1", "unknown-leader-epoch", one, error, UNKNOWN_LEADER_EPOCH, about)
            if epoch != known:
                continue
            if which in ENDS:
                yield _listed(one, which, log, said)
                if which == LARGEST_TIME and (note := newest.get(part)) is not None and note.t < one.t:
                    alone, time_ms = integer(note.body, "offset"), integer(note.body, "time_ms")
                    if alone >= 0 and integer(said, "timestamp", -1) == time_ms:
                        allowed = f"offset {alone}, of the only record with timestamp {time_ms}"
                        yield checked("L1", "by-time", one, offset == alone, allowed, f"offset {offset}")
            elif which in told[part] and not log.deletes_t and not error:
                last, time_ms = told[part][which], integer(said, "timestamp", which)
                # One before it may have that time too.
                allowed = (
                    f"a record at offset {last} or before, which was appended with timestamp {which} or later"
                )
                seen = f"offset {offset}, timestamp {time_ms}"
                yield checked("L1", "by-time", one, 0 <= offset <= last and time_ms >= which, allowed, seen)
            if which in (SINCE_EVER, LARGEST_TIME) and not error and offset >= 0:
                told[part].setdefault(integer(said, "timestamp", -1), offset)


def batches_told(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """M1: a batch in a response is as its producer sent it: the number of records, the producer with its sequence
    number, whether it is part of a transaction, and its largest timestamp, unless the broker gave it another."""
    for one in scene.of("fetch", "share_fetch"):
        for part, said in one.results.items():
            if not topics.stays(part.topic) or topics.topics[part.topic].compacts:
                continue
            sent = {x.base: x for x in topics.logs[part].appends if x.base >= 0}
            for batch in (x for x in items(said, "records") if integer(x, "base", -1) in sent):
                by = sent[integer(batch, "base")]
                right = [by.count, *by.written, by.within is not None, False]
                shown = [integer(batch, "count"), *written_by([batch]), *(bool(batch.get(x)) for x in _FLAGS)]
                if (time_ms := _time_ms(by, part)) >= 0 and "newest_ms" in batch:
                    right, shown = [*right, time_ms], [*shown, integer(batch, "newest_ms")]
                allowed = (
                    f"records, producer, epoch, sequence number, {', '.join(_FLAGS)}, time, as sent: {right}"
                )
                yield checked("M1", "other-records", one, shown == right, allowed, f"{shown}")


def _time_ms(append: Append, part: Part) -> int:
    """The largest timestamp of an append: the time that the broker gave it, or that of its batch. -1 if unknown."""
    sent, said = next((sent, said) for each, sent, said in produced(append.exchange) if each == part)
    own = max((integer(batch, "newest_ms", -1) for batch in sent), default=-1)
    given = integer(said, "log_append_time_ms", -1)
    return given if given >= 0 else own


def epochs_told(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """L1 for end offsets, A1 for descriptions, M1 for batches: a leader epoch is at most the one that metadata returns
    later. The epoch of a partition is at least the one that metadata returned before."""
    judged: dict[str, tuple[str, str]] = dict.fromkeys(("fetch", "share_fetch"), ("M1", "other-records"))
    judged["list_offsets"] = "L1", "other-epoch"
    if any(text(x.body, "what") in ("stops", "at-second") for x in scene.stimuli):
        return  # the metadata of another broker may be older
    for one in scene.of("metadata", PAGES, "list_offsets", OF_LAG, "fetch", "share_fetch"):
        ends = {part for part, asked in parts(one.body, OTHERS[0]) if integer(asked, "timestamp") == LATEST}
        names = OTHERS[1] if one.api in ("metadata", PAGES) else NAMED[one.api][1]
        shown = (x for _, got in asked_and_told(one) for x in parts(got, names))
        for part, said in (
            (x, y) for x, y in shown if topics.stays(x.topic) and not integer(y, "error_code")
        ):
            least, most = topics.epoch(part, one.t) or 0, topics.last_epoch(part, one.ended_t)
            told = [integer(x, "leader_epoch") for x in items(said, "records") if "leader_epoch" in x]
            right = all(0 <= x <= most for x in told)
            if "leader_epoch" in said and part in topics.epochs:
                told.append(integer(said, "leader_epoch"))
                own = one.api not in ("list_offsets", OF_LAG) or part in ends
                right = right and told[-1] <= most and (least <= told[-1] or not own)
            if told:
                allowed = f"leader epochs of {part} from {least} on, as in metadata"
                clause, cause = judged.get(one.api, ("A1", "other-leader"))
                yield checked(clause, cause, one, right, allowed, f"{sorted({*told})}")


def epochs_ended(scene: Scene, topics: Topics) -> Rows:
    """The occasions are OffsetForLeaderEpoch requests for the current epoch, whose end is the end of the log, and for
    an epoch that no leader has had yet."""
    for one in scene.of(OF_EPOCH):
        for part, asked, said in one.pairs if one.answer_t else ():
            known, log = topics.epoch(part, one.t), topics.logs[part]
            if known is None or log.settled_t > one.t or topics.topics[part.topic].replicas > 1:
                continue
            wanted, error = integer(asked, "leader_epoch"), integer(said, "error_code")
            end, least, most = (
                integer(said, "end_offset", -1),
                log.least_end(one.t),
                log.most_end(one.until_t),
            )
            if integer(asked, "current_leader_epoch", -1) > known + EPOCH_FAR:
                about = ": no leader had this epoch yet"
                yield answered_with("L1", "unknown-leader-epoch", one, error, UNKNOWN_LEADER_EPOCH, about)
            elif error in EXCUSED:
                yield undecided("L1", f"{named(error)}: {EXCUSED[error]}")
            elif wanted > known + EPOCH_FAR:
                right, seen = not error and end == -1, f"{named(error)}, end offset {end}"
                yield checked("L1", "epoch-end", one, right, f"no end of the future epoch {wanted}", seen)
            elif wanted == known and least:
                right = not error and integer(said, "leader_epoch", -1) == known and least <= end <= most
                seen = f"{named(error)}, epoch {integer(said, 'leader_epoch', -1)}, end offset {end}"
                allowed = f"epoch {known}, and {in_words('end offset', least, most)}"
                yield checked("L1", "epoch-end", one, right, allowed, seen)


def _listed(one: Exchange, which: int, log: Log, said: Body | None) -> Row:
    until = one.answer_t or one.t
    error = integer(said, "error_code")
    if said is None or error in EXCUSED:
        return undecided("L1", EXCUSED.get(error, "the response does not contain the partition"))
    if error:
        return broken("L1", "refused", one, ENDS[which], named(error))
    least, most = log.least_end(one.t), log.most_end(until)
    offset = integer(said, "offset", -1)
    if which == EVER:
        least = most = -1
    elif which == LATEST_TIERED:  # a broker with remote storage may have copied any record
        least, most = -1, most - 1
    elif which != LATEST:
        (least, most), end = log.start(one.t, until), least
        if which in (SINCE_EVER, LARGEST_TIME):
            if offset >= (behind := log.most_end(until)):
                return broken("L1", "other-offset", one, f"no offset from {behind} on", f"offset {offset}")
            if end <= most:
                return undecided("L1", "the partition may have no record")
        if which == LARGEST_TIME:  # Kafka returns it even if the record is deleted
            least, most = 0, log.most_end(until) - 1
    if which == LATEST and isinstance(log, CommittedLog):
        allowed, right = f"the last stable offset, {least} to {most}", least <= offset <= most
        return checked("R4", "listed", one, right, allowed, f"offset {offset}")
    if not least <= offset <= most:
        allowed = ENDS[which] if most < 0 else f"{ENDS[which]}, from {least} to {most}"
        return broken("L1", "other-offset", one, allowed, f"offset {offset}")
    # The answer to a timestamp has a timestamp that is not earlier. Other answers have no timestamp (-1).
    since = max(which, 0) if (which >= 0 or which == LARGEST_TIME) and offset >= 0 else -1
    time_ms = integer(said, "timestamp", since)
    if time_ms < since:
        return broken("L1", "other-time", one, f"timestamp {since} or later", f"timestamp {time_ms}")
    return kept("L1")
