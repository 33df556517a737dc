"""L1: where a partition begins and ends, as ListOffsets says it."""

from __future__ import annotations

from typing import Final

from purgatorio_spec.wire.bound import Bounds
from purgatorio_spec.wire.fetch import ERRORS
from purgatorio_spec.wire.history import EXCUSED, Exchange, Scene, integer
from purgatorio_spec.wire.log import Log, Topics, settled_parts
from purgatorio_spec.wire.record import Body
from purgatorio_spec.wire.row import Row, Rows, broken, kept, undecided

__all__ = ["offsets_listed"]

LATEST, EARLIEST = -1, -2
ENDS: Final = {LATEST: "the end", EARLIEST: "the start"}


def offsets_listed(_: Bounds, scene: Scene, topics: Topics) -> Rows:
    """The occasions are questions for the ends of partitions with one replica, of which everything is known."""
    for one in scene.of("list_offsets"):
        if one.answer_t is None or one.unread:
            continue
        for part, asked, said in settled_parts(one, topics):
            if integer(asked, "timestamp") in ENDS:
                yield _row(one, integer(asked, "timestamp"), topics.logs[part], said)


def _row(one: Exchange, which: int, log: Log, said: Body | None) -> Row:
    until = one.answer_t or one.t
    error = integer(said, "error_code")
    if said is None or error in EXCUSED:
        return undecided("L1", EXCUSED.get(error, "the partition is not in the answer"))
    if error:
        return broken("L1", "refused", one, ENDS[which], f"{ERRORS.get(error, 'error')} ({error})")
    least, most = log.least_end(one.t), log.most_end(until)
    if which == EARLIEST:
        least = log.low_at(one.t)
        asked = sum(t <= until for t in log.deletes_t)
        # A deletion that is under way may have moved it, up to the end at most.
        most = most if asked > sum(t <= one.t for t, _ in log.low) else least
    offset = integer(said, "offset", -1)
    if least <= offset <= most:
        return kept("L1")
    return broken("L1", "elsewhere", one, f"{ENDS[which]} at {least} to {most}", f"offset {offset}")
