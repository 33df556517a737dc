"""Of members: sessions, heartbeats, what they commit and what is told of them: see the package."""

from __future__ import annotations

from purgatorio_wire.trace.record import Declared
from wire_story import Story
from wire_twins.told import (
    newcomer,
    nobody_rejoins,
    static_pair,
    to_be_deleted,
    told_of_a_rebalance,
    told_of_it,
)


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


def g9_unassigned(s: Story, bad: bool) -> None:
    s.gathered()
    s.commit(2100, "b", 1, 0 if bad else 27)


def g11_sync(s: Story, bad: bool) -> None:
    g11(s, False)
    s.sync(3100, 3101, "b", 1, error=0 if bad else 82, instance="ib")


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


def g11_nobody_rejoins(s: Story, bad: bool) -> None:
    nobody_rejoins(s)
    s.beat(8000, "b", 1, 25 if bad else 27, instance="ib")


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


def g7_told_in_its_sync(s: Story, bad: bool) -> None:
    """`b` has waited in its sync for longer than a session, is told of a rebalance there, and falls silent."""
    s.gathered(rebalance=20_000)
    s.sync(2020, 11_002, "b", 1, error=27)
    for at in range(2100, 11_000, 1000):
        s.beat(at, "a", 1)
    s.join(10_990, 10_991, "", error=79, given="c")
    answer = 31_005 if bad else 17_010
    s.join(11_000, answer, "c", 2, leader="a", rebalance=20_000)
    s.join(11_010, answer, "a", 2, leader="a", told="ac", rebalance=20_000)


def g9_no_name(s: Story, bad: bool) -> None:
    s.ask(10, "heartbeat", {"group_id": "", "member_id": "a"}, 11, {"error_code": 25 if bad else 24})


def g9_session(s: Story, bad: bool) -> None:
    s.declared = Declared(session_least_ms=6000, session_most_ms=9000)
    s.pair()
    s.join(2100, 2101, "", error=79 if bad else 26, session=9001, given="n" if bad else "")


def g9_not_there(s: Story, bad: bool) -> None:
    s.commit(5, "a", 1, 0 if bad else 22)
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


def g8_told_before_the_leave(s: Story, bad: bool) -> None:
    """The join is answered as its member is removed, before the leaving is."""
    s.pair()
    s.join(2100, 2101, "", error=79, given="n")
    s.join(2110, 2200.5, "n", error=27 if bad else 25)
    s.leave(2200, "n")


def g10_refused(s: Story, bad: bool) -> None:
    s.pair()
    s.beat(2100, "b", 1, 22 if bad else 0)


def g9_leaves_beside(s: Story, bad: bool) -> None:
    s.pair()
    named = [{"member_id": "nobody"}, {"member_id": "b"}]
    said = [{**x, "error_code": 25 * at} for at, x in zip((0 if bad else 1, 0), named, strict=True)]
    s.ask(2100, "leave_group", {"group_id": "g", "members": named}, 2101, {"error_code": 0, "members": said})


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


def g12_of_nobody(s: Story, bad: bool) -> None:
    """All members have left: tools commit for the group."""
    s.pair()
    for at, one in ((2100, "a"), (2110, "b")):
        s.leave(at, one)
    s.commit(2200, "", -1, 25 if bad else 0)


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
