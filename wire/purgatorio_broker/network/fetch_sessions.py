"""Fetch sessions (KIP-227): a client sends only changes of its list of partitions, and receives only changed
partitions.

A session is identified by its id, not by a connection. So any client may use it. The epoch of the session allows one
request at a time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from purgatorio_broker.network.fields import Fields, NamedPart, Values

MOST_SESSIONS: Final = 1000
"""Above this number, the oldest session is removed."""
CLOSES: Final = -1
"""The epoch of a fetch without a session. The fetch ends the session that it names."""


class Place(NamedTuple):
    name: str | None
    topic_id: UUID | None
    number: int


def place_of(one: NamedPart) -> Place:
    """The key of a partition: by the id of its topic if the request has one, otherwise by its name."""
    return Place(one.topic if one.topic_id is None else None, one.topic_id, one.partition)


Wanted = dict[Place, Fields]
"""The fields of each partition, in the order of their arrival."""


@dataclass(slots=True)
class FetchSession:
    """The partitions of one client. `epoch`: the epoch of the next request. `told`: the offsets that were last sent for
    each partition. `brought`: the partitions that returned records, which come last in the next response."""

    id: int
    wanted: Wanted
    epoch: int = 1
    told: dict[Place, tuple[object, object]] = field(default_factory=dict)
    brought: list[Place] = field(default_factory=list)

    def news(self, place: Place, said: Values, *, whole: bool) -> bool:
        """Whether the response contains this partition: it has records, an error, or another end or start. A `whole`
        response contains every partition."""
        marks = said.get("high_watermark"), said.get("log_start_offset")
        moved = self.told.get(place) != marks
        self.told[place] = marks
        if said.get("records") and not whole:
            self.brought.append(place)
        return (
            whole
            or moved
            or bool(said.get("records") or said.get("error_code") or said.get("diverging_epoch"))
        )


class FetchSessions:
    """All sessions. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: dict[int, FetchSession] = {}
        self._made = 0

    def begin(self, session_id: int, epoch: int, wanted: Wanted) -> FetchSession | None:
        """Handle a request that lists all its partitions. Epoch 0 begins a session, and epoch -1 begins none. The
        session that the request names ends."""
        with self._lock:
            self._sessions.pop(session_id, None)
            if epoch == CLOSES:
                return None
            self._made += 1
            made = self._sessions[self._made] = FetchSession(self._made, dict(wanted))
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            return made

    def go_on(
        self, session_id: int, epoch: int, wanted: Mapping[Place, Fields], forgotten: Iterable[Place]
    ) -> FetchSession | ErrorCode:
        """The next request of a session, with its changes. Errors: FETCH_SESSION_ID_NOT_FOUND,
        INVALID_FETCH_SESSION_EPOCH."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                return ErrorCode.fetch_session_id_not_found
            if epoch != session.epoch:
                return ErrorCode.invalid_fetch_session_epoch
            session.epoch += 1
            for place in session.brought:
                if place in session.wanted:
                    session.wanted[place] = session.wanted.pop(place)
            session.brought.clear()
            session.wanted.update(wanted)
            for place in forgotten:
                session.wanted.pop(place, None)
                session.told.pop(place, None)
            return session
