"""Of share groups: see the package. Members a and b share the topic t, whose id is told as u; the record 0 has come and
is accepted by 9 ms. What is appended later has the offsets behind it, in batches of `SIZE` bytes a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wire.story import SIZE, Story

LOCK_MS = 5000
ACCEPT, RELEASE, REJECT = 1, 2, 3
Runs = Sequence[tuple[int, int, int]]
"""First and last offset, and the delivery count or the type of acknowledgement."""


def named(parts: Mapping[int, Runs]) -> list[dict[str, object]]:
    """The partitions of a request, with what it says of their records."""
    return [
        {"topic_id": "u", "partitions": [
            {"partition_index": number, "acknowledgement_batches": [
                {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]} for first, last, kind in runs
            ]}
            for number, runs in parts.items()
        ]}
    ]  # fmt: skip


def take(
    s: Story, t: float, answer: float | None, member: str, epoch: int, came: Runs = (), *, wait: int = 0,
    said: Runs | None = None, error: int = 0, told: int = 0, part_error: int = 0,
    batches: Sequence[tuple[int, int]] | None = None, conn: str = "", lock: int = LOCK_MS, least: int = 1,
) -> int:  # fmt: skip
    """A share fetch of partition 0, and the ranges that came. `told`: the error of what it says. `batches`: those that
    came, if others than were acquired."""
    parts: Mapping[int, Runs] = {0: said or ()} if epoch == 0 or said is not None else {}
    body = {
        "group_id": "s", "member_id": member, "share_session_epoch": epoch, "max_wait_ms": wait, "min_bytes": least,
        "topics": named(parts), "forgotten_topics_data": [],
    }  # fmt: skip
    held = [(first, last) for first, last, _ in came] if batches is None else batches
    part = {
        "partition_index": 0, "error_code": part_error, "acknowledge_error_code": told,
        "acquired_records": [
            {"first_offset": first, "last_offset": last, "delivery_count": count} for first, last, count in came
        ],
        "records": [
            {"base": base, "last": last, "count": last - base + 1, "bytes": SIZE * (last - base + 1)}
            for base, last in held
        ],
    }  # fmt: skip
    responses = [{"topic_id": "u", "partitions": [part]}] if came or told or part_error else []
    got = {"error_code": error, "acquisition_lock_timeout_ms": lock, "responses": responses}
    return s.ask(t, "share_fetch", body, answer, got, conn=conn or member, version=1)


def say(
    s: Story, t: float, member: str, epoch: int, said: Runs, *, error: int = 0, told: int = 0, takes: float | None = 1,
    conn: str = "",
) -> int:  # fmt: skip
    """A share acknowledgement, and the errors of the whole and of what it says."""
    body = {"group_id": "s", "member_id": member, "share_session_epoch": epoch, "topics": named({0: said})}
    part = {"partition_index": 0, "error_code": told}
    got = {"error_code": error, "responses": [{"topic_id": "u", "partitions": [part]}] if said else []}
    answer = None if takes is None else t + takes
    return s.ask(t, "share_acknowledge", body, answer, got, conn=conn or member, version=1)


def made(s: Story) -> None:
    """The topic."""
    asked = {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": []}]}
    told = {"topics": [{"name": "t", "topic_id": "u", "error_code": 0}]}
    s.ask(0, "create_topics", asked, 1, told)


def shared(s: Story) -> None:
    """See the module."""
    made(s)
    take(s, 2, 3, "a", 0)
    take(s, 2, 3, "b", 0)
    s.produce(4, 5, 0)
    take(s, 6, 7, "a", 1, [(0, 0, 1)])
    say(s, 8, "a", 2, [(0, 0, ACCEPT)])


def append(s: Story, t: float, base: int, count: int = 1) -> None:
    """Records, acknowledged a millisecond later."""
    batch = {"base": 0, "last": count - 1, "count": count, "bytes": SIZE * count}
    data = [{"name": "t", "partition_data": [{"index": 0, "records": [batch]}]}]
    said = {"index": 0, "error_code": 0, "base_offset": base}
    got = {"responses": [{"name": "t", "partition_responses": [said]}]}
    s.ask(t, "produce", {"acks": -1, "timeout_ms": 1000, "topic_data": data}, t + 1, got)


def held(s: Story, count: int = 1) -> None:
    """So many records, from 1 on, are a's from 12 ms on."""
    shared(s)
    append(s, 10, 1, count)
    take(s, 11.5, 12, "a", 3, [(1, count, 1)])


def s1(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 400 if bad else 1021, "a", 3, wait=1000)


def s1_late(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 2300 if bad else 1021, "a", 3, wait=1000)


def s1_of_another(s: Story, bad: bool) -> None:
    """What another has is nothing."""
    held(s)
    take(s, 20, 300 if bad else 1021, "b", 1, wait=1000)


def s2(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 3021 if bad else 102, "a", 3, [(1, 1, 1)], wait=3000)
    append(s, 100, 1)


def s2_ready(s: Story, bad: bool) -> None:
    shared(s)
    append(s, 20, 1)
    take(s, 30, 3031 if bad else 31, "b", 1, [(1, 1, 1)], wait=3000)


