"""`Row`: the result of one occasion of a clause (a case that could break it)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from purgatorio_spec.failure import Failure
from purgatorio_wire.history.bound import EARLY_NS, MS, Bounds, RowStatus, Timed
from purgatorio_wire.history.error_code import ERRORS
from purgatorio_wire.history.history import BUSY, END_OF_TIME, EXCUSED, Exchange
from purgatorio_wire.history.log import Topic

FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75


@dataclass(frozen=True, slots=True)
class Row:
    """One occasion and its result. `cause`: the kind of violation. `events`: the `i` of the events that show it. The
    texts are for people."""

    clause: str
    status: RowStatus
    cause: str = ""
    subject: str = ""
    events: tuple[int, ...] = ()
    allowed: str = ""
    seen: str = ""
    late: tuple[int, int] = (0, 0)
    """For a late row, the promised time, and the time of the response (without a response, of the limit)."""
    gaps: float = 1.0
    """For a late row, or a late response in an undecided row, the lateness divided by the gap."""
    busy: bool = False
    """The operation was late, but before its time-out: the broker was slow, and did not forget the request. Late rows
    of this cause then do not count (`Tallied`)."""
    failure: Failure | None = None
    """The error of Purgatorio that replaces the result."""

    def but(
        self, right: object, cause: str, one: Exchange, allowed: str, seen: str, *witnesses: int
    ) -> "Row":
        """This row, or a broken row if this row is kept and `right` is false."""
        return self if self.status is not RowStatus.KEPT or right else broken(
            self.clause, cause, one, allowed, seen, *witnesses
        )  # fmt: skip


Rows: TypeAlias = Iterator[Row]


def kept(clause: str, cause: str = "") -> Row:
    """A row of a kept promise. `cause`: the kind of violation that the row tested, if a clause has several."""
    return Row(clause, RowStatus.KEPT, cause)


def undecided(clause: str, why: str, cause: str = "", gaps: float = 0.0) -> Row:
    """An undecided row, with the reason. `gaps`: the lateness of the response divided by the gap."""
    return Row(clause, RowStatus.UNDECIDED, cause, seen=why, gaps=gaps)


def broken(clause: str, cause: str, one: Exchange, allowed: str, seen: str, *witnesses: int) -> Row:
    """The row of an exchange that breaks a promise. `witnesses`: further events that show the violation."""
    events = tuple(sorted({*one.events, *witnesses}))
    return Row(clause, RowStatus.BROKEN, cause, said(one), events, allowed, seen)


def checked(
    clause: str, cause: str, one: Exchange, right: object, allowed: str, seen: str, *witnesses: int,
    late: tuple[int, int] | None = None,
) -> Row:  # fmt: skip
    """A kept row if `right` is true, else a broken row, or a late row (`late_row`)."""
    if right:
        return kept(clause, cause)
    if late is not None:
        return late_row(clause, cause, one, allowed, seen, late, *witnesses)
    return broken(clause, cause, one, allowed, seen, *witnesses)


def now_and_then(row: Row, one: Exchange) -> Row:
    """A late row for behavior that is allowed if it is rare: the row counts only if late rows of its cause are
    frequent."""
    return replace(row, status=RowStatus.LATE, late=(one.t, one.until_t), gaps=0.0)


def timed(
    clause: str, cause: str, one: Exchange, by: Timed, promise: str, t0: int, *witnesses: int, what: str = "answered"
) -> Row:  # fmt: skip
    """The row of a time bound. `promise`: the promised event in words. `what`: the verb of this text. `t0`: the zero of
    the times in the texts."""
    if by.status is RowStatus.KEPT:
        return kept(clause, cause)
    unseen = f"not {what} in {after(one.watched_t if one.answer_t is None else one.answer_t, t0)}"
    seen = unseen if by.came_t is None else f"{what} after {after(by.came_t, t0)}"
    allowed = f"{promise} by {after(by.limit_t, t0)} ({after(by.promised_t, t0)} + {by.made_of})"
    if by.status is RowStatus.UNDECIDED:
        why = "this bound is too late to decide, or the connection was not observed long enough"
        return undecided(clause, f"{seen}; {allowed}; {why}", cause, by.gaps)
    late = by.promised_t, by.came_t or by.limit_t
    return replace(late_row(clause, cause, one, allowed, seen, late, *witnesses), gaps=by.gaps)


def late_row(
    clause: str, cause: str, one: Exchange, allowed: str, seen: str, late: tuple[int, int], *witnesses: int
) -> Row:
    """A late row, which violates the clause if it repeats. `late`: the promised time, and the end of the wait."""
    row = broken(clause, cause, one, allowed, seen, *witnesses)
    return replace(row, status=RowStatus.LATE, late=late)


def in_time(
    bounds: Bounds, clause: str, cause: str, one: Exchange, due: int, gap_ns: int, promise: str, *witnesses: int,
    late_ms: int | None = None, since_t: int | None = None, through: bool = False,
) -> Row:  # fmt: skip
    """The row of a request whose response is promised by `due`. `gap_ns`: the lateness that a broken broker would have.
    `since_t`: the begin of the wait, if another request began it."""
    by = bounds.by(
        one.t if since_t is None else since_t,
        due,
        one.answer_t,
        gap_ns=gap_ns,
        watched_t=one.watched_t,
        late_ms=late_ms,
        through=through,
    )
    return timed(clause, cause, one, by, promise, one.t, *witnesses)


def left_to_its_time_out(bounds: Bounds, clause: str, one: Exchange) -> Row:
    """Judge whether a request that has no reason to wait is answered before half of its time-out. A broker answers a
    forgotten request at the time-out. A response between these two times shows a busy broker. The lateness of the
    machine counts for the whole time, because the operation has several steps."""
    half = one.wait_ms * MS // 2
    promise = f"an answer when the operation is done, long before timeout_ms, {one.wait_ms} ms,"
    cause = "left-to-its-time-out"
    row = in_time(bounds, clause, cause, one, one.t + half, half, promise, through=True)
    early_t = one.t + one.wait_ms * MS - EARLY_NS
    if row.status is not RowStatus.KEPT and one.answer_t and one.answer_t < early_t:
        seen = (
            f"the broker is busy: {said(one)} was done after {after(one.answer_t, one.t)}, before timeout_ms"
        )
        return replace(undecided(clause, seen, cause, row.gaps), busy=True)
    return row


def deleted(bounds: Bounds, one: Exchange, topic: Topic, cause: str, due: int, told: bool) -> Rows:
    """F8, for a request that waited when its topic was deleted, and whose wait ends at `due`. `told`: the response had
    an error."""
    asked_t, deleted_t = topic.delete_t or END_OF_TIME, topic.deleted_t
    if deleted_t is None or not one.t < asked_t < deleted_t < due:
        return
    if one.answer_t is not None and one.answer_t < asked_t:
        return
    row = in_time(
        bounds, "F8", cause, one, deleted_t, due - deleted_t, "an error, because the topic is deleted,",
        late_ms=bounds.declared.late_topics_ms,
    )  # fmt: skip
    yield row.but(told, "deleted-without-error", one, "an error", "no error")


def error_is(
    clause: str, cause: str, one: Exchange, error: int, wanted: int | Collection[int] | None, about: str = "",
    *witnesses: int,
) -> Row:  # fmt: skip
    """Judge whether a request got this error, or one of these; None: any error. `about`: the subject in words."""
    if wanted is None:
        return checked(clause, cause, one, error, f"an error{about}", "no error", *witnesses)
    codes = (wanted,) if isinstance(wanted, int) else sorted(wanted)
    allowed = f"{' or '.join(map(named, codes))}{about}"
    return checked(clause, cause, one, error in codes, allowed, named(error), *witnesses)


def answered_with(
    clause: str, cause: str, one: Exchange, error: int, wanted: int | Collection[int], about: str = "",
    excused: Collection[int] = BUSY,
) -> Row:  # fmt: skip
    """As `error_is`, except for unrelated errors (`excused`), such as those of a busy controller. An error about a
    former leader epoch is related, if the epoch is one that no broker knows yet."""
    if error in excused and (error, wanted) != (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH):
        why = EXCUSED.get(error, "the controller was not reached in time")
        return undecided(clause, f"{named(error)}: {why}", cause)
    return error_is(clause, cause, one, error, wanted, about)


def in_words(name: str, low: int, high: int) -> str:
    """The allowed values of a number."""
    return f"{name} {low}" if low == high else f"{name} from {low} to {high}"


def after(t: int, t0: int) -> str:
    return f"{(t - t0) / MS:.1f} ms"


def said(one: Exchange) -> str:
    """A request in results: the API, the version, the connection, and the correlation id."""
    return f"{one.api} v{one.version} on {one.conn} #{one.corr}"


def named(error: int) -> str:
    return f"{ERRORS.get(error, 'error')} ({error})"
