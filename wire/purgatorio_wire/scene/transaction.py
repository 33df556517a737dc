"""Scenes of transactions, for the clauses R1 to R7.

Most scenes use the protocol before the second part of KIP-890, in which one epoch lasts for several transactions. A
broker writes the markers after its response to EndTxn. Until then, it refuses a new transaction
(CONCURRENT_TRANSACTIONS). So a transaction has ended when the next transaction of its producer can begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Final

from purgatorio_wire.clause.produce import TIMED_OUT, UNHEARD
from purgatorio_wire.client.connection import Connection, Got, Sent
from purgatorio_wire.client.record_batch import batch_bytes
from purgatorio_wire.history.history import LOADING, NAMED, integer, parts
from purgatorio_wire.history.log import UNKNOWN_TOPIC
from purgatorio_wire.history.transaction import (
    ABORTED_NS,
    ADD,
    CONCURRENT,
    FIRST_RENEWING,
    OFFSETS,
    OFFSETS_IN_TRANSACTIONS,
)
from purgatorio_wire.scene.asker import codes, first_append, first_of, settle
from purgatorio_wire.scene.broker import POLL_SECONDS, SceneSkipped, must
from purgatorio_wire.scene.data_asker import UNMADE, by_topic
from purgatorio_wire.scene.group import NOTE_MOST_BYTES
from purgatorio_wire.scene.member import (
    LONGER,
    came_back,
    knows_static,
    members,
    rebalance_announced,
    rejoined,
    stable,
    statics,
)
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import scene
from purgatorio_wire.trace.record import Body, Written

WAIT_MS: Final = 3000
OPEN_MS: Final = 80
"""The time that a transaction stays open with records that no read_committed fetch may return."""
NOT_COORDINATOR: Final = 16
STRANGE: Final = 1 << 40
"""What is added to a producer id, so that no producer has it."""
NAMES_EPOCHS: Final = 3
"""The first version of InitProducerId that names the producer's former epoch."""
NOT_YET: Final = frozenset({TIMED_OUT, CONCURRENT, *LOADING})
"""Errors after which a client retries InitProducerId or the begin of a transaction: the controller gave no id in
time, the previous transaction has not ended, or the coordinator is not available yet."""
ENDS_SECONDS: Final = 12.0
EACH_MS: Final = 12_000
"""Longer than the coordinator's interval between two checks for expired transactions."""
TOO_LONG_MS: Final = 6000
LOOKS_MS: Final = 10_000
"""The interval of the coordinator's check."""
APPENDS: Final = 50
"""The number of attempts: a leader may not know the transaction yet (from 3.6 on, it requests the transaction)."""
UNSTABLE_TRIES: Final = 100
NOBODY: Final = "", -1
"""A commit for a group that names no member."""
ALL_NEEDED: Final = (
    "fetch",
    "produce",
    "find_coordinator",
    "init_producer_id",
    ADD,
    "end_txn",
)


Place = tuple[str, int]
"""A partition of a topic."""


def _added(body: Body | None) -> int:
    """The first error in a response to AddPartitionsToTxn. 0 if there is none."""
    return next(filter(None, (integer(x, "partition_error_code") for _, x in parts(body, NAMED[ADD][1]))), 0)


