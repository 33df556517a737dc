"""Scenes of fetches and produces, for the clauses F1 to F8 and M1 to M3.

A scene only sends requests. The clauses judge the recorded responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from purgatorio_wire.client.connection import Connection, NoAnswer
from purgatorio_wire.client.record_batch import INVALID, batch_bytes
from purgatorio_wire.history.history import integer, items, text
from purgatorio_wire.history.log import BY_ID
from purgatorio_wire.scene.asker import codes, first_append, settle
from purgatorio_wire.scene.broker import SceneLost, must
from purgatorio_wire.scene.data_asker import FIRST_SESSIONS, UNMADE, FetchSession
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import scene
from purgatorio_wire.trace.record import SEQUENCES, Written

WAKE_MS: Final = 3000
RACES: Final = 60
RACERS: Final = 6
PACKED_SHARE: Final = 0.25
"""The share of compressed appends among the appends that race with a fetch."""
WAITERS: Final = 20
PURGED_MS: Final = 8000
DIVERGES: Final = 12
"""The first version of Fetch with the epoch of the last record."""
PASSED: Final = 1200
"""More than 1000, the default of fetch.purgatory.purge.interval.requests."""
PASSING: Final = 40
REAPED_MS: Final = 300
"""Kafka's reaper checks every 200 ms."""
DELETED_MS: Final = 20_000
"""Much longer than a deletion takes: a forgotten fetch is certainly late, even on a busy machine."""
WARM_ROUNDS: Final = 30
CLOSED_LOOKS: Final = 24
ROLLS: Final = 5
SEGMENT_BYTES: Final = 1 << 20
"""The smallest segment that Kafka 4 allows (KIP-1030): two appends of three fifths do not fit into one."""
ID_TRIES: Final = 50
BATCHES: Final = 60
KNOWN: Final = 6
"""One more than the number of batches that a broker knows of a producer."""
TURNS: Final = 4
MOST_LOST: Final = 3
"""After this number of missed wake-ups, the race needs no more rounds."""
UNANSWERED: Final = "an append or a fetch was not answered"


async def warm_up(play: Play) -> None:
    """This scene is not judged. The first request of each kind is slow, because a JVM loads classes."""
    topic = await play.topic()
    writer, reader = await play.open("writer"), await play.open("reader")
    for offset in range(WARM_ROUNDS):
        fetch = play.fetch(reader, [(topic, 0, offset)], max_wait_ms=500)
        await play.ask_all(play.produce(writer, topic, acks=(1, -1)[offset % 2]), fetch)
    await play.ask_all(play.fetch(reader, [(topic, 0, WARM_ROUNDS)], max_wait_ms=50))
    for wrong, epoch in ((topic, -1), (topic, 1000), (play.unique("unmade"), -1)):
        await play.ask_all(play.fetch(reader, [(wrong, 0, WARM_ROUNDS + 9)], max_wait_ms=50, epoch=epoch))
    await play.delete(topic)


@scene("fetch", "F3 not-woken")
async def woken_fetch(play: Play) -> None:
    """Appends race with a fetch, in many rounds: each append is sent shortly before or after the fetch. Some appends
    are compressed."""
    topics = [await play.topic() for _ in range(RACERS)]
    wait = play.wait_ms(WAKE_MS)
    longest = (1 << 31) - 1

    async def race(topic: str) -> bool:
        reader, writer = await play.open("reader"), await play.open("writer")
        epochs = (-1, await play.epoch(topic))
        lost = 0
        for offset in range(RACES):
            delay = play.rng.choice((0.0, 0.0, 0.3, 1.0, 3.0, 10.0))
            fetch = play.fetch(
                reader, [(topic, 0, offset)], max_wait_ms=play.rng.choice((wait, wait, longest)),
                epoch=play.rng.choice(epochs), last_epoch=play.rng.choice(epochs),
            )  # fmt: skip
            if delay:
                await play.pause(delay)
            acks = play.rng.choice((1, 1, 1, -1, -1, 0))
            append = play.produce(writer, topic, acks=acks, packs=play.rng.random() < PACKED_SHARE)
            # With acks=0, the next response shows that the broker has handled the append.
            told = append if acks else play.question(writer)
            if not await settle(told, fetch, seconds=wait / 1000 + 6):
                return False
            got = fetch.answer.result()
            lost += got.t - fetch.t > wait * 900_000
            if lost >= MOST_LOST:
                break
        return True

    must(all(await asyncio.gather(*(race(topic) for topic in topics))), UNANSWERED)


