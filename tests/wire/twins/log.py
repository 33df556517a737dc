"""Of what is in a log: lists of offsets, deleted records: see the package."""

from __future__ import annotations

from wire.story import Story
from wire.twins.told import delete_records, stopped


def d1_all(s: Story, bad: bool) -> None:
    s.topic()
    for at in (5, 7):
        s.produce(at, at + 1, at // 6)
    for at, offset, low in ((20, 1, 1), (30, -1, 1 if bad else 2)):
        part = {"partition_index": 0, "offset": offset}
        said = {"partition_index": 0, "error_code": 0, "low_watermark": low}
        s.ask(at, "delete_records", {"topics": [{"name": "t", "partitions": [part]}]}, at + 1,
              {"topics": [{"name": "t", "partitions": [said]}]})  # fmt: skip


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


def d1_no_time(s: Story, bad: bool) -> None:
    """Who has no time to wait is told so at once."""
    stopped(s, 100, 9000)
    part, said = (
        {"partition_index": 0, "offset": 1},
        {"partition_index": 0, "error_code": 7, "low_watermark": -1},
    )
    asked = {"topics": [{"name": "t", "partitions": [part]}], "timeout_ms": 0}
    told = {"topics": [{"name": "t", "partitions": [said]}]}
    for at in (200, 4000):
        s.ask(at, "delete_records", asked, at + (3000 if bad else 1), told)


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
