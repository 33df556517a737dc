"""Every clause of the wire: a history that it keeps, with an occasion, and a twin of it that it must break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from docs.makers.packaged_brokers import clauses
from purgatorio_spec.verdict import Verdict
from purgatorio_spec.wire.bound import MS, Bounds, Held
from purgatorio_spec.wire.record import Declared, WireEvent
from purgatorio_spec.wire.registry import WIRE_CLAUSES
from wire_story import END_MS, SIZE, Story

Twin = Callable[[Story, bool], None]
"""Tells a history; with True, the one that is broken."""


def x1(s: Story, bad: bool) -> None:
    s.ask(10, "api_versions", {}, 11, {}, conn="c")
    if bad:
        s.event(12, "answer", conn="c", corr=77)


def x1_twice(s: Story, bad: bool) -> None:
    s.ask(10, "api_versions", {}, 11, {}, conn="c")
    if bad:
        s.event(12, "answer", conn="c", corr=1)


def x1_closed(s: Story, bad: bool) -> None:
    s.ask(5, "api_versions", {}, 6, {})
    s.ask(10, "api_versions", {}, None if bad else 11, {}, conn="c")
    s.close(20, "c", "peer")


def x1_never(s: Story, bad: bool) -> None:
    s.ask(5, "api_versions", {}, 6, {})
    s.ask(10, "api_versions", {}, None if bad else 2000, {})


def x1_sync(s: Story, bad: bool) -> None:
    """A sync waits for the leader's when the trace ends."""
    s.gathered(rebalance=3000 if bad else 70_000)
    s.sync(2100, 2101, "a", 1, "", gives={"b": "s"})
    s.sync(2200, None, "b", 1)


def x2(s: Story, bad: bool) -> None:
    s.ask(10, "api_versions", {}, 30 if bad else 20, {}, conn="c")
    s.ask(11, "metadata", {}, 25, {}, conn="c")


def x3(s: Story, bad: bool) -> None:
    s.ask(10, "api_versions", {}, 11, {}, err="undecodable: no" if bad else None)


def x3_offered(s: Story, bad: bool) -> None:
    s.offered = {"metadata": (0, 9)}
    s.ask(10, "metadata", {}, None if bad else 11, {}, conn="c")
    s.close(12, "c", "peer")


def x3_left(s: Story, bad: bool) -> None:
    s.ask(10, "api_versions", {}, 11, {}, left=3 if bad else None)


def x4(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 11, [("t", 0, 0, [])], wait=0)
    told = [{"name": name, "error_code": 0} for name in ("u", "v")]
    s.ask(
        20,
        "create_topics",
        {"topics": [{"name": "u"}, {"name": "v"}]},
        30,
        {"topics": told[: 1 if bad else 2]},
    )


def x4_members(s: Story, bad: bool) -> None:
    members = [{"member_id": "a"}, {"member_id": "b"}]
    s.ask(10, "leave_group", {"group_id": "g", "members": members}, 11, {"members": members[bad:]})


def x4_groups(s: Story, bad: bool) -> None:
    said = [{"group_id": name, "error_code": 69} for name in ("g", "h")]
    s.ask(10, "delete_groups", {"groups_names": ["g", "h"]}, 11, {"results": said[bad:]})


def _offsets_asked(group: str, told: bool) -> tuple[dict[str, object], dict[str, object]]:
    """Of one group: the question for a partition by its name, of which nothing was committed, and the answer."""
    part = {"partition_index": 0, "committed_offset": -1, "metadata": "", "error_code": 0}
    asked: dict[str, object] = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}
    return asked, {"group_id": group, "topics": [{"name": "t", "partitions": [part]}] if told else []}


def x4_offsets(s: Story, bad: bool) -> None:
    asked, said = _offsets_asked("g", not bad)
    s.ask(10, "offset_fetch", asked, 11, said, version=7)


def x4_offsets_of_several(s: Story, bad: bool) -> None:
    """What is told of another group does not count, and of all offsets nothing is named."""
    asked, said = zip(_offsets_asked("g", not bad), _offsets_asked("h", True), strict=True)
    s.ask(10, "offset_fetch", {"groups": [*asked]}, 11, {"groups": [*said]})
    s.ask(20, "offset_fetch", {"groups": [{"group_id": "g", "topics": None}]}, 21, {"groups": said[1:]})


def x4_offsets_of_a_group(s: Story, bad: bool) -> None:
    asked, said = zip(_offsets_asked("g", True), _offsets_asked("h", True), strict=True)
    s.ask(10, "offset_fetch", {"groups": [*asked]}, 11, {"groups": [*said[bad:]]})


def x4_coordinators(s: Story, bad: bool) -> None:
    said = [{"key": name, "error_code": 0} for name in ("g", "h")]
    s.ask(10, "find_coordinator", {"coordinator_keys": ["g", "h"]}, 11, {"coordinators": said[bad:]})
    s.ask(20, "find_coordinator", {"key": "g"}, 21, {"error_code": 0}, version=3)


def x4_elections(s: Story, bad: bool) -> None:
    said = [
        {"topic": name, "partition_result": [{"partition_id": at, "error_code": 3} for at in (0, 1)]}
        for name in ("t", "u")
    ]
    asked = [{"topic": name, "partitions": [0, 1]} for name in ("t", "u")]
    got = {"error_code": 0, "replica_election_results": said[bad:]}
    s.ask(10, "elect_leaders", {"topic_partitions": asked, "timeout_ms": 5000}, 11, got)
    s.ask(20, "elect_leaders", {"topic_partitions": None, "timeout_ms": 5000}, 21, got)


def x4_twice(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 11, [("t", 0, 0, [])], wait=0)
    part = {"partition_index": 0, "offset": 0}
    topics = [{"name": "t", "partitions": [part] * (2 if bad else 1)}]
    s.ask(20, "delete_records", {"topics": [{"name": "t", "partitions": [part]}]}, 21, {"topics": topics})


def x4_not_there(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 11, [("t", 0, 0, []), ("t", 1, 0, [] if bad else 3), ("nobody", 0, 0, 3)], wait=500)


def x4_deletes(s: Story, bad: bool) -> None:
    said = [{"name": "nobody", "error_code": 0 if bad else 3}]
    s.ask(10, "delete_topics", {"topic_names": ["nobody"]}, 11, {"responses": said})


def x4_commits(s: Story, bad: bool) -> None:
    s.topic()
    parts = [{"partition_index": at, "committed_offset": 1} for at in (0, 9)]
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": parts}],
    }
    told = [{"partition_index": at, "error_code": 3 if at and not bad else 0} for at in (0, 9)]
    s.ask(10, "offset_commit", body, 11, {"topics": [{"name": "t", "partitions": told}]})


def _written(s: Story, t: float, sequence: int, base: int, error: int = 0, *, producer: int = 7) -> None:
    """An append of one record by an idempotent producer."""
    batch = {"base": 0, "last": 0, "count": 1, "bytes": SIZE, "producer_id": producer, "producer_epoch": 0}
    data = [{"index": 0, "records": [{**batch, "base_sequence": sequence}]}]
    said = {"index": 0, "error_code": error, "base_offset": base}
    s.ask(
        t, "produce", {"acks": -1, "timeout_ms": 1000, "topic_data": [{"name": "t", "partition_data": data}]},
        t + 1, {"responses": [{"name": "t", "partition_responses": [said]}]},
    )  # fmt: skip


def p7(s: Story, bad: bool) -> None:
    s.topic()
    for at in range(2):
        _written(s, 10 + 10 * at, at, at)
    _written(s, 50, 0, 2 if bad else 0)


def p7_in_order(s: Story, bad: bool) -> None:
    s.topic()
    _written(s, 10, 0, 0)
    _written(s, 20, 2, 1 if bad else -1, 0 if bad else 45)


def p1_sent_again(s: Story, bad: bool) -> None:
    """What was sent again is not there again, nor is it what another producer sends with that number."""
    s.topic()
    for at in (10, 20):
        _written(s, at, 0, 0)
    _written(s, 30, 0, 2 if bad else 1, producer=8)


def a1_refused(s: Story, bad: bool) -> None:
    said = {"name": "u", "error_code": 3 if bad else 0}
    asked = {"topics": [{"name": "u", "num_partitions": 1}], "timeout_ms": 5000}
    s.ask(10, "create_topics", asked, 30, {"topics": [said]})


def a1_id(s: Story, bad: bool) -> None:
    for at, shown in ((10, "one"), (40, "another" if bad else "one")):
        _named_by_id(s, at, at == 10, shown)


def a1_id_again(s: Story, bad: bool) -> None:
    _named_by_id(s, 10, True, "one")
    s.ask(20, "delete_topics", {"topic_names": ["u"]}, 21, {"responses": [{"name": "u", "error_code": 0}]})
    _named_by_id(s, 40, True, "one" if bad else "another")


def g7_silent_leader(s: Story, bad: bool) -> None:
    """The leader's session is over at 8,015 ms, the rebalance time-out at 22,015."""
    s.gathered(rebalance=20_000)
    s.sync(2100, 22_020 if bad else 8040, "b", 1, error=27)
    if bad:
        s.repeat()


def g11_let_in(s: Story, bad: bool) -> None:
    """Of one that was out, by its name."""
    static_pair(s)
    s.beat(8500, "b", 1, 25, instance="ib")
    s.beat(8510, "a", 1, 27, instance="ia")
    s.join(8550, 8600, "a", 2, leader="a", told="ab" if not bad else "a", instance="ia")
    given, number, error = ("", -1, 25) if bad else ("b2", 2, 0)
    s.join(8560, 8561 if bad else 8600, "", number, error=error, leader="a", given=given, instance="ib")


def g11_let_in_again(s: Story, bad: bool) -> None:
    """Of one that had left."""
    static_pair(s)
    s.leave(2100, "b")
    given, number, error = ("", -1, 25) if bad else ("b2", 2, 0)
    s.join(2200, 2300, "a", 2, leader="a", told="a" if bad else "ab", instance="ia")
    s.join(2210, 2211 if bad else 2300, "", number, error=error, leader="a", given=given, instance="ib")


def g11_other_protocol(s: Story, bad: bool) -> None:
    static_pair(s)
    told = "own a" if bad else "range"
    s.join(2500, 2501, "", 1, leader="a", given="b2", instance="ib", protocol=told)


def f3_session(s: Story, bad: bool) -> None:
    """A fetch that says nothing of its session's partitions waits for all of them."""
    _session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    for offset, at in enumerate((10, 4000)):
        s.produce(at + 100, at + 105, offset)
        places = [("t", offset)] if offset else []
        _session(
            s,
            at,
            1 + offset,
            places,
            {("t", offset): [offset]},
            answer=at + (1001 if bad else 110),
            wait=1000,
        )


def f1_forgotten(s: Story, bad: bool) -> None:
    """What was taken out of a session wakes nobody."""
    s.topic("u")
    _session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    s.produce(100, 105, 0)
    _session(s, 10, 1, [], answer=106 if bad else 1010, wait=1000, forgets=("t",))


def x4_forgotten(s: Story, bad: bool) -> None:
    """What was taken out of a session is not told any more; what has no news need not be."""
    s.topic("u")
    _session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    _session(s, 10, 1, [], came={("t", 0): []} if bad else {}, forgets=("t",))


def x4_asked_for_again(s: Story, bad: bool) -> None:
    """What is new in a session is told, though it was told before it was taken out."""
    s.topic("u")
    _session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    _session(s, 10, 1, [], forgets=("t",))
    _session(s, 20, 2, [("t", 0)], came={} if bad else {("t", 0): []})


def f5_session_start(s: Story, bad: bool) -> None:
    """Records are deleted, and who has a session is told of it when its fetch is answered."""
    s.topic("u")
    s.produce(4, 4.5, 0)
    _session(s, 5, 0, [("t", 1), ("u", 0)], came={("t", 1): [], ("u", 0): []})
    delete_records(s, 8, 1, 1)
    s.produce(100, 101, 0, name="u")
    came = {("u", 0): [0]} if bad else {("u", 0): [0], ("t", 1): []}
    _session(s, 50, 1, [], came, answer=1051, wait=1000, least=100_000, start=1)


def f6_session(s: Story, bad: bool) -> None:
    _session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    _session(s, 10, 7, [], error=0 if bad else 71)


def f6_next_of_a_session(s: Story, bad: bool) -> None:
    _session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    _session(s, 10, 7, [], error=71)
    _session(s, 12, 1, [], error=71 if bad else 0)


def f6_no_session(s: Story, bad: bool) -> None:
    _session(s, 10, 1, [], error=71 if bad else 70)


def _session(
    s: Story, at: float, epoch: int, places: list[tuple[str, int]],
    came: dict[tuple[str, int], list[int]] | None = None, *, answer: float = 0, wait: int = 0,
    forgets: tuple[str, ...] = (), error: int = 0, least: int = 1, start: int = 0, most: int = 1 << 20,
) -> None:  # fmt: skip
    """A fetch of session 5: topics with their offsets, and the batches that came of some. `start`: of the topic t."""
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
            {"partition_index": 0, "error_code": 0, "log_start_offset": start if name == "t" else 0, "records": [
                {"base": base, "last": base, "count": 1, "bytes": SIZE} for base in bases]}]}
        for (name, _), bases in (came or {}).items()
    ]  # fmt: skip
    body = {
        "session_id": 5 if epoch else 0, "session_epoch": epoch, "max_wait_ms": wait, "min_bytes": least,
        "max_bytes": most, "topics": topics,
        "forgotten_topics_data": [{"topic": name, "partitions": [0]} for name in forgets],
    }  # fmt: skip
    got = {"error_code": error, "session_id": 5, "responses": told}
    s.ask(at, "fetch", body, answer or at + 1, got)


def a2_by_id(s: Story, bad: bool) -> None:
    """A topic is deleted and another made by its name: the id leads to neither."""
    _named_by_id(s, 10, True, "one")
    s.ask(20, "delete_topics", {"topic_names": ["u"]}, 21, {"responses": [{"name": "u", "error_code": 0}]})
    _named_by_id(s, 30, True, "another")
    for at in (40, 15_000):
        _fetch_by_id(s, at, "one", 0 if bad or at == 40 else 100)


def f6_by_id(s: Story, bad: bool) -> None:
    s.topic()
    _fetch_by_id(s, 10, "nobody's", 3 if bad else 100)