@scene("fetch", "F3 not-woken", alone=True)
async def woken_many(play: Play) -> None:
    """One append, with any acks, answers all fetches that wait on the partition, beginning with the oldest. The Produce
    may also name partitions that do not exist. No other request is sent meanwhile."""
    topic = await play.topic(partitions=2)
    writer = await play.open("writer")
    readers = await play.open_many(WAITERS, "reader")
    wait = play.wait_ms(WAKE_MS)
    ends, nobody = [0, 0], play.unique("unmade")
    # Other partitions in the same Produce must not prevent the wake-up of fetches that wait on one partition alone.
    rounds: tuple[tuple[int, tuple[int, ...]], ...] = (
        (1, (0,)), (0, (1,)), (1, (0, UNMADE)), (-1, (UNMADE, 1)), (0, (0, 1)), (-1, (1, 0)),
    )  # fmt: skip
    for acks, appended in rounds:
        woken = next(one for one in reversed(appended) if one != UNMADE)
        parts = [(topic, 1 - woken, ends[1 - woken]), (topic, woken, ends[woken])]
        # Nor must unknown partitions in the same Produce, of this topic or of an unknown topic.
        absent = [(topic, UNMADE, 0), *parts[1:]], [(nobody, 0, 0), *parts[::-1]]
        ways = (parts, parts[1:], parts[::-1], *absent, *(one[::-1] for one in absent))
        # Every fourth fetch needs more bytes than the append has: later fetches are answered all the same.
        sent = [
            play.fetch(
                conn,
                ways[at % len(ways)],
                max_wait_ms=wait // 2 if at % 4 == 0 else wait,
                min_bytes=100_000 if at % 4 == 0 else 1,
            )
            for at, conn in enumerate(readers)
        ]
        await play.pause(80)
        for one in {*appended} - {UNMADE}:
            ends[one] += 1
        append = play.produce(writer, *((topic, one) for one in appended), acks=acks)
        told = append if acks else play.question(writer)
        must(await settle(told, *sent), UNANSWERED)