@dataclass(slots=True)
class Writer:
    """A transactional producer. Partitions without a topic are partitions of `topic`. `next`: the next sequence number
    of each partition."""

    play: Play
    conn: Connection
    name: str
    topic: str
    id: int = -1
    epoch: int = -1
    next: dict[Place, int] = field(default_factory=dict)
    timeout_ms: int | None = None
    """The transaction timeout; by default the longest of the scenes."""
    renews: bool = False
    """Whether appends begin transactions, and each EndTxn returns a new epoch (KIP-890)."""
    since_t: int = 0
    """When its last transaction ended, or it got its epoch."""

    async def begin_again(self, timeout_ms: int | None = None, former: int = -1) -> None:
        """Get another epoch, which ends the open transaction. Also set another transaction timeout, if given."""
        self.timeout_ms = timeout_ms or self.timeout_ms
        self.took(await self._until_over(partial(self.ask_id, former), codes))

    async def ask_id(self, former: int = -1) -> Got:
        """Send one InitProducerId. `former`: the epoch that it names, with the producer id (KIP-360)."""
        values = {
            "transactional_id": self.name, "producer_id": self.id if former >= 0 else -1, "producer_epoch": former,
            "transaction_timeout_ms": self.timeout_ms or self.play.broker.transaction_ms,
        }  # fmt: skip
        return await self.play.ask(self.conn, "init_producer_id", values)

    def took(self, got: Got) -> int:
        """Use the producer id and epoch of the response from now on. Returns the error, which changes nothing."""
        if not codes(got.body):
            self.since_t = self.play.recorder.now()
            self.id, self.epoch = integer(got.body, "producer_id"), integer(got.body, "producer_epoch")
            self.next.clear()
        return codes(got.body)

    async def begin(self, *into: int | Place) -> None:
        """Add partitions. The first request begins a transaction. When it succeeds, the previous one has ended."""
        await self._until_over(lambda: self.add(*into), _added)

    async def add(self, *into: int | Place) -> Got:
        """Send one AddPartitionsToTxn."""
        values = {
            "v3_and_below_transactional_id": self.name, "v3_and_below_producer_id": self.id,
            "v3_and_below_producer_epoch": self.epoch, "v3_and_below_topics": by_topic(map(self._place, into), "name"),
        }  # fmt: skip
        return await self.play.ask(self.conn, ADD, values)

    async def write(self, *into: int | Place, records: int = 1, size: int = 20) -> list[int]:
        """Append to each of these partitions; returns the base offsets. SceneLost if an append is refused."""
        bases: list[int] = []
        for place in map(self._place, into):
            ask = partial(self._append_once, place, records, size)
            got = await self._asked(ask, lambda body: codes(first_append(body)), UNHEARD, APPENDS)
            said = first_append(got.body)
            must(not codes(said), f"an append in a transaction got error {codes(said)}")
            self._advance(place, records)
            bases.append(integer(said, "base_offset", -1))
        return bases

    async def _append_once(self, place: Place, records: int, size: int) -> Got:
        return await self._send(place, records, size, self.next.get(place, 0))

    def append(self, into: int | Place, records: int = 1, size: int = 20, again: bool = False) -> Sent:
        """Send the next append of a partition; `again`: repeat the last append."""
        place = self._place(into)
        if not again:
            self._advance(place, records)
        return self._send(place, records, size, self.next.get(place, 0) - records)

    def _advance(self, place: Place, records: int) -> None:
        self.next[place] = self.next.get(place, 0) + records

    def _send(self, place: Place, records: int, size: int, sequence: int) -> Sent:
        written = Written(self.id, self.epoch, sequence)
        return self.play.produce(
            self.conn, place, acks=-1, size=size, records=records, written=written, transactional_id=self.name,
            begins=self.renews,
        )  # fmt: skip

    def _place(self, one: int | Place) -> Place:
        return (self.topic, one) if isinstance(one, int) else one

    async def end(self, *, commits: bool) -> Got:
        self.since_t = self.play.recorder.now()
        values = {
            "transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, "committed": commits,
        }  # fmt: skip
        if self.renews:
            return await self.conn.send("end_txn", FIRST_RENEWING, values)
        return await self.play.ask(self.conn, "end_txn", values)

    async def end_again(self, *, commits: bool) -> None:
        """Repeat the request until its answer is not CONCURRENT_TRANSACTIONS."""
        await self._asked(partial(self.end, commits=commits), codes, frozenset({CONCURRENT}), APPENDS)

    async def describe(self, conn: Connection) -> None:
        """Describe the transaction of this producer, list it with filters, and describe the producers of a topic. The
        first filter selects a transaction that is older than half the time since the last one."""
        play, names = self.play, [self.name, f"{self.name}-nobody"]
        unmade, half_ms = play.unique("unmade"), (play.recorder.now() - self.since_t) // 2_000_000
        if play.offers("describe_transactions", "R6"):
            await play.ask(conn, "describe_transactions", {"transactional_ids": names})
        states: list[list[str]] = [[], ["Ongoing"], ["CompleteCommit", "Empty"], [self.name]]
        for at, some in enumerate(states if play.offers("list_transactions", "R6") else ()):
            draw: Callable[[tuple[Any, ...]], object] = play.rng.choice if at else itemgetter(0)
            # Without a producer id, the response would have the names of other clients.
            ids = draw(([self.id], [self.id + 1, self.id], [self.id + 1]))
            filters = {
                "state_filters": some, "producer_id_filters": ids, "duration_filter": draw((half_ms, -1, 1 << 40)),
                "transactional_id_pattern": draw((None, self.name, f"{self.name[:-1]}.*", self.name[:-1])),
            }  # fmt: skip
            await play.ask(conn, "list_transactions", filters)
        if play.offers("describe_producers", "R6"):
            asked = [{"name": name, "partition_indexes": [0, 1]} for name in (self.topic, unmade)]
            await play.ask(conn, "describe_producers", {"topics": asked})

    async def begin_offsets(self, group: str) -> None:
        """Add the offsets of a group, which may begin a transaction. No effect with KIP-890, where the commit of the
        offsets begins the transaction."""
        if not self.renews:
            await self._until_over(lambda: self.add_group(group), codes)

    async def add_group(self, group: str) -> Got:
        """Send one AddOffsetsToTxn."""
        values = {
            "transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, "group_id": group,
        }  # fmt: skip
        return await self.play.ask(self.conn, "add_offsets_to_txn", values)

    async def commit_offset(
        self, group: str, at: int, by: tuple[str, int] = NOBODY, numbers: Sequence[int] = (0,),
        instance: str | None = None, note_bytes: int = 0,
    ) -> int:  # fmt: skip
        """Commit these offsets in the transaction, as a member of a generation; returns the error of the first
        offset. The metadata has at least `note_bytes`."""
        note = f"note {at}".ljust(note_bytes, ".")
        told = {"committed_offset": at, "committed_metadata": note, "committed_leader_epoch": at % 7}
        asked = [{"partition_index": number, **told} for number in numbers]
        values = {
            "transactional_id": self.name, "group_id": group, "producer_id": self.id, "producer_epoch": self.epoch,
            "member_id": by[0], "generation_id": by[1], "group_instance_id": instance,
            "topics": [{"name": self.topic, "partitions": asked}],
        }  # fmt: skip

        def error_of(body: Body | None) -> int:
            return codes(first_of(first_of(body, "topics"), "partitions"))

        async def ask() -> Got:
            if self.renews:
                return await self.conn.send(OFFSETS, OFFSETS_IN_TRANSACTIONS + 1, values)
            return await self.play.ask(self.conn, OFFSETS, values)

        return error_of((await self._asked(ask, error_of, UNHEARD, APPENDS)).body)

    async def _until_over(
        self, ask: Callable[[], Awaitable[Got]], error_of: Callable[[Body | None], int]
    ) -> Got:
        tries = int(ENDS_SECONDS / POLL_SECONDS)
        got = await self._asked(ask, error_of, NOT_YET, tries)
        must(not error_of(got.body), f"a transaction could not be started: error {error_of(got.body)}")
        return got

    async def _asked(
        self,
        ask: Callable[[], Awaitable[Got]],
        error_of: Callable[[Body | None], int],
        again: frozenset[int],
        tries: int,
    ) -> Got:
        """The response to the request. The request is repeated while the response has one of these errors, up to this
        number of times."""
        got = await ask()
        for _ in range(tries - 1):
            if error_of(got.body) not in again:
                break
            await self.play.pause(POLL_SECONDS * 1000)
            got = await ask()
        return got


