"""The clause G12: OffsetFetch returns a committed offset until another offset is committed, or the offset, its topic or
its group is deleted.

A commit takes effect between its request and its response. So OffsetFetch may return any offset whose commit may have
been the last. The deletion of a topic may take effect some time later (KAFKA-2000).

The clause R7: an offset commit in a transaction takes effect when the transaction is committed, or shortly after the
markers are written. If a later commit came before that, the commit of the transaction has no effect. An OffsetFetch
with require_stable (KIP-447) is refused until the transaction has ended.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from purgatorio_wire.history.bound import MS, PATIENCE_TIMES, Bounds
from purgatorio_wire.history.finding import Rows, answered_with, broken, checked, error_is, named
from purgatorio_wire.history.history import (
    BUSY,
    COMMITS,
    DELETE_OFFSETS,
    END_OF_TIME,
    OTHERS,
    Exchange,
    Part,
    Scene,
    integer,
    items,
    parts,
    text,
    texts,
)
from purgatorio_wire.history.log import Topic, Topics, asked_and_told
from purgatorio_wire.history.transaction import Transaction, producer_of
from purgatorio_wire.trace.record import Body

Offset = tuple[int, str, int]
"""A committed offset with its metadata and its leader epoch."""
NOTHING: Final[Offset] = (-1, "", -1)
TOO_LONG: Final = 12
UNSTABLE: Final = 88


def _offset(body: Body) -> Offset:
    """The offset in a commit, or in the response to OffsetFetch."""
    note = text(body, "committed_metadata") or text(body, "metadata")
    return integer(body, "committed_offset", -1), note, integer(body, "committed_leader_epoch", -1)


def _shown(what: Offset) -> str:
    return f"{what[0]} {what[1]!r} of epoch {what[2]}"


class _Commit(NamedTuple):
    """A committed offset of one partition: the times of the request (`t`) and of its response (`done_t`), the offset
    itself (`what`), and whether the broker certainly accepted the commit (`surely`). OffsetFetch may return
    the offset from `told_t` on. It returns the offset from `surely_t` on, unless a later commit replaced it."""

    t: int
    done_t: int
    what: Offset
    surely: bool
    told_t: int
    surely_t: int

    @classmethod
    def at_once(cls, t: int, done_t: int, what: Offset, *, surely: bool) -> Self:
        """A commit that takes effect between its request and its response."""
        return cls(t, done_t, what, surely, t, done_t)


def committed(bounds: Bounds, scene: Scene, topics: Topics) -> Rows:
    """The occasions are partitions in OffsetFetch, and commits whose metadata is too long."""
    most = bounds.declared.note_most_bytes
    for one in scene.of(*COMMITS) if most is not None else ():
        told = one.codes
        for part, asked in one.requested:
            if len(text(asked, "committed_metadata")) > (most or 0) and told.get(part) in (0, TOO_LONG):
                yield answered_with(
                    "G12", "long-metadata-accepted", one, told[part], TOO_LONG, f": more than {most} bytes"
                )
    for one in scene.of("offset_fetch"):
        until = one.answer_t
        if until is None or one.unread or one.throttled_ms:
            continue
        for asked, answer in asked_and_told(one):
            if integer(answer, "error_code"):
                continue  # the coordinator is loading, or another broker's
            name, answers = text(asked, "group_id"), dict(parts(answer, OTHERS[1]))
            if asked.get("topics") is None:
                # An OffsetFetch without topics returns every committed partition, and no other partition.
                answers = {**{part: {} for part in _parts_of(scene, name)}, **answers}
            for part, said in answers.items():
                seen = _offset(said)
                error = integer(said, "error_code")
                gone = _deletion(bounds, topics.topics.get(part.topic), until)
                within = [*_within(bounds, topics, scene, name, part, until)]
                plain = [*_commits(scene, name, part)]
                if error == UNSTABLE or (one.body.get("require_stable") and within):
                    yield from _stable(one, error, within, plain)
                if error == UNSTABLE:
                    continue
                clause = "R7" if within else "G12"
                made = [_Commit.at_once(0, 0, NOTHING, surely=True), *gone, *plain]
                made += [
                    x.commit(stable=bool(one.body.get("require_stable"))) for x in within if not x.aborted
                ]
                # Old versions of OffsetFetch return no leader epoch.
                told_all = "committed_leader_epoch" in said
                may = {what if told_all else (*what[:2], -1) for what in _may_be(made, one)}
                cause = "committed"
                if gone and gone[0].t <= until:
                    # The deletion may take a while. For a deleted topic, an error is a correct answer too.
                    if error or (seen in may and seen != NOTHING):
                        continue
                    if any(x.what != NOTHING and x.done_t <= gone[0].t for x in made):
                        cause = "lost-by-a-deletion"
                if error not in BUSY:
                    allowed = f"{' or '.join(map(_shown, sorted(may)))} of {part.topic}"
                    shown = named(error) if error else _shown(seen)
                    yield checked(clause, cause, one, not error and seen in may, allowed, shown)


class _Within(NamedTuple):
    """An offset that a transaction commits for one partition; the fields are those of `_Commit`. From `late_t` on, an
    OffsetFetch without require_stable certainly returns the offset, if the transaction committed."""

    t: int
    done_t: int
    what: Offset
    surely: bool
    each: Transaction
    late_t: int

    @property
    def aborted(self) -> bool:
        return self.each.commits is False

    def commit(self, *, stable: bool) -> _Commit:
        """The commit in the form of a plain commit: written at its own time, visible when the transaction has ended."""
        surely = self.surely and bool(self.each.commits)
        surely_t = self.each.ended_t if stable else self.late_t
        return _Commit(self.t, self.done_t, self.what, surely, self.each.may_end_t, surely_t)


def _within(
    bounds: Bounds, topics: Topics, scene: Scene, group: str, part: Part, until: int
) -> Iterator[_Within]:  # fmt: skip
    deletes = [
        x for x in scene.of(DELETE_OFFSETS) if text(x.body, "group_id") == group and x.codes.get(part) == 0
    ]
    for one in scene.of("txn_offset_commit"):
        if any(one.ended_t <= x.t <= until for x in deletes):
            continue  # OffsetDelete also deletes offsets of open transactions
        asked, error = dict(one.requested).get(part), one.codes.get(part, 0)
        if text(one.body, "group_id") != group or asked is None or (error and error not in BUSY):
            continue
        by = producer_of(one.body)
        begun = [x for x in topics.transactions if x.producer == by and x.begun_t <= one.t]
        if begun:
            ended_t = begun[-1].ended_t
            late_ns = bounds.declared.late_topics_ms * MS + bounds.added_ns(ended_t, until)
            surely = one.got is not None and not error
            yield _Within(one.t, one.ended_t, _offset(asked), surely, begun[-1], ended_t + late_ns)


def _stable(one: Exchange, error: int, within: list[_Within], plain: list[_Commit]) -> Rows:
    """R7, for an OffsetFetch with require_stable. An OffsetCommit without a transaction that has no response yet is not
    stable either, as in Kafka up to 3.9 (hasPendingOffsetCommitsForTopicPartition)."""
    until = one.ended_t
    surely = any(x.surely and x.done_t <= one.t and until < x.each.may_end_t for x in within)
    may_be = any(x.t <= until and one.t < x.late_t for x in within)
    may_be = may_be or any(x.t <= until and one.t < x.done_t for x in plain)
    if surely and error not in BUSY:
        yield error_is("R7", "unstable", one, error, UNSTABLE)
    elif error == UNSTABLE and not (may_be and one.body.get("require_stable")):
        yield broken(
            "R7", "unstable", one, "an offset, because no commit of this partition is in progress", named(error),
        )  # fmt: skip


def _parts_of(scene: Scene, group: str) -> list[Part]:
    commits = (one for one in scene.of("offset_commit") if text(one.body, "group_id") == group)
    return [part for one in commits for part, _ in one.requested]


def _deletion(bounds: Bounds, topic: Topic | None, until: int) -> list[_Commit]:
    """The deletion of the topic, as a commit of nothing. It takes effect between its request and the time after which
    it would certainly be late."""
    if topic is None or topic.delete_t is None:
        return []
    done_t = topic.deleted_t or END_OF_TIME
    late_ns = PATIENCE_TIMES * bounds.declared.late_topics_ms * MS + bounds.added_ns(done_t, until)
    surely = topic.deleted_t is not None
    return [_Commit.at_once(topic.delete_t, done_t + late_ns, NOTHING, surely=surely)]


def _may_be(made: list[_Commit], one: Exchange) -> set[Offset]:
    """The offsets that may have been the last committed offset when the broker handled this request."""
    before = [x for x in made if x.surely and x.surely_t <= one.t]
    return {
        x.what for x in made
        if x.told_t <= one.ended_t and not any(y.t >= x.done_t and y is not x for y in before)
    }  # fmt: skip


def _commits(scene: Scene, group: str, part: Part) -> Iterator[_Commit]:
    for one in scene.of("offset_commit", "offset_delete", "delete_groups"):
        done_t = one.ended_t
        if one.api == "delete_groups":
            codes = [
                integer(x, "error_code") for x in items(one.got, "results") if text(x, "group_id") == group
            ]
            if group in texts(one.body, "groups_names") and (one.got is None or codes == [0]):
                yield _Commit.at_once(one.t, done_t, NOTHING, surely=codes == [0])
            continue
        if text(one.body, "group_id") != group or integer(one.got, "error_code"):
            continue
        for other, asked, said in one.pairs:  # OffsetDelete names no offset, and commits nothing
            error = integer(said, "error_code")
            if other == part and (not error or error in BUSY):
                yield _Commit.at_once(one.t, done_t, _offset(asked), surely=one.got is not None and not error)
