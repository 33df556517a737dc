"""Fetch sessions (KIP-227), as the fetches of a scene show them: what each has, was told, and takes next."""

from dataclasses import replace
from typing import Final

from purgatorio_wire.history.history import Exchange, Scene, integer, items, text
from purgatorio_wire.trace.record import Body

NO_SESSION, NOT_THE_NEXT = 70, 71
"""FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH."""

_Parts = dict[tuple[str, int], Body]
"""The partitions of a request or a response, by topic and number."""
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
                sessions[made], begun_t[made] = (1, _parts_of(one.body), _told(one)), one.t
            continue
        if number not in sessions or sessions[number][0] != epoch:
            one.session_error = NO_SESSION if number not in sessions else NOT_THE_NEXT
            continue
        one.session, one.session_t = number, begun_t[number]
        if one.error == NO_SESSION:  # a broker has room for so many
            del sessions[number]
        elif not one.error:
            gone = _forgotten(one.body)
            had, named = sessions[number][1], _parts_of(one.body)
            asked = {part: said for part, said in (had | named).items() if part not in gone}
            before = sessions[number][2]
            told = before | _told(one)
            sessions[number] = (epoch + 1, asked, told)
            _complete(
                one, asked, told, {*named} - {*had} | {part for part, marks in before.items() if not marks}
            )


def _told(one: Exchange) -> _Parts:
    """Where each partition of an answer begins and ends; nothing of one with an error."""
    return {
        (text(topic, "topic"), integer(part, "partition_index")): {
            name: part[name] for name in _MARKS if name in part and not integer(part, "error_code")
        }
        for topic in items(one.got, "responses")
        for part in items(topic, "partitions")
    }


def _complete(one: Exchange, asked: _Parts, told_before: _Parts, owed: set[tuple[str, int]]) -> None:
    topics = [{"topic": topic, "partitions": [part]} for (topic, _), part in asked.items()]
    one.body = {**one.body, "session_id": 0, "session_epoch": 0, "topics": topics}
    if one.answer is None or one.answer.body is None:
        return
    told = [*items(one.answer.body, "responses")]
    named = {
        (text(topic, "topic"), integer(part, "partition_index"))
        for topic in told
        for part in items(topic, "partitions")
    }
    told += [
        {"topic": topic, "partitions": [
            {**told_before.get((topic, number), {}), "partition_index": number, "error_code": 0, "records": []}]}
        for topic, number in sorted({*asked} - owed - named)
    ]  # fmt: skip
    one.answer = replace(one.answer, body={**one.answer.body, "responses": told})


def _parts_of(fetch: Body) -> _Parts:
    return {
        (text(topic, "topic"), integer(part, "partition")): part
        for topic in items(fetch, "topics")
        for part in items(topic, "partitions")
    }


def _forgotten(fetch: Body) -> set[tuple[str, int]]:
    gone: set[tuple[str, int]] = set()
    for topic in items(fetch, "forgotten_topics_data"):
        numbers = topic.get("partitions")
        if isinstance(numbers, list):
            gone |= {(text(topic, "topic"), number) for number in numbers if isinstance(number, int)}
    return gone
