"""The verbs of the histories in `twins`, in addition to `Story`: requests with their responses in short notation."""

from collections.abc import Mapping, Sequence

from wire.story import SIZE, Bodies, Story, appended, batch, of_t, sent

Runs = Sequence[tuple[int, int, int]]
"""First and last offset, and the delivery count or the type of acknowledgement."""


def written(
    s: Story, t: float, sequence: int, base: int, error: int = 0, *, producer: int = 7, epoch: int = 0,
    count: int = 1, until: float | None = None,
) -> None:  # fmt: skip
    """An append of one record, or several, by an idempotent producer."""
    by = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    body = {
        "acks": -1,
        "timeout_ms": 20_000,
        "topic_data": sent(batch(0, count - 1, **{"bytes": SIZE, **by})),
    }
    s.ask(t, "produce", body, t + 1 if until is None else until, {"responses": appended(base, error)})


def session(
    s: Story, at: float, epoch: int, places: list[tuple[str, int]],
    came: Mapping[tuple[str, int], list[int] | int] | None = None, *, answer: float = 0, wait: int = 0,
    forgets: tuple[str, ...] = (), error: int = 0, least: int = 1, start: int = 0, most: int = 1 << 20,
) -> None:  # fmt: skip
    """A fetch of session 5: topics with their offsets, and the batches that came of some, or an error. `start`: of the
    topic t."""
    if at == 5:
        s.topic()
    told = [
        {"topic": name, "partitions": [
            {"partition_index": 0, "error_code": bases if isinstance(bases, int) else 0,
             "log_start_offset": start if name == "t" else 0, "records": s.brought(bases)}]}
        for (name, _), bases in (came or {}).items()
    ]  # fmt: skip
    body = {
        "session_id": 5 if epoch else 0, "session_epoch": epoch, "max_wait_ms": wait, "min_bytes": least,
        "max_bytes": most, "topics": [_read(*place) for place in places],
        "forgotten_topics_data": [{"topic": name, "partitions": [0]} for name in forgets],
    }  # fmt: skip
    got = {"error_code": error, "session_id": 5, "responses": told}
    s.ask(at, "fetch", body, answer or at + 1, got)


def fetch_by_id(s: Story, at: float, topic: str, error: int, takes: float = 1, offset: int = -1) -> None:
    """A fetch at once of the first partition, or one that waits for the record at `offset`."""
    wait, there = (0, []) if offset < 0 else (1000, [batch(offset)])
    part = {"partition": 0, "fetch_offset": max(offset, 0)}
    body = {"max_wait_ms": wait, "min_bytes": 1, "topics": [{"topic_id": topic, "partitions": [part]}]}
    told = {"partition_index": 0, "error_code": error, "records": there}
    got = {"responses": [{"topic_id": topic, "partitions": [told]}]}
    s.ask(at, "fetch", body, at + takes, got, version=13)


def named_by_id(s: Story, at: float, creates: bool, shown: str) -> None:
    said = {"topics": [{"name": "u", "error_code": 0, "topic_id": shown}]}
    asked = {"topics": [{"name": "u"}], "allow_auto_topic_creation": False}
    s.ask(at, "create_topics" if creates else "metadata", asked, at + 1, said)


def deleted(s: Story, t: float) -> None:
    s.ask(t, "delete_topics", {"topic_names": ["t"]}, t + 5, {"responses": [{"name": "t", "error_code": 0}]})


def on_request(s: Story, t: float, error: int) -> None:
    """Metadata of v, which the broker may create."""
    asked = {"topics": [{"name": "v"}], "allow_auto_topic_creation": True}
    s.ask(t, "metadata", asked, t + 1, {"topics": [{"name": "v", "error_code": error}]})


def stopped(s: Story, begin: float, end: float) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.event(begin, "stimulus", body={"what": "stopped"})
    s.event(end, "stimulus", body={"what": "continues"})
    s.produce(4, 5, 0, acks=-1)
    for at in (begin - 2, end - 10, end + 100):
        s.metadata(at, in_sync=2)


