"""Of fetches and their sessions: see the package."""

from __future__ import annotations

from wire.story import SIZE, Story
from wire.twins.log import d1
from wire.twins.told import delete_records, deleted, fetch_by_id, named_by_id, session, stopped


def f3_session(s: Story, bad: bool) -> None:
    """A fetch that says nothing of its session's partitions waits for all of them."""
    session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    for offset, at in enumerate((10, 4000)):
        s.produce(at + 100, at + 105, offset)
        places = [("t", offset)] if offset else []
        session(
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
    session(s, 5, 0, [("t", 0), ("u", 0)], came={("t", 0): [], ("u", 0): []})
    s.produce(100, 105, 0)
    session(s, 10, 1, [], answer=106 if bad else 1010, wait=1000, forgets=("t",))


def f5_session_start(s: Story, bad: bool) -> None:
    """Records are deleted, and who has a session is told of it when its fetch is answered."""
    s.topic("u")
    s.produce(4, 4.5, 0)
    session(s, 5, 0, [("t", 1), ("u", 0)], came={("t", 1): [], ("u", 0): []})
    delete_records(s, 8, 1, 1)
    s.produce(100, 101, 0, name="u")
    came = {("u", 0): [0]} if bad else {("u", 0): [0], ("t", 1): []}
    session(s, 50, 1, [], came, answer=1051, wait=1000, least=100_000, start=1)


def f6_session(s: Story, bad: bool) -> None:
    session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    session(s, 10, 7, [], error=0 if bad else 71)


def f6_next_of_a_session(s: Story, bad: bool) -> None:
    session(s, 5, 0, [("t", 0)], came={("t", 0): []})
    session(s, 10, 7, [], error=71)
    session(s, 12, 1, [], error=71 if bad else 0)


def x4_healed(s: Story, bad: bool) -> None:
    """Nothing came, but nothing is wrong any more: that is news."""
    session(s, 5, 0, [("t", 7)], came={("t", 7): 1})
    session(s, 10, 1, [("t", 0)], came={} if bad else {("t", 0): []})


def f6_no_session(s: Story, bad: bool) -> None:
    session(s, 10, 1, [], error=71 if bad else 70)


def f6_by_id(s: Story, bad: bool) -> None:
    s.topic()
    fetch_by_id(s, 10, "nobody's", 3 if bad else 100)


def f3_by_id(s: Story, bad: bool) -> None:
    """A fetch that names its topic by its id alone is one like others."""
    named_by_id(s, 1, True, "one")
    fetch_by_id(s, 3, "one", 0)
    for at in (10, 4000):
        s.produce(at + 100, at + 105, at // 4000, name="u")
        fetch_by_id(s, at, "one", 0, 1001 if bad else 110, at // 4000)


def f8_beside(s: Story, bad: bool) -> None:
    for name in "tu":
        s.topic(name)
    s.fetch(10, 6011 if bad else 120, [("u", 0, 0, []), ("t", 0, 0, 3)], wait=20_000)
    s.ask(100, "delete_topics", {"topic_names": ["t"]}, 110, {"responses": [{"name": "t", "error_code": 0}]})
    if bad:
        s.repeat()


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


def f3_beside_absent(s: Story, bad: bool) -> None:
    """What is not there, named first, keeps nobody from being woken."""
    s.topic()
    for offset, at in enumerate((10, 8000)):
        s.produce(at + 100, at + 105, offset)
        answer = at + (3001 if bad else 110)
        s.fetch(at, answer, [("u", 0, 0, 3), ("t", 7, 0, 3), ("t", 0, offset, [offset])], wait=3000)


def f3_at_follower(s: Story, bad: bool) -> None:
    """A consumer's fetch waits at the second broker, which follows."""
    s.topic(replicas=2)
    s.produce(4, 5, 0, acks=-1)
    s.event(6, "stimulus", body={"what": "at-second", "conn": "f"})
    for offset, at in ((1, 10), (2, 20_000)):
        s.produce(at + 100, at + 105, offset, acks=-1)
        s.fetch(at, at + (10_001 if bad else 700), [("t", 0, offset, [offset])], wait=10_000, conn="f")


def f2_beside_absent(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 8000):
        s.fetch(at, at + (4000 if bad else 1001), [("t", 7, 0, 3), ("t", 0, 0, [])], wait=1000)


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


def f7_no_room_for_the_rest(s: Story, bad: bool) -> None:
    """What woke it need not fit behind what was there."""
    s.topic(partitions=2)
    s.produce(4, 5, 0)
    s.produce(100, 105, 0, number=1)
    few = 3 * SIZE // 2
    s.fetch(10, 110, [("t", 0, 0, [] if bad else [0]), ("t", 1, 0, [])], least=few, most=few)


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
    session(s, 5, 0, [(name, 0) for name in "tuv"])
    for at in (6, 7, 8):
        for name in "tuv":
            s.produce(at, at + 0.5, at - 6, name=name)
    turns = ("t", "t", "u", "u") if bad else ("t", "u", "v", "t")
    ends = dict.fromkeys("tuv", 0)
    for epoch, name in enumerate(turns, 1):
        session(s, 10 + epoch, epoch, [*ends.items()], came={(name, 0): [ends[name]]}, least=SIZE, most=SIZE)
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


def f8(s: Story, bad: bool) -> None:
    s.topic()
    deleted(s, 100)
    s.fetch(10, 200, [("t", 0, 0, [] if bad else 3)], wait=20_000)


def f8_waits(s: Story, bad: bool) -> None:
    s.topic()
    deleted(s, 100)
    for _ in range(2):
        s.fetch(10, 20_011 if bad else 200, [("t", 0, 0, 3)], wait=20_000)


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


def o1(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 511, [("t", 0, 0, [])], conn="c0")
    if bad:
        s.event(520, "answer", conn="c0", corr=s.last, body={"bytes": 9})


def o4(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 3011 if bad else 103, [("t", 0, 0, [0])], wait=3000)
    s.produce(100, 102, 0)


def o5(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, None if bad else 3011, [("t", 0, 0, [])], wait=3000)
