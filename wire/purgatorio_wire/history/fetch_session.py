"""Fetch sessions (KIP-227): the partitions and the state of each session, computed from the fetches of a scene."""

from dataclasses import replace
from typing import Final

from purgatorio_wire.history.history import FORGOTTEN, Exchange, Part, Scene, integer, items, parts
from purgatorio_wire.trace.record import Body

NO_SESSION, NOT_THE_NEXT = 70, 71
"""FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH."""

_Parts = dict[Part, Body]
"""The partitions of a request or a response."""
_MARKS: Final = ("high_watermark", "log_start_offset")
"""The response of a fetch session contains a partition if one of these fields has changed since the last one."""


def complete_sessions(scene: Scene) -> None:
    """Add to the fetches of a session (KIP-227) all partitions of the session, and to their responses the partitions
    without changes. Then they are judged as other fetches are. A partition that is new in the session, or had an
    error last, must be in the response, so it is not added. A request with an unknown session, or not the next
    epoch, stays as it is, with the expected error."""
    sessions: dict[int, tuple[int, _Parts, _Parts]] = {}
    begun_t: dict[int, int] = {}
    for one in scene.of("fetch"):
        number, epoch = integer(one.body, "session_id"), integer(one.body, "session_epoch", -1)
        if epoch <= 0:
            sessions.pop(number, None)
            if made := integer(one.got, "session_id") if epoch == 0 and not one.error else 0:
                sessions[made], begun_t[made] = (1, dict(one.requested), _told(one)), one.t
            continue
        if number not in sessions or sessions[number][0] != epoch:
            one.session_error = NO_SESSION if number not in sessions else NOT_THE_NEXT
            continue
        one.session, one.session_t = number, begun_t[number]
        if one.error == NO_SESSION:  # the broker evicted the session: it has a limited number
            del sessions[number]
        elif not one.error:
            gone = dict(parts(one.body, FORGOTTEN))
            had, named = sessions[number][1], dict(one.requested)
            asked = {part: said for part, said in (had | named).items() if part not in gone}
            before = sessions[number][2]
            told = before | _told(one)
            sessions[number] = (epoch + 1, asked, told)
            _complete(
                one, asked, told, {*named} - {*had} | {part for part, marks in before.items() if not marks}
            )


def _told(one: Exchange) -> _Parts:
    """The high watermark and log start offset of each partition in a response. Empty for a partition with an error."""
    return {
        part: {name: said[name] for name in _MARKS if name in said and not integer(said, "error_code")}
        for part, said in one.results.items()
    }


def _complete(one: Exchange, asked: _Parts, told_before: _Parts, owed: set[Part]) -> None:
    topics = [{"topic": topic, "partitions": [part]} for (topic, _), part in asked.items()]
    one.body = {**one.body, "session_id": 0, "session_epoch": 0, "topics": topics}
    if one.answer is None or one.answer.body is None:
        return
    named, told = {*one.results}, [*items(one.answer.body, "responses")]
    told += [
        {"topic": topic, "partitions": [
            {**told_before.get(Part(topic, number), {}), "partition_index": number, "error_code": 0, "records": []}]}
        for topic, number in sorted({*asked} - owed - named)
    ]  # fmt: skip
    one.answer = replace(one.answer, body={**one.answer.body, "responses": told})