def delete_records(s: Story, t: float, offset: int, low: int, error: int = 0) -> None:
    said = of_t(low_watermark=low, error_code=error)
    s.ask(t, "delete_records", {"topics": of_t(offset=offset)}, t + 1, {"topics": said})


def epoch_ends(
    s: Story, t: float, asked: int, epoch: int, end: int, *, current: int = -1, error: int = 0
) -> None:
    of = {"partition": 0, "current_leader_epoch": current, "leader_epoch": asked}
    said = {"partition": 0, "error_code": error, "leader_epoch": epoch, "end_offset": end}
    body, got = ({"topics": [{"topic": "t", "partitions": [x]}]} for x in (of, said))
    s.ask(t, "offset_for_leader_epoch", body, t + 0.5, got)


def newcomer(s: Story, t: float, answer: float | None, generation: int = 2) -> None:
    s.join(t, t + 1, "", error=79, given="n")
    s.join(t + 2, answer, "n", generation, leader="a")


def told_of_it(s: Story, t: float, state: str, *members: str, beside: bool = False) -> None:
    """A DescribeGroups response. `beside`: also of another group, which does not exist."""
    said = [{"group_id": "g", "group_state": state, "members": [{"member_id": one} for one in members]}]
    if beside:
        said.insert(0, {"group_id": "nobody", "group_state": "Dead", "members": []})
    s.ask(t, "describe_groups", {"groups": [one["group_id"] for one in said]}, t + 1, {"groups": said})


def to_be_deleted(s: Story, t: float, error: int) -> None:
    said = {"group_id": "g", "error_code": error}
    s.ask(t, "delete_groups", {"groups_names": ["g"]}, t + 1, {"results": [said]})


def deletes_in_time(s: Story, t: float, answer: float) -> None:
    said = of_t(error_code=0, low_watermark=1)
    s.ask(t, "delete_records", {"topics": of_t(offset=1), "timeout_ms": 8000}, answer, {"topics": said})


def listed(
    s: Story, t: float, which: int, offset: int, error: int = 0, time_ms: int = -1, epoch: int = -1, leader: int = -1
) -> None:  # fmt: skip
    with_leader = {"leader_epoch": leader} if leader >= 0 else {}
    said = of_t(offset=offset, error_code=error, timestamp=time_ms, **with_leader)
    asked = of_t(timestamp=which, current_leader_epoch=epoch)
    s.ask(t, "list_offsets", {"topics": asked}, t + 1, {"topics": said})