async def writer_of(play: Play, topic: str, timeout_ms: int | None = None) -> Writer:
    """A producer with a transactional id whose coordinator is this broker and is loaded."""
    play.need(*ALL_NEEDED)
    play.broker.transactions.need()
    conn, name, error = await play.open("writer"), play.unique("x"), 0
    for _ in play.broker.transactions.tries():
        error, others = await play.coordinator(conn, name, 1)
        if not error and not others:
            made = Writer(play, conn, name, topic, timeout_ms=timeout_ms)
            error = made.took(await made.ask_id())
            if not error:
                return made
        if others or (error == NOT_COORDINATOR and play.broker.nodes > 1):
            name = play.unique("x")
        elif error not in NOT_YET:
            break
        await play.pause(POLL_SECONDS * 1000)
    raise play.broker.transactions.none(f"error {error}")


@scene(
    "transactions",
    "R1 early, R1 open-transaction-shown, R2 not-woken, R2 never-ended, R3 not-listed, R3 listed, "
    "R4 last-stable-offset, R4 listed, L1, R6 end-refused, R6 end-after-end, R6 described, F3 not-woken",
    seconds=60,
)
async def read_committed(play: Play) -> None:
    """Transactions of one producer, committed or aborted, in one partition or, later, in two. Each is described and
    listed, and its end is sent again, also with the other outcome. A read_committed fetch waits for the end of the
    transaction, in a session too. A read_uncommitted fetch waits only for the append. Between the append and the end,
    both request the available records."""
    topic = await play.topic(partitions=2)
    writer = await writer_of(play, topic)
    readers, asker = await play.open_many(5, "reader"), await play.open("asker")
    wait, ends = play.wait_ms(WAIT_MS), [0, 0]
    session = await play.open_session(readers[4], [(topic, 0, 0), (topic, 1, 0)], committed=True)
    ended: list[tuple[str, int, int]] = []
    await writer.begin(0)
    rounds = ((True, (0,)), (False, (0,)), (False, (0, 1)), (True, (1, 0)), (True, (1,)))
    for at, (commits, numbers) in enumerate(rounds):
        parts = [(topic, number, ends[number]) for number in numbers]
        both = [(topic, number, ends[number]) for number in (0, 1)]
        sent = [
            play.fetch(readers[0], parts[:1], max_wait_ms=wait, committed=True),
            play.fetch(readers[1], both, max_wait_ms=wait, committed=True),
            play.fetch(readers[2], parts[-1:], max_wait_ms=wait, committed=True, min_bytes=100),
        ]
        if session is not None:
            sent.append(play.fetch(readers[4], both, max_wait_ms=wait, committed=True, session=session))
        open_to = play.fetch(readers[3], parts[:1], max_wait_ms=wait, committed=False)
        await play.pause(30)
        await writer.write(numbers[0], records=1 + at % 2)
        await settle(open_to)
        if later := numbers[1:]:
            await play.pause(OPEN_MS)
            await writer.begin(*later)
            await writer.write(*later, records=1 + at % 2)
        await writer.write(numbers[0])
        await writer.describe(asker)
        await _ask_all(play, asker, both)
        await play.pause(OPEN_MS)
        await writer.end(commits=commits)
        await writer.end_again(commits=commits)
        await writer.end(commits=not commits)
        ended += [*parts, (topic, numbers[0], ends[numbers[0]] + 1 + at % 2)]
        for number in numbers:
            ends[number] += 1 + at % 2 + (number == numbers[0]) + 1
        if at + 1 < len(rounds):
            await writer.begin(rounds[at + 1][1][0])
        else:
            await writer.begin_again()
        await settle(*sent)
        if session is not None and session.took(await sent[-1].within(0)):
            session = None
        await _ask_all(play, asker, ended)


