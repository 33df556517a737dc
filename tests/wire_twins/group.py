"""Of groups: joins, rebalances, syncs: see the package."""

from __future__ import annotations

from purgatorio_wire.trace.record import Declared
from wire_story import Story
from wire_twins.told import newcomer, nobody_rejoins, static_pair, told_of_a_rebalance


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


def g0_longest_session(s: Story, bad: bool) -> None:
    s.declared = Declared(session_least_ms=10, session_most_ms=6000)
    s.join(10, 11, "", error=26 if bad else 79, given="" if bad else "a", session=6000)


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


def g5_leader_refused_late(s: Story, bad: bool) -> None:
    """A rebalance has begun meanwhile: it is told so, and does not wait for that."""
    for at in range(2):
        s.scene = f"told#{at}"
        s.gathered()
        newcomer(s, 2030, 5040)
        s.sync(2040, 4900 if bad else 2041, "a", 1, error=27, gives={"a": "sa", "b": "sb"})


def g5_left_out(s: Story, bad: bool) -> None:
    """The leader gives `b` nothing: that is what it gets."""
    for at in range(2):
        s.scene = f"told#{at}"
        s.gathered()
        s.sync(2020, 4900 if bad else 2506, "b", 1)
        s.sync(2500, 2505, "a", 1, "sa", gives={"a": "sa"})


def g5_never_answered(s: Story, bad: bool) -> None:
    """The leader's sync answers the leader alone."""
    s.gathered()
    s.sync(2020, None if bad else 2506, "b", 1, "sb")
    s.sync(2500, 2505, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


def g5_refused(s: Story, bad: bool) -> None:
    s.gathered()
    s.sync(2020, 2021 if bad else 2050, "b", 1, "" if bad else "sb", error=27 if bad else 0)
    s.sync(2040, 2050, "a", 1, "sa", gives={"a": "sa", "b": "sb"})


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


def g4_failed(s: Story, bad: bool) -> None:
    """A join fails for the coordinator's own reasons, and its member goes on."""
    s.pair()
    newcomer(s, 2100, 2210)
    if bad:
        s.join(2150, 2151, "b", error=-1)
    for one in "ab":
        s.join(2200, 2210, one, 2, leader="a", told="abn" if one == "a" else "")


def g5_leaver(s: Story, bad: bool) -> None:
    s.gathered("abc")
    for at in (0, 0.5) if bad else (0,):
        s.sync(2020 + at, 5016 if bad else 2101, "b", 1, error=27)
    s.leave(2100, "c")


def g5_leader_leaves(s: Story, bad: bool) -> None:
    s.gathered("abc")
    for at in (0, 0.5) if bad else (0,):
        s.sync(2020 + at, 5016 if bad else 2101, "b", 1, error=27)
    s.leave(2100, "a")


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


def g6_of_a_newcomer(s: Story, bad: bool) -> None:
    """Who begins it has more time than the others."""
    s.pair()
    s.join(2900, 2901, "", error=79, given="n", rebalance=5000)
    ends = 6010 if bad else 8010
    s.join(3000, ends, "n", 2, leader="a", rebalance=5000)
    s.join(3300, ends, "a", 2, leader="a", told="an")
    for at in range(3200, ends, 500):
        s.beat(at, "b", 1, 27)


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


def g1_without_end(s: Story, bad: bool) -> None:
    """Of three the last comes in the second delay, and the third one ends with the rebalance time-out."""
    for number in range(2):
        s.scene = f"told#{number}"
        for one, t in zip("abc", (15, 300, 1500), strict=True):
            told = "abc" if one == "a" else ""
            s.join(t, 3020 if bad else 2220, one, 1, leader="a", told=told, rebalance=2200)


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
