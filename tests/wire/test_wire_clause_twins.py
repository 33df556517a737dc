"""Every clause of the wire: a history that it keeps, with an occasion, and a twin of it that it must break."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from docs.makers.packaged_brokers import clauses
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import judge
from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row, kept, now_and_then
from purgatorio_wire.history.group import ILLEGAL_GENERATION, NO_SUCH_GROUP, REBALANCING, UNKNOWN_MEMBER
from purgatorio_wire.history.history import COMMITS, Scene
from purgatorio_wire.history.violation_kind import Way
from purgatorio_wire.judge import Tallied, judge_scene
from purgatorio_wire.scene.catalogue import SCENES, SceneSpec
from purgatorio_wire.scene.play import Play
from purgatorio_wire.trace.record import Declared, WireEvent
from wire.story import END_MS, Story
from wire.twins import TOLD, TWINS, Twin
from wire.twins.fetch import f2, f3, f4, f6_waits, f7, f8_waits
from wire.twins.group import g0_not_known, g0_not_known_beside, g4_waits, g5_late
from wire.twins.members import g7_late, g7_static, g8
from wire.twins.produce import m5_late, m6
from wire.twins.told import newcomer, static_pair, stopped, to_be_deleted, told_of_it, written
from wire.twins.topics import a2_left, c1, x1_never

CASES = [
    pytest.param(clause, twin, id=f"{clause}-{twin.__name__}")
    for clause, twins in TWINS.items()
    for twin in twins
]


def test_every_clause_has_twins_and_every_twin_a_clause() -> None:
    assert all(TWINS.values())
    told = {
        name for name, one in TOLD.items() if [*getattr(one, "__annotations__", ())] == ["s", "bad", "return"]
    }
    played = {twin.__name__ for twins in TWINS.values() for twin in twins}
    assert {name for name in told if name[0] != "_"} <= played


def test_every_way_that_a_scene_asks_for_is_decided_by_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no judge has rows of would leave its clause UNKNOWN for ever."""
    decided: set[tuple[str, str]] = set()

    def watched(wire: judge.Wire, scene: Scene) -> list[Row]:
        rows = judge_scene(wire, scene)
        decided.update((row.clause, row.cause) for row in rows if row.held is not RowStatus.UNDECIDED)
        return rows

    monkeypatch.setattr(judge, "judge_scene", watched)
    for clause, twins in TWINS.items():
        for twin, bad in product(twins, (False, True)):
            story = Story()
            twin(story, bad)
            story.judged(clause)
    asks = {ask.partition(" ")[::2] for one in SCENES.values() for ask in one.asks}
    assert {ask for ask in asks if ask[1]} <= decided


@pytest.mark.parametrize("ask", ["G6 lat", "P1", "Z1 late"])
def test_a_scene_cannot_ask_for_what_no_judge_knows(ask: str) -> None:
    async def plays(play: Play) -> None:
        """Nothing."""

    with pytest.raises(ValueError, match=ask.split()[0] if ask[0] != "G" else "lat"):
        SceneSpec("mistyped", "groups", (ask,), plays)


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


LATE = [f2, f3, f4, f6_waits, f7, f8_waits, g4_waits, g5_late, g7_late, g8, m5_late, m6, c1]


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
    for through, held in ((False, RowStatus.LATE), (True, RowStatus.UNDECIDED)):
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
    assert story.judged("M1").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("error", "acks", "answer"), [(19, 1, 11), (7, 1, 500), (3, 1, 11), (-1, -1, 11)])
def test_an_append_that_is_refused_without_need(error: int, acks: int, answer: float) -> None:
    story = Story()
    story.topic()
    story.produce(10, answer, 0, error=error, acks=acks)
    assert story.judged("M1").verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("late_ms", "verdict"), [(0, Verdict.VIOLATED), (5000, Verdict.SKIPPED)])
def test_a_sync_whose_answer_was_read_late_keeps_no_session(late_ms: float, verdict: Verdict) -> None:
    """The only member is out when its session is over, though it read the answer to its sync just before."""
    s = Story(late_ms=late_ms)
    s.join(10, 11, "", error=79, given="a")
    s.join(15, 1015, "a", 1, leader="a", told="a")
    s.sync(1020, 12_000, "a", 1, "sa", gives={"a": "sa"})
    s.beat(12_200, "a", 1, 25)
    assert s.judged("G3").verdict is verdict


