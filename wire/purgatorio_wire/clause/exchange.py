"""The clauses X1 to X4: the response to any request."""

from typing import Final

from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row, Rows, after, answered_with, broken, checked, kept, undecided
from purgatorio_wire.history.history import OF_2_0, Exchange, Lane, Scene, integer, items, text
from purgatorio_wire.history.log import (
    NAMED,
    UNKNOWN_TOPIC,
    Part,
    Topics,
    asked_and_told,
    fetched,
    parts,
    produced,
    unknown_topic,
)
from purgatorio_wire.history.transaction import ADD
from purgatorio_wire.trace.record import Body

_OF_TOPICS: Final = frozenset({
    "produce", "fetch", "add_partitions_to_txn", "list_offsets", "delete_records", "delete_topics", "create_partitions",
    "offset_commit", "describe_configs", "describe_producers", "offset_for_leader_epoch",
})  # fmt: skip

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
    waiting."""
    for lane in scene.lanes.values():
        owed = [one for one in lane.requests if one.owed]
        for at, one in enumerate(owed):
            if one.answer is None:
                continue
            answer_i = one.answer.i
            waiting = [
                other for other in owed[:at] if other.answer is None or other.answer.i > one.i
            ]  # fmt: skip
            if not waiting:
                continue
            passed = [other for other in waiting if other.answer is None or other.answer.i > answer_i]
            # X1 judges an earlier request without a response, unless a later request has a response.
            if passed:
                first = passed[0]
                yield broken(
                    "X2", "answered-out-of-order", one, f"the answer to {first.api} #{first.corr} first",
                    f"answered before {first.api} #{first.corr}, which was sent earlier", *first.events,
                )  # fmt: skip
            else:
                yield kept("X2")


def one_at_a_time(scene: Scene, topics: Topics) -> Rows:
    """X2. An occasion is an append after a waiting fetch of the same partition on the same connection: the appended
    record, known by its offset, cannot be in the response to that fetch ("the broker's request processing allows
    only a single in-flight request per connection in order to guarantee this ordering")."""
    for lane in scene.lanes.values():
        for at, one in enumerate(lane.requests):
            if one.api != "fetch" or one.answer is None or one.unread or one.error:
                continue
            came = {part: list(items(said, "records")) for part, _, said in fetched(one) if said is not None}
            for append in lane.requests[at + 1 :]:
                if append.api != "produce" or append.i > one.answer.i:
                    continue
                for part, _, said in produced(append):
                    topic, base = topics.topics.get(part.topic), integer(said, "base_offset", -1)
                    if topic is None or topic.replicas > 1 or topic.delete_t is not None:
                        continue  # otherwise the offset may belong to a record that was deleted
                    if part not in came or base < 0:
                        continue
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
        elif scene.name and one.watched_t >= _patience_ends(scene, one):  # see `_once`
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
    """X4. The occasions are the responses to requests that name topics, partitions, members or groups."""
    for one in scene.exchanges:
        if one.api not in NAMED or one.got is None or one.throttled_ms:
            continue  # a request that a quota delays may have an empty response, as Kafka's fetches do
        for bodies in asked_and_told(one):
            asked, told = (list(parts(*each)) for each in zip(bodies, NAMED[one.api], strict=True))
            if not asked or integer(bodies[1], "error_code"):
                continue  # a request about all topics names none; nor do old versions that are about one group
            names, told_names = (sorted(part for part, _ in held) for held in (asked, told))
            right = told_names in (names, sorted({*names}))  # what is named twice may be answered once
            allowed, seen = (", ".join(_words(one, part) for part, _ in held) for held in (asked, told))
            seen = f"an answer that contains {seen or 'nothing'}"
            yield checked("X4", "partition-missing", one, right, f"an answer that contains {allowed}", seen)
            if scene.name:  # requests outside of scenes name topics of scenes
                yield from _not_there(one, told, topics)


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