def f3_by_id(s: Story, bad: bool) -> None:
    """A fetch that names its topic by its id alone is one like others."""
    _named_by_id(s, 1, True, "one")
    _fetch_by_id(s, 3, "one", 0)
    for at in (10, 4000):
        s.produce(at + 100, at + 105, at // 4000, name="u")
        _fetch_by_id(s, at, "one", 0, 1001 if bad else 110, at // 4000)


def _fetch_by_id(s: Story, at: float, topic: str, error: int, takes: float = 1, offset: int = -1) -> None:
    """A fetch at once of the first partition, or one that waits for the record at `offset`."""
    wait, there = (
        (0, []) if offset < 0 else (1000, [{"base": offset, "last": offset, "count": 1, "bytes": SIZE}])
    )
    part = {"partition": 0, "fetch_offset": max(offset, 0)}
    body = {"max_wait_ms": wait, "min_bytes": 1, "topics": [{"topic_id": topic, "partitions": [part]}]}
    told = {"partition_index": 0, "error_code": error, "records": there}
    got = {"responses": [{"topic_id": topic, "partitions": [told]}]}
    s.ask(at, "fetch", body, at + takes, got, version=13)


def _named_by_id(s: Story, at: float, creates: bool, shown: str) -> None:
    """A topic is made, or asked for, and is told with its id."""
    said = {"topics": [{"name": "u", "error_code": 0, "topic_id": shown}]}
    asked = {"topics": [{"name": "u"}], "allow_auto_topic_creation": False}
    s.ask(at, "create_topics" if creates else "metadata", asked, at + 1, said)


def a1_wrong(s: Story, bad: bool) -> None:
    said = {"topics": [{"name": "u", "error_code": 0 if bad else 37}]}
    s.ask(10, "create_topics", {"topics": [{"name": "u", "num_partitions": 0}]}, 11, said)


def a1_validated(s: Story, bad: bool) -> None:
    said = {"topics": [{"name": "u", "error_code": 0}]}
    s.ask(10, "create_topics", {"topics": [{"name": "u"}], "validate_only": True}, 11, said)
    s.metadata(100, 0 if bad else 3, name="u")


def a1_never_leads(s: Story, bad: bool) -> None:
    asked = {"name": "u", "num_partitions": 1}
    body = {"topics": [asked], "timeout_ms": 5000}
    s.ask(10, "create_topics", body, 30, {"topics": [{"name": "u", "error_code": 0}]})
    for at in (40, 15_000):
        s.fetch(at, at + 1, [("u", 0, 0, 6 if bad or at == 40 else [])], wait=0)
    s.ask(15_010, "metadata", {"topics": []}, 15_011, {"brokers": [{"node_id": 0}]})


def g0_not_known(s: Story, bad: bool) -> None:
    s.join(10, 11, "", error=79, given="a")
    s.join(12, 14 if bad else 1015, "a", -1 if bad else 1, error=25 if bad else 0, leader="a", told="a")


def g0_not_known_beside(s: Story, bad: bool) -> None:
    """The group has members who are heard of: nobody can have forgotten it."""
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.join(2102, 2104 if bad else 2210, "n", -1 if bad else 2, error=25 if bad else 0, leader="a")
    for one in () if bad else "ab":
        s.join(2200, 2210, one, 2, leader="a", told="abn" if one == "a" else "")


def g0_beside_a_refusal(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101, "", error=23, kind="another")
    s.join(2110, 2111, "", error=23 if bad else 79, given="" if bad else "c")


def g0_of_other_protocols_than_who_has_left(s: Story, bad: bool) -> None:
    """Of those who were there only `b` had not the one that `c` has."""
    s.pair()
    s.leave(2100, "b")
    body = {"group_id": "g", "member_id": "", "session_timeout_ms": 6000, "rebalance_timeout_ms": 3000,
            "protocol_type": "consumer", "protocols": [{"name": "own a", "metadata": ""}]}  # fmt: skip
    said = {"error_code": 23, "member_id": ""} if bad else {"error_code": 79, "member_id": "c"}
    s.ask(2150, "join_group", body, 2151, said)


def g0_of_another_kind_than_who_has_left(s: Story, bad: bool) -> None:
    s.gathered("a")
    s.leave(2100, "a")
    s.join(2150, 2151, "", error=23 if bad else 79, given="" if bad else "c", kind="another")


def g2_protocol(s: Story, bad: bool) -> None:
    s.gathered(protocol="own a" if bad else "range")


def g2_subscription(s: Story, bad: bool) -> None:
    s.gathered(subscriptions={"b": "of a"} if bad else None)


def g5_leader_refused(s: Story, bad: bool) -> None:
    s.join(10, 11, "", error=79, given="a")
    s.join(15, 1015, "a", 1, leader="a", told="a")
    s.sync(1020, 1021, "a", 1, "" if bad else "sa", gives={"a": "sa"}, error=27 if bad else 0)


def g5_refused(s: Story, bad: bool) -> None:
    s.gathered()
    s.sync(2020, 2021 if bad else 2050, "b", 1, "" if bad else "sb", error=27 if bad else 0)
    s.sync(2040, 2050, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def f8_beside(s: Story, bad: bool) -> None:
    for name in "tu":
        s.topic(name)
    s.fetch(10, 6011 if bad else 120, [("u", 0, 0, []), ("t", 0, 0, 3)], wait=20_000)
    s.ask(100, "delete_topics", {"topic_names": ["t"]}, 110, {"responses": [{"name": "t", "error_code": 0}]})
    if bad:
        s.repeat()


def p5_no_time(s: Story, bad: bool) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.metadata(4, in_sync=2)
    s.event(5, "stimulus", body={"what": "stopped"})
    for at in (10, 3000):
        s.produce(at, at + (1500 if bad else 1), 0, acks=-1, error=7, timeout=0)
    s.event(8000, "stimulus", body={"what": "continues"})
    s.metadata(8001, in_sync=2)


def a3_left(s: Story, bad: bool) -> None:
    for at, name in ((0, "t"), (10_000, "u")):
        said = {"topics": [{"name": name, "error_code": 0}]}
        s.ask(at, "create_topics", {"topics": [{"name": name, "num_partitions": 1}]}, at + 1, said)
        s.fetch(at + 2, at + 3, [(name, 0, 0, [])], wait=0)
        body = {"topics": [{"name": name, "count": 3}], "timeout_ms": 5000}
        said = {"results": [{"name": name, "error_code": 7 if bad else 0}]}
        s.ask(at + 10, "create_partitions", body, at + (5011 if bad else 20), said)


def g1_second(s: Story, bad: bool) -> None:
    s.gathered(joins=1015 if bad else 2005, rebalance=9000)


def g1_capped(s: Story, bad: bool) -> None:
    s.gathered(joins=2805 if bad else 1505, rebalance=1500)


def g3_again(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101, "b", 2 if bad else 1, leader="b" if bad else "a", told="b" if bad else "")


def g2_told_again(s: Story, bad: bool) -> None:
    """The leader asks again, behind a follower that did, before anybody has synced: it is told who the members are."""
    s.gathered()
    s.join(2100, 2101, "b", 1, leader="a")
    s.join(2200, 2201, "a", 1, leader="a", told="" if bad else "ab")


def g3_out_unsynced(s: Story, bad: bool) -> None:
    """Nobody has synced: each is out as the time to sync ends."""
    for s.scene, at, error in (("told#1", 2100, 0), ("told#2", 3000 if bad else 5005, 25)):
        s.gathered()
        s.join(at, at + 15, "b", -1 if error else 1, leader="a", error=error)


def g4_awaited(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101, "", error=79, given="ghost")
    s.join(2110, 2111, "", error=79, given="c")
    for one in "cab":
        s.join(2200, 2210 if bad else 5201, one, 2, leader="a", told="abc" if one == "a" else "")


def g5_leaver(s: Story, bad: bool) -> None:
    s.gathered("abc")
    for at in (0, 0.5) if bad else (0,):
        s.sync(2020 + at, 5016 if bad else 2101, "b", 1, error=27)
    s.leave(2100, "c")


def g9_protocol(s: Story, bad: bool) -> None:
    s.pair()
    body = {"group_id": "g", "member_id": "", "session_timeout_ms": 6000, "rebalance_timeout_ms": 3000,
            "protocols": [{"name": "another", "metadata": ""}]}  # fmt: skip
    s.ask(2100, "join_group", body, 2101, {"error_code": 79 if bad else 23, "member_id": "c" if bad else ""})


def g9_leaves(s: Story, bad: bool) -> None:
    s.pair()
    left = {"error_code": 0, "members": [{"member_id": "nobody", "error_code": 0 if bad else 25}]}
    s.ask(2100, "leave_group", {"group_id": "g", "members": [{"member_id": "nobody"}]}, 2101, left)


def g9_commits(s: Story, bad: bool) -> None:
    s.pair()
    s.commit(2100, "a", 100, 0 if bad else 22)


def g2_static(s: Story, bad: bool) -> None:
    for one in "ab":
        told = "ab" if one == "a" else ""
        s.join(15, 2015, "", 1, leader="z" if bad else "a", told=told, given=one, instance=f"i{one}")


def g3_leader(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101 if bad else 2210, "a", 1 if bad else 2, leader="a", told="ab")
    if not bad:
        s.join(2200, 2210, "b", 2, leader="a")


def g3_static_leader(s: Story, bad: bool) -> None:
    """By its own id a static leader begins a rebalance, which the follower did not."""
    g3_static_follower(s, False)
    s.join(2150, 2151 if bad else 2210, "a", 1 if bad else 2, leader="a", told="ab", instance="ia")
    if not bad:
        s.join(2200, 2210, "", 2, leader="a", given="b2", instance="ib")


def g3_static_follower(s: Story, bad: bool) -> None:
    """And a static follower none."""
    static_pair(s)
    s.join(2100, 2110, "b", 2 if bad else 1, leader="a", instance="ib")


def g3_for_nothing(s: Story, bad: bool) -> None:
    s.gathered()
    s.beat(2100, "b", 1, 27 if bad else 0)


def g3_longest(s: Story, bad: bool) -> None:
    """Nobody has synced: the longest time-out that one of them asked for is waited for, not the leader's."""
    for one, told, rebalance in (("a", "ab", 3000), ("b", "", 6000)):
        s.join(10, 11, "", error=79, given=one)
        s.join(15, 2015, one, 1, leader="a", told=told, rebalance=rebalance)
    s.beat(2100, "a", 1, 0)
    s.beat(5600 if bad else 8100, "a", 1, 27)


def g7_since_sync(s: Story, bad: bool) -> None:
    s.pair(rebalance=20_000)
    for at in range(2100, 12_000, 500):
        s.beat(at, "a", 1, 27 if not bad and at > 8020 else 0)


def g9_without_a_generation(s: Story, bad: bool) -> None:
    """Who says that it is a member commits in its generation; where nobody is one, anybody may."""
    s.commit(5, "x", -1)
    s.pair()
    s.commit(2100, "b", -1, 25 if bad else 22)


def g9_id_over(s: Story, bad: bool) -> None:
    """`n` was given an id and joins when its session has long been over."""
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.join(9800, 9801, "n", 2 if bad else -1, error=0 if bad else 25, leader="a")


def g9_nobodys(s: Story, bad: bool) -> None:
    s.commit(5, "", -1)
    s.pair()
    s.commit(2100, "", -1, 0 if bad else 25)


def g9_out_unsynced(s: Story, bad: bool) -> None:
    """Nobody has synced: when the time to sync is over, the group may be empty."""
    for s.scene, at, error in (("told#1", 2100, 25), ("told#2", 2100 if bad else 5100, 0)):
        s.gathered()
        s.commit(at, "", -1, error)


def g3_changed(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101 if bad else 2210, "b", 1 if bad else 2, leader="a", subscribed="another")
    if not bad:
        s.join(2200, 2210, "a", 2, leader="a", told="ab", subscriptions={"b": "of another"})


def g0_waits(s: Story, bad: bool) -> None:
    """`c` waits in its first join for longer than its session."""
    s.pair(rebalance=20_000)
    s.join(2100, 2101, "", error=79, given="c")
    s.join(
        2110,
        8102 if bad else 9010,
        "c",
        -1 if bad else 2,
        error=25 if bad else 0,
        leader="a",
        rebalance=20_000,
    )
    if not bad:
        for one in "ab":
            s.join(9000, 9010, one, 2, leader="a", told="abc" if one == "a" else "", rebalance=20_000)


def g9_unassigned(s: Story, bad: bool) -> None:
    s.gathered()
    s.commit(2100, "b", 1, 0 if bad else 27)


def g11_sync(s: Story, bad: bool) -> None:
    g11(s, False)
    s.sync(3100, 3101, "b", 1, error=0 if bad else 82, instance="ib")


def d1_all(s: Story, bad: bool) -> None:
    s.topic()
    for at in (5, 7):
        s.produce(at, at + 1, at // 6)
    for at, offset, low in ((20, 1, 1), (30, -1, 1 if bad else 2)):
        part = {"partition_index": 0, "offset": offset}
        said = {"partition_index": 0, "error_code": 0, "low_watermark": low}
        s.ask(at, "delete_records", {"topics": [{"name": "t", "partitions": [part]}]}, at + 1,
              {"topics": [{"name": "t", "partitions": [said]}]})  # fmt: skip


def p1_left(s: Story, bad: bool) -> None:
    """Beside a partition that takes its batch, another refuses one that came to harm: nobody is waited for."""
    s.topic()
    harmed = {"base": 0, "last": 0, "count": 1, "bytes": SIZE, "corrupt": True}
    for at in (10, 12_000):
        parts = [{"index": 0, "records": [{**harmed, "corrupt": False}]}, {"index": 1, "records": [harmed]}]
        told = [{"index": 0, "error_code": 0, "base_offset": at // 12_000}, {"index": 1, "error_code": 2}]
        body = {"acks": -1, "timeout_ms": 10_000, "topic_data": [{"name": "t", "partition_data": parts}]}
        said = {"responses": [{"name": "t", "partition_responses": told}]}
        s.ask(at, "produce", body, at + (10_001 if bad else 1), said)


def d1_left(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(5, 6, 0)
    for at in (10, 6000):
        parts = [{"partition_index": 0, "offset": 1}, {"partition_index": 9, "offset": 0}]
        told = [{"partition_index": 0, "low_watermark": 1}, {"partition_index": 9, "error_code": 3}]
        body = {"timeout_ms": 5000, "topics": [{"name": "t", "partitions": parts}]}
        s.ask(
            at,
            "delete_records",
            body,
            at + (5001 if bad else 1),
            {"topics": [{"name": "t", "partitions": told}]},
        )


def e1_left(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 6000):
        said = {"topic": "t", "partition_result": [{"partition_id": 0, "error_code": 84}]}
        body = {"timeout_ms": 5000, "topic_partitions": [{"topic": "t", "partitions": [0]}]}
        s.ask(at, "elect_leaders", body, at + (5001 if bad else 1), {"replica_election_results": [said]})


def f1(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 400 if bad else 511, [("t", 0, 0, [])])


def f1_before_the_append(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(200, 205, 0)
    s.fetch(10, 100 if bad else 206, [("t", 0, 0, [] if bad else [0])])


def f1_too_little(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(100, 105, 0)
    s.fetch(10, 106 if bad else 511, [("t", 0, 0, [0])], least=2 * SIZE)


def f1_no_room(s: Story, bad: bool) -> None:
    s.topic()
    for offset in range(3):
        s.produce(100 + offset, 100.5 + offset, offset)
    s.fetch(10, 110 if bad else 511, [("t", 0, 0, [0, 1])], least=3 * SIZE, room=2 * SIZE)


def f2(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 3000):
        s.fetch(at, at + (1900 if bad else 1090), [("t", 0, 0, [])], wait=1000)


def f2_never(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 3000):
        s.fetch(at, None if bad else at + 1001, [("t", 0, 0, [])], wait=1000)


def f3(s: Story, bad: bool) -> None:
    s.topic()
    for offset, at in enumerate((10, 4000)):
        s.produce(at + 100, at + 105, offset)
        s.fetch(at, at + (1001 if bad else 110), [("t", 0, offset, [offset])], wait=1000)


def f3_acks_0(s: Story, bad: bool) -> None:
    """Nobody acknowledges the append; what its connection asks next is answered when it is in the log."""
    s.topic()
    for offset, at in ((0, 10), (2, 4000)):
        s.produce(at + 100, None, -1, acks=0, conn="writer")
        s.ask(at + 104, "api_versions", {}, at + 105, {}, conn="writer")
        s.fetch(at, at + (1001 if bad else 110), [("t", 0, offset, [offset])], wait=1000)
        s.produce(at + 2000, at + 2001, offset + 1)


def f3_without(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(100, 105, 0)
    s.fetch(10, 110, [("t", 0, 0, [] if bad else [0])])


def f3_replicated(s: Story, bad: bool) -> None:
    s.topic(replicas=2)
    s.produce(4, 5, 0, acks=-1)
    s.produce(100, 105, 1, acks=-1)
    s.fetch(10, 3011 if bad else 110, [("t", 0, 1, [1])], wait=3000)


def f4(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(5, 6, 0)
    for at in (10, 2000):
        s.fetch(at, at + (501 if bad else 2), [("t", 0, 0, [0])])


def f4_empty(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(5, 6, 0)
    s.fetch(10, 12, [("t", 0, 0, [] if bad else [0])], wait=0)


def f5(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(100, 105, 0)
    s.fetch(10, 511, [("t", 0, 0, [] if bad else [0])], least=1000)


def f6(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 12, [("t", 0, 99, 3 if bad else 1)])


def f6_next(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 22, [("t", 0, 2, 0 if bad else 1)])


def f6_first(s: Story, bad: bool) -> None:
    s.topic(partitions=2)
    for at in (10, 2000):
        s.fetch(at, at + (501 if bad else 2), [("t", 0, 99, 1), ("t", 1, 0, [])])


def f6_below_zero(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 12, [("t", 0, -7, [] if bad else 1)])


def f6_waits(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 2000):
        s.fetch(at, at + (501 if bad else 2), [("nobody", 0, 0, 3)])


def f6_epoch(s: Story, bad: bool) -> None:
    s.topic()
    s.metadata(5, epoch=4)
    s.fetch(10, 12, [("t", 0, 0, 0 if bad else 75)], epoch=1000)


def f6_diverges(s: Story, bad: bool) -> None:
    s.topic()
    s.metadata(5, epoch=4)
    s.produce(10, 11, 0)
    s.fetch(
        20, 22, [("t", 0, 9, [])], last_epoch=4, diverging_epoch={"epoch": 4, "end_offset": 9 if bad else 1}
    )


def f6_diverges_start(s: Story, bad: bool) -> None:
    d1(s, False)
    s.metadata(30)
    end, start = {"epoch": 0, "end_offset": 3}, 0 if bad else 2
    s.fetch(40, 42, [("t", 0, 9, [])], last_epoch=0, diverging_epoch=end, log_start_offset=start)


def f7(s: Story, bad: bool) -> None:
    s.topic(partitions=2)
    s.produce(4, 5, 0)
    s.produce(4, 5, 0, number=1)
    for at in (10, 2000):
        s.fetch(at, at + (501 if bad else 2), [("t", 0, 0, [0]), ("t", 1, 0, [0])], least=2 * SIZE)


def two_and_two(s: Story) -> None:
    """Two partitions of two batches."""
    s.topic(partitions=2)
    for number in (0, 1):
        for base in (0, 1):
            s.produce(10, 12, base, number=number)


def f7_most(s: Story, bad: bool) -> None:
    two_and_two(s)
    for most in (SIZE, SIZE // 2):
        s.fetch(20, 21, [("t", 0, 0, [0]), ("t", 1, 0, [0] if bad else [])], wait=500, least=1000, most=most)


def f7_room(s: Story, bad: bool) -> None:
    two_and_two(s)
    s.fetch(20, 21, [("t", 0, 0, [0, 1] if bad else [0]), ("t", 1, 0, [0])], wait=0, room=SIZE)
    s.fetch(30, 31, [("t", 0, 0, [0]), ("t", 1, 0, [0] if bad else [])], wait=0, room=SIZE // 2)


def f7_order(s: Story, bad: bool) -> None:
    two_and_two(s)
    first, second = ([], [0]) if bad else ([0], [])
    s.fetch(20, 21, [("t", 1, 0, first), ("t", 0, 0, second)], wait=0, most=SIZE)


def f7_order_of_what_may_come(s: Story, bad: bool) -> None:
    """What comes to the first partition meanwhile may take the room; the second one's place is open then."""
    s.topic(partitions=3)
    for number in (1, 2):
        s.produce(10, 12, 0, number=number)
    if not bad:
        s.produce(19, 30, 0)
    first, third = ([], [0]) if bad else ([0], [])
    s.fetch(20, 21, [("t", 0, 0, first), ("t", 1, 0, []), ("t", 2, 0, third)], wait=0, most=SIZE)
    s.fetch(40, 41, [("t", 1, 0, [0]), ("t", 2, 0, [])], wait=0, most=SIZE)


def f7_behind_empty(s: Story, bad: bool) -> None:
    s.topic(partitions=2)
    s.produce(4, 5, 0, number=1)
    s.fetch(10, 11, [("t", 0, 0, []), ("t", 1, 0, [] if bad else [0])], room=SIZE // 2)


def f7_starved(s: Story, bad: bool) -> None:
    """Of three partitions `t` comes first, and has its second turn when the others have had one, or before."""
    for name in "uv":
        s.topic(name)
    _session(s, 5, 0, [(name, 0) for name in "tuv"])
    for at in (6, 7, 8):
        for name in "tuv":
            s.produce(at, at + 0.5, at - 6, name=name)
    turns = ("t", "t", "u", "u") if bad else ("t", "u", "v", "t")
    ends = dict.fromkeys("tuv", 0)
    for epoch, name in enumerate(turns, 1):
        _session(s, 10 + epoch, epoch, [*ends.items()], came={(name, 0): [ends[name]]}, least=SIZE, most=SIZE)
        ends[name] += 1


def f7_part(s: Story, bad: bool) -> None:
    two_and_two(s)
    s.fetch(20, 21, [("t", 0, 0, [0]), ("t", 1, 0, [-1] if bad else [])], wait=0, room=SIZE // 2)


def f4_stable(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 21, [("t", 0, 0, [0])], mark=1, last_stable_offset=0 if bad else 1)


def f4_start(s: Story, bad: bool) -> None:
    d1(s, False)
    s.fetch(30, 31, [("t", 0, 2, [2])], mark=3, log_start_offset=0 if bad else 2)


def f4_mark(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 12, 0)
    s.produce(13, 30, 1)
    s.fetch(20, 21, [("t", 0, 0, [0, 1])], mark=0 if bad else 1)
    s.fetch(40, 41, [("t", 0, 0, [0, 1])], mark=3 if bad else 2)


def deleted(s: Story, t: float) -> None:
    s.ask(t, "delete_topics", {"topic_names": ["t"]}, t + 5, {"responses": [{"name": "t", "error_code": 0}]})


def f8(s: Story, bad: bool) -> None:
    s.topic()
    deleted(s, 100)
    s.fetch(10, 200, [("t", 0, 0, [] if bad else 3)], wait=20_000)


def f8_waits(s: Story, bad: bool) -> None:
    s.topic()
    deleted(s, 100)
    for _ in range(2):
        s.fetch(10, 20_011 if bad else 200, [("t", 0, 0, 3)], wait=20_000)


def stopped(s: Story, begin: float, end: float) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.event(begin, "stimulus", body={"what": "stopped"})
    s.event(end, "stimulus", body={"what": "continues"})
    s.produce(4, 5, 0, acks=-1)
    for at in (begin - 2, end - 10, end + 100):
        s.metadata(at, in_sync=2)


def f8_append(s: Story, bad: bool) -> None:
    stopped(s, 100, 50_000)
    s.produce(200, 20_201 if bad else 400, -1, acks=-1, error=7 if bad else 3, timeout=20_000)
    deleted(s, 300)


def f9(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    s.produce(200, 202, 1)
    s.fetch(210, 1211, [("t", 0, 1, [1] if bad else [])], wait=1000)


def f1_replica_stopped(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    s.produce(200, 202, 1)
    s.fetch(210, 400 if bad else 1211, [("t", 0, 1, [])], wait=1000)


def p1(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.produce(20, 21, 0 if bad else 1)


def p1_log_start(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, start=0)
    delete_records(s, 20, 1, 1)
    s.produce(30, 31, 1, start=0 if bad else 1)


def p1_refused(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, error=2 if bad else 0)


def p1_corrupt(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0 if bad else -1, error=0 if bad else 2, corrupt=True)
    s.produce(20, 21, 1 if bad else 0)


def p1_fetched_corrupt(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 21, [("t", 0, 0, [0])], corrupt=bad)


def p1_left_out(s: Story, bad: bool) -> None:
    s.topic()
    for base in range(3):
        s.produce(10 + base, 10.5 + base, base)
    s.fetch(20, 21, [("t", 0, 0, [0, 2] if bad else [0, 1, 2])], wait=0)


def p1_inside(s: Story, bad: bool) -> None:
    """A batch of one record and one of two, of which the second is asked for."""
    s.topic()
    s.produce(10, 11, 0)
    two = {"base": 0, "last": 1, "count": 2, "bytes": SIZE}
    data = [{"name": "t", "partition_data": [{"index": 0, "records": [two]}]}]
    said = [{"name": "t", "partition_responses": [{"index": 0, "error_code": 0, "base_offset": 1}]}]
    s.ask(12, "produce", {"acks": 1, "timeout_ms": 1000, "topic_data": data}, 13, {"responses": said})
    s.produce(14, 15, 3)
    asked = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": [
        {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 2}]}]}  # fmt: skip
    came = [*([] if bad else [{**two, "base": 1, "last": 2}]), {**two, "base": 3, "last": 3, "count": 1}]
    part = {"partition_index": 0, "error_code": 0, "records": came}
    s.ask(20, "fetch", asked, 21, {"error_code": 0, "responses": [{"topic": "t", "partitions": [part]}]})


def p1_not_fetched(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 21, [("t", 0, 0, 1 if bad else [0])])


def p2(s: Story, bad: bool) -> None:
    s.produce(10, 11 if bad else None, 0, acks=0, conn="c")
    s.ask(20, "api_versions", {}, 21, {}, conn="c")


def p2_closed(s: Story, bad: bool) -> None:
    s.produce(10, None, 0, acks=0, conn="c")
    s.ask(20, "api_versions", {}, None if bad else 21, {}, conn="c")
    s.close(30, "c", "peer")


def p2_refused(s: Story, bad: bool) -> None:
    s.produce(10, 11 if bad else None, 0, number=99, acks=0, conn="c")
    s.close(30, "c", "peer")


def p2_lost(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(5, 6, 0, conn="c")
    s.produce(10, None, 1, acks=0, conn="c")
    s.produce(20, 21, 1 if bad else 2, conn="c")


def p3(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, acks=2, error=0 if bad else 21)


def p4(s: Story, bad: bool) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.produce(4, 5, 0)
    for at in (8, 5000):
        s.metadata(at, in_sync=1)
    s.produce(10, 12, 1, acks=-1, error=0 if bad else 19)


def p4_given_up(s: Story, bad: bool) -> None:
    """An append waits for a replica that is stopped, and the cluster gives that up."""
    s.topic(replicas=2, min_insync_replicas="2")
    s.produce(4, 5, 0)
    for at, what in ((9, "stops"), (10, "stopped"), (5000, "continues"), (5001, "continued")):
        s.event(at, "stimulus", body={"what": what})
    s.metadata(6, in_sync=2)
    s.produce(20, 2000, 1, acks=-1, timeout=60_000, error=0 if bad else 20)
    s.metadata(2100, in_sync=1)


def p5(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    for at in (200, 2000):
        s.produce(at, at + (400 if bad else 1005), 1, acks=-1, error=7)


def p5_late(s: Story, bad: bool) -> None:
    stopped(s, 100, 9000)
    for at in (200, 4000):
        s.produce(at, at + (3000 if bad else 1005), 1, acks=-1, error=7)


def p6(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    for at in (3000, 3001):
        s.produce(at, 8000 if bad else 5020, 1, acks=-1, timeout=20_000)


def a1(s: Story, bad: bool) -> None:
    s.topic()
    for at in (100, 40_000):
        s.metadata(at, 3 if bad or at == 100 else 0)


def a1_second(s: Story, bad: bool) -> None:
    s.topic()
    error = 0 if bad else 36
    s.ask(
        10, "create_topics", {"topics": [{"name": "t"}]}, 11, {"topics": [{"name": "t", "error_code": error}]}
    )


def a1_early(s: Story, bad: bool) -> None:
    told = [{"name": name, "error_code": 7 if bad and name == "u" else 0} for name in "tu"]
    asked = {"topics": [{"name": name} for name in "tu"], "timeout_ms": 5000}
    s.ask(10, "create_topics", asked, 20, {"topics": told})


def a2(s: Story, bad: bool) -> None:
    s.topic()
    deleted(s, 100)
    s.metadata(40_000, 0 if bad else 3)


def a1_beside(s: Story, bad: bool) -> None:
    """One is there already, and the other is made."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.topic("t")
        asked = {"topics": [{"name": name, "num_partitions": 1} for name in "tu"], "timeout_ms": 5000}
        said = [{"name": "t", "error_code": 36}, {"name": "u", "error_code": 0}]
        s.ask(100, "create_topics", asked, 5102 if bad else 300, {"topics": said})
        s.metadata(5200, name="u")


def a2_left(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        s.topic(f"t{number}")
        gone = {"responses": [{"name": f"t{number}", "error_code": 0}]}
        asked = {"topic_names": [f"t{number}"], "timeout_ms": 10_000}
        s.ask(100, "delete_topics", asked, 10_102 if bad else 300, gone)


def delete_records(s: Story, t: float, offset: int, low: int, error: int = 0) -> None:
    part = {"partition_index": 0, "offset": offset}
    said = {"partition_index": 0, "low_watermark": low, "error_code": error}
    s.ask(t, "delete_records", {"topics": [{"name": "t", "partitions": [part]}]}, t + 1,
          {"topics": [{"name": "t", "partitions": [said]}]})  # fmt: skip


def grown(s: Story, t: float, count: int, error: int, validated: bool = False) -> None:
    s.ask(t, "create_partitions", {"topics": [{"name": "t", "count": count}], "validate_only": validated}, t + 1,
          {"results": [{"name": "t", "error_code": error}]})  # fmt: skip


def a3(s: Story, bad: bool, error: int = 0) -> None:
    s.topic()
    grown(s, 10, 3, error)
    for at, shown in ((20, 1), (40_000, 1 if bad else 3)):
        said = {"name": "t", "error_code": 0, "partitions": [{"partition_index": x} for x in range(shown)]}
        s.ask(at, "metadata", {"topics": [{"name": "t"}]}, at + 1, {"topics": [said]})


def a3_refused(s: Story, bad: bool) -> None:
    a3(s, False, 37 if bad else 0)


def a3_validated(s: Story, bad: bool) -> None:
    s.topic()
    grown(s, 5, 3, 0, validated=True)
    grown(s, 10, 3, 37 if bad else 0)


def a3_shrunk(s: Story, bad: bool) -> None:
    s.topic(partitions=3)
    grown(s, 10, 2, 0 if bad else 37)
    grown(s, 20, 3, 37)


def elected(s: Story, t: float, topic: str, error: int, number: int = 0) -> None:
    s.ask(t, "elect_leaders", {"topic_partitions": [{"topic": topic, "partitions": [number]}]}, t + 1,
          {"error_code": 0, "replica_election_results": [
              {"topic": topic, "partition_result": [{"partition_id": number, "error_code": error}]}]})  # fmt: skip


def e1(s: Story, bad: bool) -> None:
    s.topic()
    elected(s, 10, "t", 0 if bad else 84)


def e1_unknown(s: Story, bad: bool) -> None:
    elected(s, 10, "nobody", 84 if bad else 3)


def e1_no_partition(s: Story, bad: bool) -> None:
    s.topic(partitions=2)
    elected(s, 10, "t", 84 if bad else 3, number=2)


def d1_while_it_waits(s: Story, bad: bool) -> None:
    """Below what is deleted a fetch waits for more than there is."""
    s.topic()
    for offset in range(3):
        s.produce(10 + offset, 10.5 + offset, offset)
    s.fetch(20, 1021, [("t", 0, 0, [] if bad else 1)], wait=1000, least=100_000)
    delete_records(s, 100, 2, 2)


def d1(s: Story, bad: bool) -> None:
    s.topic()
    for offset in range(3):
        s.produce(10 + offset, 10.5 + offset, offset)
    delete_records(s, 20, 2, 0 if bad else 2)


def d1_low_stays(s: Story, bad: bool) -> None:
    d1(s, False)
    delete_records(s, 30, 1, 1 if bad else 2)


def d1_below_zero(s: Story, bad: bool) -> None:
    d1(s, False)
    delete_records(s, 30, -2, 2 if bad else -1, 0 if bad else 1)


def d1_below(s: Story, bad: bool) -> None:
    s.topic()
    for offset in range(3):
        s.produce(10 + offset, 10.5 + offset, offset)
    delete_records(s, 20, 2, 2)
    s.fetch(30, 31, [("t", 0, 0, [0] if bad else 1)])


def d1_beyond(s: Story, bad: bool) -> None:
    s.topic()
    delete_records(s, 20, 99, 99 if bad else -1, 0 if bad else 1)


def d1_stopped(s: Story, bad: bool) -> None:
    s.topic(replicas=2)
    s.produce(10, 20, 0, acks=-1)
    s.metadata(30, in_sync=2)
    stopped(s, 100, 4000)
    part = {"partition_index": 0, "offset": 1}
    asked = {"topics": [{"name": "t", "partitions": [part]}], "timeout_ms": 1500}
    said = {"partition_index": 0, "error_code": 0 if bad else 7, "low_watermark": 1 if bad else -1}
    s.ask(200, "delete_records", asked, 1702, {"topics": [{"name": "t", "partitions": [said]}]})
    s.metadata(2000, in_sync=2)


def _deletes(s: Story, t: float, answer: float) -> None:
    part = {"partition_index": 0, "offset": 1}
    asked = {"topics": [{"name": "t", "partitions": [part]}], "timeout_ms": 8000}
    said = {"partition_index": 0, "error_code": 0, "low_watermark": 1}
    s.ask(t, "delete_records", asked, answer, {"topics": [{"name": "t", "partitions": [said]}]})


def d1_replicated(s: Story, bad: bool) -> None:
    s.topic(replicas=2)
    s.produce(10, 20, 0, acks=-1)
    s.metadata(30, in_sync=2)
    _deletes(s, 100, 8101 if bad else 700)
    s.event(8200, "stimulus", body={"what": "stops"})
    s.metadata(9000, in_sync=2)


def d1_goes_on(s: Story, bad: bool) -> None:
    stopped(s, 100, 2000)
    s.event(2010, "stimulus", body={"what": "continued"})
    _deletes(s, 200, 8201 if bad else 2600)


def listed(
    s: Story, t: float, which: int, offset: int, error: int = 0, time_ms: int = -1, epoch: int = -1
) -> None:
    part = {"partition_index": 0, "timestamp": which, "current_leader_epoch": epoch}
    said = {"partition_index": 0, "offset": offset, "error_code": error, "timestamp": time_ms}
    s.ask(t, "list_offsets", {"topics": [{"name": "t", "partitions": [part]}]}, t + 1,
          {"topics": [{"name": "t", "partitions": [said]}]})  # fmt: skip


def l1(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    listed(s, 20, -1, 0 if bad else 1)


def l1_start(s: Story, bad: bool) -> None:
    s.topic()
    for offset in range(3):
        s.produce(10 + offset, 10.5 + offset, offset)
    delete_records(s, 20, 2, 2)
    listed(s, 30, -2, 0 if bad else 2)


def l1_since_ever(s: Story, bad: bool) -> None:
    l1_start(s, False)
    listed(s, 40, 0, 0 if bad else 2, time_ms=1000)


def l1_time(s: Story, bad: bool) -> None:
    l1_since_ever(s, False)
    listed(s, 50, 0, 2, time_ms=-1 if bad else 1000)
    listed(s, 60, -1, 3)


def l1_no_time(s: Story, bad: bool) -> None:
    l1_start(s, False)
    listed(s, 40, -1, 3, time_ms=-2 if bad else -1)


def l1_ever(s: Story, bad: bool) -> None:
    l1_start(s, False)
    listed(s, 40, 1 << 61, 3 if bad else -1)


def l1_largest_time(s: Story, bad: bool) -> None:
    """KIP-734. Records of one time, of which any may be told."""
    l1_start(s, False)
    listed(s, 40, -3, 3 if bad else 2, time_ms=1000)
    listed(s, 50, -1, 3)


def l1_by_time(s: Story, bad: bool) -> None:
    """Of the time that the first record was told to have, and of the largest: that record, or one before."""
    s.topic()
    for offset in range(3):
        s.produce(10 + offset, 10.5 + offset, offset)
    listed(s, 40, 0, 0, time_ms=1000)
    listed(s, 41, 1000, 1 if bad else 0, time_ms=1000)
    listed(s, 42, -3, 2, time_ms=1001)
    listed(s, 43, 1001, -1 if bad else 1, time_ms=1001)


def l1_epoch(s: Story, bad: bool) -> None:
    """KIP-320. Of an epoch that is not the newest told, but near it, nothing is said."""
    s.topic()
    s.metadata(8, epoch=3)
    listed(s, 20, -1, 0, epoch=3)
    listed(s, 30, -1, -1, 74, epoch=2)
    listed(s, 40, -1, 0 if bad else -1, 0 if bad else 75, epoch=1003)


def l1_refused(s: Story, bad: bool) -> None:
    s.topic()
    listed(s, 20, -1, 0, 3 if bad else 0)


def g0(s: Story, bad: bool) -> None:
    s.join(10, 11, "", 1 if bad else -1, error=0 if bad else 79, leader="a", told="a", given="a")


def g1(s: Story, bad: bool) -> None:
    s.join(10, 11, "", error=79, given="a")
    s.join(20, 500 if bad else 1021, "a", 1, leader="a", told="a")


def g1_late(s: Story, bad: bool) -> None:
    for at in (10, 20_000):
        s.scene = f"told#{at}"
        s.join(at, at + 1, "", error=79, given="a")
        s.join(at + 10, at + (2900 if bad else 1011), "a", 1, leader="a", told="a", rebalance=6000)


def g1_left(s: Story, bad: bool) -> None:
    """Who came first leaves again: the delay that it began goes on, and once more as another came in it."""
    s.join(10, 60, "a", error=25, rebalance=6000)
    s.join(30, 40 if bad else 2020, "b", 1, leader="b", told="b", rebalance=6000)
    s.leave(50 if not bad else 39, "a")


def g1_put_out(s: Story, bad: bool) -> None:
    """The only member is put out, which leaves an empty group."""
    s.join(10, 11, "", error=79, given="a")
    s.join(15, 1020, "a", 1, leader="a", told="a")
    s.sync(1030, 1031, "a", 1, "sa", gives={"a": "sa"})
    s.beat(12_000, "a", 1, 25)
    s.join(12_010, 12_011, "", error=79, given="b")
    s.join(12_020, 12_030 if bad else 13_022, "b", 3, leader="b", told="b")


def g2(s: Story, bad: bool) -> None:
    s.pair()
    s.join(5000, 5100, "a", 2, leader="a", told="ab")
    s.join(5001, 5100, "b", 2, leader="a", told="ab" if bad else "")


def g2_two_leaders(s: Story, bad: bool) -> None:
    s.join(5000, 7100, "a", 1, leader="a", told="ab")
    s.join(5001, 7100, "b", 1, leader="b" if bad else "a")


def g3(s: Story, bad: bool) -> None:
    s.pair()
    number = 4 if bad else 2
    s.join(5000, 5100, "a", number, leader="a", told="ab")
    s.join(5099, 5100, "b", number, leader="a")


def newcomer(s: Story, t: float, answer: float | None, generation: int = 2) -> None:
    s.join(t, t + 1, "", error=79, given="n")
    s.join(t + 2, answer, "n", generation, leader="a")


def g3_stays(s: Story, bad: bool) -> None:
    s.pair()
    newcomer(s, 3000, 3210, 1 if bad else 2)
    s.join(3100, 3210, "a", 1 if bad else 2, leader="a", told="abn")
    s.join(3200, 3210, "b", 1 if bad else 2, leader="a")


def g3_told(s: Story, bad: bool) -> None:
    s.pair()
    newcomer(s, 3000, 5005)
    for at in (4000, 4100):
        s.beat(at, "a", 1, 0 if bad else 27)
    for one in "ab":
        s.join(5000, 5005, one, 2, leader="a", told="abn" if one == "a" else "")


def g4(s: Story, bad: bool) -> None:
    s.pair()
    newcomer(s, 3000, 3500 if bad else 5005)
    s.join(4000, 5005, "a", 3 if bad else 2, leader="a", told="abn")
    s.join(5000, 5005, "b", 3 if bad else 2, leader="a")


def g4_expected(s: Story, bad: bool) -> None:
    """Somebody is expected, and leaves."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair()
        s.join(2900, 2901, "", error=79, given="x")
        newcomer(s, 3000, 5990 if bad else 3302)
        for at, one in enumerate("ab"):
            s.join(3100 + at, 5990 if bad else 3302, one, 2, leader="a", told="abn" if one == "a" else "")
        s.leave(3300, "x")


def g4_waits(s: Story, bad: bool) -> None:
    s.pair()
    answer = 6000 if bad else 3210
    newcomer(s, 3000, answer)
    s.join(3100, answer, "a", 2, leader="a", told="abn")
    s.join(3200, answer, "b", 2, leader="a")


def two_syncs(s: Story, early: float, share: str) -> None:
    for one in "ab":
        s.join(10, 2010, one, 1, leader="a", told="ab" if one == "a" else "")
    s.sync(2020, early, "b", 1, share)
    s.sync(2500, 2505, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def g5(s: Story, bad: bool) -> None:
    two_syncs(s, 2025 if bad else 2506, "sb")


def g5_share(s: Story, bad: bool) -> None:
    two_syncs(s, 2506, "other" if bad else "sb")


def g5_newcomer(s: Story, bad: bool) -> None:
    for at in range(2):
        s.scene = f"told#{at}"
        s.gathered()
        s.sync(2020, 5020 if bad else 2302, "b", 1, error=27)
        newcomer(s, 2300, 5025)


def g5_no_leader(s: Story, bad: bool) -> None:
    for at in range(2):
        s.scene = f"told#{at}"
        s.gathered()
        for t in range(2100, 12_000, 1000):
            s.beat(t, "a", 1, 0 if bad or t < 5020 else 25)
        s.sync(2020, None if bad else 5020, "b", 1, error=27)


def g5_late(s: Story, bad: bool) -> None:
    for at in range(2):
        s.scene = f"told#{at}"
        two_syncs(s, 4900 if bad else 2506, "sb")


def without_b(s: Story, answer: float, error: int) -> None:
    s.pair()
    newcomer(s, 3000, answer)
    s.join(3100, answer, "a", 2, leader="a", told="an")
    for at in range(3200, int(answer), 500):
        s.beat(at, "b", 1, 27)
    s.beat(answer + 200, "b", 1, error)


def g6(s: Story, bad: bool) -> None:
    without_b(s, 4000 if bad else 6010, 25)


def g6_longest(s: Story, bad: bool) -> None:
    """`b` has more time than the others."""
    s.pair(rebalance=4000)
    newcomer(s, 3000, 6010 if bad else 7010)
    s.join(3100, 6010 if bad else 7010, "a", 2, leader="a", told="an")
    for at in range(3200, 6000, 500):
        s.beat(at, "b", 1, 27)


def g6_oldest(s: Story, bad: bool) -> None:
    """Version 0 has no rebalance time-out, and gives no id: the session's time-out stands for it."""
    for one in "ab":
        told = "ab" if one == "a" else ""
        s.join(10, 2010, "", 1, leader="a", told=told, given=one, rebalance=-1, session=4000, version=0)
    s.sync(2020, 2023, "b", 1, "sb")
    s.sync(2021, 2022, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
    ends = 3105 if bad else 7010
    s.join(3000, ends, "", 2, leader="a", given="n", rebalance=-1, session=4000, version=0)
    s.join(3100, ends, "a", 2, leader="a", told="an", rebalance=-1, session=4000, version=0)
    for at in range(3200, ends, 500):
        s.beat(at, "b", 1, 27)


def g6_not_out(s: Story, bad: bool) -> None:
    without_b(s, 6010, 0 if bad else 25)


def g6_nobody(s: Story, bad: bool) -> None:
    """Who came has left again, and nobody rejoins: all are out at the time-out."""
    s.pair()
    s.join(2900, 2901, "", error=79, given="n")
    s.join(3000, 3201, "n", -1, leader="", error=25)
    s.leave(3200, "n")
    for at in range(3100, 9000, 300):
        for one in "ab":
            s.beat(at, one, 1, 27 if bad or at < 6000 else 25)
    if bad:
        s.repeat()


def g6_late(s: Story, bad: bool) -> None:
    without_b(s, 7500 if bad else 6010, 25)


def silent_b(s: Story, told: float) -> None:
    s.pair()
    s.beat(2100, "b", 1)
    for at in range(2100, 12_000, 100):
        s.beat(at, "a", 1, 27 if at >= told else 0)


def g7(s: Story, bad: bool) -> None:
    silent_b(s, 5000 if bad else 8110)


def g7_late(s: Story, bad: bool) -> None:
    for at in range(2):
        s.scene = f"told#{at}"
        silent_b(s, 20_000 if bad else 8110)


def g7_long_join(s: Story, bad: bool) -> None:
    """With Kafka's defaults a first generation takes as long as a session."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair(joins=6010)
        s.beat(6100, "b", 1)
        for at in range(6100, 16_000, 100):
            s.beat(at, "a", 1, 27 if not bad and at >= 12_110 else 0)


def g7_rebalance(s: Story, bad: bool) -> None:
    """`b` is silent from the rebalance on, which has much time."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair(rebalance=20_000)
        s.beat(2900, "b", 1)
        newcomer(s, 3000, 23_010 if bad else 8910)
        s.join(3100, 23_010 if bad else 8910, "a", 2, leader="a", told="an", rebalance=20_000)


def g7_since_join(s: Story, bad: bool) -> None:
    """`b` never syncs: it is out by its session, long before the rebalance time-out."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.gathered(joins=1000, rebalance=20_000)
        s.sync(1020, 1021, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
        for at in range(1100, 14_000, 100):
            s.beat(at, "a", 1, 27 if not bad and at >= 7020 else 0)


def g7_expected(s: Story, bad: bool) -> None:
    """Somebody was given an id, and is expected until its session is over."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair(rebalance=20_000)
        s.join(2100, 2101, "", error=79, given="ghost")
        s.join(2110, 2111, "", error=79, given="c")
        for one in "cab":
            told = "abc" if one == "a" else ""
            s.join(2200, 22_201 if bad else 8102, one, 2, leader="a", told=told, rebalance=20_000)


def g8(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair()
        s.leave(3000, "b")
        for at in range(3002, 6000, 20):
            s.beat(at, "a", 1, 0 if bad and at < 5500 else 27)


def g8_at_once(s: Story, bad: bool) -> None:
    """`b` left the generation before, which was told after the joins that it completed."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair()
        newcomer(s, 3000, 3302)
        s.join(3100, 3302, "a", 2, leader="a", told="an")
        body = {"group_id": "g", "members": [{"member_id": "b"}]}
        s.ask(3300, "leave_group", body, 3304, {"error_code": 0, "members": []})
        s.sync(3310, 3313, "n", 2, "sn")
        s.sync(3311, 3312, "a", 2, "sa", gives={"a": "sa", "n": "sn"})
        s.leave(3400, "n")
        for at in range(3402, 6000, 20):
            s.beat(at, "a", 2, 0 if bad and at < 5500 else 27)


def g8_static(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        static_pair(s)
        s.leave(3000, "b")
        for at in range(3002, 6000, 20):
            s.beat(at, "a", 1, 0 if bad and at < 5500 else 27, instance="ia")


def g1_without_end(s: Story, bad: bool) -> None:
    """Of three the last comes in the second delay, and the third one ends with the rebalance time-out."""
    for number in range(2):
        s.scene = f"told#{number}"
        for one, t in zip("abc", (15, 300, 1500), strict=True):
            told = "abc" if one == "a" else ""
            s.join(t, 3020 if bad else 2220, one, 1, leader="a", told=told, rebalance=2200)


def a1_led(s: Story, bad: bool) -> None:
    s.topic()
    part = {"partition_index": 0, "leader_id": -1 if bad else 0}
    lost = {"partition_index": 1, "leader_id": -1, "error_code": 5}
    said = {
        "brokers": [{"node_id": 0}],
        "topics": [{"name": "t", "error_code": 0, "partitions": [part, lost]}],
    }
    s.ask(20, "metadata", {"topics": [{"name": "t"}]}, 21, said)


def g9(s: Story, bad: bool) -> None:
    s.pair()
    s.beat(3000, "a", 101, 0 if bad else 22)


def g9_past(s: Story, bad: bool) -> None:
    s.pair()
    for one in "ab":
        s.join(3000, 3002, one, 2, leader="a", told="ab" if one == "a" else "")
    s.sync(3006, 3009, "b", 2, "sb")
    s.sync(3007, 3008, "a", 2, "sa", gives={"a": "sa", "b": "sb"})
    s.beat(3100, "a", 1, 0 if bad else 22)


def g9_past_in_a_rebalance(s: Story, bad: bool) -> None:
    told_of_a_rebalance(s)
    s.beat(2200, "b", 0, 27 if bad else 22)


def g9_unknown(s: Story, bad: bool) -> None:
    s.pair()
    s.beat(3000, "nobody", 1, 0 if bad else 25)


def g10(s: Story, bad: bool) -> None:
    s.pair()
    for at in range(3000, 14_000, 2000):
        s.beat(at, "a", 1)
        s.beat(at, "b", 1, 25 if bad and at > 9000 else 0)


def g10_synced_behind(s: Story, bad: bool) -> None:
    """`c` never syncs, and is out 3 s after the generation began; not `b`, who synced behind the leader."""
    s.gathered("abc")
    s.sync(2020, 2022, "a", 1, "sa", gives={one: f"s{one}" for one in "abc"})
    s.sync(2030, 2031, "b", 1, "sb")
    for one in "abc":
        s.beat(4000, one, 1)
    s.beat(5050, "c", 1, 25)
    s.beat(5051, "b", 1, 25 if bad else 27)
    s.beat(5052, "a", 1, 27)
    s.beat(8100, "b", 1, 25)


def g10_long_join(s: Story, bad: bool) -> None:
    """With Kafka's defaults a first generation takes as long as a session."""
    s.pair(joins=6010)
    for at in range(6100, 10_000, 1000):
        s.beat(at, "a", 1)
        s.beat(at, "b", 1, 25 if bad and at > 9000 else 0)
    for at in range(10_100, 14_000, 1000):
        s.beat(at, "a", 1)


def g10_rebalance(s: Story, bad: bool) -> None:
    """`b` is heard of in a rebalance that has much time."""
    s.pair(rebalance=20_000)
    newcomer(s, 3000, 12_000)
    s.join(3100, 12_000, "a", 2, leader="a", told="abn", rebalance=20_000)
    for at in range(3200, 11_000, 1000):
        s.beat(at, "b", 1, 25 if bad and at > 9000 else 27)
    s.join(11_999, 12_000, "b", -1 if bad else 2, error=25 if bad else 0, leader="a", rebalance=20_000)


def g10_soon(s: Story, bad: bool) -> None:
    g10(s, False)
    s.beat(14_000, "a", 1, 25 if bad else 0)


def g10_commits(s: Story, bad: bool) -> None:
    """`b` is heard of by its commits."""
    s.pair()
    for at in range(3000, 14_000, 2000):
        s.beat(at, "a", 1)
        s.commit(at, "b", 1)
    s.beat(14_500, "b", 1, 25 if bad else 0)


def g10_joins(s: Story, bad: bool) -> None:
    """`a` waits in its join for longer than its session."""
    s.pair(rebalance=20_000)
    newcomer(s, 3000, 12_000)
    s.join(
        3100,
        9200 if bad else 12_000,
        "a",
        -1 if bad else 2,
        error=25 if bad else 0,
        leader="b",
        rebalance=20_000,
    )
    for at in range(3200, 12_000, 1000):
        s.beat(at, "b", 1, 27)
    s.join(11_999, 12_000, "b", 2, leader="b", told="abn", rebalance=20_000)


def static_pair(s: Story) -> None:
    for one in "ab":
        s.join(10, 2010, "", 1, leader="a", told="ab" if one == "a" else "", given=one, instance=f"i{one}")
    s.sync(2016, 2019, "b", 1, "sb")
    s.sync(2017, 2018, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def g7_refused(s: Story, bad: bool) -> None:
    """`b` goes on with heartbeats, of another generation."""
    s.pair(rebalance=20_000)
    s.beat(2100, "b", 1)
    for at in range(2200, 12_000, 500):
        s.beat(at, "a", 1, 27 if not bad and at > 8101 else 0)
        s.beat(at + 100, "b", 101, 25 if not bad and at > 8101 else 22)


def g7_alone(s: Story, bad: bool) -> None:
    """The only member was silent for longer than its session, and asks then."""
    s.join(10, 11, "", error=79, given="a")
    s.join(15, 1020, "a", 1, leader="a", told="a")
    s.sync(1030, 1031, "a", 1, "sa", gives={"a": "sa"})
    s.beat(2000, "a", 1)
    s.beat(12_000, "a", 1, 0 if bad else 25)


def g7_static(s: Story, bad: bool) -> None:
    """`b` comes back as `b2` and falls silent."""
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    for at in range(3100, 12_000, 500):
        s.beat(at, "a", 1, 27 if not bad and at > 9001 else 0, instance="ia")


def g11(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 2 if bad else 1, leader="a", given="b2", instance="ib")


def g11_waits(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        static_pair(s)
        s.join(3000, 6000 if bad else 3001, "", 1, leader="a", given="b2", instance="ib")


def g11_fenced(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    s.beat(3100, "b", 1, 0 if bad else 82, instance="ib")


def g11_absent(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 6010, "", 2, leader="a", given="c", instance="ic")
    s.join(3100, 6010, "a", 2, leader="a", told="abc", instance="ia")
    for at in range(3200, 6000, 900):
        s.beat(at, "b", 1, 27, instance="ib")
    s.beat(6100, "b", 1, 25 if bad else 22, instance="ib")


def nobody_rejoins(s: Story) -> None:
    """A newcomer begins a rebalance and leaves; the static members are heard of and do not rejoin for 5 s."""
    static_pair(s)
    s.join(2990, 2991, "", error=79, given="c")
    s.join(3000, 3050, "c", error=25)
    s.leave(3040, "c")
    for at in range(3100, 8000, 900):
        for one in "ab":
            s.beat(at, one, 1, 27, instance=f"i{one}")


def g11_nobody_rejoins(s: Story, bad: bool) -> None:
    nobody_rejoins(s)
    s.beat(8000, "b", 1, 25 if bad else 27, instance="ib")


def g4_static_rejoin(s: Story, bad: bool) -> None:
    nobody_rejoins(s)
    s.join(8000, 11_020 if bad else 8110, "a", 2, leader="a", told="ab", instance="ia")
    s.join(8100, 11_020 if bad else 8110, "b", 2, leader="a", instance="ib")


def g4_static(s: Story, bad: bool) -> None:
    """`b` is heard of and has not rejoined: the rebalance time-out is 3,000 ms."""
    static_pair(s)
    for one in "ab":
        s.beat(2990, one, 1, instance=f"i{one}")
    begun = 3110 if bad else 6010
    s.join(3000, begun, "", 2, leader="a", given="c", instance="ic")
    s.join(3100, begun, "a", 2, leader="a", told="abc", instance="ia")
    for at in range(3200, 6000, 900):
        s.beat(at, "b", 1, 22 if bad else 27, instance="ib")


def g4_static_back(s: Story, bad: bool) -> None:
    """The last that a rebalance waits for has been started again."""
    static_pair(s)
    s.join(3000, 6010 if bad else 3210, "a", 2, leader="a", told=("a", "b2"), instance="ia")
    s.join(3200, 6010 if bad else 3210, "", 2, leader="a", given="b2", instance="ib")


def g4_static_leaves(s: Story, bad: bool) -> None:
    """The last that a rebalance waits for leaves."""
    static_pair(s)
    s.join(3000, 6010 if bad else 3210, "a", 2, leader="a", told="a", instance="ia")
    s.leave(3200, "b", instance="ib")


def g11_share(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    s.sync(3010, 3011, "b2", 1, "" if bad else "sb", instance="ib")


def g11_leads_on(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a2", told=["a2", "b"], given="a2", instance="ia", skips=not bad)


def g11_leads_on_without_delay(s: Story, bad: bool) -> None:
    """The first is alone in a generation, and told of the rebalance as the other joins."""
    s.join(5, 6, "", 1, leader="a", told="a", given="a", instance="ia")
    s.join(7, 11, "", 2, leader="a", given="b", instance="ib")
    s.beat(8, "a", 1, 27, instance="ia")
    s.join(10, 11, "a", 2, leader="a", told="ab", instance="ia")
    s.sync(16, 19, "b", 2, "sb")
    s.sync(17, 18, "a", 2, "sa", gives={"a": "sa", "b": "sb"})
    s.join(3000, 3001, "", 2, leader="a2", told=["a2", "b"], given="a2", instance="ia", skips=not bad)


def g11_newest(s: Story, bad: bool) -> None:
    static_pair(s)
    s.beat(2500, "b", 1, 82 if bad else 0, instance="ib")


def g11_told(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    s.beat(3100, "a", 1, 27 if bad else 0, instance="ia")


def c1(s: Story, bad: bool) -> None:
    s.topic()
    for at in range(12):
        s.fetch(10, None, [("t", 0, 0, [])], wait=2000, conn=f"cut{at}")
        s.close(100, f"cut{at}")
    for t in (200, 300):
        s.ask(t, "api_versions", {}, 4000 if bad else t + 1, {}, conn=f"new{t}")


def c1_unread(s: Story, bad: bool) -> None:
    s.topic()
    s.event(50, "stimulus", body={"what": "unread", "conn": "slow"})
    s.fetch(60, None, [("t", 0, 0, [])], wait=0, conn="slow")
    s.ask(100, "api_versions", {}, 6200 if bad else 101, {}, conn="other")
    s.close(6150, "slow")


def c1_files(s: Story, bad: bool) -> None:
    """Twenty connections of ours had not been taken by the broker at the first look."""
    s.event(4, "stimulus", body={"what": "files", "files": 50, "ours": 22})
    s.event(5, "stimulus", body={"what": "files", "files": 50, "ours": 2})
    c1(s, False)
    s.event(9000, "stimulus", body={"what": "files", "files": 92, "ours": 30 if bad else 44})


def o1(story: Story, wrong: bool) -> None:
    story.topic()
    story.fetch(10, 511, [("t", 0, 0, [])], conn="c0")
    if wrong:
        story.event(520, "answer", conn="c0", corr=story.last, body={"bytes": 9})


def o4(story: Story, wrong: bool) -> None:
    story.topic()
    story.fetch(10, 3011 if wrong else 103, [("t", 0, 0, [0])], wait=3000)
    story.produce(100, 102, 0)


def o5(story: Story, wrong: bool) -> None:
    story.topic()
    story.fetch(10, None if wrong else 3011, [("t", 0, 0, [])], wait=3000)


def t1(story: Story, wrong: bool) -> None:
    story.topic()
    story.fetch(10, 400 if wrong else 511, [("t", 0, 0, [])])


def t1_append(story: Story, wrong: bool) -> None:
    story.topic(replicas=2)
    story.produce(10, 400 if wrong else 1011, -1, acks=-1, error=7)


def t2(story: Story, wrong: bool) -> None:
    story.topic()
    story.fetch(10, 2900 if wrong else 1090, [("t", 0, 0, [])], wait=1000)


def told_of_a_rebalance(s: Story) -> None:
    """A stable pair, a newcomer whose join waits for it, and a heartbeat that says so."""
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.join(2110, None, "n", leader="a")
    s.beat(2150, "a", 1, 27)


def g3_told_once(s: Story, bad: bool) -> None:
    told_of_a_rebalance(s)
    s.beat(2200, "b", 1, 27)
    s.beat(2250, "a", 1, 0 if bad else 27)


def g3_sync(s: Story, bad: bool) -> None:
    told_of_a_rebalance(s)
    s.sync(2200, 2201, "b", 1, "sb" if bad else "", error=0 if bad else 27)


def g3_unsynced(s: Story, bad: bool) -> None:
    s.gathered()
    s.join(2100, 2101 if bad else 2102, "b", 2 if bad else 1, leader="a")


def g9_gone(s: Story, bad: bool) -> None:
    s.pair()
    s.leave(2100, "b")
    s.beat(2150, "b", 1, 27 if bad else 25)


def g9_gone_join(s: Story, bad: bool) -> None:
    s.pair()
    s.leave(2100, "b")
    s.join(2150, 2151, "b", error=27 if bad else 25)


def g9_expected(s: Story, bad: bool) -> None:
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.beat(2150, "n", 1, 0 if bad else 25)


def g9_other_protocol(s: Story, bad: bool) -> None:
    s.pair()
    body = {"group_id": "g", "member_id": "b", "generation_id": 1, "protocol_name": "another"}
    s.ask(2100, "sync_group", body, 2101, {"error_code": 0 if bad else 23, "assignment": ""})


def g9_no_protocol(s: Story, bad: bool) -> None:
    body = {
        "group_id": "g",
        "member_id": "",
        "session_timeout_ms": 6000,
        "protocols": [],
        "protocol_type": "x",
    }
    s.ask(10, "join_group", body, 11, {"error_code": 79 if bad else 23, "member_id": "n" if bad else ""})


def g9_no_name(s: Story, bad: bool) -> None:
    s.ask(10, "heartbeat", {"group_id": "", "member_id": "a"}, 11, {"error_code": 25 if bad else 24})


def g9_session(s: Story, bad: bool) -> None:
    s.declared = Declared(session_least_ms=6000, session_most_ms=9000)
    s.pair()
    s.join(2100, 2101, "", error=79 if bad else 26, session=9001, given="n" if bad else "")


def g9_not_there(s: Story, bad: bool) -> None:
    s.commit(5, "a", 1, 25 if bad else 22)
    s.pair()


def g8_refused(s: Story, bad: bool) -> None:
    s.pair()
    s.leave(2100, "b", 25 if bad else 0)


def g8_behind_an_unsynced_one(s: Story, bad: bool) -> None:
    """`b` does not sync, and is put out; `a` is told of the rebalance and does not join it in time."""
    s.scene = "told#0"
    s.pair()
    s.leave(2100, "b")
    s.scene = "told#1"
    s.gathered()
    s.sync(2020, 2021, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
    s.beat(5500, "a", 1, 27)
    s.leave(5600 if bad else 9000, "a", 25)


def g8_waiting(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        s.pair()
        s.join(2100, 2101, "", error=79, given="n")
        s.join(2110, None if bad else 2202, "n", error=25)
        s.leave(2200, "n")


def g10_refused(s: Story, bad: bool) -> None:
    s.pair()
    s.beat(2100, "b", 1, 22 if bad else 0)


def g2_votes(s: Story, bad: bool) -> None:
    for one in "abc":
        names = ("x", "y") if one == "a" else ("y", "x")
        body = {"group_id": "g", "member_id": one, "session_timeout_ms": 6000, "rebalance_timeout_ms": 3000,
                "protocols": [{"name": name, "metadata": one} for name in names]}  # fmt: skip
        told = [{"member_id": x, "metadata": x} for x in "abc"] if one == "a" else []
        got = {"error_code": 0, "generation_id": 1, "leader": "a", "member_id": one, "members": told}
        s.ask(10, "join_group", body, 2010, {**got, "protocol_name": "x" if bad else "y"})


def g2_told_apart(s: Story, bad: bool, kind: str = "consumer") -> None:
    """Both have `x` and `y`, and one of these is chosen for both."""
    for one in "ab":
        asked = [{"name": name, "metadata": one} for name in "xy"]
        told = [{"member_id": x, "metadata": x} for x in "ab"] if one == "a" else []
        body = {"group_id": "g", "member_id": one, "session_timeout_ms": 6000, "rebalance_timeout_ms": 3000,
                "protocols": asked, "protocol_type": "consumer"}  # fmt: skip
        got = {"error_code": 0, "generation_id": 1, "leader": "a", "member_id": one, "members": told}
        chosen = "y" if bad and one == "b" else "x"
        s.ask(10, "join_group", body, 2010, {**got, "protocol_name": chosen, "protocol_type": kind})


def g2_kind(s: Story, bad: bool) -> None:
    g2_told_apart(s, False, "connect" if bad else "consumer")


def g2_leads_on(s: Story, bad: bool) -> None:
    s.pair()
    for one in "ab":
        leader = "b" if bad else "a"
        s.join(2100, 2102, one, 2, leader=leader, told="ab" if one == leader else "")


def g2_instance(s: Story, bad: bool) -> None:
    body = {"group_id": "g", "member_id": "", "group_instance_id": "i", "session_timeout_ms": 6000,
            "protocols": [{"name": "x", "metadata": ""}]}  # fmt: skip
    told = [{"member_id": "a", "metadata": "", "group_instance_id": "j" if bad else "i"}]
    s.ask(10, "join_group", body, 1020, {
        "error_code": 0, "generation_id": 1, "leader": "a", "member_id": "a", "protocol_name": "x", "members": told,
    })  # fmt: skip


def g5_absent(s: Story, bad: bool) -> None:
    """`b` is heard of and never syncs."""
    for number in range(2):
        s.scene = f"told#{number}"
        s.gathered(joins=1000)
        s.sync(1020, 1021, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
        for at in range(1100, 8000, 100):
            s.beat(at, "a", 1, 27 if not bad and at > 4020 else 0)
            if bad or at < 4000:
                s.beat(at, "b", 1)


def g5_absent_stays(s: Story, bad: bool) -> None:
    s.gathered(joins=1000)
    s.sync(1020, 1021, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
    for at in range(1100, 4300, 100):
        s.beat(at, "a", 1, 27 if at > 4020 else 0)
        s.beat(at, "b", 1, (27 if bad else 25) if at > 4020 else 0)


def g5_protocol(s: Story, bad: bool) -> None:
    s.gathered()
    body = {
        "group_id": "g",
        "member_id": "a",
        "generation_id": 1,
        "assignments": [],
        "protocol_name": "range",
    }
    got = {"error_code": 0, "assignment": "", "protocol_name": "own b" if bad else "range"}
    s.ask(2100, "sync_group", body, 2101, got)


def g2_again(s: Story, bad: bool) -> None:
    """The leader joins again before it syncs."""
    s.gathered()
    s.join(2100, 2101, "a", 1, leader="a", told="" if bad else "ab")


def g9_leaves_beside(s: Story, bad: bool) -> None:
    s.pair()
    named = [{"member_id": "nobody"}, {"member_id": "b"}]
    said = [{**x, "error_code": 25 * at} for at, x in zip((0 if bad else 1, 0), named, strict=True)]
    s.ask(2100, "leave_group", {"group_id": "g", "members": named}, 2101, {"error_code": 0, "members": said})


def g5_long(s: Story, bad: bool) -> None:
    """The sync of `b` waits for longer than its session."""
    s.gathered(joins=1000, rebalance=20_000)
    s.sync(1100, None if bad else 9003, "b", 1, "sb")
    for at in range(1200, 9000, 900):
        s.beat(at, "a", 1)
    s.sync(9000, 9002, "a", 1, "" if bad else "sa", gives={"a": "sa", "b": "sb"}, error=27 if bad else 0)


def g3_later(s: Story, bad: bool) -> None:
    """Long after the first session, told of a rebalance that is none."""
    s.pair()
    for at in range(2100, 20_000, 900):
        s.beat(at, "b", 1)
        s.beat(at, "a", 1, 27 if bad and at > 15_000 else 0)


def g11_commit(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    s.commit(3100, "b", 1, 0 if bad else 82, instance="ib")


def g11_leave(s: Story, bad: bool) -> None:
    static_pair(s)
    s.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib")
    s.leave(3100, "b", 25 if bad else 82, instance="ib")


def g11_replaced(s: Story, bad: bool) -> None:
    """The join of a former id waits for `a`."""
    for number in range(2):
        s.scene = f"told#{number}"
        static_pair(s)
        s.join(2500, None if bad else 3001, "b", error=82, instance="ib", subscribed="another")
        s.join(3000, 4010, "", 2, leader="a", given="b2", instance="ib", subscribed="another")
        s.join(4000, 4010, "a", 2, leader="a", told="ab2", instance="ia", subscriptions={"2": "", "b": ""})


def g11_unsynced(s: Story, bad: bool) -> None:
    for one in "ab":
        s.join(10, 2010, "", 1, leader="a", told="ab" if one == "a" else "", given=one, instance=f"i{one}")
    s.join(2500, 2502 if bad else 2602, "", 1 if bad else 2, leader="a", given="b2", instance="ib")
    if not bad:
        s.join(2600, 2602, "a", 2, leader="a", told="ab", instance="ia")


def g8_away(s: Story, bad: bool) -> None:
    """Others of the group are answered before and after each leaving."""
    s.pair()
    for at, error in ((3000, 0), (4000, 25)):
        said = {"error_code": 15 if bad else 0, "members": [{"member_id": "b", "error_code": error}]}
        s.ask(at, "leave_group", {"group_id": "g", "members": [{"member_id": "b"}]}, at + 1, said)
        s.beat(at + 500, "a", 1, 27)


def g10_joins_again(s: Story, bad: bool) -> None:
    """A join of who is in the generation already is answered at once, and renews no session."""
    s.pair()
    s.beat(2100, "b", 1)
    for at in (5000, 8000):
        s.beat(at, "a", 1)
    if bad:
        s.beat(5000, "b", 1)
    else:
        s.join(5000, 5001, "b", 1, leader="a")
    s.beat(9500, "b", 1, 25)


def g10_away(s: Story, bad: bool) -> None:
    s.pair()
    for at in (3000, 4000):
        s.beat(at, "a", 1, 16 if bad else 0)
        s.commit(at + 500, "a", 1)


def g8_by_instance(s: Story, bad: bool) -> None:
    for number in range(2):
        s.scene = f"told#{number}"
        static_pair(s)
        s.leave(3000, "", instance="ib")
        for at in range(3002, 6000, 20):
            s.beat(at, "a", 1, 0 if bad and at < 5500 else 27, instance="ia")


def g8_by_name(s: Story, bad: bool) -> None:
    static_pair(s)
    s.leave(3000, "", 25, instance="nobody")
    s.leave(3010, "", 25 if bad else 0, instance="ib")


def g12(s: Story, bad: bool) -> None:
    s.offset(5, -1)
    s.pair()
    s.commit(2100, "b", 1, at=7)
    s.commit(2110, "b", 0, 22, at=9)
    s.offset(2200, 9 if bad else 7)


def g12_told_of_all(s: Story, bad: bool) -> None:
    """Who asks of all is told of what was committed."""
    s.pair()
    s.commit(2100, "b", 1, at=7)
    said = {"group_id": "g", "error_code": 0, "topics": []}
    if bad:
        s.ask(2200, "offset_fetch", {"groups": [{"group_id": "g", "topics": None}]}, 2201, {"groups": [said]})
    else:
        s.offset(2200, 7)


def g12_refused(s: Story, bad: bool) -> None:
    s.pair()
    s.commit(2100, "b", 1, 22 if bad else 0)


def g12_note(s: Story, bad: bool) -> None:
    s.declared = Declared(note_most_bytes=3)
    part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "four"}
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": [part]}],
    }
    told = {"partition_index": 0, "error_code": 0 if bad else 12}
    s.ask(10, "offset_commit", body, 11, {"topics": [{"name": "t", "partitions": [told]}]})


def g12_beside_a_note(s: Story, bad: bool) -> None:
    """The note of partition 1 is too long; partition 0 is committed all the same."""
    s.declared = Declared(note_most_bytes=3)
    parts = [
        {"partition_index": at, "committed_offset": 7, "committed_metadata": "four" * at} for at in (0, 1)
    ]
    told = [{"partition_index": at, "error_code": 12 * at} for at in (0, 1)]
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": parts}],
    }
    s.ask(10, "offset_commit", body, 11, {"topics": [{"name": "t", "partitions": told}]})
    s.offset(20, -1 if bad else 7)


def g12_in_a_rebalance(s: Story, bad: bool) -> None:
    told_of_a_rebalance(s)
    s.commit(2200, "b", 1, 27 if bad else 0)


def g12_of_a_deleted_group(s: Story, bad: bool) -> None:
    """Another has its name by now."""
    s.commit(10, "", -1, at=7)
    to_be_deleted(s, 20, 0)
    s.join(30, 31, "", error=79, given="a")
    s.offset(40, 7 if bad else -1)


def g12_forgotten(s: Story, bad: bool) -> None:
    """The topic is deleted, and what was committed of it too, if not at once."""
    s.topic()
    s.commit(10, "", -1, at=7)
    s.ask(20, "delete_topics", {"topic_names": ["t"]}, 30, {"responses": [{"name": "t", "error_code": 0}]})
    s.offset(40, 7)
    s.offset(11_000, 7 if bad else -1)


def told_of_it(s: Story, t: float, state: str, *members: str, beside: bool = False) -> None:
    """What DescribeGroups says. `beside`: of another group too, which is not there."""
    said = [{"group_id": "g", "group_state": state, "members": [{"member_id": one} for one in members]}]
    if beside:
        said.insert(0, {"group_id": "nobody", "group_state": "Dead", "members": []})
    s.ask(t, "describe_groups", {"groups": [one["group_id"] for one in said]}, t + 1, {"groups": said})


def to_be_deleted(s: Story, t: float, error: int) -> None:
    said = {"group_id": "g", "error_code": error}
    s.ask(t, "delete_groups", {"groups_names": ["g"]}, t + 1, {"results": [said]})


def g13(s: Story, bad: bool) -> None:
    s.pair()
    newcomer(s, 3000, 3210)
    for one in "ab":
        s.join(3200, 3210, one, 2, leader="a", told="abn" if one == "a" else "")
    told_of_it(s, 3300, "Stable" if bad else "CompletingRebalance", "a", "b", "n")


def g13_several(s: Story, bad: bool) -> None:
    s.pair()
    told_of_it(s, 2100, "Dead" if bad else "Stable", *("" if bad else "ab"), beside=True)


def g13_stable(s: Story, bad: bool) -> None:
    s.pair()
    told_of_it(s, 2100, "PreparingRebalance" if bad else "Stable", "a", "b")


def g13_given(s: Story, bad: bool) -> None:
    """A share, a subscription, a name, a protocol: as it was told once, and as it is not."""
    static_pair(s)
    right = {
        "protocol_data": "range",
        "member_assignment": "sb",
        "member_metadata": "of b",
        "group_instance_id": "ib",
    }
    for at, what in enumerate(right):
        b = {"member_id": "b", **right, **({what: "another"} if bad else {})}
        said = {"group_id": "g", "group_state": "Stable", **b, "members": [{"member_id": "a"}, b]}
        s.ask(2100 + at, "describe_groups", {"groups": ["g"]}, 2100.5 + at, {"groups": [said]})


def g13_members(s: Story, bad: bool) -> None:
    s.pair()
    told_of_it(s, 2100, "Stable", *("a" if bad else "ab"))


def g13_rebalance(s: Story, bad: bool) -> None:
    """`a` has rejoined, `n` is new and waits; `b` is still expected."""
    s.pair()
    newcomer(s, 3000, 4210)
    s.beat(3050, "b", 1, 27)
    s.join(3100, 4210, "a", 2, leader="a", told="abn")
    told_of_it(s, 3200, "PreparingRebalance", *("an" if bad else "abn"))
    s.join(4200, 4210, "b", 2, leader="a")


def g13_empty(s: Story, bad: bool) -> None:
    s.pair()
    for at, one in ((2100, "a"), (2110, "b")):
        s.leave(at, one)
    told_of_it(s, 2200, "Empty", *("b" if bad else ""))


def g13_deleted(s: Story, bad: bool) -> None:
    s.pair()
    to_be_deleted(s, 2100, 0 if bad else 68)


def g13_not_deleted(s: Story, bad: bool) -> None:
    g13_empty(s, False)
    to_be_deleted(s, 2300, 68 if bad else 0)
    to_be_deleted(s, 2400, 69)


TWINS: dict[str, tuple[Twin, ...]] = {
    clause: tuple(told for name, told in globals().copy().items() if name.partition("_")[0] == clause.lower())
    for clause in WIRE_CLAUSES
}
"""By the first word of their names."""

CASES = [
    pytest.param(clause, twin, id=f"{clause}-{twin.__name__}")
    for clause, twins in TWINS.items()
    for twin in twins
]


def test_every_clause_has_twins_and_every_twin_a_clause() -> None:
    assert all(TWINS.values())
    told = {
        name
        for name, one in globals().items()
        if [*getattr(one, "__annotations__", ())] == ["s", "bad", "return"]
    }
    played = {twin.__name__ for twins in TWINS.values() for twin in twins}
    assert {name for name in told if name[0] != "_"} <= played


@pytest.mark.parametrize(("clause", "twin"), CASES)
def test_a_legal_history_is_kept_and_its_twin_is_not(clause: str, twin: Twin) -> None:
    legal = Story()
    twin(legal, False)
    kept = legal.judged(clause)
    assert kept.occasions, f"{clause} had no occasion: {kept.reason}"
    assert kept.verdict is Verdict.PASS, (kept.causes, kept.reason)
    wrong = Story()
    twin(wrong, True)
    wrong.repeat()
    assert wrong.judged(clause, 2 * END_MS).verdict is Verdict.VIOLATED


LATE = [f2, f3, f4, f6_waits, f7, f8_waits, g4_waits, g5_late, g7_late, g8, p5_late, p6, c1]


@pytest.mark.parametrize(("absent", "verdict"), [(False, Verdict.VIOLATED), (True, Verdict.PASS)])
def test_an_absent_static_member_leaves_open_who_begins_a_rebalance(absent: bool, verdict: Verdict) -> None:
    """It stays a member, does not sync, and is out at the rebalance time-out."""
    s = Story()
    static_pair(s)
    s.beat(2900, "b", 1, instance="ib")
    s.join(3000, 6010, "a", 2, leader="a", told="a", instance="ia")
    if not absent:
        s.join(3100, 6010, "b", 2, leader="a", instance="ib")
        s.sync(6040, 6041, "b", 2, "sb", instance="ib")
    s.sync(6020, 6021, "a", 2, "sa", gives={"a": "sa", "b": "sb"}, instance="ia")
    s.join(6100, 6101, "a", 2, leader="a", told="a", instance="ia")
    assert s.judged("G3").verdict is verdict


@pytest.mark.parametrize("twin", LATE, ids=lambda one: one.__name__)
def test_on_a_slow_machine_a_late_answer_is_unknown(twin: Twin) -> None:
    clause = next(clause for clause, twins in TWINS.items() if twin in twins)
    slow = Story(late_ms=5000)
    twin(slow, True)
    assert slow.judged(clause).verdict is Verdict.UNKNOWN


def test_what_a_slow_machine_never_saw_answered_is_no_pass() -> None:
    slow = Story(late_ms=30_000)
    x1_never(slow, True)
    assert slow.judged("X1").verdict is Verdict.UNKNOWN


def test_only_the_ends_of_a_wait_move_its_deadline() -> None:
    """The machine stood still in its midst; who waits for several things one after the other is moved by that too."""
    stood = WireEvent(0, 1600 * MS, "control", t_from=1400 * MS, late_ns=1000 * MS, rtt_ns=0)
    bounds = Bounds.of(Declared(), [stood])
    for through, held in ((False, Held.LATE), (True, Held.UNDECIDED)):
        by = bounds.by(0, 3000 * MS, 4000 * MS, gap_ns=3000 * MS, watched_t=9000 * MS, through=through)
        assert by.held is held


@pytest.mark.parametrize(("answer", "verdict"), [(2400, Verdict.UNKNOWN), (1300, Verdict.PASS)])
def test_what_is_late_as_what_was_forgotten_is_no_pass(answer: float, verdict: Verdict) -> None:
    """And could not be judged, though the same was kept in another scene."""
    story = Story(late_ms=1000)
    story.topic()
    story.fetch(10, 1015, [("t", 0, 0, [])], wait=1000)
    story.scene = "another#1"
    story.topic("u")
    story.fetch(10, answer, [("u", 0, 0, [])], wait=1000)
    assert story.judged("F2").verdict is verdict


@pytest.mark.parametrize(("error", "acks"), [(19, -1), (7, 1), (29, 1), (6, 1), (32, 1)])
def test_what_says_nothing_of_an_append_is_no_violation(error: int, acks: int) -> None:
    story = Story()
    story.topic()
    story.produce(10, 1011, 0, error=error, acks=acks)
    assert story.judged("P1").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("error", "acks", "answer"), [(19, 1, 11), (7, 1, 500), (3, 1, 11), (-1, -1, 11)])
def test_an_append_that_is_refused_without_need(error: int, acks: int, answer: float) -> None:
    story = Story()
    story.topic()
    story.produce(10, answer, 0, error=error, acks=acks)
    assert story.judged("P1").verdict is Verdict.VIOLATED


def test_a_request_behind_a_quota_is_not_judged_by_its_time() -> None:
    story = Story()
    story.topic()
    story.ask(10, "metadata", {}, 11, {"throttle_time_ms": 1500}, conn="c")
    for at in (20, 40):
        story.fetch(at, 1500 + at, [("t", 0, 0, [])], wait=0, conn="c")
    assert story.judged("F4").occasions == 0


def test_an_answer_that_cannot_be_read_says_nothing_else() -> None:
    story = Story()
    story.topic()
    story.produce(5, 6, 0)
    story.ask(20, "produce", {"acks": -1, "topic_data": []}, 21, None, err="newer: error 999")
    story.pair(100)
    story.ask(3000, "heartbeat", {"group_id": "g", "member_id": "x"}, 3001, None, err="newer: error 999")
    assert story.judged("G9").occasions == 0


@pytest.mark.parametrize("told", [False, True])
def test_who_was_silent_for_its_session_is_not_waited_for(told: bool) -> None:
    """The client stood still, and two of three sessions ended: what comes afterwards is late, whatever it says."""
    story = Story()
    story.pair(rebalance=10_000)
    story.join(2500, 2501, "", error=79, given="c")
    story.join(2510, 9020, "c", 2, leader="a", rebalance=10_000)
    story.beat(8900, "a", 1, 27)
    if told:
        story.beat(8901, "b", 1, 25)
    story.join(9000, 9020, "a", 2, leader="a", told="ac", rebalance=10_000)
    story.join(9005, 9021, "b", error=25)
    assert story.judged("G4").verdict is not Verdict.VIOLATED
    assert story.judged("G6").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize(("answer", "others", "doubt"), [(1900, 9, True), (1200, 1, True), (1200, 4, False)])
def test_one_late_row_alone_is_unknown(answer: int, others: int, doubt: bool) -> None:
    """By little among many it is undecided: a thread that was not given the processor."""
    story = Story()
    story.topic()
    story.fetch(10, answer, [("t", 0, 0, [])], wait=1000)
    for at in range(3000, 3000 * (others + 1), 3000):
        story.fetch(at, at + 1001, [("t", 0, 0, [])], wait=1000)
    result = story.judged("F2")
    assert result.verdict is (Verdict.UNKNOWN if doubt else Verdict.PASS)
    assert ("did not come again" in result.reason) is doubt


@pytest.mark.parametrize(
    ("scene", "answer", "verdict"),
    [
        pytest.param("asks#1", 1001, Verdict.PASS, id="decided"),
        pytest.param("asks#2", 1001, Verdict.PASS, id="decided in a repetition"),
        pytest.param("asks#1", 1600, Verdict.UNKNOWN, id="late"),
        pytest.param("another#1", 1001, Verdict.UNKNOWN, id="not asked"),
    ],
)
def test_what_a_scene_asks_is_decided_in_that_scene(scene: str, answer: float, verdict: Verdict) -> None:
    """On a slow machine, whatever another scene decides."""
    story = Story(late_ms=200)
    for story.scene, answered in (("beside#1", 1001), (scene, answer)):
        story.topic()
        story.fetch(10, 10 + answered, [("t", 0, 0, [])], wait=1000)
    story.scene = "asks#1"
    story.event(5, "stimulus", body={"what": "asks", "text": "F2 late"})
    result = story.judged("F2")
    assert result.verdict is verdict, result.reason
    assert ("asks (late)" in result.reason) is (verdict is Verdict.UNKNOWN)


def test_late_rows_that_met_one_pause_are_one() -> None:
    story = Story()
    story.topic()
    for at in (10, 20, 30):
        story.fetch(at, 2000 + at, [("t", 0, 0, [])], wait=1000)
    assert story.judged("F2").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("answered", "verdict"), [(1150, Verdict.PASS), (1400, Verdict.VIOLATED)])
def test_two_of_many_are_late_by_enough_or_an_accident(answered: int, verdict: Verdict) -> None:
    story = Story()
    story.topic()
    for number in range(30):
        late = number in (3, 20)
        story.fetch(
            2000 * number + 10,
            2000 * number + 10 + (answered if late else 1001),
            [("t", 0, 0, [])],
            wait=1000,
        )
    assert story.judged("F2", 2 * END_MS).verdict is verdict


@pytest.mark.parametrize(("answered", "verdict"), [(61, Verdict.PASS), (4000, Verdict.VIOLATED)])
def test_a_short_wait_that_is_forgotten_is_late(answered: int, verdict: Verdict) -> None:
    story = Story()
    story.topic()
    for at in (10, 20_000):
        story.fetch(at, at + answered, [("t", 0, 0, [])], wait=60)
    assert story.judged("F2").verdict is verdict


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.UNKNOWN), (2, Verdict.VIOLATED)])
def test_one_replica_has_nobody_to_wait_for(times: int, verdict: Verdict) -> None:
    story = Story()
    story.topic()
    for at in range(times):
        story.produce(10 + 3000 * at, 1010 + 3000 * at, -1, acks=-1, error=7)
    assert story.judged("P1").verdict is verdict


def test_who_leaves_the_new_generation_at_once_was_waited_for() -> None:
    story = Story()
    story.pair()
    newcomer(story, 3000, 3210)
    story.join(3100, 3202, "a", 2, leader="a", told="abn")
    story.leave(3205, "a")
    story.join(3200, 3212, "b", 2, leader="a")
    assert story.judged("G4").verdict is Verdict.PASS


def test_a_member_that_does_not_sync_is_not_waited_for() -> None:
    story = Story()
    for one in "ab":
        story.join(10, 2010, one, 1, leader="a", told="ab" if one == "a" else "", rebalance=1500)
    story.sync(2020, 2025, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
    story.beat(2600, "b", 1)
    story.beat(3500, "b", 1)
    story.beat(3600, "a", 1, 27)
    story.join(3610, 3612, "a", 2, leader="a", told="a", rebalance=1500)
    assert story.judged("G6").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize(("sent", "verdict"), [(700, Verdict.VIOLATED), (2900, Verdict.SKIPPED)])
def test_a_sync_that_comes_when_the_session_is_over_is_refused(sent: int, verdict: Verdict) -> None:
    story = Story()
    for one in "ab":
        told = "ab" if one == "a" else ""
        story.join(15, 615, one, 1, leader="a", told=told, rebalance=8000, session=2000)
    story.sync(sent, 2905, "b", 1, error=25)
    assert story.judged("G5").verdict is verdict


def test_with_somebody_under_way_the_next_generation_has_no_initial_delay() -> None:
    story = Story()
    story.join(10, 11, "", error=79, given="a")
    story.join(15, 1020, "a", 1, leader="a", told="a")
    story.sync(1030, 1032, "a", 1, "sa", gives={"a": "sa"})
    story.join(1100, 1101, "", error=79, given="b")
    story.leave(1110, "a")
    story.join(1120, 1122, "b", 2, leader="b", told="b")
    assert story.judged("G1").verdict is Verdict.PASS


@pytest.mark.parametrize(("number", "guilty"), [(3, False), (2, True)])
def test_a_join_may_be_taken_up_after_a_later_leaving(number: int, guilty: bool) -> None:
    """Then the group is empty, by a generation of nobody, and an initial delay begins; else that ends the wait."""
    story = Story()
    story.join(10, 11, "", error=79, given="a")
    story.join(15, 2020, "a", 1, leader="a", told="a")
    story.sync(2030, 2032, "a", 1, "sa", gives={"a": "sa"})
    story.join(2100, 2101, "", error=79, given="b")
    story.join(2110, 5115, "b", number, leader="b", told="b", rebalance=1500)
    story.leave(2112, "a")
    story.repeat()
    assert (story.judged("G4").verdict is Verdict.VIOLATED) is guilty


def test_a_time_out_of_a_generation_may_end_before_its_answers_have_been_read() -> None:
    """The client stood still for 100 ms: who does not sync is out 1.5 s after the generation began, not after that."""
    story = Story()
    for one in "abc":
        told = "abc" if one == "a" else ""
        story.join(10, 2110, one, 1, leader="a", told=told, rebalance=1500)
    story.sync(2120, 2122, "a", 1, "sa", gives={"a": "sa", "b": "sb", "c": "sc"})
    story.sync(2121, 2123, "b", 1, "sb")
    story.beat(3000, "b", 1)
    for one in "ab":
        story.join(3520, 3522, one, 2, leader="a", told="ab" if one == "a" else "", rebalance=1500)
    assert {story.judged(clause).verdict for clause in ("G4", "G6")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_a_sync_that_comes_when_the_time_to_sync_is_over_is_refused() -> None:
    """The client stood still for a second and more: the generation may be as old as its joins."""
    story = Story(late_ms=600)
    for one in "ab":
        told = "ab" if one == "a" else ""
        story.join(10, 1800, one, 1, leader="a", told=told, rebalance=770)
    story.sync(1840, 1890, "b", 1, error=25)
    assert story.judged("G5").verdict is not Verdict.VIOLATED


def test_the_end_of_a_session_begins_a_rebalance_that_nobody_asked_for() -> None:
    """c falls silent and is out at 8,100; b goes on and does not rejoin; a does, after half of the time-out."""
    story = Story()
    for one in "abc":
        story.join(10, 2010, one, 1, leader="a", told="abc" if one == "a" else "")
    story.sync(2020, 2022, "a", 1, "sa", gives={one: one for one in "abc"})
    for one in "bc":
        story.sync(2021, 2023, one, 1, one)
    for at in range(2500, 11_000, 500):
        story.beat(at, "b", 1, 27 if at > 8023 else 0)
    for at in range(2500, 9500, 500):
        story.beat(at, "a", 1, 27 if at > 8023 else 0)
    story.join(9500, 11_025, "a", 2, leader="a", told="a")
    assert {story.judged(clause).verdict for clause in ("G4", "G6")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_a_group_that_may_have_moved_is_not_described() -> None:
    """A member is silent for its session, the last join of a rebalance is on its way, or an id is still expected; or it
    is empty, and has been cleaned up."""
    story = Story()
    story.pair()
    told_of_it(story, 9000, "Empty")
    assert story.judged("G13").occasions == 0
    story = Story()
    story.pair()
    newcomer(story, 3000, 3210)
    story.beat(3050, "a", 1, 27)
    for one in "ab":
        story.join(3200, 3210, one, 2, leader="a", told="abn" if one == "a" else "")
    told_of_it(story, 3201, "CompletingRebalance", "a", "b", "n")
    assert story.judged("G13").occasions == 0
    story = Story()
    story.pair()
    story.join(2050, 2051, "", error=79, given="c")
    for at, one in ((2100, "a"), (2110, "b")):
        story.leave(at, one)
    told_of_it(story, 2200, "PreparingRebalance")
    assert story.judged("G13").occasions == 0
    story = Story()
    story.pair()
    for at, one in ((2100, "a"), (2110, "b")):
        story.leave(at, one)
    told_of_it(story, 2200, "Dead")
    to_be_deleted(story, 2300, 69)
    assert story.judged("G13").occasions == 0


def test_who_is_back_and_silent_for_its_session_moves_the_group() -> None:
    """KIP-345 keeps its place for its session only, and another that joins anew begins a rebalance at once."""
    story = Story()
    g7_static(story, False)
    assert story.judged("G11").verdict is not Verdict.VIOLATED
    story = Story()
    static_pair(story)
    story.join(2500, 2501, "", 1, leader="a", given="b2", instance="ib")
    story.join(3000, 6100, "", 2, leader="a", given="c", instance="ic")
    for at in (2600, 3100, 3500):
        story.beat(at, "a", 1, 27 if at > 3000 else 0, instance="ia")
    assert story.judged("G7").verdict is not Verdict.VIOLATED


def test_a_static_member_that_left_or_came_back_is_not_waited_for() -> None:
    for way in ("left", "back", "silent"):
        story = Story()
        static_pair(story)
        if way == "left":
            story.leave(2990, "", instance="ib")
        elif way == "back":
            story.join(2990, 3110, "", 2, leader="a", given="b2", instance="ib")
        begun = 3110 if way != "silent" else 8030
        story.join(begun - 30, begun, "", 2, leader="a", given="c", instance="ic")
        for at in range(2500, begun, 500):
            story.beat(at, "a", 1, 27 if at > 2990 and way != "silent" else 0, instance="ia")
        story.join(begun - 10, begun, "a", 2, leader="a", told="ac", instance="ia")
        assert story.judged("G4").verdict is not Verdict.VIOLATED, way


def test_who_synced_in_a_generation_before_has_no_share_to_keep() -> None:
    story = Story()
    story.join(5, 6, "", 1, leader="a", told="a", given="a", instance="ia")
    story.sync(7, 8, "a", 1, "sa", gives={"a": "sa"})
    story.join(10, 11, "a", 2, leader="a", told="a", instance="ia")
    story.join(20, 21, "", 3, leader="a2", told=["a2"], given="a2", instance="ia")
    assert story.judged("G11").verdict is Verdict.PASS


def test_what_is_refused_keeps_nobody_s_session_alive() -> None:
    """On a slow machine: 8 s after its sync a member is out, whatever it asked wrongly meanwhile."""
    story = Story()
    story.join(10, 11, "", error=79, given="a")
    story.join(20, 1021, "a", 1, leader="a", told="a")
    story.sync(1030, 1032, "a", 1, "sa", gives={"a": "sa"})
    for at in (2000, 5000, 6900):
        story.beat(at, "a", 101, 22)
        story.sync(at + 10, at + 12, "a", 101, error=22)
    story.beat(9000, "a", 1, 25)
    story.beat(9100, "a", 101, 25)
    assert story.judged("G9").verdict is Verdict.PASS
    assert story.judged("G10").verdict is not Verdict.VIOLATED


def test_who_has_a_protocol_of_each_member_and_none_of_all_is_refused() -> None:
    """GroupMetadata.supportsProtocols asks for one that all have."""
    story = Story()
    story.pair()
    theirs = [{"name": f"own {one}", "metadata": ""} for one in "ab"]
    body = {"group_id": "g", "member_id": "", "session_timeout_ms": 6000, "rebalance_timeout_ms": 3000,
            "protocol_type": "consumer", "protocols": theirs}  # fmt: skip
    story.ask(2100, "join_group", body, 2101, {"error_code": 23, "member_id": ""})
    assert {story.judged(clause).verdict for clause in ("G0", "G9")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_who_leaves_by_its_name_while_it_joins_is_told_so() -> None:
    story = Story()
    static_pair(story)
    story.join(2200, 2301, "", error=25, instance="ic")
    story.leave(2300, "", instance="ic")
    assert story.judged("G11").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize(("sequence", "base", "error"), [(0, -1, 46), (1, -1, 45), (5, 5, 0)])
def test_a_number_that_a_broker_need_not_know_any_more(sequence: int, base: int, error: int) -> None:
    """Of the last five batches it does."""
    story = Story()
    story.topic()
    for at in range(7):
        _written(story, 10 + 10 * at, at, at)
    _written(story, 100, sequence, base, error)
    assert story.judged("P7").verdict in (Verdict.PASS, Verdict.SKIPPED)


@pytest.mark.parametrize("waits", [False, True])
def test_a_rebalance_that_nobody_is_left_in_keeps_its_kind(waits: bool) -> None:
    """One goes on for who was given an id, or until the initial delay is over (ClassicGroup.supportsProtocols)."""
    story = Story()
    if waits:
        story.join(10, 11, "", error=79, given="a")
        story.join(15, 101, "a", error=25)
        story.leave(100, "a")
        story.join(200, 201, "", error=23, kind="another")
    else:
        story.gathered("a")
        story.join(2050, 2051, "", error=79, given="b")
        story.leave(2100, "a")
        story.join(2150, 2151, "", error=23, kind="another")
    story.repeat()
    assert story.judged("G0", 2 * END_MS).verdict is not Verdict.VIOLATED


def test_the_session_of_somebody_who_never_joined_may_end_the_initial_delay() -> None:
    story = Story(declared=Declared(initial_delay_ms=3000))
    story.join(10, 11, "", error=79, given="n")
    story.join(5000, 5001, "", error=79, given="a")
    story.join(5010, 6012, "a", 1, leader="a", told="a")
    assert story.judged("G1").verdict is not Verdict.VIOLATED


def test_a_sync_in_a_stable_group_renews_no_session() -> None:
    """Kafka 4 counts from the join's answer: `b`, whose sync came a second later, is out a second earlier."""
    story = Story()
    story.gathered(joins=1000, rebalance=20_000)
    story.sync(1020, 1021, "a", 1, "sa", gives={"a": "sa", "b": "sb"})
    story.sync(2000, 2001, "b", 1, "sb")
    for at in range(2100, 12_000, 100):
        story.beat(at, "a", 1, 27 if at >= 7020 else 0)
    story.beat(7500, "b", 1, 25)
    assert {story.judged(clause).verdict for clause in ("G7", "G10")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_who_joins_when_the_session_of_its_id_may_be_over_may_be_unknown() -> None:
    story = Story()
    story.pair(rebalance=20_000)
    story.join(2100, 2101, "", error=79, given="c")
    story.join(8050, 8140, "c", error=25)
    assert story.judged("G0").verdict is Verdict.PASS


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.UNKNOWN), (2, Verdict.VIOLATED)])
@pytest.mark.parametrize("clause", ["G0", "G3"])
def test_a_group_that_nobody_is_in_may_be_forgotten_once(clause: str, times: int, verdict: Verdict) -> None:
    """Kafka up to 3.9 does so whenever a topic is deleted, also with an id that it has given."""
    story = Story()
    if clause == "G0":
        g0_not_known(story, True)
    else:
        story.join(10, 11, "", error=79, given="a")
        story.join(12, 1015, "a", 1, leader="a", told="a")
        story.leave(1020, "a")
        story.join(1030, 1031, "", error=79, given="b")
        story.join(1032, 2035, "b", 1, leader="b", told="b")
    for _ in range(times - 1):
        story.repeat()
    assert story.judged(clause, times * END_MS).verdict is verdict


def test_a_member_is_known_by_its_id_while_others_are_there() -> None:
    story = Story()
    g0_not_known_beside(story, True)
    assert story.judged("G0").verdict is Verdict.VIOLATED


def test_the_session_of_an_id_may_end_late() -> None:
    story = Story()
    story.pair()
    story.join(2100, 2101, "", error=79, given="n")
    story.join(8500, 8501, "n", 2, leader="a")
    assert story.judged("G9").verdict is not Verdict.VIOLATED


def test_an_id_that_outlives_the_rebalance_time_out_is_expected_no_longer() -> None:
    story = Story()
    story.pair()
    story.join(2100, 2101, "", error=79, given="ghost")
    story.join(2110, 2111, "", error=79, given="c")
    for one in "cab":
        story.join(2200, 5203, one, 2, leader="a", told="abc" if one == "a" else "")
    assert {story.judged(clause).verdict for clause in ("G4", "G7")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_of_several_brokers_another_may_lead() -> None:
    story = Story()
    told = {"topics": [{"name": "u", "error_code": 0}]}
    story.ask(10, "create_topics", {"topics": [{"name": "u", "num_partitions": 1}]}, 30, told)
    for at in (40, 15_000):
        story.fetch(at, at + 1, [("u", 0, 0, 6)], wait=0)
    story.ask(15_010, "metadata", {"topics": []}, 15_011, {"brokers": [{"node_id": 0}, {"node_id": 1}]})
    assert story.judged("A1").verdict is not Verdict.VIOLATED


def test_what_a_quota_or_the_controller_holds_up_need_not_name_all() -> None:
    story = Story()
    story.topic()
    asked = {"max_wait_ms": 0, "topics": [{"topic": "t", "partitions": [{"partition": 0}]}]}
    story.ask(10, "fetch", asked, 11, {"throttle_time_ms": 900, "responses": []})
    said = {"responses": [{"name": "nobody", "error_code": 41}]}
    story.ask(20, "delete_topics", {"topic_names": ["nobody"]}, 21, said)
    assert story.judged("X4").verdict is not Verdict.VIOLATED


def test_above_the_high_watermark_a_fetch_need_not_wait() -> None:
    """The last append before a replica was stopped timed out: it lies above the high watermark."""
    story = Story()
    stopped(story, 100, 5000)
    story.produce(20, 90, 1, acks=-1, error=7, timeout=50)
    story.produce(200, 202, 2)
    story.fetch(210, 212, [("t", 0, 2, [])], wait=1000)
    assert story.judged("F1").verdict is not Verdict.VIOLATED


def test_what_is_deleted_in_the_end_is_no_question() -> None:
    """A Kafka with Zookeeper comes to its time-out over a hundred topics."""
    story = Story()
    story.scene = ""
    said = {"responses": [{"name": "t", "error_code": 7}]}
    story.ask(10, "delete_topics", {"topic_names": ["t"], "timeout_ms": 5000}, 5012, said)
    assert story.judged("A2").verdict is Verdict.SKIPPED


def test_where_a_controller_may_be_stopped_nothing_is_done_in_time() -> None:
    story = Story()
    a2_left(story, True)
    for number in range(2):
        story.scene = f"told#{number}"
        story.event(50, "stimulus", body={"what": "stops"})
    assert story.judged("A2").verdict is Verdict.SKIPPED


def test_what_was_undecided_once_and_kept_when_it_was_asked_again_is_kept() -> None:
    """The controller was busy, and the machine too slow to judge an answer that came late."""
    story = Story(late_ms=300)
    story.topic()
    asked = {"topics": [{"name": "t", "num_partitions": 1}]}
    for t, error in ((100, 7), (4000, 36)):
        story.ask(t, "create_topics", asked, t + 1, {"topics": [{"name": "t", "error_code": error}]})
        story.fetch(t, t + (2 if error == 36 else 400), [("t", 0, 99, 1)], wait=1000)
    for clause in ("A1", "F6"):
        result = story.judged(clause)
        assert result.verdict is Verdict.PASS, result.reason
        assert "undecided" in result.reason


@pytest.mark.parametrize("replicas", [1, 2])
def test_what_is_acknowledged_as_a_fetch_expires_need_not_be_in_it(replicas: int) -> None:
    story = Story()
    story.topic(replicas=replicas)
    story.produce(208, 209.9, 0, acks=-1)
    story.fetch(10, 210.1, [("t", 0, 0, [])], wait=200)
    assert {story.judged(clause).verdict for clause in ("F3", "F5", "O4")} <= {Verdict.PASS, Verdict.SKIPPED}


def test_a_wake_up_too_near_to_max_wait_is_nobody_s() -> None:
    story = Story()
    story.topic()
    for t in (0, 30_000):
        story.produce(t + 2900, t + 2902, t // 30_000)
        story.fetch(t + 10, t + 3030, [("t", 0, t // 30_000, [t // 30_000])], wait=3000)
    assert story.judged("O4").verdict is Verdict.SKIPPED


def test_a_coordinator_that_was_away_once_accuses_nobody() -> None:
    """And while it loads it answers heartbeats blindly, and so syncs."""
    story = Story()
    story.pair()
    for at in (3000, 3200, 3400):
        story.ask(at, "leave_group", {"group_id": "g"}, at + 1, {"error_code": 14, "members": []})
        story.beat(at + 100, "a", 1)
        story.sync(at + 110, at + 111, "a", 1, error=27)
    story.beat(4000, "a", 1, 27)
    assert story.judged("G8").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("error", [26, 81])
def test_a_group_that_is_set_up_to_refuse_is_not_judged(error: int) -> None:
    story = Story()
    story.join(10, 11, "", error=error)
    assert story.judged("G0").verdict is Verdict.SKIPPED


def test_a_broker_that_refuses_such_records_is_not_judged() -> None:
    story = Story()
    story.topic()
    story.produce(10, 12, -1, error=87)
    story.fetch(20, 1020, [("t", 0, 0, [])], wait=1000)
    assert {story.judged(clause).verdict for clause in ("P1", "F1", "F2")} <= {Verdict.UNKNOWN, Verdict.PASS}


def test_the_page_has_the_clauses() -> None:
    text = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
    assert clauses() in text, "run `python -m docs.makers.packaged_brokers docs/wire.md --clauses`"


@pytest.mark.parametrize(("answer", "verdict"), [(2020, Verdict.PASS), (4000, Verdict.VIOLATED)])
def test_who_leaves_in_the_initial_delay_has_begun_it_and_is_somebody(answer: int, verdict: Verdict) -> None:
    """Another comes behind it: the delay begins anew when it is over, for one that is alone by then."""
    story = Story()
    story.join(10, 60, "a", error=25, rebalance=6000)
    story.leave(50, "a")
    story.join(500, answer, "b", 1, leader="b", told="b", rebalance=6000)
    story.repeat()
    assert story.judged("G1", 2 * END_MS).verdict is verdict


def test_who_is_back_with_a_shorter_session_may_go_on_with_its_former_one() -> None:
    story = Story()
    static_pair(story)
    story.join(3000, 3001, "", 1, leader="a", given="b2", instance="ib", session=2000)
    story.beat(6500, "b2", 1, instance="ib")
    story.repeat()
    assert story.judged("G7").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("late_ms", [100, 300])
def test_who_joins_as_its_session_ends_may_be_no_member(late_ms: int) -> None:
    """Its session runs from 1,915 ms on, if its join was answered so long before we read it; the next one was sent 80
    ms before the end, and may have been taken up 100 ms later."""
    story = Story()
    story.pair()
    sent = 1915 + 6000 - 80
    story.beat(4000, "a", 1)
    story.join(sent, sent + late_ms, "b", error=25)
    assert story.judged("G10").verdict is not Verdict.VIOLATED