@pytest.mark.parametrize(("version", "occasions"), [(1, 0), (2, 1)])
def test_a_group_without_a_name_is_refused_from_kafka_2_0_on(version: int, occasions: int) -> None:
    story = Story()
    story.ask(10, "heartbeat", {"group_id": "", "member_id": "x"}, 11, {"error_code": 25}, version=version)
    assert story.judged("G9").verdict is (Verdict.VIOLATED if occasions else Verdict.SKIPPED)


@pytest.mark.parametrize(("version", "verdict"), [(3, Verdict.PASS), (4, Verdict.VIOLATED)])
def test_a_commit_to_a_partition_that_is_not_there_is_refused_from_kafka_2_0_on(
    version: int, verdict: Verdict
) -> None:
    story = Story()
    story.topic()
    asked = [{"name": "t", "partitions": [{"partition_index": number} for number in (0, 9)]}]
    told = [{"name": "t", "partitions": [{"partition_index": n, "error_code": 0} for n in (0, 9)]}]
    story.ask(10, "offset_commit", {"group_id": "g", "topics": asked}, 11, {"topics": told}, version=version)
    assert story.judged("X4").verdict is verdict


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
    assert story.judged("M1").verdict is verdict


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
        written(story, 10 + 10 * at, at, at)
    written(story, 100, sequence, base, error)
    assert story.judged("M7").verdict in (Verdict.PASS, Verdict.SKIPPED)


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


def forgotten_when_left(s: Story, _: bool) -> None:
    """Generation 1 comes again."""
    s.join(10, 11, "", error=79, given="a")
    s.join(12, 1015, "a", 1, leader="a", told="a")
    s.leave(1020, "a")
    s.join(1030, 1031, "", error=79, given="b")
    s.join(1032, 2035, "b", 1, leader="b", told="b")


def forgotten_when_silent(s: Story, _: bool) -> None:
    """The session of the only member is over."""
    s.join(10, 11, "", error=79, given="a")
    s.join(12, 1015, "a", 1, leader="a", told="a")
    s.sync(1020, 1021, "a", 1, "sa", gives={"a": "sa"})
    s.beat(1030, "a", 1)
    s.beat(11_000, "a", 1, 25)
    s.join(11_030, 11_031, "", error=79, given="b")
    s.join(11_032, 12_035, "b", 1, leader="b", told="b")


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.UNKNOWN), (2, Verdict.VIOLATED)])
@pytest.mark.parametrize(
    ("told", "clause"),
    [(g0_not_known, "G0"), (forgotten_when_left, "G3"), (forgotten_when_silent, "G3")],
)
def test_a_group_that_nobody_is_in_may_be_forgotten_once(
    told: Callable[[Story, bool], None], clause: str, times: int, verdict: Verdict
) -> None:
    """Kafka up to 3.9 does so whenever a topic is deleted, also with an id that it has given."""
    story = Story()
    told(story, True)
    for _ in range(times - 1):
        story.repeat()
    assert story.judged(clause, times * END_MS).verdict is verdict


