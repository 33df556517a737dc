"""Of appends: see the package."""

from __future__ import annotations

from purgatorio_wire.trace.record import SEQUENCES
from wire_story import SIZE, Story
from wire_twins.told import delete_records, stopped, written


def m7(s: Story, bad: bool) -> None:
    s.topic()
    for at in range(2):
        written(s, 10 + 10 * at, at, at)
    written(s, 50, 0, 2 if bad else 0)


def m7_in_order(s: Story, bad: bool) -> None:
    s.topic()
    written(s, 10, 0, 0)
    written(s, 20, 2, 1 if bad else -1, 0 if bad else 45)


def m7_longer(s: Story, bad: bool) -> None:
    """What begins as another did and has more records is not that one."""
    s.topic()
    written(s, 10, 0, 0)
    written(s, 20, 0, 0 if bad else -1, 0 if bad else 45, count=2)


def m7_behind_the_last(s: Story, bad: bool) -> None:
    s.topic()
    written(s, 10, SEQUENCES - 1, 0, count=2)
    written(s, 20, 1, 2)
    written(s, 30, SEQUENCES - 1, -1 if bad else 0, 45 if bad else 0, count=2)


def m1_behind_the_last(s: Story, bad: bool) -> None:
    """The numbers begin anew."""
    s.topic()
    written(s, 10, SEQUENCES - 2, 0, count=2)
    written(s, 20, 0, -1 if bad else 2, 45 if bad else 0)


def m1_sent_again(s: Story, bad: bool) -> None:
    """What was sent again is not there again, nor is it what another producer sends with that number."""
    s.topic()
    for at in (10, 20):
        written(s, at, 0, 0)
    written(s, 30, 0, 2 if bad else 1, producer=8)


def m5_no_time(s: Story, bad: bool) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.metadata(4, in_sync=2)
    s.event(5, "stimulus", body={"what": "stopped"})
    for at in (10, 3000):
        s.produce(at, at + (1500 if bad else 1), 0, acks=-1, error=7, timeout=0)
    s.event(8000, "stimulus", body={"what": "continues"})
    s.metadata(8001, in_sync=2)