@scene("fetch", "F3 not-woken", alone=True)
async def purged(play: Play) -> None:
    """More fetches reach their max_wait_ms than the purge interval of a purgatory, so the purgatory purges completed
    fetches. Other fetches wait meanwhile, some older and some newer. An append answers all of these."""
    topic = await play.topic(partitions=2)
    writer, late = await play.open("writer"), await play.open("late")
    passing = await play.open_many(min(PASSING, play.broker.most_connections // 4), "passing")
    waiting = await play.open_many(4, "waiting")
    wait, both = play.wait_ms(PURGED_MS), [(topic, 0, 0), (topic, 1, 0)]
    ends_t = (
        play.recorder.now() + wait * 500_000
    )  # the waiting fetches must still wait, even if the broker is slow
    sent = [play.fetch(conn, both[at % 2 :], max_wait_ms=wait) for at, conn in enumerate(waiting)]

    async def pass_by(conn: Connection) -> None:
        for at in range(PASSED // len(passing)):
            if play.recorder.now() < ends_t:
                await play.fetch(conn, both, max_wait_ms=1 + at % 3)

    await asyncio.gather(*map(pass_by, passing))
    sent.append(play.fetch(late, both[1:], max_wait_ms=wait))
    await play.pause(REAPED_MS)
    await settle(play.produce(writer, (topic, 1)), *sent)


@scene("fetch", "F3 not-woken")
async def rolled(play: Play) -> None:
    """Each append begins a new segment of the log. It answers the fetches that wait at the end of the previous one."""
    topic = await play.topic(configs={"segment.bytes": str(SEGMENT_BYTES)})
    reader, writer = await play.open("reader"), await play.open("writer")
    wait = play.wait_ms(WAKE_MS)
    for offset in range(ROLLS):
        fetch = play.fetch(reader, [(topic, 0, offset)], max_wait_ms=wait)
        await play.pause(50)
        append = play.produce(writer, topic, acks=(1, -1)[offset % 2], size=SEGMENT_BYTES * 3 // 5)
        must(await settle(append, fetch), UNANSWERED)


@scene("fetch", "F6 out-of-range-waits, F6 unknown-topic-waits, X4 unknown-partition-other-error", seconds=60)
async def wrong_fetch(play: Play) -> None:
    """Partitions with an error are answered at once, even if the Fetch names other partitions without records."""
    topic = await play.topic(partitions=2)
    writer, reader = await play.open("writer"), await play.open("reader")
    await play.ask_all(play.produce(writer, topic))
    wait = play.wait_ms(WAKE_MS)
    nobody = play.unique("unmade")
    epoch = await play.epoch(topic)
    for offset in (0, 1000):
        fetch = play.fetch(reader, [(topic, 0, offset), (topic, 1, 0)], max_wait_ms=wait, last_epoch=epoch)
        await settle(fetch)
    # The partition with the error is the last, and then the first, of the request.
    for beyond, way in ((1000, 1), (-7, -1)):
        await settle(play.fetch(reader, [(topic, 0, beyond)], max_wait_ms=wait))
        await settle(
            play.fetch(reader, [(topic, 1, 0), (topic, 0, 2)][::way], max_wait_ms=wait, min_bytes=5000)
        )
        await settle(play.fetch(reader, [(nobody, 0, 0)], max_wait_ms=wait))
        beside = [(topic, UNMADE, 0), (topic, 0, 0), (nobody, 0, 0)]
        await settle(play.fetch(reader, beside, max_wait_ms=wait))
        if epoch >= 0 and play.offers("fetch", least=9):
            far = play.fetch(reader, [(topic, 0, 0)], max_wait_ms=wait, min_bytes=5000, epoch=epoch + 1000)
            await settle(far)


@scene(
    "fetch",
    "F3 not-woken, F6 session-accepted, F1, F5, F7 partition-starved, F7 too-much, F10 log-start-offset, X4",
)
async def fetch_sessions(play: Play) -> None:
    """Fetch sessions, with topic names and with topic ids. Partitions that a fetch does not name stay in the session. A
    fetch waits for records of all partitions of the session, also of added partitions and of partitions with a new
    offset, but not of removed partitions. Only the next epoch is accepted. The response reports a missing offset, a
    partition that is requested again, and deleted records. A session that was closed or replaced no longer exists. If a
    response has room for only one batch, the partitions take turns. The limit of a partition is the limit in its last
    request."""
    play.need("fetch", "produce", least=FIRST_SESSIONS)
    for version in (play.broker.version("fetch"), play.broker.version("fetch", by_id=True)):
        if version is not None:
            await _fetch_session(play, version)


async def _fetch_session(play: Play, version: int) -> None:
    topic, other = await play.topic(partitions=2), await play.topic()
    writer, reader = await play.open("writer"), await play.open("reader")
    one, wait = FetchSession(version), play.wait_ms(WAKE_MS)
    if version >= BY_ID["fetch"] and not {topic, other} <= {*play.broker.ids}:
        return

    async def ask(
        parts: Sequence[tuple[str, int, int]], *appended: tuple[str, int], wait_ms: int = wait, least: int = 1,
        last: int = -1,
    ) -> None:  # fmt: skip
        """The next fetch of the session, while something is appended. `last`: the epoch of the last record."""
        fetch = play.fetch(reader, parts, max_wait_ms=wait_ms, min_bytes=least, last_epoch=last, session=one)
        for part in appended:
            await play.pause(60)
            await play.ask_all(play.produce(writer, part, size=100))
        one.took(await fetch)

    await ask([(topic, 0, 0), (topic, 1, 0)], wait_ms=0)
    if not one.id:
        play.cannot("the broker offers no fetch sessions", "F1", "F3", "F5", "F6", "F7", "F10", "X4")
        return
    await ask([], (topic, 1))
    await ask([(topic, 1, 1)], (topic, 0))
    await ask([(topic, 0, 1), (other, 0, 0)], (other, 0))
    await ask([(other, 0, 1)], wait_ms=wait // 5)
    await ask([], (topic, 0), (other, 0), least=2 * batch_bytes(100))
    one.forgets = [(topic, 0)]
    await ask([(other, 0, 2)], wait_ms=wait // 5)
    await ask([(topic, 0, 2)], wait_ms=0)
    one.forgets = [(topic, 1), (topic, 0)]
    await ask([], (topic, 0), wait_ms=wait // 5)
    await ask([(topic, 1, 1)], (topic, 1))
    number, epoch = one.id, one.epoch
    for one.id, one.epoch in ((number, epoch + 100), (number, epoch - 1), (number ^ 1 << 30, epoch)):
        await ask([])
    one.id, one.epoch = number, epoch
    if (last := await play.epoch(topic)) >= 0 and version >= DIVERGES:
        await ask([(topic, 1, 1000)], last=last)
    # The response reports it each time, not only the first time, and that it has ended.
    await ask([(topic, 1, 1000)])
    await ask([])
    await ask([(topic, 1, 2)], (other, 0))
    if play.offers("delete_records", "F10"):
        await play.ask_all(play.delete_records(writer, [(topic, 1, 1)]))
        await ask([(other, 0, 3)], (other, 0), wait_ms=wait // 5, least=100_000)
    epoch, one.epoch = one.epoch, -1
    await ask([], wait_ms=0)
    one.epoch = epoch
    await ask([(other, 0, 0)])
    one.id = one.epoch = 0
    ends = {(topic, 0): 0, (other, 0): 0}
    await ask([(*part, end) for part, end in ends.items()], wait_ms=0)
    former, one.epoch = one.id, 0
    await ask([(*part, end) for part, end in ends.items()], wait_ms=0)
    newest, one.id = one.id, former
    await ask([])
    one.id = newest
    names = {number: name for name, number in play.broker.ids.items()}
    one_batch = batch_bytes(100)
    for turn in range(TURNS + 1):
        most, room = (one_batch, 1 << 20) if turn < TURNS else (None, one_batch)
        asked = [(*part, end if turn < TURNS else 0) for part, end in ends.items()]
        fetch = play.fetch(reader, asked, max_wait_ms=wait, session=one, most=most, room=room)
        got = await fetch
        one.took(got)
        for said in items(got.body, "responses"):
            name = text(said, "topic") or names.get(text(said, "topic_id"), "")
            came = [batch for part in items(said, "partitions") for batch in items(part, "records")]
            ends[name, 0] = max(
                (integer(batch, "last") + 1 for batch in came), default=ends.get((name, 0), 0)
            )


@scene("fetch", "F8 waits-for-deleted")
async def deleted_topic(play: Play) -> None:
    """A topic is deleted while fetches wait for it. The fetches name this topic only, or another topic too, or are in a
    session."""
    play.need("delete_topics", "create_topics")
    wait = play.wait_ms(DELETED_MS)
    readers = await play.open_many(4, "reader")
    topic, stays = await play.topic(partitions=2), await play.topic()
    sent = [
        play.fetch(
            conn,
            [*([(stays, 0, 0)] if at > 2 else []), (topic, at % 2, 0)],
            max_wait_ms=wait,
            min_bytes=1 + at,
        )
        for at, conn in enumerate(readers)
    ]
    reader = await play.open("reader")
    session = await play.open_session(reader, [(stays, 0, 0), (topic, 1, 0)])
    if session is not None:
        sent.append(play.fetch(reader, [], max_wait_ms=wait, session=session))
    await play.pause(150)
    await play.delete(topic)
    await settle(*sent)


@scene("produce", "M1 corrupt-accepted, M1 forbidden-accepted, F3 not-woken")
async def corrupt_batch(play: Play) -> None:
    """A corrupt batch is refused. The other partition of the same Produce accepts its batch, which answers the fetch
    that waits on it. Then batches are refused that are invalid, with the right checksum."""
    topic, ends = await play.topic(partitions=2), [0, 0]
    writer, reader = await play.open("writer"), await play.open("reader")
    wait = play.wait_ms(WAKE_MS)
    for acks in (1, -1):
        for harmed, sound in ((0, 1), (1, 0)):
            fetch = play.fetch(reader, [(topic, sound, ends[sound])], max_wait_ms=wait)
            await play.pause(50)
            produce = play.produce(writer, topic, (topic, 1), acks=acks, corrupt=harmed)
            await settle(produce, fetch)  # its own time-out is 10 s
            ends[sound] += 1
    for harm in INVALID:
        await settle(play.produce(writer, topic, (topic, 1), acks=-1, corrupt=0, harm=harm))
    if play.offers("init_producer_id"):
        first = Written(*await new_producer(play, writer), -1)
        await settle(play.produce(writer, topic, acks=-1, written=first))
    both = [(topic, number, 0) for number in (0, 1)]
    await settle(play.fetch(reader, both, max_wait_ms=0))


@scene("produce", "M1 offsets-do-not-grow, M2 refused-but-open, M3, X4 unknown-partition-other-error")
async def acks(play: Play) -> None:
    """Produce requests with acks 1, -1 and 0, and with other values."""
    topic = await play.topic(partitions=2)
    writer, reader = await play.open("writer"), await play.open("reader")
    for at in range(12):
        # A topic with one replica waits for no other replica, so the append succeeds even with a short timeout_ms.
        timeout_ms = (10_000, 0)[at // 2 % 2]
        produce = play.produce(writer, topic, acks=(1, -1)[at % 2], records=1 + at % 3, timeout_ms=timeout_ms)
        await play.ask_all(produce)
    for acks in (1, -1, -1):
        await play.ask_all(play.produce(writer, (topic, 1), topic, acks=acks))
    for acks in (1, -1):
        await play.ask_all(play.produce(writer, (topic, UNMADE), topic, play.unique("unmade"), acks=acks))
    for _ in range(3):
        play.produce(writer, topic, acks=0)
        await settle(play.produce(writer, topic, acks=1))
    alone = await play.open("fire-and-forget")
    for _ in range(3):
        play.produce(alone, topic, acks=0)
    await settle(play.question(alone))
    # Each refused append is the last request of its connection, because the broker closes the connection. The appends
    # are sent one after the other, because rows that are late at the same time count as one.
    for _ in range(2):
        refused = await play.open("refused")
        play.produce(refused, (topic, UNMADE), acks=0)
        for _ in range(CLOSED_LOOKS):
            await play.pause(50)
            if refused.closed:
                break
    for offset in range(1, 6):  # the second batch has two records, the third has three
        await play.ask_all(play.fetch(reader, [(topic, 0, offset)], max_wait_ms=500))
    got = await play.fetch(reader, [(topic, 0, 0)], max_wait_ms=500)
    must(not codes(got.body), f"a fetch was answered with error {codes(got.body)}")
    for wrong in (2, -2, 5):
        try:
            await play.ask_all(play.produce(await play.open("wrong"), topic, acks=wrong))
        except NoAnswer:
            continue


@scene("produce", "M7 sent-again, M7 out-of-order")
async def idempotent(play: Play) -> None:
    """An idempotent producer repeats batches, on the same connection and on another one. One repeated batch was refused
    at first, and later it is the fifth last batch of the producer. The producer also sends batches with a wrong
    sequence number, and a repeated batch with more records. Meanwhile another producer appends with its own sequence
    numbers. For other producers, the sequence numbers wrap around to 0. A third producer sends random batches of
    several epochs."""
    play.need("init_producer_id")
    await _drawn_batches(play)
    topic = await play.topic()
    writer, other, reader = await play.open("writer"), await play.open("writer"), await play.open("reader")
    for at in range(2):
        producer, epoch = await new_producer(play, writer)
        # A batch that was refused for another reason is not stored, so its sequence number is still the next.
        first, wrong = Written(producer, epoch, 0), await play.open("wrong")
        await play.ask_all(play.produce(wrong, topic, acks=-1, corrupt=0, written=first))
        await settle(play.produce(wrong, topic, acks=2, written=first))
        for sequence, records, conn in (
            (0, 1, writer), (0, 1, writer), (1, 3, writer), (1, 3, other), (0, 1, writer), (9, 1, writer),
            (4, 2, other), (4, 2, writer), (7, 1, writer), (1, 3, writer), (6, 1, writer), (7, 1, writer),
            (0, 1, other), (7, 2, writer), (1, 2, other), (8, 1, writer),
        ):  # fmt: skip
            written = Written(producer, epoch, sequence)
            await play.ask_all(play.produce(conn, topic, acks=-1, records=records, written=written))
        # Up to the last sequence number, or beyond it.
        by = await new_producer(play, writer)
        last = SEQUENCES - 1
        for sequence, records in ((last - 2, 2), (last, 1 + at), (last, 1 + at), (at, 2), (at + 2, 1)):
            written = Written(*by, sequence)
            got = await play.produce(other, topic, acks=-1, records=records, written=written)
            if codes(first_append(got.body)):
                break  # for such a first batch nothing is promised
        await play.ask_all(play.fetch(reader, [(topic, 0, 0)], max_wait_ms=0))


async def _drawn_batches(play: Play) -> None:
    """One producer appends to two partitions: the next batch, a former batch again, a batch out of sequence, a batch of
    the next epoch, which begins with 0, the next number or another one, and a batch of the former epoch."""
    topic, rng = await play.topic(partitions=2), play.rng
    conns = [await play.open("writer") for _ in range(2)]
    begins = Written(*await new_producer(play, conns[0]), 0)
    taken: tuple[list[tuple[Written, int]], ...] = [], []
    for way in rng.choices(
        ("next", "again", "aside", "raises", "jumps", "runs on", "former"), (6, 4, 2, 2, 2, 2, 3), k=BATCHES
    ):
        number, records = rng.randrange(2), rng.randint(1, 3)
        last, count = taken[number][-1] if taken[number] else (begins, 0)
        due, epoch = last.base_sequence + count, last.producer_epoch
        written = Written(
            begins.producer_id, epoch + (way in ("raises", "jumps", "runs on")), 0 if way == "raises" else due
        )
        if way == "again" and taken[number]:
            written, records = rng.choice(taken[number][-KNOWN:])
        elif way in ("aside", "jumps"):
            written = written._replace(base_sequence=due + rng.choice((1, 5)))
        elif way == "former" and epoch > begins.producer_epoch:
            written = written._replace(producer_epoch=epoch - 1)
        conn, into = rng.choice(conns), (topic, number)
        got = await play.produce(conn, into, acks=-1, records=records, written=written)
        if not codes(first_append(got.body)) and (written, records) not in taken[number]:
            taken[number].append((written, records))


async def new_producer(play: Play, conn: Connection) -> tuple[int, int]:
    """The id of an idempotent producer, and its epoch. SceneLost if the broker returns none."""
    nobody = {
        "transactional_id": None, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1,
    }  # fmt: skip
    error = 0
    async for _ in play.tries(100, ID_TRIES):  # a broker gets them from the controller, many at a time
        got = await play.ask(conn, "init_producer_id", nobody)
        error = codes(got.body)
        if not error:
            return integer(got.body, "producer_id"), integer(got.body, "producer_epoch")
    raise SceneLost(f"no producer id: error {error}")
