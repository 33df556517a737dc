"""Mutants of fetch sessions: the partitions that a session keeps, removes and reports."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from mutants.broker.client_visible_mutant import felt, told
from purgatorio_broker.network.fetch_sessions import FetchSession, FetchSessions, Place
from purgatorio_broker.network.fields import Fields
from purgatorio_stress.mutant.patch import edited, wrapped


class _Roomed(Fields):
    """The fields of a partition, with the partition_max_bytes of an earlier request."""

    def __init__(self, entity: object, room: int) -> None:
        super().__init__(entity)
        self._room = room

    def number(self, name: str, default: int = 0) -> int:
        return self._room if name == "partition_max_bytes" else super().number(name, default)


def _with_first_rooms(
    go_on: Callable[..., FetchSession | ErrorCode],
    self: FetchSessions,
    session_id: int,
    epoch: int,
    wanted: Mapping[Place, Fields],
    forgotten: Iterable[Place],
) -> FetchSession | ErrorCode:
    session = self._sessions.get(session_id)
    had = {} if session is None else session.wanted
    kept = {
        place: _Roomed(asked._entity, had[place].number("partition_max_bytes")) if place in had else asked
        for place, asked in wanted.items()
    }
    return go_on(self, session_id, epoch, kept, forgotten)


MUTANTS: Final = (
    *told("fetch_sessions"),
    felt("session-error-untold", "a fetch session reports the error of a partition only once",
         "X4 F6",
         edited(FetchSession, "news", 'or said.get("error_code") ', "")),
    felt("first-room-kept", "a partition that is sent again in a fetch session keeps its old partition_max_bytes", "F7",
         wrapped(FetchSessions, "go_on", _with_first_rooms)),
)  # fmt: skip
