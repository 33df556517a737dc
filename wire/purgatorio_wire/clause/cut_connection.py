"""The clause C1: if a connection closes while its requests wait, the broker releases the resources of these requests.
After such a close, the broker serves other connections. It also serves them while one client does not read its
responses."""

from typing import Final

from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row, Rows, after, checked, in_time, kept, undecided
from purgatorio_wire.history.history import Scene, integer, text

LEAST_CUT: Final = 10
GAP_NS: Final = 4000 * MS
"""The lateness of a simple request at a broker that does not continue."""
HELD_UP_NS: Final = 3000 * MS
FILES_LEFT_PART: Final = 10
"""One in this number may stay open, because a broker has other connections too."""


def unread_answers(bounds: Bounds, scene: Scene) -> Rows:
    """Judge requests on other connections while one client does not read its responses. These requests must not wait
    until the client's connection is closed. (The usual bound does not help here, because the measured round trips would
    wait too.)"""
    for x in scene.stimuli:
        lane = scene.lanes.get(text(x.body, "conn"))
        if text(x.body, "what") != "unread" or lane is None or lane.closed is None:
            continue
        until = lane.closed.t
        for one in scene.exchanges:
            if one.conn == lane.name or not x.t < one.t < until or one.wait_ms:
                continue
            late_ns, _ = bounds.machine(one.t, until)
            right, cause, late = one.ended_t < until, "delayed-by-another", (one.t, until)
            if not right and until - one.t < HELD_UP_NS + late_ns:
                yield undecided(
                    "C1", "the request was sent just before the other connection was closed", cause
                )
                continue
            allowed = f"an answer at once, although {lane.name} does not read its responses"
            seen = f"no answer in {after(until, one.t)}, until that connection was closed"
            yield checked("C1", cause, one, right, allowed, seen, late=late)


def cut_connections(bounds: Bounds, scene: Scene) -> Rows:
    """Judge requests on new connections after the cut, and the number of the broker's open files, if it was counted."""
    cut = [
        (lane.closed, one)
        for lane in scene.lanes.values()
        for one in lane.requests
        if lane.closed is not None and lane.closed.by == "us" and not lane.closed.err and one.answer is None
        and one.api == "fetch" and one.t < lane.closed.t < one.t + one.wait_ms * MS
    ]  # fmt: skip
    if len(cut) < LEAST_CUT:
        return
    last_t = max(closed.t for closed, _ in cut)
    for lane in scene.lanes.values():
        for one in lane.requests:
            if one.t > last_t and one.wait_ms == 0 and one.owed:
                promise = f"an answer at once after {len(cut)} closed connections,"
                yield in_time(bounds, "C1", "other-clients-wait", one, one.t, GAP_NS, promise)
    counts = [
        (event, integer(event.body, "files", -1) - integer(event.body, "ours"))
        for event in scene.stimuli
        if event.body is not None and event.body.get("what") == "files"
    ]
    before = [files for event, files in counts if event.t < min(one.t for _, one in cut)]
    let_go_t = max(one.t + one.wait_ms * MS for _, one in cut)
    let_go_t += bounds.declared.late_topics_ms * MS + bounds.added_ns(last_t, scene.end_t)
    behind = [(event, files) for event, files in counts if event.t >= let_go_t]
    if before and behind:
        # A connection that we have and the broker has not taken yet makes a count too small, one that it has not closed
        # yet too large.
        event, files = min(behind, key=lambda one: one[1])
        most = max(before) + len(cut) // FILES_LEFT_PART
        if files <= most:
            yield kept("C1", "files-stay-open")
        else:
            allowed = (
                f"at most {most} other connections after max_wait ({max(before)} before, {len(cut)} closed)"
            )
            seen = f"{files} connections of other clients"
            yield Row("C1", RowStatus.BROKEN, "files-stay-open", "open files", (event.i,), allowed, seen)
