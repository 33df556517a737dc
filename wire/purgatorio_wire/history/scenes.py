"""Makes the scenes of a trace from its events. Requests get their responses, topics their names, and the fetches of a
session all its partitions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from purgatorio_wire.history.fetch_session import complete_sessions
from purgatorio_wire.history.history import END_OF_TIME, Closed, Exchange, Lane, Scene, items, text
from purgatorio_wire.trace.record import Body, WireEvent


def scene_of(name: str, events: Sequence[WireEvent], end_t: int) -> Scene:
    """The history of one scene, from its events in their order."""
    scene = Scene(name, {}, [], [], end_t)
    _read(scene, events)
    throttles = any(one.throttled_ms for one in scene.exchanges)
    unread = {text(one.body, "conn"): one.t for one in scene.stimuli if text(one.body, "what") == "unread"}
    at_second = {text(one.body, "conn") for one in scene.stimuli if text(one.body, "what") == "at-second"}
    for lane in scene.lanes.values():
        _queue(lane, throttles)
        read_t = unread.get(lane.name, end_t)
        for one in lane.requests:
            one.done_t, one.at_second, one.closed = one.answer_t, lane.name in at_second, lane.closed
            one.watched_t = read_t if lane.closed is None else min(lane.closed.t, read_t)
        for one, after in reversed([*pairwise(lane.requests)]):
            if not one.owed:
                one.done_t = after.done_t
    _name_topics(scene)
    complete_sessions(scene)
    return scene


def _read(scene: Scene, events: Iterable[WireEvent]) -> None:
    """Add the events to the lanes of the scene. A response belongs to the request that it names, or else to the last
    request with its correlation id."""
    asked: dict[int, Exchange] = {}
    by_corr: dict[tuple[str, int], Exchange] = {}
    for event in events:
        if event.ev == "stimulus":
            scene.stimuli.append(event)
            continue
        lane = scene.lanes.setdefault(event.conn, Lane(event.conn))
        if event.ev == "open":
            lane.refused = event.err or ""
        elif event.ev == "close":
            lane.closed = lane.closed or Closed(event.i, event.t, event.by or "", event.err or "")
        elif event.ev == "request":
            api, version, body = event.api or "", event.version or 0, event.body or {}
            one = Exchange(event.i, event.t, event.conn, event.corr or 0, api, version, body)
            asked[event.i] = by_corr[event.conn, one.corr] = one
            scene.exchanges.append(one)
            lane.requests.append(one)
        elif event.ev == "answer":
            lane.answers.append(event)
            found = None if event.c is None else asked.get(event.c)
            if found is None:
                found = by_corr.get((event.conn, event.corr or 0))
            if found is not None and found.conn == event.conn:
                if found.answer is None and event.c is not None:
                    found.answer = event
                else:
                    found.again.append(event)


def _queue(lane: Lane, throttles: bool) -> None:
    """Set which requests waited for earlier ones of the connection, and how long a quota may have delayed each.
    `throttles`: whether the broker delays connections. Then an append with acks 0 may have caused an unknown delay,
    until a response comes."""
    free_i = free_t = -1
    unknown = False
    for one in lane.requests:
        one.held_t = END_OF_TIME if unknown else free_t
        one.behind = free_i > one.i or one.held_t > one.t
        unknown = one.answer is None and (unknown or (throttles and not one.owed))
        if one.owed:
            free_i = max(free_i, END_OF_TIME if one.answer is None else one.answer.i)
        if one.answer is not None and one.throttled_ms > 0:
            free_t = max(free_t, one.answer.t + one.throttled_ms * 1_000_000)


_NAMED_BY_ID: Final = {
    "fetch": (("topics", "topic"), ("responses", "topic")),
    "produce": (("topic_data", "name"), ("responses", "name")),
    "share_fetch": (("topics", "topic"), ("responses", "topic")),
    "share_acknowledge": (("topics", "topic"), ("responses", "topic")),
    "offset_commit": (("topics", "name"),) * 2, "offset_fetch": (("topics", "name"),) * 2,
    "delete_topics": (("topics", "name"), ("responses", "name")), "metadata": (("topics", "name"),) * 2,
}  # fmt: skip
"""The requests that may have only topic ids, with the list of topics and the name field of request and response."""


def topic_names(answers: Iterable[Body | None]) -> dict[str, str]:
    """The names of topics by id, from these responses."""
    return {
        text(said, "topic_id"): text(said, "name")
        for body in answers
        for said in items(body, "topics")
        if text(said, "name") and text(said, "topic_id")
    }


def _name_topics(scene: Scene) -> None:
    """Add names to topics that only have ids (KIP-516), from the responses of CreateTopics and Metadata. For an unknown
    id, the id is the name."""
    names = topic_names(one.got for one in scene.of("create_topics", "metadata"))
    for one in scene.of(*_NAMED_BY_ID):
        asked, told = _NAMED_BY_ID[one.api]
        one.body = with_names(one.body, *asked, names)
        one.body = with_names(one.body, "forgotten_topics_data", "topic", names)
        if one.answer is not None and one.answer.body is not None:
            one.answer = replace(one.answer, body=with_names(one.answer.body, *told, names))


def with_names(body: Body, topics: str, name: str, names: Mapping[str, str]) -> Body:
    """The body, with names added to the topics that only have ids, also in each of its groups."""
    if "groups" in body:
        body = {**body, "groups": [with_names(one, topics, name, names) for one in items(body, "groups")]}
    if all(topic.get(name) for topic in items(body, topics)):
        return body
    named = [
        topic
        if topic.get(name)
        else {**topic, name: names.get(text(topic, "topic_id"), text(topic, "topic_id"))}
        for topic in items(body, topics)
    ]
    return {**body, topics: named}


def scenes(events: Iterable[WireEvent], end_t: int) -> Iterator[Scene]:
    """The scenes of a trace, in the order of their first events."""
    by_name: dict[str, list[WireEvent]] = defaultdict(list)
    for event in events:
        if event.ev != "control":
            by_name[event.scene].append(event)
    for name, held in by_name.items():
        yield scene_of(name, held, end_t)