def s2_empty(s: Story, bad: bool) -> None:
    shared(s)
    append(s, 20, 1)
    take(s, 30, 31, "b", 1, [] if bad else [(1, 1, 1)])


def s2_no_wait(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 1500 if bad else 21, "b", 1)


def s2_not_given(s: Story, bad: bool) -> None:
    """At max_wait at the latest."""
    shared(s)
    take(s, 20, 1021 if bad else 102, "a", 3, [] if bad else [(1, 1, 1)], wait=1000)
    append(s, 100, 1)


def s3(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 21, "b", 1, [(1, 1, 2)] if bad else [])


def s3_at_once(s: Story, bad: bool) -> None:
    """Two that ask at one time."""
    shared(s)
    append(s, 20, 1, 2)
    take(s, 22, 24, "a", 3, [(1, 1, 1)])
    take(s, 22, 24, "b", 1, [(1 if bad else 2, 2, 1)])
    take(s, 30, 31, "b", 2)


def s3_count(s: Story, bad: bool) -> None:
    shared(s)
    append(s, 20, 1)
    take(s, 22, 23, "a", 3, [(1, 1, 2 if bad else 1)])


def s3_count_grows(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)])
    take(s, 30, 31, "b", 1, [(1, 1, 1 if bad else 2)])


def s3_records(s: Story, bad: bool) -> None:
    shared(s)
    append(s, 20, 1, 2)
    take(s, 22, 23, "a", 3, [(1, 2, 1)], batches=[(1, 1)] if bad else [(1, 2)])


def s4(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, ACCEPT)])
    take(s, 30, 31, "b", 1, [(1, 1, 2)] if bad else [])


def s4_rejected(s: Story, bad: bool) -> None:
    held(s, 3)
    take(s, 20, 21, "a", 4, said=[(2, 2, REJECT)])
    take(s, 30, 31, "b", 1, [(2, 2, 2)] if bad else [])


def s5(s: Story, bad: bool) -> None:
    """It need not wake who waits."""
    held(s)
    take(s, 20, 1021, "b", 1, [] if bad else [(1, 1, 2)], wait=1000)
    say(s, 100, "a", 4, [(1, 1, RELEASE)])


def s5_given_later(s: Story, bad: bool) -> None:
    """Whoever has it afterwards."""
    held(s)
    take(s, 20, 1021, "b", 1, [] if bad else [(1, 1, 2)], wait=1000)
    say(s, 100, "a", 4, [(1, 1, RELEASE)])
    take(s, 1100, 1101, "b", 2, [(1, 1, 2)] if bad else [])


def s5_part(s: Story, bad: bool) -> None:
    held(s, 5)
    take(s, 20, 1021, "b", 1, [] if bad else [(2, 3, 2)], wait=1000, batches=[(1, 5)])
    say(s, 100, "a", 4, [(2, 3, RELEASE)])


def s5_with_a_fetch(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 1021, "b", 1, [] if bad else [(1, 1, 2)], wait=1000)
    take(s, 100, 101, "a", 4, said=[(1, 1, RELEASE)])


def s5_at_once(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)])
    take(s, 30, 3031 if bad else 31, "b", 1, [(1, 1, 2)], wait=3000)


def s5_empty(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)])
    take(s, 30, 31, "b", 1, [] if bad else [(1, 1, 2)])


def s6(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, ACCEPT)], told=121 if bad else 0)


def s6_of_another(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "b", 1, [(1, 1, ACCEPT)], told=0 if bad else 121)


def s6_with_a_fetch(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 21, "b", 1, said=[(1, 1, ACCEPT)], told=0 if bad else 121)


def s6_released(s: Story, bad: bool) -> None:
    held(s)
    say(s, 20, "a", 4, [(1, 1, RELEASE)])
    say(s, 30, "a", 5, [(1, 1, ACCEPT)], told=0 if bad else 121)


def s7(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 9021 if bad else 5014, "b", 1, [(1, 1, 2)], wait=9000)


def s7_early(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 4014 if bad else 5014, "b", 1, [(1, 1, 2)], wait=9000)


def s8(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 2021, "b", 1, [] if bad else [(1, 1, 2)], wait=2000)
    say(s, 100, "a", -1, [])


def s8_cut(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 2021, "b", 1, [] if bad else [(1, 1, 1)], wait=2000)
    s.close(100, "a")


def s8_by_a_fetch(s: Story, bad: bool) -> None:
    held(s)
    take(s, 20, 2021, "b", 1, [] if bad else [(1, 1, 2)], wait=2000)
    take(s, 100, 101, "a", -1)


def s9(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 21, "c", 3, error=0 if bad else 122)


def s9_epoch(s: Story, bad: bool) -> None:
    shared(s)
    say(s, 20, "a", 7, [], error=0 if bad else 123)


def s9_ended(s: Story, bad: bool) -> None:
    shared(s)
    say(s, 20, "a", -1, [])
    say(s, 30, "a", 4, [], error=123)  # it may still be there
    say(s, 200, "a", 4, [], error=0 if bad else 122)


def s9_refused(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 21, "a", 3, error=123 if bad else 0)


def s9_waits(s: Story, bad: bool) -> None:
    shared(s)
    take(s, 20, 3021 if bad else 21, "a", 9, error=123, wait=3000)
