"""What several histories tell: see the package."""

from __future__ import annotations

from collections.abc import Mapping

from wire.story import SIZE, Story


def written(
    s: Story, t: float, sequence: int, base: int, error: int = 0, *, producer: int = 7, count: int = 1,
    until: float | None = None,
) -> None:  # fmt: skip
    """An append of one record, or several, by an idempotent producer."""
    batch = {
        "base": 0, "last": count - 1, "count": count, "bytes": SIZE, "producer_id": producer, "producer_epoch": 0,
    }  # fmt: skip
    data = [{"index": 0, "records": [{**batch, "base_sequence": sequence}]}]
    said = {"index": 0, "error_code": error, "base_offset": base}
    s.ask(
        t, "produce", {"acks": -1, "timeout_ms": 20_000, "topic_data": [{"name": "t", "partition_data": data}]},
        t + 1 if until is None else until, {"responses": [{"name": "t", "partition_responses": [said]}]},
    )  # fmt: skip


def session(
    s: Story, at: float, epoch: int, places: list[tuple[str, int]],
    came: Mapping[tuple[str, int], list[int] | int] | None = None, *, answer: float = 0, wait: int = 0,
    forgets: tuple[str, ...] = (), error: int = 0, least: int = 1, start: int = 0, most: int = 1 << 20,
) -> None:  # fmt: skip
    """A fetch of session 5: topics with their offsets, and the batches that came of some, or an error. `start`: of the
    topic t."""
    if at == 5:
        s.topic()
    topics = [
        {
            "topic": name,
            "partitions": [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}],
        }
        for name, offset in places
    ]
    told = [
        {"topic": name, "partitions": [
            {"partition_index": 0, "error_code": bases if isinstance(bases, int) else 0,
             "log_start_offset": start if name == "t" else 0, "records": [
                {"base": base, "last": base, "count": 1, "bytes": SIZE}
                for base in ([] if isinstance(bases, int) else bases)]}]}
        for (name, _), bases in (came or {}).items()
    ]  # fmt: skip
    body = {
        "session_id": 5 if epoch else 0, "session_epoch": epoch, "max_wait_ms": wait, "min_bytes": least,
        "max_bytes": most, "topics": topics,
        "forgotten_topics_data": [{"topic": name, "partitions": [0]} for name in forgets],
    }  # fmt: skip
    got = {"error_code": error, "session_id": 5, "responses": told}
    s.ask(at, "fetch", body, answer or at + 1, got)


def fetch_by_id(s: Story, at: float, topic: str, error: int, takes: float = 1, offset: int = -1) -> None:
    """A fetch at once of the first partition, or one that waits for the record at `offset`."""
    wait, there = (
        (0, []) if offset < 0 else (1000, [{"base": offset, "last": offset, "count": 1, "bytes": SIZE}])
    )
    part = {"partition": 0, "fetch_offset": max(offset, 0)}
    body = {"max_wait_ms": wait, "min_bytes": 1, "topics": [{"topic_id": topic, "partitions": [part]}]}
    told = {"partition_index": 0, "error_code": error, "records": there}
    got = {"responses": [{"topic_id": topic, "partitions": [told]}]}
    s.ask(at, "fetch", body, at + takes, got, version=13)


def named_by_id(s: Story, at: float, creates: bool, shown: str) -> None:
    """A topic is made, or asked for, and is told with its id."""
    said = {"topics": [{"name": "u", "error_code": 0, "topic_id": shown}]}
    asked = {"topics": [{"name": "u"}], "allow_auto_topic_creation": False}
    s.ask(at, "create_topics" if creates else "metadata", asked, at + 1, said)


def deleted(s: Story, t: float) -> None:
    s.ask(t, "delete_topics", {"topic_names": ["t"]}, t + 5, {"responses": [{"name": "t", "error_code": 0}]})


def stopped(s: Story, begin: float, end: float) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.event(begin, "stimulus", body={"what": "stopped"})
    s.event(end, "stimulus", body={"what": "continues"})
    s.produce(4, 5, 0, acks=-1)
    for at in (begin - 2, end - 10, end + 100):
        s.metadata(at, in_sync=2)


def delete_records(s: Story, t: float, offset: int, low: int, error: int = 0) -> None:
    part = {"partition_index": 0, "offset": offset}
    said = {"partition_index": 0, "low_watermark": low, "error_code": error}
    s.ask(t, "delete_records", {"topics": [{"name": "t", "partitions": [part]}]}, t + 1,
          {"topics": [{"name": "t", "partitions": [said]}]})  # fmt: skip


def newcomer(s: Story, t: float, answer: float | None, generation: int = 2) -> None:
    s.join(t, t + 1, "", error=79, given="n")
    s.join(t + 2, answer, "n", generation, leader="a")


def static_pair(s: Story) -> None:
    for one in "ab":
        s.join(10, 2010, "", 1, leader="a", told="ab" if one == "a" else "", given=one, instance=f"i{one}")
    s.sync(2016, 2019, "b", 1, "sb")
    s.sync(2017, 2018, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def nobody_rejoins(s: Story) -> None:
    """A newcomer begins a rebalance and leaves; the static members are heard of and do not rejoin for 5 s."""
    static_pair(s)
    s.join(2990, 2991, "", error=79, given="c")
    s.join(3000, 3050, "c", error=25)
    s.leave(3040, "c")
    for at in range(3100, 8000, 900):
        for one in "ab":
            s.beat(at, one, 1, 27, instance=f"i{one}")


def told_of_a_rebalance(s: Story) -> None:
    """A stable pair, a newcomer whose join waits for it, and a heartbeat that says so."""
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.join(2110, None, "n", leader="a")
    s.beat(2150, "a", 1, 27)


def told_of_it(s: Story, t: float, state: str, *members: str, beside: bool = False) -> None:
    """What DescribeGroups says. `beside`: of another group too, which is not there."""
    said = [{"group_id": "g", "group_state": state, "members": [{"member_id": one} for one in members]}]
    if beside:
        said.insert(0, {"group_id": "nobody", "group_state": "Dead", "members": []})
    s.ask(t, "describe_groups", {"groups": [one["group_id"] for one in said]}, t + 1, {"groups": said})


def to_be_deleted(s: Story, t: float, error: int) -> None:
    said = {"group_id": "g", "error_code": error}
    s.ask(t, "delete_groups", {"groups_names": ["g"]}, t + 1, {"results": [said]})