def m1_left(s: Story, bad: bool) -> None:
    """Beside a partition that takes its batch, another refuses one that came to harm: nobody is waited for."""
    s.topic()
    harmed = {"base": 0, "last": 0, "count": 1, "bytes": SIZE, "corrupt": True}
    for at in (10, 12_000):
        parts = [{"index": 0, "records": [{**harmed, "corrupt": False}]}, {"index": 1, "records": [harmed]}]
        told = [{"index": 0, "error_code": 0, "base_offset": at // 12_000}, {"index": 1, "error_code": 2}]
        body = {"acks": -1, "timeout_ms": 10_000, "topic_data": [{"name": "t", "partition_data": parts}]}
        said = {"responses": [{"name": "t", "partition_responses": told}]}
        s.ask(at, "produce", body, at + (10_001 if bad else 1), said)


def m1(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.produce(20, 21, 0 if bad else 1)


def m1_log_start(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, start=0)
    delete_records(s, 20, 1, 1)
    s.produce(30, 31, 1, start=0 if bad else 1)


def m1_refused(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, error=2 if bad else 0)


def m1_corrupt(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0 if bad else -1, error=0 if bad else 2, corrupt=True)
    s.produce(20, 21, 1 if bad else 0)


def m1_fetched_corrupt(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 21, [("t", 0, 0, [0])], corrupt=bad)


def m1_left_out(s: Story, bad: bool) -> None:
    s.topic()
    for base in range(3):
        s.produce(10 + base, 10.5 + base, base)
    s.fetch(20, 21, [("t", 0, 0, [0, 2] if bad else [0, 1, 2])], wait=0)


def m1_inside(s: Story, bad: bool) -> None:
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


def m1_not_fetched(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0)
    s.fetch(20, 21, [("t", 0, 0, 1 if bad else [0])])


def m2(s: Story, bad: bool) -> None:
    s.produce(10, 11 if bad else None, 0, acks=0, conn="c")
    s.ask(20, "api_versions", {}, 21, {}, conn="c")


def m2_closed(s: Story, bad: bool) -> None:
    s.produce(10, None, 0, acks=0, conn="c")
    s.ask(20, "api_versions", {}, None if bad else 21, {}, conn="c")
    s.close(30, "c", "peer")


def m2_refused(s: Story, bad: bool) -> None:
    s.produce(10, 11 if bad else None, 0, number=99, acks=0, conn="c")
    s.close(30, "c", "peer")


def m2_untold(s: Story, bad: bool) -> None:
    s.topic()
    for at in (10, 2000):
        conn = f"c{at}"
        s.produce(at, None, 0, number=99, acks=0, conn=conn)
        s.close(at + (1900 if bad else 5), conn, "us" if bad else "peer")


def m1_corrupt_times_out(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 1511, -1, error=7 if bad else 2, corrupt=True, acks=-1, timeout=1500)


def m2_lost(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(5, 6, 0, conn="c")
    s.produce(10, None, 1, acks=0, conn="c")
    s.produce(20, 21, 1 if bad else 2, conn="c")


def m3(s: Story, bad: bool) -> None:
    s.topic()
    s.produce(10, 11, 0, acks=2, error=0 if bad else 21)


def m4(s: Story, bad: bool) -> None:
    s.topic(replicas=2, min_insync_replicas="2")
    s.produce(4, 5, 0)
    for at in (8, 5000):
        s.metadata(at, in_sync=1)
    s.produce(10, 12, 1, acks=-1, error=0 if bad else 19)


def m4_given_up(s: Story, bad: bool) -> None:
    """An append waits for a replica that is stopped, and the cluster gives that up."""
    s.topic(replicas=2, min_insync_replicas="2")
    s.produce(4, 5, 0)
    for at, what in ((9, "stops"), (10, "stopped"), (5000, "continues"), (5001, "continued")):
        s.event(at, "stimulus", body={"what": what})
    s.metadata(6, in_sync=2)
    s.produce(20, 2000, 1, acks=-1, timeout=60_000, error=0 if bad else 20)
    s.metadata(2100, in_sync=1)


def m4_back(s: Story, bad: bool) -> None:
    """A replica that was given up goes on."""
    s.topic(replicas=2)
    for t, what in ((9, "stops"), (10, "stopped"), (9000, "continues"), (9001, "continued")):
        s.event(t, "stimulus", body={"what": what})
    for t in (8000, 9010, 49_200):
        s.metadata(t, in_sync=2 if not bad and t > 9010 else 1)


def m5(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    for at in (200, 2000):
        s.produce(at, at + (400 if bad else 1005), 1, acks=-1, error=7)


def m1_all_healthy(s: Story, bad: bool) -> None:
    """Two replicas, and none is stopped."""
    s.topic(replicas=2)
    for at in (100, 3000):
        s.produce(at, at + (1002 if bad else 5), 1, acks=-1, error=7 if bad else 0)


def m5_late(s: Story, bad: bool) -> None:
    stopped(s, 100, 9000)
    for at in (200, 4000):
        s.produce(at, at + (3000 if bad else 1005), 1, acks=-1, error=7)


def m6(s: Story, bad: bool) -> None:
    stopped(s, 100, 5000)
    for at in (3000, 3001):
        s.produce(at, 8000 if bad else 5020, 1, acks=-1, timeout=20_000)


def m6_sent_again(s: Story, bad: bool) -> None:
    """What is sent again while the replica has none of it waits as well."""
    stopped(s, 100, 5000)
    written(s, 3000, 0, 1, until=5020)
    written(s, 3100, 0, 1, until=3101 if bad else 5020)


def m6_given_up(s: Story, bad: bool) -> None:
    """Where one replica is enough, an append is done when the one that is stopped is given up."""
    s.topic(replicas=2, min_insync_replicas="1")
    s.produce(4, 5, 0, acks=-1)
    for at, what in ((9, "stops"), (10, "stopped"), (30_000, "continues"), (30_001, "continued")):
        s.event(at, "stimulus", body={"what": what})
    for at, count in ((6, 2), (2000, 1), (20_000, 1)):
        s.metadata(at, in_sync=count)
    for at in (20, 30):
        s.produce(at, 16_000 if bad else 2030, 1, acks=-1, timeout=28_000)


def m1_refused_before(s: Story, bad: bool) -> None:
    """What an idempotent producer sent with other acks was refused, and is not known."""
    s.topic()
    batch = {"base": 0, "last": 0, "count": 1, "bytes": SIZE, "producer_id": 7, "producer_epoch": 0}
    data = [{"name": "t", "partition_data": [{"index": 0, "records": [{**batch, "base_sequence": 0}]}]}]
    said = {"responses": [{"name": "t", "partition_responses": [{"index": 0, "error_code": 21}]}]}
    s.ask(10, "produce", {"acks": 2, "timeout_ms": 1000, "topic_data": data}, 11, said)
    written(s, 20, 0, -1 if bad else 0, 46 if bad else 0)


def t1(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 400 if bad else 511, [("t", 0, 0, [])])


def t1_append(s: Story, bad: bool) -> None:
    s.topic(replicas=2)
    s.produce(10, 400 if bad else 1011, -1, acks=-1, error=7)


def t2(s: Story, bad: bool) -> None:
    s.topic()
    s.fetch(10, 2900 if bad else 1090, [("t", 0, 0, [])], wait=1000)
