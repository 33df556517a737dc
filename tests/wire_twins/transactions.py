"""Of transactions: see the package. The producer 7 has the transactional id x, and writes records of `SIZE` bytes."""

from __future__ import annotations

from collections.abc import Sequence

from wire_story import SIZE, Story
from wire_twins.told import delete_records, newcomer

CONCURRENT = 51


def init(s: Story, t: float, epoch: int, error: int = 0, name: str = "x", producer: int = 7) -> None:
    """A transactional id is asked for."""
    body = {
        "transactional_id": name,
        "transaction_timeout_ms": 30_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    got = {"error_code": error, "producer_id": -1 if error else producer, "producer_epoch": epoch}
    s.ask(t, "init_producer_id", body, t + 1, got, version=4)


def add(
    s: Story, t: float, epoch: int = 0, error: int = 0, name: str = "x", producer: int = 7,
    numbers: Sequence[int] = (0,),
) -> None:  # fmt: skip
    """Partitions are added."""
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
    """An end is asked for."""
    body = {
        "transactional_id": name,
        "producer_id": producer,
        "producer_epoch": epoch,
        "committed": commits,
    }
    answer = None if takes is None else t + takes
    s.ask(t, "end_txn", body, answer, {"error_code": error}, version=4)


def write(
    s: Story, t: float, base: int, error: int = 0, epoch: int = 0, sequence: int = 0, producer: int = 7,
    number: int = 0,
) -> None:  # fmt: skip
    """An append in a transaction."""
    batch = {
        "base": 0, "last": 0, "count": 1, "bytes": SIZE, "producer_id": producer, "producer_epoch": epoch,
        "base_sequence": sequence, "transactional": True,
    }  # fmt: skip
    data = [{"name": "t", "partition_data": [{"index": number, "records": [batch]}]}]
    said = {"index": number, "error_code": error, "base_offset": -1 if error else base}
    got = {"responses": [{"name": "t", "partition_responses": [said]}]}
    body = {"transactional_id": "x", "acks": -1, "timeout_ms": 1000, "topic_data": data}
    s.ask(t, "produce", body, t + 1, got)


def read(
    s: Story, t: float, answer: float, came: Sequence[int], *, wait: int = 0, offset: int = 0, stable: int = -1,
    aborted: Sequence[tuple[int, int]] = (), committed: bool = True, least: int = 1,
) -> None:  # fmt: skip
    """A fetch of who reads what is committed, and the batches that came."""
    parts = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
    body = {
        "max_wait_ms": wait, "min_bytes": least, "max_bytes": 1 << 20, "isolation_level": int(committed),
        "topics": [{"topic": "t", "partitions": parts}],
    }  # fmt: skip
    told = {
        "partition_index": 0, "error_code": 0, "last_stable_offset": stable,
        "aborted_transactions": [{"producer_id": one, "first_offset": first} for one, first in aborted],
        "records": [{"base": base, "last": base, "count": 1, "bytes": SIZE} for base in came],
    }  # fmt: skip
    got = {"error_code": 0, "responses": [{"topic": "t", "partitions": [told]}]}
    s.ask(t, "fetch", body, answer, got)


def opened(s: Story) -> None:
    """A transaction with one record, at 0, is open from 21 ms on."""
    s.topic()
    init(s, 4, 0)
    add(s, 6)
    write(s, 20, 0)


def ended(s: Story, t: float, commits: bool) -> None:
    """It ends, which surely has happened 6 ms later: the next one is let begin."""
    end(s, t, commits)
    add(s, t + 2, error=CONCURRENT)
    add(s, t + 5)


def r1(s: Story, bad: bool) -> None:
    opened(s)
    read(s, 10, 22 if bad else 307, [] if bad else [0, 1], wait=1000)
    ended(s, 300, True)


def r1_shown(s: Story, bad: bool) -> None:
    opened(s)
    read(s, 30, 31, [0] if bad else [])


def r1_behind(s: Story, bad: bool) -> None:
    """What begins and ends behind an open transaction wakes nobody who waits for that."""
    opened(s)
    init(s, 22, 0, name="y", producer=8)
    add(s, 24, name="y", producer=8)
    read(s, 10, 122 if bad else 1011, [], wait=1000)
    write(s, 26, 1, producer=8)
    end(s, 120, True, name="y", producer=8)
    add(s, 130, name="y", producer=8)


def r2(s: Story, bad: bool) -> None:
    opened(s)
    read(s, 10, 3011 if bad else 320, [0, 1], wait=3000)
    ended(s, 300, True)


def r2_taken_over(s: Story, bad: bool) -> None:
    """Its end may be that its id is taken over."""
    opened(s)
    read(s, 10, 3011 if bad else 320, [0, 1], wait=3000)
    init(s, 300, -1, CONCURRENT)
    init(s, 305, 2)


def r2_never(s: Story, bad: bool) -> None:
    opened(s)
    end(s, 300, True)
    for at in range(310, 14_000, 400):
        add(s, at, error=CONCURRENT if bad or at < 1200 else 0)


def r3(s: Story, bad: bool) -> None:
    opened(s)
    ended(s, 300, True)
    read(s, 400, 401, [] if bad else [0, 1])


def r3_at_max_wait(s: Story, bad: bool) -> None:
    """It waits for more than there is."""
    opened(s)
    ended(s, 300, True)
    read(s, 400, 901, [] if bad else [0, 1], wait=500, least=100_000)


def r3_not_listed(s: Story, bad: bool) -> None:
    opened(s)
    ended(s, 300, False)
    read(s, 400, 401, [0, 1], aborted=[] if bad else [(7, 0)])


def r3_listed(s: Story, bad: bool) -> None:
    opened(s)
    ended(s, 300, True)
    read(s, 400, 401, [0, 1], aborted=[(7, 0)] if bad else [])


def r3_from_within(s: Story, bad: bool) -> None:
    """What was aborted began before what is read."""
    opened(s)
    write(s, 25, 1, sequence=1)
    ended(s, 300, False)
    read(s, 400, 401, [1, 2], offset=1, aborted=[] if bad else [(7, 0)])


def r4(s: Story, bad: bool) -> None:
    opened(s)
    read(s, 30, 31, [], stable=1 if bad else 0)


def r4_of_others(s: Story, bad: bool) -> None:
    """Whoever reads is told."""
    opened(s)
    read(s, 30, 31, [0], stable=1 if bad else 0, committed=False)


def r4_stays(s: Story, bad: bool) -> None:
    opened(s)
    ended(s, 300, False)
    read(s, 400, 401, [0, 1], stable=0 if bad else 2, committed=False)


def r4_listed(s: Story, bad: bool) -> None:
    opened(s)
    asked = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    told = {"partition_index": 0, "error_code": 0, "offset": 1 if bad else 0, "timestamp": -1}
    got = {"topics": [{"name": "t", "partitions": [told]}]}
    s.ask(30, "list_offsets", {"isolation_level": 1, "topics": asked}, 31, got)


def r1_deleted(s: Story, bad: bool) -> None:
    """What is left of a transaction whose first record is deleted is open."""
    opened(s)
    write(s, 25, 1, sequence=1)
    delete_records(s, 30, 1, 1)
    read(s, 40, 41, [1] if bad else [], offset=1)


def r4_deleted(s: Story, bad: bool) -> None:
    """All of it is deleted, and it is open."""
    opened(s)
    delete_records(s, 30, 1, 1)
    s.produce(40, 41, 1)
    read(s, 50, 51, [1], offset=1, stable=2 if bad else 1, committed=False)


def r2_timed_out(s: Story, bad: bool) -> None:
    """It is open for longer than 30 s, and nobody asks for its end."""
    opened(s)
    read(s, 10, 58_010 if bad else 39_000, [0, 1], wait=58_000, aborted=[(7, 0)])


def r6_each(s: Story, bad: bool) -> None:
    """The second one has 30 s of its own."""
    opened(s)
    end(s, 100, True)
    add(s, 29_000)
    end(s, 40_000, True, 90 if bad else 0)


def r5(s: Story, bad: bool) -> None:
    opened(s)
    init(s, 100, -1, CONCURRENT)
    init(s, 105, 0 if bad else 1)


def r5_refused(s: Story, bad: bool) -> None:
    init(s, 100, -1 if bad else 0, 42 if bad else 0)


def r5_fenced(s: Story, bad: bool) -> None:
    init(s, 4, 0)
    init(s, 6, 1)
    add(s, 8, error=0 if bad else 90)


def r5_appends(s: Story, bad: bool) -> None:
    opened(s)
    init(s, 100, -1, CONCURRENT)
    init(s, 105, 2)
    write(s, 200, 2, 0 if bad else 47, sequence=1)


def r6(s: Story, bad: bool) -> None:
    opened(s)
    end(s, 300, True, 48 if bad else 0)


def r6_begins(s: Story, bad: bool) -> None:
    s.topic()
    init(s, 4, 0)
    add(s, 6, error=49 if bad else 0)


def r6_of_none(s: Story, bad: bool) -> None:
    init(s, 4, 0)
    end(s, 6, True, 0 if bad else 48)


def r6_otherwise(s: Story, bad: bool) -> None:
    opened(s)
    end(s, 300, True)
    end(s, 400, False, 0 if bad else 48)


def r6_stranger(s: Story, bad: bool) -> None:
    end(s, 4, True, 0 if bad else 49)


def r6_strange_producer(s: Story, bad: bool) -> None:
    init(s, 4, 0)
    add(s, 6, producer=9, error=0 if bad else 49)


def m1_in_transaction(s: Story, bad: bool) -> None:
    s.topic()
    init(s, 4, 0)
    add(s, 6)
    write(s, 20, 0, 48 if bad else 0)


def m1_begun_by_a_repeat(s: Story, bad: bool) -> None:
    """Its second transaction begins with what the first has already: then the next number may be refused (KIP-890)."""
    opened(s)
    write(s, 25, 1, sequence=1)
    ended(s, 300, True)
    add(s, 320)
    write(s, 330, 3 if bad else 1, sequence=2 if bad else 1)
    write(s, 340, -1, error=45, sequence=3 if bad else 2)


def m7_in_transaction(s: Story, bad: bool) -> None:
    """Sent again while it is open: it is where it is."""
    opened(s)
    write(s, 25, 1, sequence=1)
    write(s, 30, -1 if bad else 0, error=45 if bad else 0)


def m1_behind_a_marker(s: Story, bad: bool) -> None:
    """A marker has an offset."""
    opened(s)
    ended(s, 300, True)
    s.produce(400, 401, 1 if bad else 2)


def f3_open(s: Story, bad: bool) -> None:
    """Who reads what is not committed is woken by the append."""
    opened(s)
    read(s, 10, 1011 if bad else 25, [0], wait=1000, committed=False)


def x4_partitions(s: Story, bad: bool) -> None:
    body = {
        "v3_and_below_transactional_id": "x",
        "v3_and_below_topics": [{"name": "t", "partitions": [0, 1]}],
    }
    told = [{"partition_index": at, "partition_error_code": 49} for at in ((0,) if bad else (0, 1))]
    got = {"results_by_topic_v3_and_below": [{"name": "t", "results_by_partition": told}]}
    s.ask(4, "add_partitions_to_txn", body, 5, got, version=3)


def offsets(
    s: Story, t: float, at: int, *, stable: bool = False, error: int = 0, of_all: bool = False
) -> None:
    """How far the group has read, as who asks is told."""
    part = {"partition_index": 0, "committed_offset": at, "metadata": "", "error_code": error}
    topics = None if of_all else [{"name": "t", "partition_indexes": [0]}]
    body = {"group_id": "g", "topics": topics, "require_stable": stable}
    got = {"error_code": 0, "topics": [{"name": "t", "partitions": [part]}]}
    s.ask(t, "offset_fetch", body, t + 1, got, version=7)


def hold(
    s: Story, t: float, at: int, member: str = "", generation: int = -1, error: int = 0, name: str = "x",
    producer: int = 7,
) -> None:  # fmt: skip
    """An offset is committed with a transaction that is open."""
    part = {"partition_index": 0, "committed_offset": at, "committed_metadata": ""}
    body = {
        "transactional_id": name, "producer_id": producer, "producer_epoch": 0, "group_id": "g",
        "generation_id": generation, "member_id": member, "topics": [{"name": "t", "partitions": [part]}],
    }  # fmt: skip
    told = {"name": "t", "partitions": [{"partition_index": 0, "error_code": error}]}
    s.ask(t, "txn_offset_commit", body, t + 1, {"topics": [told]}, version=3)


def of_group(s: Story, name: str = "x", producer: int = 7) -> None:
    """A transaction is open for the offsets of a group, from 7 ms on."""
    init(s, 4, 0, name=name, producer=producer)
    body = {"transactional_id": name, "producer_id": producer, "producer_epoch": 0, "group_id": "g"}
    s.ask(6, "add_offsets_to_txn", body, 7, {"error_code": 0}, version=3)


def held(s: Story, at: int) -> None:
    """A transaction is open that commits an offset, from 11 ms on."""
    s.topic()
    of_group(s)
    hold(s, 10, at)


def r7(s: Story, bad: bool) -> None:
    held(s, 5)
    offsets(s, 20, 5 if bad else -1)


def r7_aborted(s: Story, bad: bool) -> None:
    held(s, 5)
    ended(s, 300, False)
    offsets(s, 400, 5 if bad else -1)


def r7_lost(s: Story, bad: bool) -> None:
    """Some let it take effect a little behind its end, but say so to who asks for what is stable."""
    held(s, 5)
    ended(s, 300, True)
    offsets(s, 310, -1)
    offsets(s, 320, -1, stable=True, error=88)
    offsets(s, 330, -1 if bad else 5, stable=True)


def r7_overtaken(s: Story, bad: bool) -> None:
    """What was committed behind it stands, whenever it ends."""
    held(s, 5)
    s.commit(50, "", -1, at=9)
    ended(s, 300, True)
    offsets(s, 3000, 5 if bad else 9)


def r7_of_two(s: Story, bad: bool) -> None:
    """So does what another transaction has written behind it."""
    held(s, 5)
    of_group(s, "y", 8)
    hold(s, 50, 9, name="y", producer=8)
    end(s, 100, True, name="y", producer=8)
    add(s, 105, name="y", producer=8)
    ended(s, 300, True)
    offsets(s, 3000, 5 if bad else 9)


def r7_with_the_next(s: Story, bad: bool) -> None:
    """What was aborted is not committed with the next."""
    held(s, 5)
    ended(s, 300, False)
    ended(s, 400, True)
    offsets(s, 3000, 5 if bad else -1)


def r7_of_a_member(s: Story, bad: bool) -> None:
    s.pair()
    of_group(s)
    hold(s, 2100, 5, "b", 1, error=22 if bad else 0)


def r7_in_a_rebalance(s: Story, bad: bool) -> None:
    """Nobody asks what the group does."""
    s.pair()
    of_group(s)
    newcomer(s, 2100, 2410)
    s.beat(2150, "a", 1, 27)
    hold(s, 2200, 5, "b", 1, error=27 if bad else 0)
    for one in "ab":
        s.join(2300, 2410, one, 2, leader="a", told="abn" if one == "a" else "")


def g9_with_a_transaction(s: Story, bad: bool) -> None:
    s.pair()
    of_group(s)
    hold(s, 2100, 5, "b", 2, error=0 if bad else 22)


def g9_stranger_with_a_transaction(s: Story, bad: bool) -> None:
    s.pair()
    of_group(s)
    hold(s, 2100, 5, "z", 1, error=0 if bad else 25)


def r7_late(s: Story, bad: bool) -> None:
    held(s, 5)
    ended(s, 300, True)
    offsets(s, 3000, -1 if bad else 5)


def r7_unstable(s: Story, bad: bool) -> None:
    held(s, 5)
    offsets(s, 20, -1, stable=True, error=0 if bad else 88)


def r7_unstable_of_all(s: Story, bad: bool) -> None:
    """Who asks for all is told so too."""
    s.commit(2, "", -1, at=1)
    held(s, 5)
    offsets(s, 20, 1 if bad else -1, stable=True, error=0 if bad else 88, of_all=True)


def r7_stable(s: Story, bad: bool) -> None:
    held(s, 5)
    ended(s, 300, False)
    offsets(s, 3000, -1, stable=True, error=88 if bad else 0)
