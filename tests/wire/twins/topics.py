"""Of topics, of the controller, of what is answered at all: see the package."""

from __future__ import annotations

from wire.story import Story
from wire.twins.told import deleted, fetch_by_id, named_by_id, session


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


def x2_one_at_a_time(s: Story, bad: bool) -> None:
    """An append behind a fetch that waits does not end its wait."""
    s.topic()
    s.fetch(10, 40 if bad else 511, [("t", 0, 0, [0] if bad else [])], conn="c")
    s.produce(30, 41 if bad else 512, 0, conn="c")


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


def a1_refused(s: Story, bad: bool) -> None:
    said = {"name": "u", "error_code": 3 if bad else 0}
    asked = {"topics": [{"name": "u", "num_partitions": 1}], "timeout_ms": 5000}
    s.ask(10, "create_topics", asked, 30, {"topics": [said]})


def a1_id(s: Story, bad: bool) -> None:
    for at, shown in ((10, "one"), (40, "another" if bad else "one")):
        named_by_id(s, at, at == 10, shown)


def a1_id_again(s: Story, bad: bool) -> None:
    named_by_id(s, 10, True, "one")
    s.ask(20, "delete_topics", {"topic_names": ["u"]}, 21, {"responses": [{"name": "u", "error_code": 0}]})
    named_by_id(s, 40, True, "one" if bad else "another")


def x4_forgotten(s: Story, bad: bool) -> None:
    """What was taken out of a session is not told any more; what has no news need not be."""
    s.topic("u")
    session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    session(s, 10, 1, [], came={("t", 0): []} if bad else {}, forgets=("t",))


def x4_asked_for_again(s: Story, bad: bool) -> None:
    """What is new in a session is told, though it was told before it was taken out."""
    s.topic("u")
    session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    session(s, 10, 1, [], forgets=("t",))
    session(s, 20, 2, [("t", 0)], came={} if bad else {("t", 0): []})


def a2_by_id(s: Story, bad: bool) -> None:
    """A topic is deleted and another made by its name: the id leads to neither."""
    named_by_id(s, 10, True, "one")
    s.ask(20, "delete_topics", {"topic_names": ["u"]}, 21, {"responses": [{"name": "u", "error_code": 0}]})
    named_by_id(s, 30, True, "another")
    for at in (40, 15_000):
        fetch_by_id(s, at, "one", 0 if bad or at == 40 else 100)


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


def a3_left(s: Story, bad: bool) -> None:
    for at, name in ((0, "t"), (10_000, "u")):
        said = {"topics": [{"name": name, "error_code": 0}]}
        s.ask(at, "create_topics", {"topics": [{"name": name, "num_partitions": 1}]}, at + 1, said)
        s.fetch(at + 2, at + 3, [(name, 0, 0, [])], wait=0)
        body = {"topics": [{"name": name, "count": 3}], "timeout_ms": 5000}
        said = {"results": [{"name": name, "error_code": 7 if bad else 0}]}
        s.ask(at + 10, "create_partitions", body, at + (5011 if bad else 20), said)


def e1_left(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 6000):
        said = {"topic": "t", "partition_result": [{"partition_id": 0, "error_code": 84}]}
        body = {"timeout_ms": 5000, "topic_partitions": [{"topic": "t", "partitions": [0]}]}
        s.ask(at, "elect_leaders", body, at + (5001 if bad else 1), {"replica_election_results": [said]})


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


def a1_led(s: Story, bad: bool) -> None:
    s.topic()
    part = {"partition_index": 0, "leader_id": -1 if bad else 0}
    lost = {"partition_index": 1, "leader_id": -1, "error_code": 5}
    said = {
        "brokers": [{"node_id": 0}],
        "topics": [{"name": "t", "error_code": 0, "partitions": [part, lost]}],
    }
    s.ask(20, "metadata", {"topics": [{"name": "t"}]}, 21, said)


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