@scene(
    "transactions",
    "R1 early, R1 open-transaction-shown, R2 not-woken, R3 not-listed, R3 listed, R4 listed, M7 sent-again, "
    "M1 forbidden-accepted",
    seconds=60,
)
async def overlapping(play: Play) -> None:
    """Transactions of two producers and plain appends in one partition. Records after the start of the first open
    transaction are not visible, even if later transactions have ended. They do not count for min_bytes. The first
    producer appends without its transaction, which is refused. A batch that is sent again is stored once."""
    topic = await play.topic()
    first, second = await writer_of(play, topic), await writer_of(play, topic)
    plain, asker = await play.open("plain"), await play.open("asker")
    readers = await play.open_many(3, "reader")
    wait, end = play.wait_ms(WAIT_MS), 0
    for first_commits, second_commits in ((True, True), (False, True), (True, False)):
        await first.begin(0)
        await second.begin(0)
        begun = end
        await play.ask_all(play.produce(plain, topic, acks=-1))
        more = play.fetch(
            readers[2], [(topic, 0, begun)], max_wait_ms=wait, min_bytes=batch_bytes(20) + 1, committed=True
        )
        waits = play.fetch(readers[0], [(topic, 0, begun + 1)], max_wait_ms=wait, committed=True)
        await play.pause(30)
        await first.write(0)
        await second.write(0, records=2)
        aside = Written(first.id, first.epoch, first.next[topic, 0])
        await settle(play.produce(plain, topic, acks=-1, written=aside))
        await settle(second.append(0, records=2, again=True), first.append(0, again=True))
        await play.ask_all(play.produce(plain, topic, acks=-1))
        await second.end(commits=second_commits)
        await second.begin_again()
        await _ask_all(play, asker, [(topic, 0, begun)])
        await play.pause(OPEN_MS)
        # After the first open transaction, another one begins. A fetch below it does not wait for its end.
        await second.begin(0)
        await second.write(0)
        behind = begun + 6  # five records, and the marker of the second
        await first.end(commits=first_commits)
        await first.begin_again()
        await settle(waits, more)
        await _ask_all(play, asker, [(topic, 0, begun)])
        waits = play.fetch(readers[1], [(topic, 0, behind)], max_wait_ms=wait, committed=True)
        await play.pause(OPEN_MS)
        await second.end(commits=second_commits)
        await second.begin_again()
        await settle(waits)
        await _ask_all(play, asker, [(topic, 0, begun), (topic, 0, behind)])
        end = behind + 3  # a record, and two markers