def two_syncs(s: Story, early: float, share: str) -> None:
    for one in "ab":
        s.join(10, 2010, one, 1, leader="a", told="ab" if one == "a" else "")
    s.sync(2020, early, "b", 1, share)
    s.sync(2500, 2505, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def without_b(s: Story, answer: float, error: int) -> None:
    s.pair()
    newcomer(s, 3000, answer)
    s.join(3100, answer, "a", 2, leader="a", told="an")
    for at in range(3200, int(answer), 500):
        s.beat(at, "b", 1, 27)
    s.beat(answer + 200, "b", 1, error)


def silent_b(s: Story, told: float) -> None:
    s.pair()
    s.beat(2100, "b", 1)
    for at in range(2100, 12_000, 500):
        s.beat(at, "a", 1, 27 if at >= told else 0)


def _said(runs: Runs | None) -> Bodies:
    """The partition 0 of a share group, with the acknowledgements of its records. None: no partition."""
    batches = [
        {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
        for first, last, kind in runs or ()
    ]
    part = {"partition_index": 0, "acknowledgement_batches": batches}
    return [{"topic_id": "u", "partitions": [] if runs is None else [part]}]


def take(
    s: Story, t: float, answer: float | None, member: str, epoch: int, came: Runs = (), *, wait: int = 0,
    said: Runs | None = None, error: int = 0, told: int = 0, part_error: int = 0,
    batches: Sequence[tuple[int, int]] | None = None, conn: str = "", lock: int = 5000, least: int = 1,
    most: int | None = None,
) -> int:  # fmt: skip
    """A ShareFetch of partition 0, and the acquired ranges. `told`: the error of the acknowledgements. `batches`:
    the returned batches, if they differ from the acquired ones."""
    body = {
        "group_id": "s", "member_id": member, "share_session_epoch": epoch, "max_wait_ms": wait, "min_bytes": least,
        "topics": _said(said or () if epoch == 0 else said), "forgotten_topics_data": [],
        "share_acquire_mode": int(most is not None), "max_records": most or 500,
    }  # fmt: skip
    held = [(first, last) for first, last, _ in came] if batches is None else batches
    part = {
        "partition_index": 0, "error_code": part_error, "acknowledge_error_code": told,
        "acquired_records": [
            {"first_offset": first, "last_offset": last, "delivery_count": count} for first, last, count in came
        ],
        "records": [batch(*one) for one in held],
    }  # fmt: skip
    responses = [{"topic_id": "u", "partitions": [part]}] if came or told or part_error else []
    got = {"error_code": error, "acquisition_lock_timeout_ms": lock, "responses": responses}
    return s.ask(t, "share_fetch", body, answer, got, conn=conn or member, version=1)


def say(
    s: Story, t: float, member: str, epoch: int, said: Runs, *, error: int = 0, told: int = 0, takes: float | None = 1,
    conn: str = "", lock: int = 5000,
) -> int:  # fmt: skip
    """A ShareAcknowledge, with the error of the response and the errors of its partitions."""
    body = {
        "group_id": "s",
        "member_id": member,
        "share_session_epoch": epoch,
        "topics": _said(said) if said else [],
    }
    part = {"partition_index": 0, "error_code": told}
    responses = [{"topic_id": "u", "partitions": [part]}] if said else []
    got = {"error_code": error, "acquisition_lock_timeout_ms": lock, "responses": responses}
    answer = None if takes is None else t + takes
    return s.ask(t, "share_acknowledge", body, answer, got, conn=conn or member, version=1)


def share_append(s: Story, t: float, base: int, count: int = 1) -> None:
    body = {"acks": -1, "timeout_ms": 1000, "topic_data": sent(batch(0, count - 1))}
    s.ask(t, "produce", body, t + 1, {"responses": appended(base)})


def acquired(s: Story, count: int = 1) -> None:
    """So many records, from 1 on, are a's from 12 ms on (behind `shared`)."""
    share_append(s, 10, 1, count)
    take(s, 11.5, 12, "a", 3, [(1, count, 1)])


def grown(s: Story, t: float, count: int, error: int, validated: bool = False) -> None:
    s.ask(t, "create_partitions", {"topics": [{"name": "t", "count": count}], "validate_only": validated}, t + 1,
          {"results": [{"name": "t", "error_code": error}]})  # fmt: skip


def elected(s: Story, t: float, topic: str, error: int, number: int = 0) -> None:
    s.ask(t, "elect_leaders", {"topic_partitions": [{"topic": topic, "partitions": [number]}]}, t + 1,
          {"error_code": 0, "replica_election_results": [
              {"topic": topic, "partition_result": [{"partition_id": number, "error_code": error}]}]})  # fmt: skip


def init(
    s: Story, t: float, epoch: int, error: int = 0, name: str = "x", producer: int = 7, former: int = -1
) -> None:
    body = {
        "transactional_id": name, "transaction_timeout_ms": 30_000,
        "producer_id": producer if former >= 0 else -1, "producer_epoch": former,
    }  # fmt: skip
    got = {"error_code": error, "producer_id": -1 if error else producer, "producer_epoch": epoch}
    s.ask(t, "init_producer_id", body, t + 1, got, version=4)


def add(
    s: Story, t: float, epoch: int = 0, error: int = 0, name: str = "x", producer: int = 7,
    numbers: Sequence[int] = (0,),
) -> None:  # fmt: skip
    body = {
        "v3_and_below_transactional_id": name, "v3_and_below_producer_id": producer,
        "v3_and_below_producer_epoch": epoch, "v3_and_below_topics": [{"name": "t", "partitions": [*numbers]}],
    }  # fmt: skip
    told = [{"partition_index": number, "partition_error_code": error} for number in numbers]
    got = {"results_by_topic_v3_and_below": [{"name": "t", "results_by_partition": told}]}
    s.ask(t, "add_partitions_to_txn", body, t + 1, got, version=3)


def end(
    s: Story, t: float, commits: bool, error: int = 0, epoch: int = 0, name: str = "x", producer: int = 7,
    takes: float | None = 1,
) -> None:  # fmt: skip
    body = {
        "transactional_id": name, "producer_id": producer, "producer_epoch": epoch, "committed": commits,
    }  # fmt: skip
    s.ask(t, "end_txn", body, None if takes is None else t + takes, {"error_code": error}, version=4)


def renew(s: Story, t: float, commits: bool, error: int = 0, epoch: int = 0, now: int = -1) -> None:
    """An end that asks for the next epoch."""
    body = {"transactional_id": "x", "producer_id": 7, "producer_epoch": epoch, "committed": commits}
    got = {"error_code": error, "producer_id": -1 if error else 7, "producer_epoch": now}
    s.ask(t, "end_txn", body, t + 1, got, version=5)


def write(
    s: Story, t: float, base: int, error: int = 0, epoch: int = 0, sequence: int = 0, producer: int = 7,
    number: int = 0, version: int = 9,
) -> None:  # fmt: skip
    by = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    data = sent(batch(0, transactional=True, **by), number=number)
    s.written |= {} if error else {(number, base): {**by, "transactional": True}}
    body = {"transactional_id": "x", "acks": -1, "timeout_ms": 1000, "topic_data": data}
    got = {"responses": appended(-1 if error else base, error, number=number)}
    s.ask(t, "produce", body, t + 1, got, version=version)


def read(
    s: Story, t: float, answer: float, came: Sequence[int], *, wait: int = 0, offset: int = 0, stable: int = -1,
    aborted: Sequence[tuple[int, int]] = (), committed: bool = True, least: int = 1,
) -> None:  # fmt: skip
    """A read_committed Fetch, and the returned batches."""
    body = {
        "max_wait_ms": wait, "min_bytes": least, "max_bytes": 1 << 20, "isolation_level": int(committed),
        "topics": [_read("t", offset)],
    }  # fmt: skip
    told = {
        "partition_index": 0, "error_code": 0, "last_stable_offset": stable,
        "aborted_transactions": [{"producer_id": one, "first_offset": first} for one, first in aborted],
        "records": s.brought(came),
    }  # fmt: skip
    got = {"error_code": 0, "responses": [{"topic": "t", "partitions": [told]}]}
    s.ask(t, "fetch", body, answer, got)


def ended(s: Story, t: float, commits: bool) -> None:
    """It ends, which surely has happened 6 ms later: the next one is let begin."""
    end(s, t, commits)
    add(s, t + 2, error=51)
    add(s, t + 5)


def offsets(
    s: Story, t: float, at: int, *, stable: bool = False, error: int = 0, of_all: bool = False
) -> None:
    """The committed offset of the group in an OffsetFetch response."""
    topics = None if of_all else [{"name": "t", "partition_indexes": [0]}]
    body = {"group_id": "g", "topics": topics, "require_stable": stable}
    told = of_t(committed_offset=at, metadata="", error_code=error)
    s.ask(t, "offset_fetch", body, t + 1, {"error_code": 0, "topics": told}, version=7)


def hold(
    s: Story, t: float, at: int, member: str = "", generation: int = -1, error: int = 0, name: str = "x",
    producer: int = 7,
) -> None:  # fmt: skip
    """An offset is committed with a transaction that is open."""
    body = {
        "transactional_id": name, "producer_id": producer, "producer_epoch": 0, "group_id": "g",
        "generation_id": generation, "member_id": member,
        "topics": of_t(committed_offset=at, committed_metadata=""),
    }  # fmt: skip
    s.ask(t, "txn_offset_commit", body, t + 1, {"topics": of_t(error_code=error)}, version=3)


def of_group(s: Story, name: str = "x", producer: int = 7) -> None:
    """A transaction is open for the offsets of a group, from 7 ms on."""
    init(s, 4, 0, name=name, producer=producer)
    body = {"transactional_id": name, "producer_id": producer, "producer_epoch": 0, "group_id": "g"}
    s.ask(6, "add_offsets_to_txn", body, 7, {"error_code": 0}, version=3)


def offset_held(s: Story, at: int) -> None:
    s.topic()
    of_group(s)
    hold(s, 10, at)


def consumer(
    s: Story, t: float, member: str, epoch: int, now: int, told: str | None = None, owned: str | None = None,
    error: int = 0, instance: str | None = None, api: str = "consumer_group_heartbeat", whole: bool = False,
    topics: str = "t", assignor: str | None = None, beat_ms: int = 5000,
) -> None:  # fmt: skip
    """A heartbeat of KIP-848; partitions are digits, and None where they have not changed. `whole`: with all fields.
    Each letter of `topics` is one that it subscribes to."""
    owned = owned if epoch else owned or ""
    body = {
        "group_id": "g", "member_id": member, "member_epoch": epoch, "rebalance_timeout_ms": -1 if epoch else 3000,
        "subscribed_topic_names": [*topics] if whole or not epoch else None, "topic_partitions": _of_topic(owned),
        "instance_id": instance, "server_assignor": assignor,
    }  # fmt: skip
    given = None if told is None else {"topic_partitions": _of_topic(told)}
    got = {"error_code": error, "member_epoch": now, "heartbeat_interval_ms": beat_ms, "assignment": given}
    s.ask(t, api, body, t + 1, got, version=1)


def sharer(
    s: Story, t: float, member: str, epoch: int, now: int, told: str | None = None, error: int = 0
) -> None:
    consumer(s, t, member, epoch, now, told, error=error, api="share_group_heartbeat")


def streamer(
    s: Story, t: float, member: str, epoch: int, now: int, told: str | None = None, owned: str | None = None,
    error: int = 0, status: int | None = None, ends: bool = False,
) -> None:  # fmt: skip
    """A heartbeat of a streams group. `ends`: it requests a shutdown. `status`: 4, or 5: the assignment is delayed."""
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "id", "source_topics": ["t"]}]}
    body = {
        "group_id": "g", "member_id": member, "member_epoch": epoch, "rebalance_timeout_ms": -1 if epoch else 3000,
        "topology": None if epoch else topology, "active_tasks": _of_topic(owned, "subtopology_id"),
        "shutdown_application": ends,
    }  # fmt: skip
    got = {
        "error_code": error, "member_epoch": now, "heartbeat_interval_ms": 5000,
        "active_tasks": _of_topic(told, "subtopology_id"), "status": [{"status_code": status}] if status else [],
    }  # fmt: skip
    s.ask(t, "streams_group_heartbeat", body, t + 1, got, version=0)


def looks(s: Story, t: float, member: str, epoch: int, error: int) -> None:
    """An OffsetFetch of a member of a consumer group."""
    asked = {"group_id": "g", "member_id": member, "member_epoch": epoch, "topics": []}
    got = {"groups": [{"group_id": "g", "error_code": error, "topics": []}]}
    s.ask(t, "offset_fetch", {"groups": [asked], "require_stable": False}, t + 1, got, version=9)


def _read(name: str, offset: int) -> dict[str, object]:
    """A topic of a fetch, from this offset of partition 0 on."""
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    return {"topic": name, "partitions": [part]}


def _of_topic(numbers: str | None, of: str = "topic_id") -> Bodies | None:
    """`of`: the field of the topic."""
    if numbers is None:
        return None
    return [{of: "id", "partitions": [*map(int, numbers)]}] if numbers else []