@pytest.mark.parametrize(
    ("api", "error"),
    [*product(COMMITS, (0, ILLEGAL_GENERATION, UNKNOWN_MEMBER)), (COMMITS[0], NO_SUCH_GROUP)],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_commit_where_nobody_is_surely_in_the_group_may_be_told_that_it_is_not_there(
    api: str, error: int, there: bool
) -> None:
    """It is forgotten, and of a commit with a transaction Kafka up to 3.9 makes it."""
    s = Story()
    s.gathered("ab" if there else "a")
    s.leave(2100, "a")
    s.commit(2200, "a", 1, error, api=api)
    right = error == UNKNOWN_MEMBER or (error and not there)
    assert s.judged("G9").verdict is (Verdict.PASS if right else Verdict.VIOLATED)


@pytest.mark.parametrize(
    ("error", "causes"),
    [(UNKNOWN_MEMBER, []), (REBALANCING, [Way.TOLD_OF_A_REBALANCE]), (0, [Way.NOT_REFUSED])],
)
def test_a_commit_of_who_is_none_is_not_told_of_a_rebalance(error: int, causes: list[Way]) -> None:
    """Kafka up to 2.3 does so while the assignments are awaited (KAFKA-8487), which is not as bad as taking it."""
    s = Story()
    s.gathered("ab")
    s.leave(2100, "a")
    s.commit(2200, "a", 1, error)
    assert [*s.judged("G9").causes] == causes


@pytest.mark.parametrize(("known", "counts"), [(30, False), (10, True)])
def test_what_a_broker_forgets_now_and_then_accuses_nobody(known: int, counts: bool) -> None:
    """As where topics are deleted all the time; it is no broker that forgets one of few."""
    tallied = Tallied()
    for t in (10, 20):
        tallied.add("joins", now_and_then(Row("G0", RowStatus.BROKEN, "id-not-known", late=(t, t + 1))))
    for _ in range(known):
        tallied.add("joins", kept("G0", Way.ID_NOT_KNOWN))
    assert bool(tallied.violations()) is counts


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
    assert {story.judged(clause).verdict for clause in ("M1", "F1", "F2")} <= {Verdict.UNKNOWN, Verdict.PASS}


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


@pytest.mark.parametrize("answer", [11, 111, 3011])
def test_who_asks_for_what_is_not_there_may_be_told_so_at_once(answer: float) -> None:
    """Kafka tells it with the others, when they are ready or max_wait is over."""
    story = Story()
    story.topic()
    if answer == 111:
        story.produce(105, 110, 0)
    story.fetch(10, answer, [("u", 0, 0, 3), ("t", 0, 0, [0] if answer == 111 else [])], wait=3000)
    for clause in ("F1", "F2", "F3", "F5", "X4"):
        assert story.judged(clause).verdict in (Verdict.PASS, Verdict.SKIPPED), clause


def test_who_is_told_to_be_out_is_heard_of_no_more() -> None:
    """The client stood still for longer than the sessions, and asks on by ids that are out."""
    story = Story()
    static_pair(story)
    story.join(2500, 2501, "", 1, leader="a", given="b2", instance="ib")
    story.beat(2600, "a", 1, instance="ia")
    story.sync(9000, 9001, "b2", 1, error=25, instance="ib")
    for at in (9010, 9020):
        story.beat(at, "a", 1, 25, instance="ia")
    for at in (9030, 9040):
        story.beat(at, "b", 1, 25, instance="ib")
    assert story.judged("G11").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("error", [0, 25])
def test_who_has_an_id_may_be_waited_for_where_all_others_have_left(error: int) -> None:
    """Then the group is not empty, and a commit without a generation is that of a stranger."""
    story = Story()
    story.pair()
    story.join(2050, 2051, "", error=79, given="c")
    for at, one in ((2100, "a"), (2110, "b")):
        story.leave(at, one)
    story.commit(2200, "", -1, error)
    assert story.judged("G12").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("answer", [1990, 3500, 15_000])
def test_a_replica_that_is_told_to_be_in_sync_again_is_waited_for(answer: float) -> None:
    story = Story()
    story.topic(replicas=2, min_insync_replicas="1")
    story.produce(4, 5, 0, acks=-1)
    for at, what in ((9, "stops"), (10, "stopped"), (30_000, "continues"), (30_001, "continued")):
        story.event(at, "stimulus", body={"what": what})
    told = ((6, 2), (100, 2), (2000, 1), (3000, 2)) if answer > 3500 else ((6, 2), (100, 2), (2000, 1))
    for at, count in told:
        story.metadata(at, in_sync=count)
    for at in (20, 30):
        story.produce(at, answer, 1, acks=-1, timeout=28_000)
    assert story.judged("M6").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("error", [0, 1, 6])
def test_a_follower_may_serve_nobody(error: int) -> None:
    """Or be behind; what it is asked says nothing of the leader."""
    story = Story()
    story.topic(replicas=2)
    story.produce(4, 5, 0, acks=-1)
    story.event(6, "stimulus", body={"what": "at-second", "conn": "f"})
    for offset, at in ((1, 10), (2, 20_000)):
        story.produce(at + 100, at + 105, offset, acks=-1)
        story.fetch(
            at, at + (10_001 if error else 4000), [("t", 0, offset, error or [])], wait=10_000, conn="f"
        )
    for clause in ("F1", "F3", "F6", "F9"):
        assert story.judged(clause).verdict in (Verdict.PASS, Verdict.SKIPPED), clause