@scene("transactions", "R2 not-woken, R6 end-refused, R3 not-listed", seconds=90)
async def timed_out(play: Play) -> None:
    """Each transaction has the timeout that its producer requested last, counted from the start of the transaction. A
    transaction that stays open longer is aborted, which answers the fetches that wait for its end."""
    looks_ms = play.broker.open_looks_ms
    if looks_ms <= LOOKS_MS:
        await asyncio.gather(_each_in_its_time(play), _left_open(play))
    else:
        play.cannot(f"the broker searches for overdue transactions only every {looks_ms} ms", "R2", "R3")
        await _each_in_its_time(play)


async def _each_in_its_time(play: Play) -> None:
    topic = await play.topic()
    each_ms = min(play.wait_ms(EACH_MS), play.broker.transaction_ms)
    writer, asker = await writer_of(play, topic, each_ms // 4), await play.open("asker")
    await writer.begin_again(each_ms)
    for open_ms in (0, each_ms * 7 // 8):
        await writer.begin(0)
        await writer.write(0)
        await play.pause(open_ms)
        await settle(writer.append(0))
        await writer.end(commits=True)
        await play.pause(each_ms - open_ms)
    await _ask_all(play, asker, [(topic, 0, 0)])


async def _left_open(play: Play) -> None:
    looks_ms = play.broker.declared.late_topics_ms + LOOKS_MS
    too_long_ms = play.wait_ms(TOO_LONG_MS)
    waits_ms, adds_ms = too_long_ms + ABORTED_NS // 1_000_000 + looks_ms, too_long_ms * 3 // 4
    topic = await play.topic(partitions := waits_ms // adds_ms)
    writer, reader = await writer_of(play, topic), await play.open("reader")
    await writer.begin_again(too_long_ms)
    await writer.begin(0)
    waits = play.fetch(reader, [(topic, 0, 0)], max_wait_ms=waits_ms, committed=True)
    await writer.write(0)
    # Added partitions, known or new, do not extend the timeout.
    for number in range(1, partitions):
        if (
            waits.answer.done()
            or _added((await writer.add(0)).body)
            or _added((await writer.add(number)).body)
        ):
            break
        await play.pause(adds_ms)
    await settle(waits)
    await _ask_all(play, reader, [(topic, 0, 0)])


@scene(
    "transactions", "R1 open-transaction-shown, R2 not-woken, R3 listed, R4 last-stable-offset", seconds=60
)
async def deleted_within(play: Play) -> None:
    """Some records of an open transaction are deleted, and later all of its records. Fetches of the remaining records
    and of new records still wait for the end of the transaction."""
    play.need("delete_records")
    rounds = ((True, 1), (False, 1), (True, 3), (False, 3))
    topic = await play.topic(partitions=len(rounds))
    writer, plain = await writer_of(play, topic), await play.open("plain")
    reader, asker = await play.open("reader"), await play.open("asker")
    wait = play.wait_ms(WAIT_MS)
    for number, (commits, deleted) in enumerate(rounds):
        await writer.begin(number)
        for _ in range(2):
            await writer.write(number)
        await play.ask_all(play.produce(plain, (topic, number), acks=-1))
        low = (topic, number, deleted)
        await play.ask_all(play.delete_records(plain, [low]))
        waits = play.fetch(reader, [low], max_wait_ms=wait, committed=True)
        await play.ask_all(play.produce(plain, (topic, number), acks=-1))
        await _ask_all(play, asker, [low])
        await play.pause(OPEN_MS)
        await writer.end(commits=commits)
        await writer.begin_again()
        await settle(waits)
        await _ask_all(play, asker, [low])


@scene("transactions", "R2 never-ended, R2 not-woken", seconds=60)
async def deleted_under(play: Play) -> None:
    """A topic is deleted while a transaction is open in this topic and in another one. The transaction still ends,
    which answers the fetch that waits on the other topic. The producer begins the next transaction."""
    play.need("delete_topics", "metadata")
    wait = play.wait_ms(WAIT_MS)
    for commits in (True, False):
        stays, gone = await play.topic(), await play.topic()
        writer, reader = await writer_of(play, stays), await play.open("reader")
        await writer.begin(0, (gone, 0))
        await writer.write(0, (gone, 0))
        waits = play.fetch(reader, [(stays, 0, 0)], max_wait_ms=wait, committed=True)
        await play.delete(gone)
        await play.until_told(gone, UNKNOWN_TOPIC)
        await writer.end(commits=commits)
        await writer.begin(0)
        await writer.end(commits=commits)
        await settle(waits)


@scene(
    "transactions",
    "R2 not-woken, R5 not-a-new-epoch, R5 not-fenced, R5 fenced-producer-appends, R3 not-listed, "
    "R6 without-a-transaction, R5 sent-again, X4",
    seconds=60,
)
async def fenced_producer(play: Play) -> None:
    """A transactional id is initialized again while its transaction is open. The transaction is aborted, which answers
    waiting fetches. The former producer is refused, and so are a negative transaction timeout and an empty
    transactional id. The new producer continues, and adds an unknown partition. Then the producer gets a new epoch, and
    repeats the request, as if the response was lost. It gets another epoch, and repeats the first request, which is
    refused. In the end, requests name an unknown transactional id, an unknown producer id, and no transactional id."""
    topic = await play.topic(partitions=2)
    former = await writer_of(play, topic)
    reader, asker = await play.open("reader"), await play.open("asker")
    wait, end = play.wait_ms(WAIT_MS), 0
    for _ in range(2):
        await former.begin(0)
        waits = play.fetch(reader, [(topic, 0, end)], max_wait_ms=wait, committed=True)
        await play.pause(30)
        await former.write(0)
        await play.pause(OPEN_MS)
        newer = Writer(play, await play.open("writer"), former.name, topic)
        await newer.begin_again()
        await settle(waits)
        await former.add(0)
        await former.end(commits=True)
        if play.offers("init_producer_id", least=NAMES_EPOCHS):
            await former.ask_id(former.epoch)
        await settle(former.append(0))
        await newer.end(commits=True)  # of nothing
        await newer.begin(0)
        await newer.write(0)
        await former.end(commits=False)
        await _ask_all(play, asker, [(topic, 0, end)])
        await newer.end(commits=True)
        await newer.begin(1)
        await newer.add(1, UNMADE)
        await newer.end(commits=False)
        end += 4  # two records and two markers
        former = newer
        await former.begin_again()
        for wrong_ms in (-1, (1 << 31) - 1):
            await replace(former, timeout_ms=wrong_ms).ask_id()
        await replace(former, name="").ask_id()
        await _ask_all(play, asker, [(topic, 0, end - 4), (topic, 0, end - 2)])
    epoch = former.epoch
    if play.offers("init_producer_id", "R5", least=NAMES_EPOCHS):
        for known in (epoch, epoch, epoch + 1):
            await former.begin_again(former=known)
        await former.ask_id(epoch)
    unknown = replace(former, id=former.id + STRANGE)
    for wrong in (replace(former, name=play.unique("x")), unknown, replace(former, name="")):
        await wrong.add(0)
        await wrong.add_group(topic)
        await wrong.end(commits=True)
    if play.offers("init_producer_id", least=NAMES_EPOCHS):
        await unknown.ask_id(epoch)


@scene(
    "transactions",
    "R8 begin-refused, R8 not-a-new-epoch, R8 repeated-end, R8 end-after-end, R8 not-fenced, "
    "R8 without-a-transaction, R8 append-outside, R1 open-transaction-shown, R2 not-woken, R3 listed, "
    "R5 fenced-producer-appends",
    seconds=60,
)
async def renewed_epochs(play: Play) -> None:
    """Transactions of a client of KIP-890's second part: an append begins each, and its end gives the producer a new
    epoch. The end is sent again, as if its response was lost, and with the other outcome. When the next transaction has
    begun, the old epoch is refused. An append of an older version to a partition that is not in the transaction is
    refused too. Then a commit (refused) and an abort are sent without a transaction."""
    if not play.broker.renews_epochs:
        raise SceneSkipped(
            "the broker does not offer KIP-890's second part, or transaction.version is below 2"
        )
    topic = await play.topic(partitions=2)
    writer = replace(await writer_of(play, topic), renews=True)
    reader, asker = await play.open("reader"), await play.open("asker")
    wait, end = play.wait_ms(WAIT_MS), 0
    rounds = ((True, (0,)), (False, (1, 0)), (True, (0, 1)), (False, (0,)))
    former: Writer | None = None
    for commits, numbers in rounds:
        waits = play.fetch(reader, [(topic, 0, end)], max_wait_ms=wait, committed=True)
        await play.pause(30)
        await writer.write(*numbers)
        if numbers == (0,):  # a client of before names a partition that is not in the transaction
            await settle(replace(writer, renews=False, next={}).append(1))
        if former is not None:
            await former.end(commits=not commits)
            await settle(former.append(0))
        await _ask_all(play, asker, [(topic, 0, end)])
        await play.pause(OPEN_MS)
        former, writer = writer, replace(writer, next={})
        must(not writer.took(await former.end(commits=commits)), "a transaction could not be ended")
        await settle(waits)
        await former.end_again(commits=commits)
        await former.end(commits=not commits)
        await _ask_all(play, asker, [(topic, 0, end)])
        end += 2  # a record and a marker
    await writer.begin_again()
    for commits in (True, False):
        await writer.end(commits=commits)


@scene("transactions", "R7 committed, R7 unstable, R6 begin-refused", seconds=60)
async def transactional_offsets(play: Play) -> None:
    """Offsets of groups are committed in transactions, of one partition or two, which are committed or aborted. They
    become visible after the end. In between, OffsetFetch with require_stable gets UNSTABLE_OFFSET_COMMIT, only for the
    partitions of the transaction. Some transactions are those of a client of KIP-890. If a commit without a transaction
    or OffsetDelete comes meanwhile, that stays. If two transactions commit an offset of one partition, the offset that
    was sent last stays, even if its transaction ends first. Metadata that is too long is refused."""
    _need_offsets(play)
    topic, group, beside = await play.topic(partitions=2), await play.group(), await play.group()
    writer, other = await writer_of(play, topic), await writer_of(play, topic)
    asker = await play.open("asker")
    for each in (group, beside):  # now there are such groups
        await play.commit(asker, each, "", -1, [topic], numbers=(0, 1))
    rounds = (
        (True, False, (0,)), (False, False, (0, 1)), (True, True, (1, 0)), (False, True, (0,)), (True, False, (0, 1)),
    )  # fmt: skip
    for at, (commits, overtaken, numbers) in enumerate(rounds):
        by = replace(writer, renews=play.broker.renews_epochs and at % 3 < 2)
        for each in (group, beside):
            await by.begin_offsets(each)
            _must_take(await by.commit_offset(each, 10 + at, numbers=numbers))
        if overtaken and at % 3 and play.offers("offset_delete"):
            await play.delete_offsets(asker, group, [topic])
        elif overtaken:
            await play.commit(asker, group, "", -1, [topic])
        for surely in (True, False):
            await play.ask_offsets(asker, group, [topic], stable=surely)
        await play.ask_offsets(asker, group, None, stable=True)
        await by.end(commits=commits)
        await _until_stable(play, writer, asker, group, beside)
    # Aborted offsets are not committed by the next transaction, which does not name them.
    await writer.begin_offsets(group)
    _must_take(await writer.commit_offset(group, 40))
    most = play.broker.declared.note_most_bytes
    for note_bytes in (most, most + 1) if most is not None and most <= NOTE_MOST_BYTES else ():
        await writer.commit_offset(group, 41, numbers=(1, 0), note_bytes=note_bytes)
    await writer.end(commits=False)
    await writer.begin(0)
    await writer.write(0)
    await writer.end(commits=True)
    await _until_stable(play, writer, asker, group)
    for first, last in ((writer, other), (other, writer)):
        for one, at in ((writer, 20), (other, 30)):
            await one.begin_offsets(group)
            _must_take(await one.commit_offset(group, at))
        await first.end(commits=True)
        await first.begin_again()
        for surely in (True, False):
            await play.ask_offsets(asker, group, [topic], stable=surely)
        await last.end(commits=True)
        await _until_stable(play, last, asker, group)


@scene("transactions", "R7 committed, R7 refused, G9, G11 not-fenced", seconds=60)
async def members_offsets(play: Play) -> None:
    """The members of a group commit in transactions by their generation (KIP-447). A client of another generation is
    refused, and so is a client that is no member. A member is accepted, even while a rebalance waits for this member,
    but not after the rebalance. In the end, a member has left. In another group, a static member has returned, and its
    former member id is fenced."""
    _need_offsets(play)
    play.need("txn_offset_commit", "join_group", least=3)
    topic, group = await play.topic(), await play.group()
    writer, asker = await writer_of(play, topic), await play.open("asker")
    joined, stranger = await members(play, group, 2, sessions=LONGER), play.unique("nobody")
    await stable(joined)
    for _ in range(2):
        leader, one = sorted(joined, key=lambda member: not member.leads)
        now = one.generation
        await writer.begin_offsets(group)
        for at, by in enumerate(((one.id, now - 1), (one.id, now + 1), (stranger, now), (one.id, now))):
            await writer.commit_offset(group, 50 + at, by)
        leader.ask_join()
        await rebalance_announced(one)
        await writer.commit_offset(group, 60 + now, (one.id, now))
        await rejoined([leader, one])
        await writer.commit_offset(group, 70, (one.id, now))
        await play.ask_offsets(asker, group, [topic])
        await writer.end(commits=True)
        await _until_stable(play, writer, asker, group)
    left = joined[0]
    await left.leave()
    await writer.begin_offsets(group)
    await writer.commit_offset(group, 80, (left.id, left.generation))
    if knows_static(play):
        (one,) = await statics(play, 1)
        await stable([one])
        back = await came_back(one)
        await back.join()
        await writer.begin_offsets(back.group)
        for at, member in enumerate((back, one, back)):
            await writer.commit_offset(
                back.group, 90 + at, (member.id, back.generation), instance=one.instance
            )
        await play.ask_offsets(asker, back.group, [topic])
    await writer.end(commits=True)
    await _until_stable(play, writer, asker, group)


def _need_offsets(play: Play) -> None:
    play.need("add_offsets_to_txn", "txn_offset_commit")
    play.need("offset_fetch", least=7)


def _must_take(error: int) -> None:
    must(not error, f"offsets in a transaction were answered with error {error}")


async def _until_stable(play: Play, writer: Writer, asker: Connection, *groups: str) -> None:
    """Wait until the transaction has ended, and OffsetFetch with require_stable returns the offsets of the groups."""
    await writer.begin_again()
    for group in groups:
        async for _ in play.tries(POLL_SECONDS * 1000, UNSTABLE_TRIES):
            told = [
                *await play.ask_offsets(asker, group, [writer.topic], stable=True),
                *await play.ask_offsets(asker, group, None, stable=True),
            ]
            if not any(codes(said) for _, said in told):
                break
        await play.ask_offsets(asker, group, [writer.topic])


async def _ask_all(play: Play, conn: Connection, places: Sequence[tuple[str, int, int]]) -> None:
    """Fetch from these offsets, and request the end offsets and the first records, with read_committed and
    read_uncommitted."""
    lists = play.offers("list_offsets", "L1", least=2)
    for committed in (True, False):
        for place in places:
            await play.fetch(conn, [place], max_wait_ms=0, committed=committed)
        for which in (-1, 0) if lists else ():
            of = {(topic, number, which) for topic, number, _ in places}
            await play.ask_all(play.list_offsets(conn, sorted(of), committed=committed))
